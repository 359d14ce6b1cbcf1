"""What ``docnmt prepare`` did to the text of a model, done to new text in memory, and undone."""

from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.bpe_codes import JOINER
from docnmt_fairseq.corpus.joining import join_subwords
from docnmt_fairseq.corpus.language_tokens import beginning_with
from docnmt_fairseq.corpus.prepared import is_prepared
from docnmt_fairseq.corpus.reusing import manifest_options
from docnmt_fairseq.corpus.subwords import WITH_CODES, subword_encoder, subword_model_name
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.corpus.tokenizers import SentenceFunction, detokenizer, tokenizer
from docnmt_fairseq.corpus.transform import BatchFunction, transform_lines
from docnmt_fairseq.corpus.truecasing import detruecaser, has_case, truecaser, truecaser_name
from docnmt_fairseq.errors import InputError

if TYPE_CHECKING:
    from fairseq.data import Dictionary
    from torch import Tensor

LANGUAGE_TOKENS = ("source_lang_token", "target_lang_token")  # the options of these


class TextCodec:
    """Turns sentences into tokens and back as ``docnmt prepare`` did, or leaves both as they are.

    Args:
        data: the folder that ``docnmt prepare`` wrote; a data-bin alone: text is taken as tokens between spaces.
        tokenized: text is taken as such all the same.

    Raises:
        InputError: on first use: a model is missing; a library is not installed; the target is edit operations.
    """

    def __init__(self, data: Path, tokenized: bool = False):
        self.data = data
        self.options: Dict[str, Any] = {}
        if not tokenized and is_prepared(data):
            self.options = manifest_options(data, "--data")
        self._encoders: Dict[int, BatchFunction] = {}  # by side

    @classmethod
    def of_output(cls, data: Path) -> "TextCodec":
        """The codec of an output of ``docnmt prepare``.

        Raises:
            InputError: it is no finished output.
        """
        manifest_options(data, "--data")  # without one text would be left as it is
        return cls(data)

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language of an output of ``docnmt prepare``."""
        return self.options["source_lang"], self.options["target_lang"]

    def load(self) -> None:
        """Loads what is needed from source text to target text, so that what is missing is said before any work."""
        self._encoder(0)
        self._decode  # noqa: B018

    def begin(self, side: int) -> List[str]:
        """What sentences of the source (0) or target (1) begin with: their language token, or nothing."""
        token = self.options.get(LANGUAGE_TOKENS[side])
        return [token] if token else []

    def encode(self, side: int, sentences: List[str]) -> List[str]:
        """Sentences of the source (0) or target (1) as tokens with spaces between."""
        return self._encoder(side)(sentences) if sentences else []

    def encode_lines(self, side: int, lines: Sequence[str]) -> List[str]:
        """Delimited text as tokens with spaces between; marks stay as they are."""
        return transform_lines(lines, partial(self.encode, side))

    def decode(self, tokens: str) -> str:
        """A target sentence of tokens as plain text."""
        return self._decode(tokens)

    def _encoder(self, side: int) -> BatchFunction:
        if side not in self._encoders:
            self._encoders[side] = self._new_encoder(side)
        return self._encoders[side]

    def _new_encoder(self, side: int) -> BatchFunction:
        if not self.options:
            return lambda sentences: [" ".join(sentence.split()) for sentence in sentences]
        encode = encoder(self.data, self.options, side)
        return lambda sentences: encode(list(map(normalise, sentences)))

    @cached_property
    def _decode(self) -> SentenceFunction:
        if not self.options:
            return str
        joins, to_text = joins_of(self.options), decoder(self.options)
        begin = " ".join([*self.begin(1), ""])
        return lambda tokens: to_text(join_subwords(tokens.removeprefix(begin), joins).strip())


def token_ids(lines: Sequence[str], dictionary: "Dictionary") -> "List[Tensor]":
    """Delimited lines of tokens as tensors of their numbers in a dictionary, an end of sentence behind each."""
    return [dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines]


def tokenizers_of(options: Mapping[str, Any]) -> Tuple[str, str]:
    """The tokenizers of source and target from the options of a manifest."""
    source, target = (options.get(f"{side}_tokenizer") or options["tokenizer"] for side in ("source", "target"))
    return source, target


def joins_of(options: Mapping[str, Any]) -> Optional[str]:
    """How fairseq joins the subwords, None if there are none."""
    if options["subwords"] in WITH_CODES:
        return f"{JOINER} "
    return None if options["subwords"] == "none" else "sentencepiece"


def plain_text(language: str, tokenizer: str, truecased: bool) -> Callable[[str], str]:
    """The function from a sentence of tokens to plain text.

    Args:
        language: of the sentences.
        tokenizer: kind that made the tokens.
        truecased: whether sentences need their capital back.
    """
    detokenize = detokenizer(tokenizer, language)
    if not truecased or not has_case(tokenizer):
        return detokenize
    detruecase = detruecaser()
    return lambda tokens: detokenize(detruecase(tokens))


def encoder(folder: Path, options: Mapping[str, Any], side: int) -> BatchFunction:
    """The function from normalised sentences of the source (0) or target (1) to subwords with spaces between.

    Args:
        folder: an output of ``docnmt prepare``.
        options: of its manifest.
        side: whose steps.

    Raises:
        InputError: a model is missing; a library is not installed; the target is edit operations.
    """
    if side == 1:
        _refuse_operations(options)
    language, kind = options[("source_lang", "target_lang")[side]], tokenizers_of(options)[side]
    steps: List[BatchFunction] = [_of_each(tokenizer(kind, language))]
    if options["truecase"] and has_case(kind):
        steps.append(_of_each(truecaser(folder / "models" / truecaser_name(language))))
    if options["subwords"] != "none":
        model = folder / "models" / subword_model_name(options["joint"], language)
        steps.append(subword_encoder(model, kind=options["subwords"]))
    token = options.get(LANGUAGE_TOKENS[side])
    return beginning_with(token, partial(_one_after_another, steps))


def decoder(options: Mapping[str, Any]) -> SentenceFunction:
    """The function from a target sentence of tokens, its subwords joined, to plain text.

    Raises:
        InputError: the target is edit operations.
    """
    _refuse_operations(options)
    return plain_text(options["target_lang"], tokenizers_of(options)[1], options["truecase"])


def _refuse_operations(options: Mapping[str, Any]) -> None:
    if options.get("edits_of"):
        raise InputError(
            f"the targets of this data are edit operations on its {options['edits_of']} side (--edits-of), not text; "
            "fairseq-generate writes such, and docnmt postprocess applies them"
        )


def _of_each(function: SentenceFunction) -> BatchFunction:
    return lambda sentences: list(map(function, sentences))


def _one_after_another(steps: List[BatchFunction], sentences: List[str]) -> List[str]:
    for step in steps:
        sentences = step(sentences)
    return sentences
