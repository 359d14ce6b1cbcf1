"""Who attends to whom in every model: the plans between tokens, sentences and targets of a batch."""

from dataclasses import dataclass, field
from typing import Any, Tuple

import numpy as np

from docnmt_fairseq.batch.attention_plan import AttentionPlan
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged


@dataclass(frozen=True)
class WithinSentences(PlanKey[AttentionPlan]):
    """Tokens attend to the tokens of their own sentence."""

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        """See :class:`PlanKey`."""
        return AttentionPlan(layout.tokens, layout.tokens)


@dataclass(frozen=True)
class ToSentences(PlanKey[AttentionPlan]):
    """Tokens attend to the sentence encodings of their document."""

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        """See :class:`PlanKey`."""
        return AttentionPlan(layout.document_tokens, layout.sentences)


@dataclass(frozen=True)
class OfTargets(PlanKey[DocumentLayout]):
    """The layout of the target sentences, those of a document one after another.

    Attributes:
        inner: the plans that it will be asked for.
    """

    inner: Tuple[PlanKey[Any], ...] = field(default=(), compare=False)
    of_targets = True

    def make(self, layout: DocumentLayout) -> DocumentLayout:
        """See :class:`PlanKey`."""
        documents = layout.decoded_document if layout.target_document is None else layout.target_document
        _, first, lengths = np.unique(documents, return_index=True, return_counts=True)
        tokens = layout.target_tokens
        place = np.arange(tokens.rows) - np.repeat(first, lengths)
        targets = DocumentLayout.of(tokens.lengths, lengths, place, np.zeros_like(place), device=layout.device)
        return targets.with_plans(self.inner)


@dataclass(frozen=True)
class WithinTargets(PlanKey[AttentionPlan]):
    """Target tokens attend to the earlier ones of their sentence."""

    of_targets = True

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        """See :class:`PlanKey`."""
        return AttentionPlan(layout.target_tokens, layout.target_tokens, causal=True)


@dataclass(frozen=True)
class TargetsToSource(PlanKey[AttentionPlan]):
    """Target tokens attend to the tokens of their source sentence."""

    of_targets = True

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        """See :class:`PlanKey`."""
        return AttentionPlan(layout.target_tokens, layout.decoded_tokens)


@dataclass(frozen=True)
class TargetsToSentences(PlanKey[AttentionPlan]):
    """Target tokens attend to all sentences of their document, also to those that are context only."""

    of_targets = True

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        """See :class:`PlanKey`."""
        with_targets, first = np.unique(layout.decoded_document, return_index=True)
        tokens = Ragged(np.add.reduceat(layout.target_tokens.lengths, first), layout.device)
        return AttentionPlan(tokens, layout.sentences, key_rows=with_targets)
