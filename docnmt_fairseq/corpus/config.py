"""Configuration of ``docnmt prepare``: options, sides of the text, splits and their files."""

from dataclasses import asdict, dataclass, field, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.pipeline import SUBWORD, TOKENIZED, TRUECASED, SidePipeline
from docnmt_fairseq.corpus.prepared import manifest_options
from docnmt_fairseq.corpus.subwords import KINDS, NORMALIZATIONS, RELEASED, SubwordOptions
from docnmt_fairseq.corpus.text import ON_EMPTY
from docnmt_fairseq.corpus.tokenizers import CHINESE, TOKENIZERS
from docnmt_fairseq.errors import InputError, refuse
from docnmt_fairseq.files import PathLike
from docnmt_fairseq.options import Choices, option, problems_of

TRAIN, SAMPLE = "train", "sample"
EDITS = "edits"  # folder with edit operations
SAMPLE_DOCUMENTS = 10_000  # default sample of a training text in shards
AND = "+"  # separates the corpora of one split
LIKE_SOURCE, LIKE_TARGET, OWN = MODELS = ("like-source", "like-target", "own")  # models of an extra side
INPUT, TEXT, SUBWORDS, OUTPUT, LARGE = "input", "text", "subwords", "output", "large corpora"  # groups of options
EXTRA_HELP = (
    "extra text of every line, for --extra-sources text:SUFFIX: files PREFIX.SUFFIX of line-aligned formats, or given "
    f"after those of source and target; SUFFIX={'|'.join(MODELS)}: its tokenizer, subwords and dictionary "
    f"(default: {LIKE_SOURCE})"
)
Files = Union[str, Sequence[str]]


class Split(NamedTuple):
    """One split: its fairseq name (``train``, ``valid``, ``test``, ``test1``, ...), format, files of each corpus."""

    name: str
    format: str
    corpora: Tuple[Tuple[Path, ...], ...]

    @property
    def paths(self) -> Tuple[Path, ...]:
        """All files."""
        return tuple(path for corpus in self.corpora for path in corpus)


def _required(help_text: str, **metadata: object) -> Any:
    return field(metadata={"help": help_text, "names": None, "also": (), **metadata})


