"""What a recipe asks its trained models beside translations: does it come from context?"""

from dataclasses import dataclass, field
from typing import Collection, List, Optional

from docnmt_fairseq.errors import InputError

SHUFFLED, NONE = "shuffled", "none"
CONTEXTS = (SHUFFLED, NONE)  # of ``docnmt translate``, beside the true one


@dataclass(frozen=True)
class Probes:
    """What models that see context are asked; nothing by default.

    Attributes:
        contexts: of ``CONTEXTS``: test sets are translated so, too.
        cxmi_sentences: how many of each test set CXMI is measured on; 0: all; None: it is not measured.
    """

    contexts: List[str] = field(default_factory=list)
    cxmi_sentences: Optional[int] = None

    def check(self, test_sets: Collection[str], post_editing: bool, where: str) -> None:
        """Refuses what no model can answer, and to ask for nothing.

        Args:
            test_sets: their names.
            post_editing: sentences come with machine translations, which stand in no document.
            where: the file and the key, for messages.

        Raises:
            InputError: names the key.
        """
        contexts, sentences = self.contexts, self.cxmi_sentences
        if post_editing:
            raise InputError(f"{where}: not with post_edits_of")
        if not isinstance(contexts, list) or any(one not in CONTEXTS for one in contexts):
            raise InputError(f"{where}: contexts: {contexts!r}: give a list of {', '.join(CONTEXTS)}")
        if len({*contexts}) < len(contexts):
            raise InputError(f"{where}: contexts: {', '.join(contexts)}: each once")
        if sentences is not None and (isinstance(sentences, bool) or not isinstance(sentences, int) or sentences < 0):
            raise InputError(f"{where}: cxmi_sentences: {sentences!r} is not a number from 0 on (0: all sentences)")
        if not contexts and sentences is None:
            raise InputError(f"{where}: asks for nothing; give contexts, cxmi_sentences or both")
        for name in (name for name in contexts if name in test_sets):
            raise InputError(f"{where}: contexts: {name}: a test set is called that, too; give it another name")
