"""Small data sets in native formats, for smoke runs without a network: the files and archives a recipe asks for."""

import gzip
import io
import random
import tarfile
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Sequence, Tuple

import numpy as np

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import DatasetConfig, Download

DOCUMENTS = {"train": 30, "valid": 3, "test": 2}  # of each corpus; a further test set has as many as the first
WORDS = 30
SECOND_PERSONS = {"de": ("du", "Sie")}  # by target language; a document keeps to one of them, the source has YOU
YOU = "you"
HANZI = "天地人山水火木日月石田目耳口手足心力工土大小中上下左右多少好来去见听说走看吃书车门花鸟鱼马牛羊云雨风"

Pairs = List[Tuple[str, str]]  # the sentences of one document, both sides
Texts = Sequence[List[str]]  # the sentences of every document, one side
Content = Dict[str, bytes]


def words_of(language: str) -> List[str]:
    """``WORDS`` made-up words of a language; those of two languages with the same place mean the same."""
    chance = random.Random(language)
    if language == "zh":
        signs = chance.sample(HANZI, len(HANZI))
        return [signs[i % len(signs)] + signs[(7 * i + 1) % len(signs)] for i in range(WORDS)]
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    return ["".join(chance.choices(syllables, k=chance.randint(1, 3))) for _ in range(WORDS)]


def documents(count: int, languages: Sequence[str], seed: int) -> List[Pairs]:
    """Documents of 4 to 7 sentences of 3 to 6 words, translated word by word.

    Every other sentence ends with a second person where the target language has several.
    """
    chance = random.Random(seed)
    vocabularies = [words_of(language) for language in languages]
    made: List[Pairs] = []
    persons = SECOND_PERSONS.get(languages[1], ())
    for number in range(count):
        document: Pairs = []
        for row in range(chance.randint(4, 7)):
            numbers = [chance.randrange(WORDS) for _ in range(chance.randint(3, 6))]
            source, target = (_sentence(words, numbers) for words in vocabularies)
            if persons and row % 2:
                source, target = f"{source[:-1]} {YOU}.", f"{target[:-1]} {persons[number % len(persons)]}."
            document.append((source, target))
        made.append(document)
    return made


def _sentence(words: List[str], numbers: List[int]) -> str:
    if words[0][0] in HANZI:
        return "".join(words[i] for i in numbers) + "。"
    return " ".join(words[i] for i in numbers).capitalize() + "."


def made_from(dataset: DatasetConfig) -> Dict[str, Any]:
    """What the files of a data set depend on, as JSON values."""
    return {
        "languages": [dataset.source_lang, dataset.target_lang],
        "splits": [
            [name, asdict(split), dataset.scores.files_of_lines(name)] for name, split in dataset.splits.items()
        ],
        "features": dataset.features,
        "downloads": [asdict(download) for download in dataset.downloads],
    }


