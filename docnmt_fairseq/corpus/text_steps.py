"""What ``docnmt prepare`` did to the text of a model, done to new text in memory, and undone."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Tuple

from docnmt_fairseq.corpus.config import manifest_options
from docnmt_fairseq.corpus.subwords import subword_encoder, subword_model_name
from docnmt_fairseq.corpus.tokenizers import detokenizer, tokenizer
from docnmt_fairseq.corpus.transform import BatchFunction, SentenceFunction
from docnmt_fairseq.corpus.truecasing import detruecaser, has_case, truecaser, truecaser_name
from docnmt_fairseq.errors import InputError


def tokenizers_of(options: Mapping[str, Any]) -> Tuple[str, str]:
    """Returns the tokenizers of source and target from the options of a manifest."""
    source, target = (options.get(f"{side}_tokenizer") or options["tokenizer"] for side in ("source", "target"))
    return source, target


def plain_text(language: str, tokenizer: str, truecased: bool) -> Callable[[str], str]:
    """Returns the function from a sentence of tokens to plain text.

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
    """Returns the function from normalised sentences of the source (0) or target (1) to subwords with spaces between.

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
        steps.append(subword_encoder(folder / "models" / subword_model_name(options["joint"], language)))
    return partial(_one_after_another, steps)


def decoder(options: Mapping[str, Any]) -> SentenceFunction:
    """Returns the function from a target sentence of tokens, its subwords joined, to plain text.

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


def joins_of(options: Mapping[str, Any]) -> Optional[str]:
    """Returns how fairseq joins the subwords, None if there are none."""
    return "sentencepiece" if options["subwords"] != "none" else None


@dataclass(frozen=True)
class TextSteps:
    """The steps between plain sentences and what a model reads and writes.

    Attributes:
        languages: source, target.
        encode: from normalised source sentences to their subwords with spaces between.
        decode: from a target sentence of tokens, its subwords joined, to plain text.
        joins: how fairseq joins the subwords of the target, None if there are none.
    """

    languages: Tuple[str, str]
    encode: BatchFunction
    decode: SentenceFunction
    joins: Optional[str]

    @classmethod
    def of_output(cls, folder: Path, option: str = "--data") -> "TextSteps":
        """Returns the steps of an output of ``docnmt prepare``.

        Args:
            folder: the output.
            option: what errors say that it came from.

        Raises:
            InputError: it is no finished output; a model is missing; a library is not installed.
        """
        options = manifest_options(folder, option)
        languages = options["source_lang"], options["target_lang"]
        return cls(languages, encoder(folder, options, 0), decoder(options), joins_of(options))


def _of_each(function: SentenceFunction) -> BatchFunction:
    return lambda sentences: list(map(function, sentences))


def _one_after_another(steps: List[BatchFunction], sentences: List[str]) -> List[str]:
    for step in steps:
        sentences = step(sentences)
    return sentences
