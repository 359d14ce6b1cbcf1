"""CTXPRO (Wicks and Post, WMT 2023): generation items, correct if the translation has the expected form."""

import re
import string
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import torch
from fairseq import utils
from fairseq.dataclass.configs import GenerationConfig
from tqdm import tqdm

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.items import (
    Attribute,
    GenerationItem,
    ItemDocument,
    distance_group,
    item_errors,
    read_json,
)
from docnmt_fairseq.evaluation.contrast.scoring import Answer, EncodedDocuments
from docnmt_fairseq.evaluation.text_batches import batches_of
from docnmt_fairseq.search.sequential_decoding import with_target_context

SEPARATOR = "<eos>"  # between the sentences of an input, the current one last
_SEPARATORS = re.compile("<eos>|<brk>")  # in translations, also the break of concatenation models
_SENTENCE_END = re.compile(r"(\S{0,12})[.!?…][\"'’”“»)\]]*\s+")
_ABBREVIATION = re.compile(r"\W*(?:[^\W\d]|\d{1,2}|Mr|Mrs|Ms|Dr|Prof|St|Hr|Fr|Sr|Sra|Mme|Mlle)")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def read(path: Path, inputs: Optional[Path] = None) -> List[GenerationItem]:
    """Reads a JSON list with ``src segment``, ``expected`` and ``rule``.

    Args:
        path: JSON file.
        inputs: context and sentence of each item, one line per item; by default sentences have no context.

    Raises:
        InputError: invalid fields, or inputs of other items.
    """
    entries = read_json(path, list)
    lines = None if inputs is None else list(read_lines(inputs))
    if lines is not None and len(lines) != len(entries):
        raise InputError(f"{inputs}: {len(lines)} lines, but {path} has {len(entries)} items")
    items = []
    for number, entry in enumerate(entries):
        where = f"{path}: item {number}"
        with item_errors(where):
            sentences = [entry["src segment"]]
            if lines is not None:
                sentences = [sentence.strip() for sentence in lines[number].split(SEPARATOR) if sentence.strip()]
                if not sentences or "".join(sentences[-1].split()) != "".join(entry["src segment"].split()):
                    raise InputError(f"{where}: field 'src segment' is not the last sentence of {inputs}:{number + 1}")
            attributes: Dict[str, Attribute] = {"rule": entry["rule"]}
            if entry.get("ante distance") is not None:
                attributes["distance"] = distance_group(entry["ante distance"])
            if entry.get("src pronoun") is not None:
                attributes["source pronoun"] = entry["src pronoun"].lower()
            document = ItemDocument(str(entry.get("document id", where)), tuple(sentences))
            items.append(GenerationItem(where, document, len(sentences) - 1, entry["expected"], attributes))
    return items


def judge_translations(
    items: Sequence[GenerationItem], translations: Sequence[str], with_context: bool = False
) -> List[Answer]:
    """Judges plain-text translations, one per item, of the sentences or (``with_context``) also of their context.

    Raises:
        InputError: another number of translations.
    """
    if len(items) != len(translations):
        raise InputError(f"{len(translations)} translations, but {len(items)} items")
    if with_context:
        translations = list(map(current_sentence, translations, items))
    return [
        Answer(item, "right" if contains(text, item.expected) else "wrong", translation=text)
        for item, text in zip(items, translations)
    ]


def current_sentence(translation: str, item: GenerationItem) -> str:
    """Part of a translation that belongs to the sentence of the item, without that of its context.

    This is the part after the last ``<eos>`` (or ``<brk>``). Without these, for an item with context, it is the last
    sentence, as in the scorer of the set. A sentence ends with . ! ? or …, unless a lower-case letter follows or the
    period belongs to an abbreviation.
    """
    parts = [part.strip() for part in _SEPARATORS.split(translation) if part.strip()]
    last = parts[-1] if parts else ""
    if len(parts) > 1 or not item.line:
        return last
    start = 0
    for end in _SENTENCE_END.finditer(last):
        following = last[end.end() : end.end() + 1]
        is_abbreviation = last[end.end(1)] == "." and _ABBREVIATION.fullmatch(end[1]) is not None
        if following and not following.islower() and not is_abbreviation:
            start = end.end()
    return last[start:]


def contains(translation: str, expected: str) -> bool:
    """Returns whether the expected form is among the words, ignoring case and ASCII punctuation."""
    words = " ".join(translation.lower().translate(_NO_PUNCTUATION).split())
    return f" {' '.join(expected.lower().split())} " in f" {words} "


def translate(
    items: Sequence[GenerationItem],
    ensemble: Ensemble,
    codec: TextCodec,
    search: Optional[GenerationConfig] = None,
    max_tokens: int = 4096,
) -> List[str]:
    """Translates the sentence of each item in its document, to plain text.

    A model with target-side context also translates the previous sentences, and uses its own translations.

    Args:
        items: in any order.
        ensemble: models.
        codec: text to tokens and back.
        search: fairseq's search options.
        max_tokens: source tokens of a batch, context included.
    """
    texts = EncodedDocuments([item.document for item in items], ensemble, codec)
    lines = [texts.places[item.document, item.line] for item in items]
    task, dictionary = ensemble.task, ensemble.dictionaries[1]
    generator = task.build_generator(ensemble.models, search or GenerationConfig())
    on_gpu = next(ensemble.models[0].parameters()).is_cuda
    only_lines = not with_target_context(ensemble.models)
    translations: Dict[int, str] = {}
    bar = tqdm(total=len(set(lines)), desc="contrast", unit=" sentences", disable=None)
    with torch.no_grad(), bar as progress:
        for batch in batches_of(ensemble, texts.source, lines, max_tokens, only_lines=only_lines):
            sample = utils.move_to_cuda(batch.sample) if on_gpu else batch.sample
            for line, hypotheses in zip(batch.lines, task.inference_step(generator, ensemble.models, sample)):
                translations[line] = codec.decode(dictionary.string(hypotheses[0]["tokens"].int().cpu()))
            progress.update(len(set(lines).intersection(batch.lines)))
    return [translations[line] for line in lines]