def write_raw(dataset: DatasetConfig, folder: Path, packed: bool = True) -> None:
    """Writes all files of a data set, filled with made-up text, into a folder.

    Args:
        dataset: which files, in which formats and archives.
        folder: to write to.
        packed: in the archives as they are downloaded; False: unpacked.

    Raises:
        InputError: nothing can be made up in one of the formats, or for one of the metrics.
    """
    for split, about in dataset.splits.items():
        _refuse_other("format", [about.format], WRITERS)
        _refuse_other("scores: options:", dataset.scores.files_of_lines(split), LABELS)
    contents: Content = {}
    languages = (dataset.source_lang, dataset.target_lang)
    for split_number, (split, about) in enumerate(dataset.splits.items()):
        rows: List[str] = []
        for corpus_number, files in enumerate(about.corpora):
            count = DOCUMENTS.get(split, DOCUMENTS["test"])
            made = documents(count, languages, seed=100 * split_number + corpus_number)
            contents.update(WRITERS[about.format](files, made, languages))
            rows += _delimited(_side(made, 1)).splitlines()
        for option, file in dataset.scores.files_of_lines(split).items():
            contents[file] = LABELS[option](rows).encode()
        for of_splits in dataset.features.values():
            contents[of_splits[split]] = _features([row for row in rows if row], seed=split_number)
    pending = [download for download in dataset.downloads if download.holds] if packed else []
    while pending:  # the innermost archives first
        ready = next(one for one in pending if all(name in contents for name in one.holds))
        pending.remove(ready)
        contents[ready.name] = pack(ready, {name: contents.pop(name) for name in ready.holds})
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def _refuse_other(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(
                f"--smoke: no text can be made up for {what} {name} ({', '.join(known)}); give --raw FOLDER"
            )


def _features(sentences: Sequence[str], seed: int) -> bytes:
    """Two rows of five random numbers a sentence, as an ``.npy``."""
    stream = io.BytesIO()
    np.save(stream, np.random.default_rng(seed).standard_normal((len(sentences), 2, 5), dtype=np.float32))
    return stream.getvalue()


def pack(download: Download, members: Content) -> bytes:
    """The archive of these members, in a folder inside it."""
    stream, top = io.BytesIO(), download.name.split(".")[0]
    if download.name.endswith(".zip"):
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(f"{top}/{name}", content)
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def _side(made: List[Pairs], side: int) -> List[List[str]]:
    return [[pair[side] for pair in document] for document in made]


def _a_file_a_side(render: Callable[[Texts], str]) -> Callable[[List[str], List[Pairs], Tuple[str, str]], Content]:
    """The writer of a format whose sides are files of their own."""

    def write(files: List[str], made: List[Pairs], languages: Tuple[str, str]) -> Content:
        return {file: render(_side(made, side)).encode() for side, file in enumerate(files)}

    return write


def _delimited(texts: Texts) -> str:
    return "".join("".join(f"{sentence}\n" for sentence in document) + "\n" for document in texts)


def _ted_tags(texts: Texts) -> str:
    head = "<url>http://example.org/{0}</url>\n<talkid>{0}</talkid>\n<title>A title</title>\n"
    talks = enumerate(texts, start=1)
    return "".join(head.format(n) + "".join(f" {sentence} \n" for sentence in document) for n, document in talks)


def _ted_xml(texts: Texts) -> str:
    talks = []
    for number, document in enumerate(texts, start=1):
        segments = "".join(f'<seg id="{i}"> {sentence} </seg>\n' for i, sentence in enumerate(document, start=1))
        talks.append(f'<doc docid="{number}" genre="lectures">\n{segments}</doc>\n')
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<refset setid="x">\n{"".join(talks)}</refset>\n'


def _opus_moses(files: List[str], made: List[Pairs], languages: Tuple[str, str]) -> Content:
    lines = [(number, row, pair) for number, pairs in enumerate(made) for row, pair in enumerate(pairs, start=1)]
    contents = ["".join(f"{pair[side]}\n" for *_, pair in lines) for side in (0, 1)]
    first, second = sorted(languages)
    names = "".join(f"{first}/0/{n}/1.xml.gz\t{second}/0/{n}/2.xml.gz\t{row}\t{row}\n" for n, row, _ in lines)
    return dict(zip(files, (content.encode() for content in [*contents, names])))


def _opus_xml(files: List[str], made: List[Pairs], languages: Tuple[str, str]) -> Content:
    first, second = sorted(languages)
    groups = []
    for number, pairs in enumerate(made):
        links = "".join(f'<link id="SL{row}" xtargets="{row};{row}" />\n' for row in range(1, len(pairs) + 1))
        names = f'fromDoc="{first}/{number}.xml.gz" toDoc="{second}/{number}.xml.gz"'
        groups.append(f'<linkGrp targType="s" {names}>\n{links}</linkGrp>\n')
    alignment = f'<?xml version="1.0" encoding="utf-8"?>\n<cesAlign version="1.0">\n{"".join(groups)}</cesAlign>\n'
    contents = {files[0]: gzip.compress(alignment.encode(), mtime=0)}
    for side, file in enumerate(files[1:]):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, document in enumerate(_side(made, side)):
                rows = "".join(f'<s id="{row}">{sentence}</s>\n' for row, sentence in enumerate(document, start=1))
                member = f"News-Commentary/raw/{languages[side]}/{number}.xml"
                archive.writestr(member, f'<?xml version="1.0" encoding="utf-8"?>\n<text>\n{rows}</text>\n')
        contents[file] = stream.getvalue()
    return contents


def _wmt_ape(files: List[str], made: List[Pairs], languages: Tuple[str, str]) -> Content:
    """Sentences without their documents; the machine translation is the post-edit with mistakes put in."""
    chance = random.Random(0)
    sentences = [pair for document in made for pair in document]
    sides = {"src": [pair[0] for pair in sentences], "pe": [pair[1] for pair in sentences]}
    sides["mt"] = [_spoilt(sentence, chance) for sentence in sides["pe"]]
    return {file: "".join(f"{line}\n" for line in sides[file.rsplit(".", 1)[1]]).encode() for file in files}


def _spoilt(sentence: str, chance: random.Random) -> str:
    """A sentence in which a word may be lost, doubled or swapped with the next."""
    words = sentence.split()
    place = chance.randrange(len(words) - 1)
    two = words[place : place + 2]
    return " ".join(words[:place] + chance.choice([two, two[:1], two[:1] * 2, two[::-1]]) + words[place + 2 :])


WRITERS = {
    "delimited": _a_file_a_side(_delimited),
    "ted-tags": _a_file_a_side(_ted_tags),
    "ted-xml": _a_file_a_side(_ted_xml),
    "opus-moses": _opus_moses,
    "opus-xml": _opus_xml,
    "wmt-ape": _wmt_ape,
}


def _register_labels(lines: List[str]) -> str:
    """The second person of every line that ends with one."""
    last = [line.rstrip(".").split(" ")[-1] for line in lines]
    persons = [person for several in SECOND_PERSONS.values() for person in several]
    return "".join(f"{number}\t{word}\n" for number, word in enumerate(last) if word in persons)


LABELS = {"register_labels": _register_labels}  # by the option of the metric that reads them
