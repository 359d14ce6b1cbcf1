"""The answers of a model to items that a translation answers: is the expected form in it?"""

from typing import Dict, List, Optional, Sequence

import torch
from fairseq import utils
from fairseq.dataclass.configs import GenerationConfig

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.ctxpro import holds, own_part
from docnmt_fairseq.evaluation.contrast.items import GenerationItem
from docnmt_fairseq.evaluation.contrast.judging import Answer, Texts
from docnmt_fairseq.evaluation.samples import batches_of
from docnmt_fairseq.search.rounds import with_target_context


def judge_translations(
    items: Sequence[GenerationItem], translations: Sequence[str], of_context_too: bool = False
) -> List[Answer]:
    """Judges plain-text translations, one for each item.

    Args:
        items: the questions.
        translations: of the items' sentences.
        of_context_too: a translation may hold that of the context before; only :func:`own_part` of it is judged.

    Raises:
        InputError: other translations than items: never are those at the front compared alone.
    """
    if len(items) != len(translations):
        raise InputError(f"{len(translations)} translations, but {len(items)} items")
    if of_context_too:
        translations = list(map(own_part, translations, items))
    return [
        Answer(item, "right" if holds(text, item.expected) else "wrong", translation=text)
        for item, text in zip(items, translations)
    ]


def translate(
    items: Sequence[GenerationItem],
    ensemble: Ensemble,
    codec: TextCodec,
    search: Optional[GenerationConfig] = None,
    max_tokens: int = 4096,
) -> List[str]:
    """Translates each item's sentence in its document, to plain text.

    A model with target-side context translates the sentences before, too, and sees its own translations.

    Args:
        items: in any order.
        ensemble: the models.
        codec: from text to tokens and back.
        search: fairseq's options of it.
        max_tokens: source tokens of a batch, context included.
    """
    texts = Texts([item.document for item in items], ensemble, codec)
    lines = [texts.line(item.document, item.line) for item in items]
    task, dictionary = ensemble.task, ensemble.dictionaries[1]
    generator = task.build_generator(ensemble.models, search or GenerationConfig())
    found: Dict[int, str] = {}
    with torch.no_grad():
        alone = not with_target_context(ensemble.models)
        for batch in batches_of(ensemble, texts.source, lines, max_tokens, only_lines=alone):
            on_gpu = next(ensemble.models[0].parameters()).is_cuda
            sample = utils.move_to_cuda(batch.sample) if on_gpu else batch.sample
            for line, hypotheses in zip(batch.lines, task.inference_step(generator, ensemble.models, sample)):
                found[line] = codec.decode(dictionary.string(hypotheses[0]["tokens"].int().cpu()))
    return [found[line] for line in lines]