@dataclass(frozen=True)
class PrepareConfig:
    """Options of :func:`~docnmt_fairseq.corpus.prepare.prepare`, and of ``docnmt prepare``.

    ``train`` is a prefix or the files of one corpus, or several corpora separated by "+"; ``valid`` and ``test`` are
    lists of these. ``reader_options`` are options of the formats by name.
    """

    source_lang: str = _required(
        "source language, as in file suffixes", argparse_alias="-s", metavar="LANG", group=INPUT
    )
    target_lang: str = _required("target language", argparse_alias="-t", metavar="LANG", group=INPUT)
    output: PathLike = _required("output folder; run again to continue", metavar="DIR", group=OUTPUT)
    train: Optional[Files] = option(
        None,
        f"training corpus, see --format; several corpora separated by {AND} are one split, here and below",
        nargs="+",
        metavar="PREFIX_OR_FILE",
        group=INPUT,
    )
    valid: Sequence[Files] = option(
        (),
        "valid set; if given again, further sets are named valid1, valid2, ...",
        nargs="+",
        action="append",
        metavar="PREFIX_OR_FILE",
        group=INPUT,
    )
    test: Sequence[Files] = option(
        (),
        "test set; if given again, further sets are named test1, test2, ...",
        nargs="+",
        action="append",
        metavar="PREFIX_OR_FILE",
        group=INPUT,
    )
    format: str = option(
        "delimited", "format of all files, see below", names=readers.READERS, metavar="FORMAT", group=INPUT
    )
    train_format: Optional[str] = option(
        None, "format of --train, if different", names=readers.READERS, metavar="FORMAT", group=INPUT
    )
    valid_format: Optional[str] = option(
        None, "format of --valid, if different", names=readers.READERS, metavar="FORMAT", group=INPUT
    )
    test_format: Optional[str] = option(
        None, "format of --test, if different", names=readers.READERS, metavar="FORMAT", group=INPUT
    )
    reader_options: Mapping[str, Any] = field(default_factory=dict)
    on_empty: str = option("error", "sentence pairs with an empty side", names=Choices(ON_EMPTY), group=INPUT)
    tokenizer: str = option(
        "none",
        "moses: sacremoses; moses-escaped: the same as in fairseq's released models; jieba: Chinese words",
        names=Choices(TOKENIZERS),
        group=TEXT,
    )
    source_tokenizer: Optional[str] = option(
        None, "tokenizer of the source, if different", names=Choices(TOKENIZERS), group=TEXT
    )
    target_tokenizer: Optional[str] = option(
        None, "tokenizer of the target, if different", names=Choices(TOKENIZERS), group=TEXT
    )
    truecase: bool = option(False, "Moses truecasing, trained on --train; not for jieba", group=TEXT)
    subwords: str = option(
        "unigram",
        "unigram and bpe: SentencePiece; subword-nmt: merges inside words (extra bpe); none: the text is segmented",
        names=Choices(KINDS),
        group=SUBWORDS,
    )
    vocab_size: int = option(
        SubwordOptions.vocab_size,
        "pieces of a model, or merges of subword-nmt",
        minimum=1,
        maximum=10_000_000,
        group=SUBWORDS,
    )
    joint: bool = option(
        True,
        "one subword model and dictionary per language (default: one joint)",
        flag="--separate",
        group=SUBWORDS,
    )
    character_coverage: float = option(
        SubwordOptions.character_coverage,
        "share of characters that get a piece, 0.98 to 1",
        minimum=0.98,
        maximum=1,
        metavar="SHARE",
        group=SUBWORDS,
    )
    byte_fallback: bool = option(
        SubwordOptions.byte_fallback,
        "encode characters without a piece as bytes (256 pieces of the vocabulary) instead of <unk>",
        group=SUBWORDS,
    )
    normalization: str = option(
        SubwordOptions.normalization, "of SentencePiece", names=Choices(NORMALIZATIONS), group=SUBWORDS
    )
    subword_model: Sequence[PathLike] = option(
        (),
        "existing SentencePiece model: one joint model, or source and target",
        nargs="+",
        metavar="FILE",
        group=SUBWORDS,
    )
    min_count: int = option(1, "--subwords none, subword-nmt: rarer words become <unk>", group=SUBWORDS)
    max_words: int = option(-1, "--subwords none, subword-nmt: size of a dictionary; -1: unlimited", group=SUBWORDS)
    seed: int = option(
        1, "seed of the samples that are drawn from large corpora", minimum=0, maximum=2**32 - 1, group=SUBWORDS
    )
    workers: int = option(1, "number of processes; docnmt prepare: all available", minimum=1, group=OUTPUT)
    reuse: Optional[PathLike] = option(
        None,
        "earlier output, or an imported model, whose subword models, dictionaries and their options are used",
        metavar="DIR",
        group=INPUT,
    )
    extra: Sequence[str] = option((), EXTRA_HELP, nargs="+", metavar="SUFFIX", group=INPUT)
    edits_of: Optional[str] = option(
        None,
        "automatic post-editing: the source language or the --extra text that holds machine translations; targets, "
        "their post-edits, become edit operations (keep, delete, or a subword to insert)",
        metavar="SIDE",
        group=TEXT,
    )
    source_lang_token: Optional[str] = None  # prepended to source sentences; set by imported models
    target_lang_token: Optional[str] = None
    shards: int = option(
        1,
        "data-bins over which the documents of --train are distributed; fairseq-train reads one per epoch",
        minimum=1,
        group=LARGE,
    )
    sample_documents: Optional[int] = option(
        None,
        "train truecasers, subwords and dictionaries on this many documents of --train, drawn at random with --seed "
        f"(default: all; with --shards {SAMPLE_DOCUMENTS:,})",
        minimum=1,
        group=LARGE,
    )

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language."""
        return self.source_lang, self.target_lang

    @property
    def pipelines(self) -> Dict[str, SidePipeline]:
        """Text processing by side: source, target, and extra sides, which use the models of either or their own."""

        def pipeline(language: str, tokenizer: Optional[str], joint: bool, token: Optional[str] = None) -> SidePipeline:
            return SidePipeline(language, tokenizer or self.tokenizer, self.truecase, self.subwords, joint, token)

        source = pipeline(self.source_lang, self.source_tokenizer, self.joint, self.source_lang_token)
        target = pipeline(self.target_lang, self.target_tokenizer, self.joint, self.target_lang_token)
        found = {self.source_lang: source, self.target_lang: target}
        for name, models in map(_name_and_models, self.extra):
            own = pipeline(name, self.tokenizer, joint=False)
            found[name] = {LIKE_SOURCE: source, LIKE_TARGET: target}.get(models, own)
        return found

    @property
    def subword_options(self) -> SubwordOptions:
        """Training options of subword models."""
        return SubwordOptions(
            self.subwords, self.vocab_size, self.character_coverage, self.normalization, self.seed, self.byte_fallback
        )

    @property
    def sample_size(self) -> int:
        """Number of training documents that models are trained on; 0: all, or no model is trained."""
        wanted = self.sample_documents or (SAMPLE_DOCUMENTS if self.shards > 1 else 0)
        return wanted if self.train and not self.reuse else 0

    @property
    def trained_on(self) -> str:
        """Name of the text that models are trained on."""
        return SAMPLE if self.sample_size else TRAIN

    def shards_of(self, split: str) -> List[str]:
        """Returns the names of the shards of a split; a split that is not sharded is its only shard."""
        return [f"{split}-{number}" for number in range(self.shards)] if split == TRAIN and self.shards > 1 else [split]

    @property
    def stages(self) -> List[str]:
        """Folders of the text, each made from the previous one."""
        tokenized = any(pipeline.tokenizer != "none" for pipeline in self.pipelines.values())
        chosen = {"text": True, TOKENIZED: tokenized, TRUECASED: self.truecase, SUBWORD: True, EDITS: self.edits_of}
        return [stage for stage, needed in chosen.items() if needed]

    @property
    def reading(self) -> readers.Reading:
        """Settings of the readers."""
        return readers.Reading(self.source_lang, self.target_lang, self.on_empty == "drop", self.reader_options)

    def splits(self) -> List[Split]:
        """Returns the splits with their files, train first."""
        named = [("train", self.train_format, self.train)] if self.train else []
        named += [(f"valid{i or ''}", self.valid_format, files) for i, files in enumerate(self.valid)]
        named += [(f"test{i or ''}", self.test_format, files) for i, files in enumerate(self.test)]
        return [self._split(name, chosen or self.format, files) for name, chosen, files in named]

    def _split(self, name: str, chosen: str, files: Files) -> Split:
        arguments = [files] if isinstance(files, str) else list(map(str, files))
        corpora = [list(corpus) for separator, corpus in groupby(arguments, AND.__eq__) if not separator]
        return Split(name, chosen, tuple(tuple(self._resolve(chosen, corpus)) for corpus in corpora))

    def _resolve(self, chosen: str, arguments: Sequence[str]) -> List[Path]:
        """Returns the files of a corpus: those of its format, then those of the extra sides."""
        extra = list(self.pipelines)[2:]
        if not extra:
            return readers.resolve(chosen, arguments, self.reading)
        aligned = [name for name in readers.READERS.names() if readers.READERS[name].line_aligned]
        if chosen not in aligned or len(arguments) not in (1, 2 + len(extra)):
            needed = f"format {' or '.join(aligned)}, and a PREFIX or one file per side"
            raise InputError(f"--extra {extra[0]}: needs {needed}, not {chosen} {' '.join(arguments)}")
        files = [Path(file) for file in arguments[2:]] or [Path(f"{arguments[0]}.{side}") for side in extra]
        return [*readers.resolve(chosen, arguments[:2], self.reading), *files]

    def check(self) -> None:
        """Raises :class:`InputError` with all problems if options are out of range or contradict each other."""
        skip = ["subwords"] if self.reuse and self.subwords in RELEASED else []
        refuse([*problems_of(self, PrepareConfig, skip), *self._conflicts()])

    def _conflicts(self) -> Iterator[str]:
        models = len(self.subword_model)
        if self.source_lang == self.target_lang:
            yield "--source-lang and --target-lang must differ"
        if not (self.train or self.valid or self.test):
            yield "nothing to prepare: give --train, --valid or --test"
        if not self.train and not self.reuse and (models == 0 or self.truecase):
            yield "--train is required (or --reuse with an earlier output)"
        if self.reuse and Path(self.output).resolve() == Path(self.reuse).resolve():
            yield "--reuse and --output must be different folders"
        if models and (models > 2 or self.joint != (models == 1) or self.subwords == "none"):
            yield "--subword-model: give one model for joint subwords, two for --separate, none for --subwords none"
        for side, language in zip(("source", "target"), self.languages):
            if self.pipelines[language].tokenizer == "jieba" and not language.lower().startswith(CHINESE):
                yield f"--{side}-tokenizer jieba: segments Chinese, not {language}; choose a tokenizer per side"
        taken = [*self.languages]
        for name, chosen in map(_name_and_models, self.extra):
            if not name or "/" in name or chosen not in MODELS:
                yield f"--extra {name}={chosen}: must be SUFFIX or SUFFIX={'|'.join(MODELS)}"
            if name in taken:
                yield f"--extra {name}: another side has this name"
            taken.append(name)
        if self.edits_of is not None:
            yield from self._edit_conflicts(self.edits_of)

    def _edit_conflicts(self, edits_of: str) -> Iterator[str]:
        """Words can be kept only if both sides are segmented and cased in the same way."""
        sides = {name: pipeline for name, pipeline in self.pipelines.items() if name != self.target_lang}
        if edits_of not in sides:
            yield f"--edits-of {edits_of}: must be the side with machine translations, one of {', '.join(sides)}"
            return
        side, target = sides[edits_of], self.pipelines[self.target_lang]
        one_model = side.language == self.source_lang and (self.joint or self.subwords == "none") and not self.truecase
        if not (side == target or (one_model and side.tokenizer == target.tokenizer)):
            remedy = f"give --extra {edits_of}=like-target"
            if edits_of == self.source_lang:
                remedy = "leave out --separate and --truecase, and give one --tokenizer"
            yield f"--edits-of {edits_of}: must be segmented like the target; {remedy}"

    def as_options(self) -> Dict[str, Any]:
        """Returns the options that the result depends on, apart from files, as JSON values."""
        left_out = {"output", "train", "valid", "test", "workers", "reuse", "subword_model", "reader_options"}
        values = {**asdict(self), **self.reader_options, "extra": list(self.extra)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if name not in left_out
        }


# Options that belong to the models and dictionaries; --reuse takes them from the reused output.
MODEL_OPTIONS = [known.name for known in fields(PrepareConfig) if known.metadata.get("group") in (TEXT, SUBWORDS)]
MODEL_OPTIONS += ["extra", "source_lang_token", "target_lang_token"]


def _name_and_models(extra: str) -> Tuple[str, str]:
    name, _, models = extra.partition("=")
    return name, models or LIKE_SOURCE


def config_of(values: Mapping[str, Any]) -> PrepareConfig:
    """Returns the configuration of options of ``docnmt prepare`` by name, including options of formats."""
    of_readers = readers.all_options()
    return PrepareConfig(
        **{name: value for name, value in values.items() if name not in of_readers},
        reader_options={name: value for name, value in values.items() if name in of_readers},
    )


def with_reused_options(config: PrepareConfig) -> PrepareConfig:
    """Returns the configuration with the model options of the output given by ``reuse``, if any."""
    if config.reuse is None:
        return config
    options = manifest_options(config.reuse, "--reuse")
    languages = (options.get("source_lang"), options.get("target_lang"))
    if languages != config.languages:
        found, wanted = "-".join(map(str, languages)), "-".join(config.languages)
        raise InputError(f"--reuse {config.reuse}: was made for {found}, not {wanted}")
    reused = {name: options[name] for name in MODEL_OPTIONS if name in options}
    return replace(config, **reused, subword_model=())
