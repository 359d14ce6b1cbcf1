"""What ``docnmt prepare`` is asked to do, checked before anything is read."""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from docnmt_fairseq.corpus import bpe_codes, readers
from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.corpus.sides import Side, extra_problems, sides_of, split_arguments
from docnmt_fairseq.corpus.splits import Split, corpora_of, numbered
from docnmt_fairseq.corpus.subwords import KINDS, MERGES, NORMALIZATIONS, RELEASED, SubwordOptions
from docnmt_fairseq.corpus.text import ON_EMPTY
from docnmt_fairseq.corpus.tokenizers import CHINESE, TOKENIZERS, missing_library
from docnmt_fairseq.errors import InputError, refuse
from docnmt_fairseq.options import flag_of

TRAIN, SAMPLE = "train", "sample"
SAMPLED = 10_000  # documents, of training text in shards

Files = Union[str, Sequence[str]]


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
    post-edits, is then written as edit operations on them. ``source_lang_token`` and ``target_lang_token`` are what
    sentences of either side begin with, where the model to be reused wants that; see
    :mod:`~docnmt_fairseq.corpus.language_tokens`. ``shards`` is how many data-bins the training text is dealt out to,
    ``sample_documents`` how many of its documents everything is learnt from: all if there is one data-bin.
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
    byte_fallback: bool = SubwordOptions.byte_fallback
    normalization: str = SubwordOptions.normalization
    subword_model: Sequence[PathLike] = ()
    min_count: int = 1
    max_words: int = -1
    seed: int = 1
    workers: int = 1
    reuse: Optional[PathLike] = None
    extra: Sequence[str] = ()
    edits_of: Optional[str] = None
    source_lang_token: Optional[str] = None
    target_lang_token: Optional[str] = None
    shards: int = 1
    sample_documents: Optional[int] = None

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
    def language_tokens(self) -> Dict[str, Optional[str]]:
        """What sentences begin with, by language."""
        return dict(zip(self.languages, (self.source_lang_token, self.target_lang_token)))

    @property
    def subword_options(self) -> SubwordOptions:
        """The part that trains a subword model."""
        return SubwordOptions(
            self.subwords,
            self.vocab_size,
            self.character_coverage,
            self.normalization,
            self.seed,
            self.byte_fallback,
        )

    @property
    def sampled(self) -> int:
        """How many documents of the training text everything is learnt from; 0: all, or nothing is learnt."""
        given = self.sample_documents or (SAMPLED if self.shards > 1 else 0)
        return given if self.train and not self.reuse else 0

    @property
    def learnt_from(self) -> str:
        """The name of the text that everything is learnt from."""
        return SAMPLE if self.sampled else TRAIN

    def parts(self, split: str) -> List[str]:
        """The names of the texts that a split is dealt out to, its own if that is one."""
        return [f"{split}-{number}" for number in range(self.shards)] if split == TRAIN and self.shards > 1 else [split]

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
        """The splits with their files, train first.

        Raises:
            InputError: unknown format, wrong number of files, missing file.
        """
        wanted = [(TRAIN, self.train_format, self.train)] if self.train else []
        wanted += [(numbered("valid", i), self.valid_format, files) for i, files in enumerate(self.valid)]
        wanted += [(numbered("test", i), self.test_format, files) for i, files in enumerate(self.test)]
        found = []
        for name, own_format, files in wanted:
            arguments = [files] if isinstance(files, str) else [str(file) for file in files]
            chosen = own_format or self.format
            corpora = []
            for corpus in corpora_of(arguments):
                of_pair, extra = split_arguments(chosen, corpus, self.sides[2:])
                corpora.append((*readers.resolve(chosen, of_pair, self.reading), *extra))
            found.append(Split(name, chosen, tuple(corpora)))
        return found

    def check(self) -> None:
        """Does nothing if the options fit together.

        Raises:
            InputError: they do not; names all problems.
        """
        refuse(self._problems())

    def _problems(self) -> List[str]:
        output, reuse = Path(self.output), self.reuse and Path(self.reuse)
        reads = bool(self.train or self.valid or self.test)
        models = len(self.subword_model)
        no_models = not reuse and (models == 0 or self.truecase)
        return [
            problem
            for wrong, problem in (
                (self.source_lang == self.target_lang, "--source-lang and --target-lang must differ"),
                (not reads, "nothing to prepare: give --train, --valid or --test"),
                (no_models and not self.train, "--train is needed (or --reuse with an earlier output)"),
                ("" in (self.output, self.reuse), "--output and --reuse: an empty name; give one, '.' for this folder"),
                (output.exists() and not output.is_dir(), f"--output {output}: is not a folder"),
                (reuse and output.resolve() == reuse.resolve(), "--reuse and --output must be different folders"),
                (self.on_empty not in ON_EMPTY, f"--on-empty must be one of {', '.join(ON_EMPTY)}"),
                (self.shards < 1, "--shards must be at least 1"),
                (self.shards > 1 and not self.train, "--shards: of --train, which is not given"),
                (
                    self.sample_documents is not None and self.sample_documents < 1,
                    "--sample-documents must be at least 1",
                ),
                (self.sample_documents and not self.train, "--sample-documents: of --train, which is not given"),
                (self.sample_documents and reuse, "--sample-documents: --reuse learns nothing"),
                *self._reader_problems(),
                *self._tokenizer_problems(),
                *self._edits_problems(),
                (
                    self.subwords not in KINDS and not (reuse and self.subwords in RELEASED),
                    f"--subwords must be one of {', '.join(KINDS)}",
                ),
                (
                    self.subwords == MERGES and not reuse and not models and bool(bpe_codes.missing_library()),
                    f"--subwords {MERGES}: run pip install '{bpe_codes.missing_library()}'",
                ),
                (self.normalization not in NORMALIZATIONS, f"--normalization: one of {', '.join(NORMALIZATIONS)}"),
                (self.workers < 1, "--workers must be at least 1"),
                *((True, problem) for problem in self.subword_options.problems()),
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
        """What the result depends on beside the files, as JSON values."""
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
