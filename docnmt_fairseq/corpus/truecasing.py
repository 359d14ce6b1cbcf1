"""Moses truecasing and its reverse, through sacremoses."""

from typing import Callable

from docnmt_fairseq.corpus.files import PathLike, read_lines, written_by_others
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark

MOST_WORDS = 100_000_000  # of a model; sacremoses refuses more than two million unless told


def truecaser_name(language: str) -> str:
    """The file name of a language's model in an output of ``docnmt prepare``."""
    return f"truecaser.{language}"


def has_case(tokenizer: str) -> bool:
    """Whether text of this tokenizer is truecased: Chinese words have no case."""
    return tokenizer != "jieba"


def train_truecaser(text: PathLike, model: PathLike) -> None:
    """Writes the Moses truecaser model learnt from a delimited, tokenised file; memory grows with its words only.

    Raises:
        InputError: the text cannot be read, or the model cannot be written.
    """
    from sacremoses import MosesTruecaser

    sentences = (line.split() for line in read_lines(text) if not is_mark(line))
    with written_by_others(model) as partial:
        MosesTruecaser().train(sentences, save_to=str(partial))


def truecaser(model: PathLike) -> Callable[[str], str]:
    """The truecaser of a model that :func:`train_truecaser` wrote.

    As truecase.perl does, a form that training text has within sentences stays ("US" beside "us").

    Raises:
        InputError: the model cannot be read.
    """
    from sacremoses import MosesTruecaser

    class Truecaser(MosesTruecaser):
        MAX_MODEL_ENTRIES = MOST_WORDS

    try:
        caser = Truecaser(load_from=str(model))
    except (OSError, ValueError, UnicodeError) as error:
        raise InputError(f"{model}: not a truecaser model: {error}") from error
    return lambda text: caser.truecase(text, return_str=True, use_known=True)


def detruecaser() -> Callable[[str], str]:
    """The function that gives the first word of every sentence a capital."""
    from sacremoses import MosesDetruecaser

    caser = MosesDetruecaser()
    return lambda text: caser.detruecase(text, return_str=True)
