"""Sequential decoding with fairseq's search: the first sentences of all documents of a batch, then the second ones, …

So a model with target-side context sees its own previous translations, never a reference.
"""

from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional

import numpy as np
import torch
from fairseq.models import BaseFairseqModel, FairseqDecoder
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from docnmt_fairseq.models.encoder_outputs import ENCODER_OUTPUTS, EncoderOut, EncoderOutputs, PreviousTargets

# Target context of a document: the last sentences, each [m_t, w] per model.
History = List[List[Tensor]]
Hypotheses = List[List[Dict[str, Any]]]  # of each sentence, best first


def with_target_context(models: List[BaseFairseqModel]) -> List[BaseFairseqModel]:
    """Models with target-side context."""
    return [model for model in models if getattr(getattr(model, "decoder", None), "target_context", None) is not None]


def decode_sequentially(
    search: Callable[[Dict[str, Any], Optional[Tensor]], Hypotheses],
    models: List[BaseFairseqModel],
    sample: Dict[str, Any],
    prefix_tokens: Optional[Tensor] = None,
    histories: Optional[Dict[int, History]] = None,
) -> Hypotheses:
    """Hypotheses of every decoded sentence.

    Documents are encoded once. The best hypothesis of a finished sentence passes through the decoder once more.

    Args:
        search: returns the hypotheses of a batch with prefix tokens.
        models: ensemble, some with target-side context.
        sample: batch with its layout.
        prefix_tokens: [S, ·] forced first tokens.
        histories: target context by document, of documents that continue; updated.
    """
    histories = {} if histories is None else histories
    looking_back = with_target_context(models)
    contexts = [model.decoder.target_context.mechanism.contexts for model in looking_back]
    net_input = sample["net_input"]
    src_tokens, src_lengths, layout = (net_input[key] for key in ("src_tokens", "src_lengths", "layout"))
    options = {"layout": layout, "extra_sources": net_input.get("extra_sources", ())}
    with torch.no_grad():
        encoded = {model.encoder: model.encoder(src_tokens, **options) for model in models}
    document = layout.decoded_document
    place = np.arange(len(document)) - np.searchsorted(document, document)  # sentence position in the document
    hypotheses: Hypotheses = [[] for _ in document]
    for number in range(int(place.max()) + 1):
        rows = np.flatnonzero(place == number)
        index, documents = torch.as_tensor(rows, device=src_tokens.device), document[rows].tolist()
        of_round = {encoder: encoder.reorder_encoder_out(output, index) for encoder, output in encoded.items()}
        for which, (model, count) in enumerate(zip(looking_back, contexts)):
            previous = [[one[which] for one in histories.get(of_row, [])[-count:]] for of_row in documents]
            if any(previous):
                show_previous(of_round[model.encoder], previous)
        part = {"src_tokens": src_tokens[index], "src_lengths": src_lengths[index], "encoded": of_round}
        found = search({"net_input": part}, None if prefix_tokens is None else prefix_tokens[index])
        for row, of_sentence in zip(rows, found):
            hypotheses[row] = of_sentence
        best = [of_sentence[0]["tokens"].to(src_tokens) for of_sentence in found]
        projected = [project(model.decoder, best, EncoderOutputs.of(of_round[model.encoder])) for model in looking_back]
        for of_row, sentence in zip(documents, zip(*projected)):
            histories[of_row] = [*histories.get(of_row, []), list(sentence)][-max(contexts) :]
    return hypotheses


def project(decoder: FairseqDecoder, sentences: List[Tensor], sources: EncoderOutputs) -> List[Tensor]:
    """States of target sentences that later sentences attend to, [m_t, w] each."""
    eos = sentences[0].new_tensor([decoder.dictionary.eos()])
    inputs = [torch.cat([eos, tokens[:-1]]) for tokens in sentences]
    padded = pad_sequence(inputs, batch_first=True, padding_value=decoder.padding_idx)
    with torch.no_grad():
        projected = decoder.project_targets(padded, sources)
    return [of_sentence[: len(tokens)] for of_sentence, tokens in zip(projected, sentences)]


def show_previous(encoder_out: EncoderOut, previous: List[List[Tensor]]) -> None:
    """Adds the previous target sentences [m_t, w] of each sentence to an encoder output."""
    encoder_out[ENCODER_OUTPUTS] = [
        replace(EncoderOutputs.of(encoder_out), previous=PreviousTargets.of_sentences(previous))
    ]
