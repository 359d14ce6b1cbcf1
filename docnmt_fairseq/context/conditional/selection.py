"""Selection of sentences: how many a token keeps (:class:`TopTSchedule`), and which (:class:`Selection`; [T] eq. 4).

Every head and token selects for itself. Hard selection trained from scratch does not learn where to attend, because the
sentences that would help are never seen. Training with all sentences first and annealing to t afterwards does.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

import numpy as np
import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import AttentionPlan

MOMENTUM = 0.9  # of the running mean of the selected mass
SCHEDULE_STATE = {
    "start_update": torch.long,
    "selected_mass": torch.float64,
    "progress": torch.float64,
}  # in checkpoints


@dataclass(frozen=True)
class SelectionPlan:
    """Documents whose tokens select sentences, and the others, where every sentence is kept."""

    top_t: np.ndarray  # [D] t of every document, at most its number of sentences
    documents: np.ndarray  # documents whose tokens select, ascending
    items: Tensor  # [M] their tokens, ascending
    max_t: int  # the largest t among them; 0 without any
    limit: Tensor  # [M, 1, 1] t of each of ``items``
    # plan of the other documents, whose tokens attend to all tokens of their document; None without any
    dense: Optional[AttentionPlan]
    order: Tensor  # [N] index of every token in ``items`` followed by those of ``dense``

    @classmethod
    def of(cls, layout: DocumentLayout, top_t: np.ndarray, documents: Optional[np.ndarray] = None) -> "SelectionPlan":
        """Creates the plan.

        Args:
            top_t: [D] t, at least 1; more than a document has: all its sentences.
            documents: documents whose tokens select, ascending; None: those with more than t sentences.
        """
        tokens, lengths = layout.document_tokens, layout.sentences.lengths
        documents = np.flatnonzero(top_t < lengths) if documents is None else documents
        others = np.setdiff1d(np.arange(len(lengths)), documents)
        top_t = np.minimum(top_t, lengths)
        items = tokens.items_of(documents)
        return cls(
            top_t,
            documents,
            layout.index(items),
            int(top_t[documents].max(initial=0)),
            layout.index(np.repeat(top_t[documents], tokens.lengths[documents])[:, None, None]),
            AttentionPlan(tokens, tokens, rows=others) if len(others) else None,
            layout.index(np.argsort(np.concatenate([items, tokens.items_of(others)]))),
        )


SelectionKey = PlanKey[SelectionPlan]


@dataclass(frozen=True)
class TopT(SelectionKey):
    """t of every document at a point of the schedule."""

    top_t: int  # final t, 0: all sentences, always
    top_t_start: int = 0  # initial t, 0: all sentences of the document
    progress: float = 1.0  # share of the annealing that is done, 0 to 1

    def of(self, sentences: np.ndarray) -> np.ndarray:
        """Returns t of documents with these numbers of sentences, [D] from [D]."""
        if self.top_t == 0:
            return sentences
        start = np.minimum(self.top_t_start, sentences) if self.top_t_start else sentences
        end = np.minimum(self.top_t, start)
        return np.ceil(start - (start - end) * self.progress - 1e-6).astype(np.int64).clip(min=1)

    def make(self, layout: DocumentLayout) -> SelectionPlan:
        return SelectionPlan.of(layout, self.of(layout.sentences.lengths))


@dataclass(frozen=True)
class TreeBeam(SelectionKey):
    """The tokens of ``selection``, with at least ``beam`` places each: what a tree walk keeps on its way to t."""

    selection: SelectionKey
    beam: int

    def make(self, layout: DocumentLayout) -> SelectionPlan:
        plan = layout.plan(self.selection)
        return SelectionPlan.of(layout, np.maximum(plan.top_t, self.beam), plan.documents)


@dataclass(frozen=True)
class CandidatePlan:
    """Tokens that select, with the sentences of their document."""

    attention: AttentionPlan  # plan of the tokens over the sentences
    limits: List[Tensor]  # [b, 1, 1, 1] t of the documents of each block
    beyond_t: List[Tensor]  # [b, 1, 1, min(max_t, n)] of each block, True at ranks beyond the document's t


@dataclass(frozen=True)
class Candidates(PlanKey[CandidatePlan]):
    """Candidate sentences of the tokens that select according to ``selection``."""

    selection: SelectionKey

    def make(self, layout: DocumentLayout) -> CandidatePlan:
        selecting = layout.plan(self.selection)
        plan = AttentionPlan(layout.document_tokens, layout.sentences, rows=selecting.documents)
        limits = [selecting.top_t[rows][:, None, None, None] for rows in plan.groups]
        longest = [int(layout.sentences.lengths[rows].max()) for rows in plan.groups]
        beyond_t = [np.arange(min(selecting.max_t, n)) >= limit for n, limit in zip(longest, limits)]
        return CandidatePlan(plan, [*map(layout.index, limits)], [*map(layout.index, beyond_t)])


@dataclass(frozen=True)
class Selection:
    """Selected sentences of M tokens."""

    key: SelectionKey  # key of the plan of these tokens
    items: Tensor  # [M] the tokens, ascending
    sentence: Tensor  # [M, H, t] rows of the selected sentences, −1 at empty places
    scores: Tensor  # [M, H, t] their relevance, −∞ at empty places


@torch.no_grad()
def keep_top_p(sentence: Tensor, scores: Tensor, p: float, temperature: float) -> Tensor:
    """Keeps the smallest set of selected sentences with cumulative softmax(R/τ) of at least p; −1 at other places.

    Args:
        sentence: [M, H, t] rows of the selected sentences, −1: none.
        scores: [M, H, t] their relevance, −∞ where there is none.
        p: cumulative share over all selected sentences; the most relevant one is always kept.
        temperature: τ.
    """
    shares, place = (scores / temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
    before = shares.cumsum(-1) - shares
    beyond_p = (before >= p) & (before > 0)
    return sentence.masked_fill(beyond_p.scatter(-1, place, beyond_p), -1)


def keep_own(sentence: Tensor, own: Tensor) -> Tensor:
    """Adds the own sentence to the selected ones, [M, H, t + 1]; −1 there if it is selected already."""
    own = own[:, None, None].expand(-1, sentence.size(1), 1)
    selected = (sentence == own).any(-1, keepdim=True)
    return torch.cat([sentence, own.masked_fill(selected, -1)], dim=-1)


class TopTSchedule(nn.Module):
    """t(update): ``top_t_start`` until annealing begins, then linearly down to ``top_t`` in ``anneal_updates``.

    Annealing begins at update ``anneal_start`` or, with ``anneal_threshold``, at the first later update at which the
    sentences that would be selected reach that share of the largest possible attention mass. Checkpoints contain the
    state: the progress (0 to 1), the update at which annealing begins (−1: not yet), the running mean of the mass.

    Args:
        top_t: final t, 0: all sentences, always.
        top_t_start: initial t, 0: all sentences of the document.
        anneal_start: update at which annealing begins.
        anneal_updates: updates until ``top_t`` is reached; 0: at once.
        anneal_threshold: share of the mass that annealing waits for; 0: it does not wait.
    """

    def __init__(
        self,
        top_t: int,
        top_t_start: int = 0,
        anneal_start: int = 0,
        anneal_updates: int = 0,
        anneal_threshold: float = 0.0,
    ):
        super().__init__()
        self.top_t = top_t
        self.top_t_start = top_t_start
        self.anneal_start = anneal_start
        self.anneal_updates = anneal_updates
        self.anneal_threshold = anneal_threshold
        self.start_update = -1
        self.selected_mass = 0.0
        self.set_num_updates(0)

    def set_num_updates(self, num_updates: int) -> None:
        """Called by fairseq before every update."""
        self.update = num_updates
        if num_updates == 0:  # the mass of a checkpoint that this training is initialised with does not count
            self.selected_mass = 0.0
        if self.start_update > num_updates:  # from such a checkpoint, too
            self.start_update = -1
        begin = self.start_update if self.anneal_threshold else self.anneal_start
        done = num_updates - begin if begin >= 0 else -1
        self.progress = 0.0 if done < 0 else 1.0 if self.anneal_updates == 0 else min(1.0, done / self.anneal_updates)

    def update_selected_mass(self, mass: float) -> None:
        """Adds the share of the mass on the sentences to be selected, over all processes, after an update."""
        before = self.selected_mass
        self.selected_mass = MOMENTUM * before + (1 - MOMENTUM) * mass if before else mass
        ready = self.anneal_threshold and self.selected_mass >= self.anneal_threshold
        if ready and self.update + 1 >= self.anneal_start and self.start_update < 0:
            self.start_update = self.update + 1

    def before_annealing(self) -> bool:
        """Returns whether annealing has not begun: ``top_t_start`` sentences are kept, or all."""
        return self.progress == 0.0

    def current_top_t(self) -> TopT:
        """Returns t at this update."""
        return TopT(self.top_t, self.top_t_start, self.progress)

    def _save_to_state_dict(self, destination: Dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, dtype in SCHEDULE_STATE.items():
            destination[prefix + name] = torch.tensor(getattr(self, name), dtype=dtype)

    def _load_from_state_dict(
        self, state_dict: Dict[str, Any], prefix: str, metadata: Any, strict: bool, missing: List[str], *others: Any
    ) -> None:
        for name in SCHEDULE_STATE:
            if prefix + name in state_dict:
                setattr(self, name, state_dict[prefix + name].item())
            else:
                missing.append(prefix + name)

    def inference_remark(self) -> Optional[str]:
        """Returns a warning for users of a checkpoint written before annealing was complete."""
        if self.top_t == 0 or self.progress == 1:
            return None
        return (
            f"annealing to --context-top-t {self.top_t} was {self.progress:.0%} done when this checkpoint was written, "
            "so tokens keep more sentences; a later checkpoint, such as checkpoint_last.pt, may be past it"
        )
