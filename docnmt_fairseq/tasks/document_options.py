"""The options of task ``document_translation``: what of a document a sentence sees, and what it has beside itself."""

from dataclasses import dataclass
from typing import Optional

from fairseq.dataclass import ChoiceEnum

from docnmt_fairseq.data.extra_source_specs import FORMS
from docnmt_fairseq.options import option
from docnmt_fairseq.tasks.documents import DocumentsConfig


@dataclass
class DocumentTranslationConfig(DocumentsConfig):
    """Options of the task; an unset view of documents is the one that the model was trained with."""

    # fairseq makes an option's choices of its annotation
    context: Optional[ChoiceEnum(["document", "none"])] = option(  # type: ignore[valid-type]
        None, "none hides everything but the sentence itself (default: as trained, else document)"
    )
    context_dropout: float = option(0.0, "probability of hiding the context of a whole document in training")
    source_context_dropout: float = option(
        0.0, "probability of hiding the source side's context alone, so that a model learns to use earlier translations"
    )
    max_document_sentences: Optional[int] = option(
        None,
        "longer documents are cut into consecutive pieces; 0: no limit (default: as trained, else 128)",
        minimum=0,
    )
    max_document_tokens: Optional[int] = option(
        None,
        "documents of more source tokens, in training also of more target tokens, are cut too; 0: no limit (default: "
        "as trained, else 4096)",
        minimum=0,
    )
    context_overlap: Optional[int] = option(
        None,
        "sentences before a piece that are encoded with it but not translated (default: as trained, else 0)",
        minimum=0,
    )
    context_overlap_after: Optional[int] = option(None, "the same after a piece", minimum=0)
    extra_sources: Optional[str] = option(
        None,
        f"what a sentence has beside itself, with commas between: {FORMS}; N sentences of its document (default: 1), a "
        "text in the data-bin, matrices beside it; none (default: as trained, else none)",
    )
