"""Tokenisation and its reverse: Moses through sacremoses, Chinese words through Jieba.

``moses-escaped`` is Moses as fairseq's released models have it: hyphens between letters are tokens (``@-@``), and
characters that Moses' file formats reserve are escaped (``&apos;``).
"""

import importlib.util
import logging
import re
import tempfile
import warnings
from typing import Callable, Dict, Tuple

from docnmt_fairseq.errors import InputError

CHINESE = ("zh", "cmn", "yue", "chi")  # how codes of languages that Jieba splits begin

# A space beside a Chinese character or full-width punctuation, or beside what Chinese text uses of general punctuation.
WIDE = "\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff\u2014\u2018-\u201d\u2026"
SPACE_BESIDE_WIDE = re.compile(f"(?<=[{WIDE}]) | (?=[{WIDE}])")

SentenceFunction = Callable[[str], str]


def tokenizer(kind: str, language: str) -> SentenceFunction:
    """The tokenizer of that kind, from sentence to tokens with spaces between.

    Raises:
        InputError: its library is not installed.
    """
    return _BOTH_WAYS[kind][0](language)


def detokenizer(kind: str, language: str) -> SentenceFunction:
    """The reverse of :func:`tokenizer`, as well as it can be known from tokens."""
    return _BOTH_WAYS[kind][1](language)


def missing_library(kind: str) -> str:
    """What to install for this kind of tokenizer; empty if it can be used."""
    return "jieba" if kind == "jieba" and importlib.util.find_spec("jieba") is None else ""


def _unchanged(language: str) -> SentenceFunction:
    return str


def _moses(language: str) -> SentenceFunction:
    """The Moses tokenizer of a language; nothing is escaped."""
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=language)
    return lambda text: moses.tokenize(text, return_str=True, escape=False)


def _moses_reverse(language: str) -> SentenceFunction:
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(lang=language)
    return lambda text: moses.detokenize(text.split(), return_str=True, unescape=False)


def _moses_escaped(language: str) -> SentenceFunction:
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=language)
    return lambda text: moses.tokenize(text, aggressive_dash_splits=True, return_str=True, escape=True)


def _moses_escaped_reverse(language: str) -> SentenceFunction:
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(lang=language)
    return lambda text: moses.detokenize(text.split(), return_str=True, unescape=True)


def _jieba(language: str) -> SentenceFunction:
    """Jieba's accurate mode with its own dictionary and its model for unknown words."""
    if missing_library("jieba"):
        raise InputError('--tokenizer jieba: the package jieba is not installed; run pip install "jieba>=0.42.1"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it imports pkg_resources, which announces its end
        import jieba

    jieba.setLogLevel(logging.WARNING)
    words = jieba.Tokenizer()
    # Jieba's cache lies where every user writes, and may have been made from another dictionary.
    with tempfile.TemporaryDirectory() as folder:
        words.tmp_dir = folder
        words.initialize()
    return lambda text: " ".join(" ".join(words.cut(text)).split())


def _jieba_reverse(language: str) -> SentenceFunction:
    return lambda text: SPACE_BESIDE_WIDE.sub("", text)


_BOTH_WAYS: Dict[str, Tuple[Callable[[str], SentenceFunction], Callable[[str], SentenceFunction]]] = {
    "none": (_unchanged, _unchanged),
    "moses": (_moses, _moses_reverse),
    "moses-escaped": (_moses_escaped, _moses_escaped_reverse),
    "jieba": (_jieba, _jieba_reverse),
}
TOKENIZERS = tuple(_BOTH_WAYS)
