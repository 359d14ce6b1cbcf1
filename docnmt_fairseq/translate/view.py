"""How a model is to see documents, where that is to differ from its training."""

from dataclasses import asdict, dataclass
from typing import Dict, Optional

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of

DIVIDES = "document_translation"  # the task whose models see documents whole or in pieces


@dataclass(frozen=True)
class DocumentView:
    """How a model is to see documents; None: as it was trained. See the options of ``document_translation``."""

    context: Optional[str] = None
    max_document_sentences: Optional[int] = None
    max_document_tokens: Optional[int] = None
    context_overlap: Optional[int] = None
    context_overlap_after: Optional[int] = None

    @property
    def given(self) -> Dict[str, object]:
        """What is not None."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def check(self, task: str) -> None:
        """Refuses to divide documents for models that do not see them whole or in pieces.

        Args:
            task: that the model was trained with, or that translates with it.

        Raises:
            InputError: names the options.
        """
        divides = [name for name in self.given if name != "context"]
        if divides and task != DIVIDES:
            options = " ".join(map(flag_of, divides))
            raise InputError(f"{options}: not with a model of {task}, which sees no documents whole or in pieces")
