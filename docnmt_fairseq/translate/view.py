"""Options that change how a model sees documents."""

from dataclasses import asdict, dataclass
from typing import Dict, Optional

from docnmt_fairseq.options import option

DOCUMENT_TASK = "document_translation"  # the task whose models see whole documents or chunks of them


@dataclass(frozen=True)
class DocumentView:
    """View of documents, see the options of ``document_translation``; None: as in training."""

    context: Optional[str] = None
    max_document_sentences: Optional[int] = option(None, "split longer documents into chunks; 0: never")
    max_document_tokens: Optional[int] = option(None, "the same, in tokens")
    context_overlap: Optional[int] = option(None, "context sentences before a chunk", metavar="K")
    context_overlap_after: Optional[int] = option(None, "the same, after a chunk", metavar="K")

    @property
    def given(self) -> Dict[str, object]:
        """Values that are not None."""
        return {name: value for name, value in asdict(self).items() if value is not None}
