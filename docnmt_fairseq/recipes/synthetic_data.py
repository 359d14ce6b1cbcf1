"""Synthetic data sets in native formats, for smoke runs without a network: all files and archives of a recipe."""

import gzip
import io
import random
import tarfile
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import DatasetConfig, Download

DOCUMENTS = {"train": 30, "valid": 3, "test": 2}  # per corpus; further test sets: as many as the first
WORDS = 30
SECOND_PERSONS = {"de": ("du", "Sie")}  # by target language; one per document, the source has YOU
YOU = "you"
HANZI = "天地人山水火木日月石田目耳口手足心力工土大小中上下左右多少好来去见听说走看吃书车门花鸟鱼马牛羊云雨风"

Pairs = List[Tuple[str, str]]  # sentence pairs of a document
Texts = Sequence[List[str]]  # sentences of every document, one side
Content = Dict[str, bytes]


def vocabulary(language: str) -> List[str]:
    """Returns ``WORDS`` random words of a language; words of two languages at the same index are translations."""
    rng = random.Random(language)
    if language == "zh":
        signs = rng.sample(HANZI, len(HANZI))
        return [signs[i % len(signs)] + signs[(7 * i + 1) % len(signs)] for i in range(WORDS)]
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    return ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(WORDS)]


def documents(count: int, languages: Sequence[str], seed: int) -> List[Pairs]:
    """Returns documents of 4 to 7 sentences of 3 to 6 words, translated word by word.

    Every second sentence ends with a second person if the target language has several.
    """
    rng = random.Random(seed)
    vocabularies = [vocabulary(language) for language in languages]
    persons = SECOND_PERSONS.get(languages[1], ())
    result: List[Pairs] = []
    for number in range(count):
        document: Pairs = []
        for row in range(rng.randint(4, 7)):
            words = [rng.randrange(WORDS) for _ in range(rng.randint(3, 6))]
            source, target = (_sentence(known, words) for known in vocabularies)
            if persons and row % 2:
                source, target = f"{source[:-1]} {YOU}.", f"{target[:-1]} {persons[number % len(persons)]}."
            document.append((source, target))
        result.append(document)
    return result


def _sentence(known: List[str], words: List[int]) -> str:
    if known[0][0] in HANZI:
        return "".join(known[i] for i in words) + "。"
    return " ".join(known[i] for i in words).capitalize() + "."


def settings_of(dataset: DatasetConfig) -> Dict[str, Any]:
    """Returns everything that the synthetic files depend on, as JSON values."""
    return {
        "languages": [dataset.source_lang, dataset.target_lang],
        "splits": [[name, asdict(split), dataset.scores.line_files(name)] for name, split in dataset.splits.items()],
        "features": dataset.features,
        "downloads": [asdict(download) for download in dataset.downloads],
    }


def write_raw(dataset: DatasetConfig, folder: Path) -> None:
    """Writes all files of a data set, in archives where they are downloaded as such.

    Raises:
        InputError: no generator for a format or a file that a metric reads.
    """
    for split, config in dataset.splits.items():
        for kind, names, known in (
            ("format", [config.format], WRITERS),
            ("scores:", dataset.scores.line_files(split), LABELS),
        ):
            if missing := [name for name in names if name not in known]:
                raise InputError(f"--smoke: no synthetic data for {kind} {', '.join(missing)}; give --raw FOLDER")
    contents: Content = {}
    languages = (dataset.source_lang, dataset.target_lang)
    for split_number, (split, config) in enumerate(dataset.splits.items()):
        rows: List[str] = []
        for corpus_number, files in enumerate(config.corpora):
            count = DOCUMENTS.get(split, DOCUMENTS["test"])
            corpus = documents(count, languages, seed=100 * split_number + corpus_number)
            contents.update(WRITERS[config.format](files, corpus, languages))
            rows += _delimited(_side(corpus, 1)).splitlines()
        for option, file in dataset.scores.line_files(split).items():
            contents[file] = LABELS[option](rows).encode()
        for by_split in dataset.features.values():
            contents[by_split[split]] = _features(sum(map(bool, rows)), seed=split_number)
    pending = [download for download in dataset.downloads if download.holds]
    while pending:  # innermost archives first
        ready = next(one for one in pending if all(name in contents for name in one.holds))
        pending.remove(ready)
        contents[ready.name] = pack(ready, {name: contents.pop(name) for name in ready.holds})
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def pack(download: Download, members: Content) -> bytes:
    """Returns an archive with the members in a folder."""
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


