"""Tokenisers, truecasers and their inverses: Moses through sacremoses, Chinese word segmentation with Jieba.

``moses-escaped`` is Moses as used by fairseq's released models: hyphens between letters are tokens (``@-@``), and
characters that Moses reserves are escaped (``&apos;``).
"""

import logging
import re
import tempfile
import warnings
from pathlib import Path
from typing import Callable

from tqdm import tqdm

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import needs_extra
from docnmt_fairseq.files import PathLike, atomic_path

TOKENIZERS = ("none", "moses", "moses-escaped", "jieba")
CHINESE = ("zh", "cmn", "yue", "chi")  # prefixes of the codes of languages that Jieba segments

# A space next to a Chinese character or full-width punctuation, or next to general punctuation of Chinese text.
WIDE = "\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff\u2014\u2018-\u201d\u2026"
SPACE_NEXT_TO_WIDE = re.compile(f"(?<=[{WIDE}]) | (?=[{WIDE}])")

SentenceFunction = Callable[[str], str]


def tokenizer(kind: str, language: str) -> SentenceFunction:
    """Returns the function from a sentence to tokens separated by spaces."""
    if kind == "none":
        return str
    if kind == "jieba":
        return _jieba()
    from sacremoses import MosesTokenizer

    escaped, moses = kind == "moses-escaped", MosesTokenizer(lang=language)
    return lambda text: moses.tokenize(text, aggressive_dash_splits=escaped, return_str=True, escape=escaped)


def detokenizer(kind: str, language: str) -> SentenceFunction:
    """Returns the inverse of :func:`tokenizer`, as far as tokens determine the text."""
    if kind == "none":
        return str
    if kind == "jieba":
        return lambda text: SPACE_NEXT_TO_WIDE.sub("", text)
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(lang=language)
    return lambda text: moses.detokenize(text.split(), return_str=True, unescape=kind == "moses-escaped")


def _jieba() -> SentenceFunction:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jieba imports pkg_resources, which is deprecated
        with needs_extra("jieba", "--tokenizer jieba"):
            import jieba

    jieba.setLogLevel(logging.WARNING)
    words = jieba.Tokenizer()
    # Jieba's default cache is shared by all users and may have been made from another dictionary.
    with tempfile.TemporaryDirectory() as folder:
        words.tmp_dir = folder
        words.initialize()
    return lambda text: " ".join(" ".join(words.cut(text)).split())


MAX_TRUECASER_WORDS = 100_000_000  # sacremoses' default limit of two million is too low for large corpora


def train_truecaser(text: PathLike, model: PathLike) -> None:
    """Trains a Moses truecaser on a delimited, tokenised file and writes its model."""
    from sacremoses import MosesTruecaser

    lines = tqdm(read_lines(text), desc=f"models/{Path(model).name}", unit=" lines", disable=None)
    sentences = (line.split() for line in lines if not is_boundary(line))
    with atomic_path(model) as temporary:
        MosesTruecaser().train(sentences, save_to=str(temporary))


def truecaser(model: PathLike) -> SentenceFunction:
    """Loads a truecaser that :func:`train_truecaser` wrote.

    Like truecase.perl, it keeps forms that occur inside training sentences ("US" and "us").
    """
    from sacremoses import MosesTruecaser

    class Truecaser(MosesTruecaser):
        MAX_MODEL_ENTRIES = MAX_TRUECASER_WORDS

    caser = Truecaser(load_from=str(model))
    return lambda text: caser.truecase(text, return_str=True, use_known=True)


def detruecaser() -> SentenceFunction:
    """Returns the function that capitalises the first word of a sentence."""
    from sacremoses import MosesDetruecaser

    caser = MosesDetruecaser()
    return lambda text: caser.detruecase(text, return_str=True)
