"""Tokenisers, truecasers and their inverses: Moses through sacremoses, Chinese word segmentation with Jieba.

``moses-escaped`` is Moses as used by fairseq's released models: hyphens between letters are tokens (``@-@``), and
characters that Moses reserves are escaped (``&apos;``).
"""

import importlib.util
import logging
import re
import tempfile
import warnings
from typing import Callable, Dict, Tuple

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike, atomic_path

CHINESE = ("zh", "cmn", "yue", "chi")  # prefixes of the codes of languages that Jieba segments

# A space next to a Chinese character or full-width punctuation, or next to general punctuation of Chinese text.
WIDE = "\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff\u2014\u2018-\u201d\u2026"
SPACE_NEXT_TO_WIDE = re.compile(f"(?<=[{WIDE}]) | (?=[{WIDE}])")

SentenceFunction = Callable[[str], str]


def tokenizer(kind: str, language: str) -> SentenceFunction:
    """Returns the function from a sentence to tokens separated by spaces.

    Raises:
        InputError: its library is not installed.
    """
    return _TOKENIZERS[kind][0](language)


def detokenizer(kind: str, language: str) -> SentenceFunction:
    """Returns the inverse of :func:`tokenizer`, as far as tokens determine the text."""
    return _TOKENIZERS[kind][1](language)


def _unchanged(language: str) -> SentenceFunction:
    return str


def _moses(language: str) -> SentenceFunction:
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=language)
    return lambda text: moses.tokenize(text, return_str=True, escape=False)


def _moses_inverse(language: str) -> SentenceFunction:
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(lang=language)
    return lambda text: moses.detokenize(text.split(), return_str=True, unescape=False)


def _moses_escaped(language: str) -> SentenceFunction:
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=language)
    return lambda text: moses.tokenize(text, aggressive_dash_splits=True, return_str=True, escape=True)


def _moses_escaped_inverse(language: str) -> SentenceFunction:
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(lang=language)
    return lambda text: moses.detokenize(text.split(), return_str=True, unescape=True)


def _jieba(language: str) -> SentenceFunction:
    if importlib.util.find_spec("jieba") is None:
        raise InputError('--tokenizer jieba: the package jieba is not installed; run pip install "jieba>=0.42.1"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jieba imports pkg_resources, which is deprecated
        import jieba

    jieba.setLogLevel(logging.WARNING)
    words = jieba.Tokenizer()
    # Jieba's default cache is shared by all users and may have been made from another dictionary.
    with tempfile.TemporaryDirectory() as folder:
        words.tmp_dir = folder
        words.initialize()
    return lambda text: " ".join(" ".join(words.cut(text)).split())


def _jieba_inverse(language: str) -> SentenceFunction:
    return lambda text: SPACE_NEXT_TO_WIDE.sub("", text)


_TOKENIZERS: Dict[str, Tuple[Callable[[str], SentenceFunction], Callable[[str], SentenceFunction]]] = {
    "none": (_unchanged, _unchanged),
    "moses": (_moses, _moses_inverse),
    "moses-escaped": (_moses_escaped, _moses_escaped_inverse),
    "jieba": (_jieba, _jieba_inverse),
}
TOKENIZERS = tuple(_TOKENIZERS)

MAX_TRUECASER_WORDS = 100_000_000  # sacremoses' default limit of two million is too low for large corpora


def has_case(tokenizer: str) -> bool:
    """Returns True if text of this tokeniser can be truecased: Chinese has no case."""
    return tokenizer != "jieba"


def train_truecaser(text: PathLike, model: PathLike) -> None:
    """Trains a Moses truecaser on a delimited, tokenised file and writes its model."""
    from sacremoses import MosesTruecaser

    sentences = (line.split() for line in read_lines(text) if not is_boundary(line))
    with atomic_path(model) as temporary:
        MosesTruecaser().train(sentences, save_to=str(temporary))


def truecaser(model: PathLike) -> SentenceFunction:
    """Loads a truecaser that :func:`train_truecaser` wrote.

    Like truecase.perl, it keeps forms that occur inside training sentences ("US" and "us").

    Raises:
        InputError: the file is not a truecaser model.
    """
    from sacremoses import MosesTruecaser

    class Truecaser(MosesTruecaser):
        MAX_MODEL_ENTRIES = MAX_TRUECASER_WORDS

    try:
        caser = Truecaser(load_from=str(model))
    except (OSError, ValueError) as error:
        raise InputError(f"{model}: not a truecaser model: {error}") from error
    return lambda text: caser.truecase(text, return_str=True, use_known=True)


def detruecaser() -> SentenceFunction:
    """Returns the function that capitalises the first word of a sentence."""
    from sacremoses import MosesDetruecaser

    caser = MosesDetruecaser()
    return lambda text: caser.detruecase(text, return_str=True)
