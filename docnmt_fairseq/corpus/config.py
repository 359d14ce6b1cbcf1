"""What ``docnmt prepare`` is asked to do, checked before anything is read."""

import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.corpus.sides import Side, extra_problems, sides_of, split_arguments
from docnmt_fairseq.corpus.subwords import KINDS, NORMALIZATIONS, SubwordOptions
from docnmt_fairseq.corpus.text import ON_EMPTY
from docnmt_fairseq.corpus.tokenizers import CHINESE, TOKENIZERS, missing_library
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of

MANIFEST = "manifest.json"
AND = "+"  # between the files of corpora that make one split

# What a reused output settles: they belong to its models and dictionaries.
MODEL_OPTIONS = (
    "tokenizer",
    "source_tokenizer",
    "target_tokenizer",
    "truecase",
    "subwords",
    "vocab_size",
    "joint",
    "character_coverage",
    "normalization",
    "subword_model",
    "min_count",
    "max_words",
    "seed",
    "extra",
    "edits_of",
)

OLD_NAMES = {"further": "extra"}  # of options, in manifests of version 0.1

Files = Union[str, Sequence[str]]


class Split(NamedTuple):
    """One part of the data: its fairseq name (``train``, ``valid``, ``test``, ``test1``, ...), format and corpora."""

    name: str
    format: str
    corpora: Tuple[Tuple[Path, ...], ...]

    @property
    def paths(self) -> Tuple[Path, ...]:
        """All files."""
        return tuple(path for corpus in self.corpora for path in corpus)


