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
        kinds = tokenizers_of(options)
        steps: List[BatchFunction] = [_of_each(tokenizer(kinds[0], languages[0]))] if kinds[0] != "none" else []
        if options["truecase"] and has_case(kinds[0]):
            steps.append(_of_each(truecaser(folder / "models" / truecaser_name(languages[0]))))
        split = options["subwords"] != "none"
        if split:
            steps.append(subword_encoder(folder / "models" / subword_model_name(options["joint"], languages[0])))
        decode = plain_text(languages[1], kinds[1], options["truecase"])
        return cls(languages, partial(_one_after_another, steps), decode, "sentencepiece" if split else None)


def _of_each(function: SentenceFunction) -> BatchFunction:
    return lambda sentences: list(map(function, sentences))


def _one_after_another(steps: List[BatchFunction], sentences: List[str]) -> List[str]:
    for step in steps:
        sentences = step(sentences)
    return sentences