def _features(sentences: int, seed: int) -> bytes:
    """Returns an ``.npy`` file with two rows of five random numbers per sentence."""
    stream = io.BytesIO()
    np.save(stream, np.random.default_rng(seed).standard_normal((sentences, 2, 5), dtype=np.float32))
    return stream.getvalue()


def _side(corpus: List[Pairs], side: int) -> List[List[str]]:
    return [[pair[side] for pair in document] for document in corpus]


def _file_per_side(render: Callable[[Texts], str]) -> Callable[[List[str], List[Pairs], Tuple[str, str]], Content]:
    """Returns the writer of a format with one file per side."""

    def write(files: List[str], corpus: List[Pairs], languages: Tuple[str, str]) -> Content:
        return {file: render(_side(corpus, side)).encode() for side, file in enumerate(files)}

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


def _opus_moses(files: List[str], corpus: List[Pairs], languages: Tuple[str, str]) -> Content:
    lines = [(number, row, pair) for number, pairs in enumerate(corpus) for row, pair in enumerate(pairs, start=1)]
    contents = ["".join(f"{pair[side]}\n" for *_, pair in lines) for side in (0, 1)]
    first, second = sorted(languages)
    names = "".join(f"{first}/0/{n}/1.xml.gz\t{second}/0/{n}/2.xml.gz\t{row}\t{row}\n" for n, row, _ in lines)
    return dict(zip(files, (content.encode() for content in [*contents, names])))


def _opus_xml(files: List[str], corpus: List[Pairs], languages: Tuple[str, str]) -> Content:
    first, second = sorted(languages)
    groups = []
    for number, pairs in enumerate(corpus):
        links = "".join(f'<link id="SL{row}" xtargets="{row};{row}" />\n' for row in range(1, len(pairs) + 1))
        names = f'fromDoc="{first}/{number}.xml.gz" toDoc="{second}/{number}.xml.gz"'
        groups.append(f'<linkGrp targType="s" {names}>\n{links}</linkGrp>\n')
    alignment = f'<?xml version="1.0" encoding="utf-8"?>\n<cesAlign version="1.0">\n{"".join(groups)}</cesAlign>\n'
    contents = {files[0]: gzip.compress(alignment.encode(), mtime=0)}
    for side, file in enumerate(files[1:]):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, document in enumerate(_side(corpus, side)):
                rows = "".join(f'<s id="{row}">{sentence}</s>\n' for row, sentence in enumerate(document, start=1))
                member = f"News-Commentary/raw/{languages[side]}/{number}.xml"
                archive.writestr(member, f'<?xml version="1.0" encoding="utf-8"?>\n<text>\n{rows}</text>\n')
        contents[file] = stream.getvalue()
    return contents


def _wmt_ape(files: List[str], corpus: List[Pairs], languages: Tuple[str, str]) -> Content:
    """Sentences without documents; the machine translation is the post-edit with errors."""
    rng = random.Random(0)
    sentences = [pair for document in corpus for pair in document]
    sides = {"src": [pair[0] for pair in sentences], "pe": [pair[1] for pair in sentences]}
    sides["mt"] = [_with_error(sentence, rng) for sentence in sides["pe"]]
    return {file: "".join(f"{line}\n" for line in sides[file.rsplit(".", 1)[1]]).encode() for file in files}


def _with_error(sentence: str, rng: random.Random) -> str:
    """Returns a sentence in which a word may be dropped, repeated or swapped with the next."""
    words = sentence.split()
    place = rng.randrange(len(words) - 1)
    two = words[place : place + 2]
    return " ".join(words[:place] + rng.choice([two, two[:1], two[:1] * 2, two[::-1]]) + words[place + 2 :])


WRITERS = {
    "delimited": _file_per_side(_delimited),
    "ted-tags": _file_per_side(_ted_tags),
    "ted-xml": _file_per_side(_ted_xml),
    "opus-moses": _opus_moses,
    "opus-xml": _opus_xml,
    "wmt-ape": _wmt_ape,
}


def _register_labels(lines: List[str]) -> str:
    """Second person of every line that ends with one."""
    last = [line.rstrip(".").split(" ")[-1] for line in lines]
    persons = [person for several in SECOND_PERSONS.values() for person in several]
    return "".join(f"{number}\t{word}\n" for number, word in enumerate(last) if word in persons)


LABELS = {"register_labels": _register_labels}  # by option of the metric that reads them
