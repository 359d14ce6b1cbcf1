"""Synthetic delimited text in the place of the files of a data set, for smoke runs without a network."""

import random
from dataclasses import replace
from pathlib import Path
from typing import List, Sequence, Tuple

import numpy as np

from docnmt_fairseq.corpus.readers import all_options
from docnmt_fairseq.evaluation.metrics.pronouns import FORMS
from docnmt_fairseq.recipes.dataset import DatasetConfig, SplitConfig

DOCUMENTS = {"train": 30, "valid": 3}  # of a split
TEST_DOCUMENTS = 2
LENGTHS = {1: 30, 2: 1}  # sentences of a long and a short training document, by number; others have 4 to 7
WORDS = 30
SECOND_PERSONS = {"de": ("du", "Sie")}  # by target language; one per document, the source has YOU
YOU = "you"
HANZI = "天地人山水火木日月石田目耳口手足心力工土大小中上下左右多少好来去见听说走看吃书车门花鸟鱼马牛羊云雨风"

Pairs = List[Tuple[str, str]]  # sentence pairs of a document


def as_delimited(dataset: DatasetConfig) -> DatasetConfig:
    """Returns a data set with the same splits as delimited text, one corpus each, and without downloads."""
    splits = {
        name: replace(split, format="delimited", corpora=[_files(dataset, name, split)], documents=None)
        for name, split in dataset.splits.items()
    }
    prepare = {name: value for name, value in dataset.prepare.items() if name not in all_options()}
    return replace(dataset, splits=splits, prepare=prepare, downloads=[])


def _files(dataset: DatasetConfig, name: str, split: SplitConfig) -> List[str]:
    if split.format in ("delimited", "wmt-ape"):
        return split.corpora[0]
    return [f"{name}.{dataset.source_lang}", f"{name}.{dataset.target_lang}"]


def vocabulary(language: str) -> List[str]:
    """Returns ``WORDS`` random words of a language; words of two languages at the same index are translations."""
    rng = random.Random(language)
    if language == "zh":
        signs = rng.sample(HANZI, len(HANZI))
        return [signs[i % len(signs)] + signs[(7 * i + 1) % len(signs)] for i in range(WORDS)]
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    return ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(WORDS)]


def documents(split: str, languages: Sequence[str], seed: int) -> List[Pairs]:
    """Returns documents of sentences of 3 to 6 words, translated word by word.

    Every second sentence ends with a second person if the target language has several.
    """
    lengths = LENGTHS if split == "train" else {}
    rng = random.Random(seed)
    vocabularies = [vocabulary(language) for language in languages]
    persons = SECOND_PERSONS.get(languages[1], ())
    result: List[Pairs] = []
    for number in range(DOCUMENTS.get(split, TEST_DOCUMENTS)):
        document: Pairs = []
        for row in range(lengths.get(number) or rng.randint(4, 7)):
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


def write_raw(dataset: DatasetConfig, folder: Path) -> None:
    """Writes all files of a data set of delimited text."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    for number, (split, config) in enumerate(dataset.splits.items()):
        corpus = documents(split, (dataset.source_lang, dataset.target_lang), number)
        sides = [[[pair[side] for pair in document] for document in corpus] for side in (0, 1)]
        sides.append([[_with_error(sentence, rng) for sentence in document] for document in sides[1]])
        texts = ["".join("".join(f"{one}\n" for one in document) + "\n" for document in side) for side in sides]
        for file, text in zip(config.corpora[0], texts):
            (folder / file).write_text(text, encoding="utf-8")
        for file in config.references:
            (folder / file).write_text(texts[2], encoding="utf-8")
        if config.leave_out is not None:
            (folder / config.leave_out.names).write_text("".join(f"0\t{one}\n" for one in range(len(corpus))))
            (folder / config.leave_out.listed).write_text("3\n")
        for option, file in dataset.scores.line_files(split).items():
            (folder / file).write_text(LABELS[option](texts[1].splitlines()), encoding="utf-8")
        for by_split in dataset.features.values():
            shape = (sum(map(len, corpus)), 2, 5)  # two rows per sentence
            np.save(folder / by_split[split], np.random.default_rng(number).standard_normal(shape, dtype=np.float32))


def _with_error(sentence: str, rng: random.Random) -> str:
    """Returns a sentence in which a word may be dropped, repeated or swapped with the next."""
    words = sentence.split()
    place = rng.randrange(max(1, len(words) - 1))
    two = words[place : place + 2]
    return " ".join(words[:place] + rng.choice([two, two[:1], two[:1] * 2, two[::-1]]) + words[place + 2 :])


def _register_labels(lines: List[str]) -> str:
    """Second person of every line that ends with one."""
    last = [line.rstrip(".").split(" ")[-1] for line in lines]
    persons = [person for several in SECOND_PERSONS.values() for person in several]
    return "".join(f"{number}\t{word}\n" for number, word in enumerate(last) if word in persons)


def _pronoun_marks(lines: List[str]) -> str:
    """A mark for every sentence, all pronouns in turn; the text has none of them."""
    return "".join(f"{number}\t{list(FORMS)[number % len(FORMS)]}\n" for number, line in enumerate(lines) if line)


LABELS = {"register_labels": _register_labels, "marks": _pronoun_marks}  # by option of a metric
