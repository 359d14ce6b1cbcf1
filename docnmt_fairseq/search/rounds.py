"""Search in rounds: the first sentences of all documents of a batch side by side, then the second ones, …

So a model with target-side context sees what was written before, its own, and never a reference.
"""

from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

# What is remembered of the sentences of a document that are translated already, by each model with target-side context:
# [m_t, w] a model, sentence by sentence, the last ones only.
History = List[List[Tensor]]


def with_target_context(models: List[nn.Module]) -> List[nn.Module]:
    """Returns the models that look at previous target sentences."""
    return [model for model in models if getattr(getattr(model, "decoder", None), "target_context", None) is not None]


def translate_in_rounds(
    search: Callable[[Dict, Optional[Tensor]], List],
    models: List[nn.Module],
    sample: Dict,
    prefix_tokens: Optional[Tensor] = None,
    histories: Optional[Dict[int, History]] = None,
) -> Tuple[List, Dict[int, History]]:
    """Returns the hypotheses of every decoded sentence, as the search gives them, and the histories at the end.

    Documents are encoded once. When a sentence is finished, its best hypothesis goes through the decoder a last time.

    Args:
        search: gives the hypotheses of a batch, from it and its prefix tokens.
        models: the ensemble, some with target-side context.
        sample: a batch with its layout.
        prefix_tokens: [S, ·] what translations begin with.
        histories: of documents, by their number in the batch, that go on from an earlier one.
    """
    net_input = sample["net_input"]
    src_tokens, src_lengths = net_input["src_tokens"], net_input["src_lengths"]
    layout = net_input["layout"]
    with torch.no_grad():
        encoded = {model.encoder: model.encoder(src_tokens, layout=layout) for model in models}
    looking_back = with_target_context(models)
    histories = dict(histories or {})
    document = layout.decoded_document
    place = np.arange(len(document)) - np.searchsorted(document, document)  # of each sentence in its document
    hypotheses: List = [None] * len(document)
    for number in range(int(place.max()) + 1):
        rows = np.flatnonzero(place == number)
        of_rows = [histories.get(int(of), []) for of in document[rows]]
        index = torch.as_tensor(rows, device=src_tokens.device)
        of_round = {encoder: encoder.reorder_encoder_out(output, index) for encoder, output in encoded.items()}
        for which, model in enumerate(looking_back):
            contexts = model.decoder.target_context.mechanism.contexts
            previous = [[sentence[which] for sentence in history[-contexts:]] for history in of_rows]
            if any(previous):
                of_round[model.encoder]["previous_targets"] = pad_previous(previous)
        part = {"src_tokens": src_tokens[index], "src_lengths": src_lengths[index], "encoded": of_round}
        found = search({"net_input": part}, None if prefix_tokens is None else prefix_tokens[index])
        best = [of_sentence[0]["tokens"].to(src_tokens) for of_sentence in found]
        remembered = list(zip(*(remember(model, best, of_round[model.encoder]) for model in looking_back)))
        longest = max(model.decoder.target_context.mechanism.contexts for model in looking_back)
        for row, of_sentence, history, sentence in zip(rows, found, of_rows, remembered):
            hypotheses[row] = of_sentence
            histories[int(document[row])] = [*history, list(sentence)][-longest:]
    return hypotheses, histories


def remember(model: nn.Module, sentences: List[Tensor], encoder_out: Dict[str, List[Tensor]]) -> List[Tensor]:
    """Returns what the model remembers of target sentences, [m_t, w] each.

    Args:
        model: with target-side context.
        sentences: [m_t] tokens each, end of sentence included.
        encoder_out: of these sentences' sources.
    """
    decoder = model.decoder
    previous = [torch.cat([tokens.new_tensor([decoder.dictionary.eos()]), tokens[:-1]]) for tokens in sentences]
    padded = pad_sequence(previous, batch_first=True, padding_value=decoder.padding_idx)
    with torch.no_grad():
        memory = decoder.remember_targets(padded, encoder_out)
    return [of_sentence[: len(tokens)] for of_sentence, tokens in zip(memory, sentences)]


def pad_previous(previous: List[List[Tensor]]) -> List[Tensor]:
    """Returns memory [S, J, L, w] and padding [S, J, L], True there, from the previous sentences [m_t, w] of each."""
    most = max(len(of_row) for of_row in previous)
    like = next(of_row[0] for of_row in previous if of_row)
    every = [sentence for of_row in previous for sentence in [*of_row, *[like[:0]] * (most - len(of_row))]]
    memory = pad_sequence(every, batch_first=True).unflatten(0, (-1, most))
    lengths = torch.tensor([len(sentence) for sentence in every], device=like.device).view(-1, most, 1)
    return [memory, torch.arange(memory.size(2), device=like.device) >= lengths]
