"""What a model keeps of its task: how it saw documents in training."""

from dataclasses import dataclass
from typing import Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II


@dataclass
class TrainedView(FairseqDataclass):
    """Restored at generation unless the command line says otherwise; longest sentences, and the seed."""

    seed: int = II("common.seed")
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")
    context: Optional[str] = II("task.context")
    max_document_sentences: Optional[int] = II("task.max_document_sentences")
    max_document_tokens: Optional[int] = II("task.max_document_tokens")
    context_overlap: Optional[int] = II("task.context_overlap")
    context_overlap_after: Optional[int] = II("task.context_overlap_after")
