"""Forced decoding: log-probabilities of given target sentences in their documents."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar

import numpy as np
import torch
from fairseq import utils
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.evaluation.text_batches import Batch, Sample, batches_of, longest_sentences
from docnmt_fairseq.models.base import batch_for_model
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from docnmt_fairseq.search.sequential_decoding import project, show_previous, with_target_context
from docnmt_fairseq.tasks.concatenated_translation import ConcatenatedTranslationTask

Tokens = Tuple[int, ...]
Job = Tuple[List[int], int, "ScoringRequest"]  # forced tokens before the target, row of the batch, request
T = TypeVar("T")


@dataclass(frozen=True)
class ScoringRequest:
    """Target sentence to be scored, with end of sentence.

    ``before`` are previous target sentences of the document, in order, at least the last
    :attr:`ForcedDecoder.target_sentences`; a model with target-side context sees as many as in training.
    """

    line: int  # of its source sentence in the delimited text, from 0
    target: Tokens
    before: Tuple[Tokens, ...] = ()


class ForcedDecoder:
    """Scores target sentences with any model; each document is encoded once for all its requests.

    Args:
        ensemble: models, whose probabilities are averaged.
        max_tokens: source tokens of a batch of documents, and target tokens of a batch of candidates.
    """

    def __init__(self, ensemble: Ensemble, max_tokens: int = 4096):
        self.ensemble, self.max_tokens = ensemble, max_tokens
        self.eos, self.pad = ensemble.task.target_dictionary.eos(), ensemble.task.target_dictionary.pad()
        self.device = next(ensemble.models[0].parameters()).device
        self.longest = longest_sentences(ensemble)
        self.break_symbol = None
        window = 1
        if isinstance(ensemble.task, ConcatenatedTranslationTask):
            window = ensemble.task.window[1]
            self.break_symbol = ensemble.task.target_dictionary.index(str(ensemble.task.view("break_symbol")))
        looking_back = with_target_context(ensemble.models)
        contexts = [model.decoder.target_context.mechanism.contexts for model in looking_back]
        self.target_sentences = max([window - 1, *contexts])

    def score(
        self,
        text: List[Tensor],
        requests: Sequence[ScoringRequest],
        progress: Optional[Callable[[int], object]] = None,
    ) -> List[np.ndarray]:
        """Log-probabilities of the target tokens, [m_t] float64 per request; identical for equal requests.

        Args:
            text: source tokens of delimited text with boundaries, each line with end of sentence.
            requests: in any order.
            progress: called with the number of requests scored by each batch, equal ones counted once.

        Raises:
            InputError: a sentence exceeds the length limit of the models.
        """
        of_line: Dict[int, List[ScoringRequest]] = defaultdict(list)
        for request in dict.fromkeys(requests):
            of_line[request.line].append(request)
        found: Dict[ScoringRequest, np.ndarray] = {}
        with torch.no_grad():
            for batch in batches_of(self.ensemble, text, list(of_line), self.max_tokens):
                scored = dict(self._score_batch(batch, of_line))
                found.update(scored)
                if progress is not None:
                    progress(len(scored))
        return [found[request] for request in requests]

    def _score_batch(
        self, batch: Batch, of_line: Dict[int, List[ScoringRequest]]
    ) -> Iterator[Tuple[ScoringRequest, np.ndarray]]:
        jobs: List[Job] = [
            (self._prefix(request, batch.visible_targets[row]), row, request)
            for row, line in enumerate(batch.lines)
            for request in of_line.get(line, [])
        ]
        jobs.sort(key=lambda job: len(job[0]) + len(job[2].target))
        encoded = [self._encode(model, batch.sample) for model in self.ensemble.models]
        previous = [self._previous(model, output, jobs, batch) for model, output in zip(self.ensemble.models, encoded)]
        for part in _packed([len(prefix) + len(request.target) for prefix, _, request in jobs], self.max_tokens):
            targets = [torch.tensor([*jobs[number][0], *jobs[number][2].target]) for number in part]
            rows = torch.tensor([jobs[number][1] for number in part], device=self.device)
            of_models = []
            for model, output, memories in zip(self.ensemble.models, encoded, previous):
                of_rows = model.encoder.reorder_encoder_out(output, rows)
                shown = [memories[number] for number in part] if memories else []
                if any(shown):
                    show_previous(of_rows, shown)
                of_models.append(self._log_probabilities(model, targets, of_rows))
            together = torch.stack(of_models).logsumexp(0) - np.log(len(of_models))  # [rows, longest]
            for number, scores in zip(part, together.double().cpu().numpy()):
                prefix, _, request = jobs[number]
                yield request, scores[len(prefix) : len(prefix) + len(request.target)].copy()

    def _encode(self, model: BaseFairseqModel, sample: Sample) -> Dict[str, Any]:
        net_input = dict(batch_for_model(model, sample)["net_input"])
        net_input.pop("prev_output_tokens", None)
        if self.device.type == "cuda":
            net_input = utils.move_to_cuda(net_input)
        return model.encoder(**net_input)

    def _log_probabilities(self, model: BaseFairseqModel, targets: List[Tensor], encoder_out: Dict[str, Any]) -> Tensor:
        """Log-probability of each target token, [rows, longest target]."""
        padded = nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=self.pad).to(self.device)
        # Attention is causal, so tokens after the end have no effect; replacing padding avoids a mask.
        inputs = torch.cat([padded.new_full((len(padded), 1), self.eos), padded[:, :-1]], dim=1)
        inputs[inputs.eq(self.pad)] = self.eos
        output = model.decoder(inputs, encoder_out=encoder_out)
        of_tokens = model.get_normalized_probs(output, log_probs=True, sample={"target": padded})
        return of_tokens.gather(2, padded.unsqueeze(2)).squeeze(2)

    def _prefix(self, request: ScoringRequest, visible_targets: int) -> List[int]:
        """Previous target sentences joined by breaks, for a concatenation model."""
        if self.break_symbol is None or not visible_targets:
            return []
        shown = list(request.before[-visible_targets:])
        while shown and sum(map(len, shown)) + len(request.target) > self.longest[1]:
            shown = shown[1:]
        return [token for sentence in shown for token in (*sentence[:-1], self.break_symbol)]

    def _previous(
        self, model: BaseFairseqModel, encoded: Dict[str, Any], jobs: List[Job], batch: Batch
    ) -> List[List[Tensor]]:
        """Projected previous target sentences of each job; empty for models without target-side context."""
        if not with_target_context([model]):
            return []
        contexts = model.decoder.target_context.mechanism.contexts
        visible: List[List[Tuple[int, Tokens]]] = []  # row and tokens of each sentence
        for _, row, request in jobs:
            shown = min(batch.visible_targets[row], contexts, len(request.before))
            before = request.before[len(request.before) - shown :]
            visible.append([(row - shown + place, tokens) for place, tokens in enumerate(before)])
        sentences = sorted({sentence for of_job in visible for sentence in of_job}, key=lambda one: len(one[1]))
        memories: Dict[Tuple[int, Tokens], Tensor] = {}
        for part in _packed([len(tokens) for _, tokens in sentences], self.max_tokens):
            of_part = [sentences[number] for number in part]
            rows = torch.tensor([row for row, _ in of_part], device=self.device)
            tokens = [torch.tensor(tokens, device=self.device) for _, tokens in of_part]
            of_rows = model.encoder.reorder_encoder_out(encoded, rows)
            memories.update(zip(of_part, project(model.decoder, tokens, EncoderOutputs.of(of_rows))))
        return [[memories[sentence] for sentence in of_job] for of_job in visible]


def _packed(sizes: Sequence[int], limit: int) -> Iterator[List[int]]:
    """Yields indices of ascending ``sizes`` in groups of at most ``limit`` tokens with padding, or of one member."""
    part: List[int] = []
    for number, size in enumerate(sizes):
        if part and (len(part) + 1) * max(size, sizes[part[-1]]) > limit:
            yield part
            part = []
        part.append(number)
    if part:
        yield part


def last_of(sentences: Sequence[T], limit: int) -> Tuple[T, ...]:
    """Returns the last ``limit`` sentences."""
    return tuple(sentences[max(0, len(sentences) - limit) :])


def as_tokens(lines: Iterable[Tensor]) -> List[Tokens]:
    """Converts token tensors to tuples."""
    return [tuple(tokens.tolist()) for tokens in lines]