@dataclass(frozen=True)
class PrepareConfig:
    """Options of :func:`~docnmt_fairseq.corpus.prepare.prepare`.

    ``train`` is a prefix or the files of one corpus, as its format takes them, or several corpora with "+" between;
    ``valid`` and ``test`` are lists of these. Formats of single splits go before ``format``, tokenizers of one side
    before ``tokenizer``. ``reader_options`` are those of the formats by name, such as ``columns``. ``joint`` means one
    subword model and one dictionary for both languages. ``subword_model`` is
    one joint SentencePiece model, or two: source, target. ``reuse`` is an earlier output whose models and dictionaries
    are taken; then no training text is needed. ``extra`` are extra sides of the corpora, see
    :mod:`~docnmt_fairseq.corpus.sides`. ``edits_of`` is the side with machine translations: the target, their
    post-edits, is then written as edit operations on them.
    """

    source_lang: str
    target_lang: str
    output: PathLike
    train: Optional[Files] = None
    valid: Sequence[Files] = ()
    test: Sequence[Files] = ()
    format: str = "delimited"
    train_format: Optional[str] = None
    valid_format: Optional[str] = None
    test_format: Optional[str] = None
    reader_options: Mapping[str, Any] = field(default_factory=dict)
    on_empty: str = "error"
    tokenizer: str = "none"
    source_tokenizer: Optional[str] = None
    target_tokenizer: Optional[str] = None
    truecase: bool = False
    subwords: str = "unigram"
    vocab_size: int = SubwordOptions.vocab_size
    joint: bool = True
    character_coverage: float = SubwordOptions.character_coverage
    normalization: str = SubwordOptions.normalization
    subword_model: Sequence[PathLike] = ()
    min_count: int = 1
    max_words: int = -1
    seed: int = 1
    workers: int = 1
    reuse: Optional[PathLike] = None
    extra: Sequence[str] = ()
    edits_of: Optional[str] = None

    @property
    def sides(self) -> List[Side]:
        """All sides of the text: source, target, and extra ones."""
        return sides_of(self.languages, self.tokenizers, self.tokenizer, self.extra)

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language."""
        return self.source_lang, self.target_lang

    @property
    def tokenizers(self) -> Tuple[str, str]:
        """Tokenizers of source and target."""
        return self.source_tokenizer or self.tokenizer, self.target_tokenizer or self.tokenizer

    @property
    def subword_options(self) -> SubwordOptions:
        """The part that trains a subword model."""
        return SubwordOptions(self.subwords, self.vocab_size, self.character_coverage, self.normalization, self.seed)

    @property
    def reading(self) -> readers.Reading:
        """The part that the readers need."""
        return readers.Reading(self.source_lang, self.target_lang, self.on_empty == "drop", self.reader_options)

    @property
    def formats(self) -> List[str]:
        """The formats of the splits."""
        own = ((self.train, self.train_format), (self.valid, self.valid_format), (self.test, self.test_format))
        return list(dict.fromkeys(chosen or self.format for files, chosen in own if files))

    def splits(self) -> List[Split]:
        """Returns the splits with their files, train first.

        Raises:
            InputError: unknown format, wrong number of files, missing file.
        """
        wanted = [("train", self.train_format, self.train)] if self.train else []
        wanted += [(_numbered("valid", i), self.valid_format, files) for i, files in enumerate(self.valid)]
        wanted += [(_numbered("test", i), self.test_format, files) for i, files in enumerate(self.test)]
        found = []
        for name, own_format, files in wanted:
            arguments = [files] if isinstance(files, str) else [str(file) for file in files]
            chosen = own_format or self.format
            corpora = []
            for corpus in _corpora(arguments):
                of_pair, extra = split_arguments(chosen, corpus, self.sides[2:])
                corpora.append((*readers.resolve(chosen, of_pair, self.reading), *extra))
            found.append(Split(name, chosen, tuple(corpora)))
        return found

    def check(self) -> None:
        """Does nothing if the options fit together.

        Raises:
            InputError: they do not; names all problems.
        """
        problems = list(self._problems())
        if problems:
            raise InputError("; ".join(problems))

    def _problems(self) -> List[str]:
        output, reuse = Path(self.output), self.reuse and Path(self.reuse)
        reads = bool(self.train or self.valid or self.test)
        counts = self.vocab_size > 0 and self.workers > 0 and 0 < self.character_coverage <= 1
        models = len(self.subword_model)
        no_models = not reuse and (models == 0 or self.truecase)
        return [
            problem
            for wrong, problem in (
                (self.source_lang == self.target_lang, "--source-lang and --target-lang must differ"),
                (not reads, "nothing to prepare: give --train, --valid or --test"),
                (no_models and not self.train, "--train is needed (or --reuse with an earlier output)"),
                (output.exists() and not output.is_dir(), f"--output {output}: is not a folder"),
                (reuse and output.resolve() == reuse.resolve(), "--reuse and --output must be different folders"),
                (self.on_empty not in ON_EMPTY, f"--on-empty must be one of {', '.join(ON_EMPTY)}"),
                *self._reader_problems(),
                *self._tokenizer_problems(),
                *self._edits_problems(),
                (self.subwords not in KINDS, f"--subwords must be one of {', '.join(KINDS)}"),
                (self.normalization not in NORMALIZATIONS, f"--normalization: one of {', '.join(NORMALIZATIONS)}"),
                (not counts, "--vocab-size and --workers must be at least 1, --character-coverage in (0, 1]"),
                (models > 2, "--subword-model takes one joint model, or two: source, target"),
                (models and self.subwords == "none", "--subword-model cannot go with --subwords none"),
                (
                    models and self.joint != (models == 1),
                    "--subword-model: one file for joint, two for separate subwords",
                ),
                *((True, problem) for problem in extra_problems(self.extra, self.languages)),
            )
            if wrong
        ]

    def _reader_problems(self) -> Iterator[Tuple[bool, str]]:
        """Options that no format of a split has; their values are for the readers to check."""
        known = {option.name for name in self.formats for option in readers.options_of_format(name)}
        for name in self.reader_options:
            yield name not in known, f"{flag_of(name)}: is no option of format {' or '.join(self.formats)}"

    def _tokenizer_problems(self) -> Iterator[Tuple[bool, str]]:
        yield not {*self.tokenizers} <= {*TOKENIZERS}, f"--tokenizer must be one of {', '.join(TOKENIZERS)}"
        for side, kind, language in zip(("source", "target"), self.tokenizers, self.languages):
            wrong = kind == "jieba" and not language.lower().startswith(CHINESE)
            yield wrong, f"--{side}-tokenizer jieba: splits Chinese, not {language}; give each side its own"
            library = missing_library(kind)
            yield bool(library), f"--{side}-tokenizer {kind}: needs the package {library}; run pip install {library}"

    def _edits_problems(self) -> Iterator[Tuple[bool, str]]:
        """Words can be kept only where both sides are split and cased alike."""
        if self.edits_of is None:
            return
        option = f"--edits-of {self.edits_of}"
        sides = {side.name: side for side in self.sides if side.name != self.target_lang}
        if self.edits_of not in sides:
            yield True, f"{option}: must be the side with machine translations, one of {', '.join(sides)}"
            return
        side = sides[self.edits_of]
        one_model = side.models_of == self.source_lang and (self.joint or self.subwords == "none") and not self.truecase
        alike = side.models_of == self.target_lang or (one_model and len({*self.tokenizers}) == 1)
        remedy = f"--extra {side.name}=like-target; or of the source one --tokenizer, no --truecase, no --separate"
        yield not alike, f"{option}: must be split into words and subwords as the target is: {remedy}"

    def as_options(self) -> Dict[str, Any]:
        """Returns what the result depends on beside the files, as JSON values."""
        left_out = {"output", "train", "valid", "test", "workers", "reuse", "subword_model", "reader_options"}
        values = {key: value for key, value in asdict(self).items() if key not in left_out}
        return {
            **values,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in self.reader_options.items()},
            "extra": list(self.extra),
        }


def config_of(values: Mapping[str, Any]) -> PrepareConfig:
    """The configuration of options of ``docnmt prepare`` by name, those of formats among them.

    Raises:
        InputError: an option that there is not.
    """
    own, of_readers = {known.name for known in fields(PrepareConfig)} - {"reader_options"}, readers.all_options()
    unknown = [name for name in values if name not in own and name not in of_readers]
    if unknown:
        raise InputError(f"no such option of docnmt prepare: {', '.join(unknown)}")
    return PrepareConfig(
        **{name: value for name, value in values.items() if name in own},
        reader_options={name: value for name, value in values.items() if name in of_readers},
    )


def _corpora(arguments: Sequence[str]) -> List[List[str]]:
    """Returns the arguments of each of the corpora that stand with "+" between them."""
    corpora: List[List[str]] = [[]]
    for argument in arguments:
        if argument == AND:
            corpora.append([])
        else:
            corpora[-1].append(argument)
    if not all(corpora):
        raise InputError(f"{' '.join(arguments)}: {AND} stands between corpora, with files before and after it")
    return corpora


def _numbered(name: str, index: int) -> str:
    return f"{name}{index}" if index else name


def with_reused_options(config: PrepareConfig) -> PrepareConfig:
    """Returns the configuration with all options of ``MODEL_OPTIONS`` as the reused output was made with.

    Raises:
        InputError: the folder is no finished output, or is of another language pair.
    """
    if config.reuse is None:
        return config
    options = manifest_options(config.reuse, "--reuse")
    languages = (options.get("source_lang"), options.get("target_lang"))
    if languages != config.languages:
        raise InputError(
            f"--reuse {config.reuse}: was made for {'-'.join(map(str, languages))}, not {'-'.join(config.languages)}"
        )
    settled = {name: options[name] for name in MODEL_OPTIONS if name in options}
    return replace(config, **settled, subword_model=())


def manifest_options(output: PathLike, option: str) -> Dict[str, Any]:
    """Returns the options that a finished output was made with; ``option`` says in errors where it came from.

    Raises:
        InputError: the folder is no finished output.
    """
    try:
        options = json.loads((Path(output) / MANIFEST).read_text(encoding="utf-8"))["options"]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{option} {output}: not a finished output of docnmt prepare (no {MANIFEST})") from error
    return {OLD_NAMES.get(name, name): value for name, value in options.items()}
