"""The languages of fairseq's ``translation_multi_simple_epoch``, and the tokens that stand for them.

The task adds tokens to dictionaries that lack them, in the order of its languages, and says by ``--langtoks``, or else
by ``--encoder-langtok`` and ``--decoder-langtok``, which of them sentences begin with; so does this.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from fairseq.data import Dictionary
from fairseq.data.multilingual.multilingual_utils import augment_dictionary, get_lang_tok

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.pretrained.released import Request

MAIN = "main"  # what fairseq calls the data that is neither mined nor noised
# What NLLB-200's branch of fairseq appends: where sentences are from, which translating does not say.
ORIGINS = ("<MINED_DATA>", "<MMT_BT_DATA>", "<SMT_BT_DATA>")


@dataclass(frozen=True)
class Languages:
    """The languages of a model.

    Attributes:
        task: its configuration.
        names: of all languages, in the order of their tokens.
        path: of the checkpoint, for messages.
    """

    task: Mapping[str, Any]
    names: List[str]
    path: Path

    @classmethod
    def of_task(cls, task: Mapping[str, Any], path: Path) -> "Languages":
        """Those that a task names, or the file of its ``--lang-dict``, beside the checkpoint.

        Raises:
            InputError: there is no such file, or tokens stand where they are not supported.
        """
        if task.get("lang_tok_replacing_bos_eos"):
            raise InputError(f"{path}: --lang-tok-replacing-bos-eos is not supported")
        listed = task.get("lang_dict")
        names = _listed(task.get("langs"))
        if listed and not names:
            beside = [file for file in (path.parent / Path(listed).name, Path(listed)) if file.is_file()]
            if not beside:
                raise InputError(f"{path.parent}: lacks {Path(listed).name}, the list of the model's languages")
            names = [line for line in read_lines(beside[0]) if line]
        pairs = _listed(task.get("lang_pairs"))
        return cls(task, names or sorted({language for pair in pairs for language in pair.split("-")}), path)

    @property
    def _style(self) -> str:
        return self.task.get("lang_tok_style") or "multilingual"

    def of_pair(self, request: Request) -> Tuple[str, str]:
        """What the model calls the two languages that are asked for.

        Raises:
            InputError: it does not have one.
        """
        names = {name: name for name in self.names}
        return request.token(0, names), request.token(1, names)

    def add_to(self, dictionary: Dictionary, rows: int) -> None:
        """Adds the tokens that a dictionary lacks.

        Args:
            dictionary: to be added to.
            rows: of the embeddings.
        """
        if len(dictionary) >= rows:
            return
        specs = _listed(self.task.get("langtoks_specs")) or [MAIN]
        augment_dictionary(dictionary, self.names, self._style, specs, self.task.get("extra_data"))
        if self.task.get("add_data_source_prefix_tags"):
            for origin in ORIGINS:
                dictionary.add_symbol(origin)

    def tokens(self, source: str, target: str) -> Tuple[Optional[str], Optional[str]]:
        """What the sentences of a pair of languages begin with.

        Raises:
            InputError: nothing, of a model for several pairs: it could not know what to translate to.
        """
        specs: Sequence[Optional[str]] = (self.task.get("langtoks") or {}).get(MAIN) or (
            self.task.get("encoder_langtok"),
            "tgt" if self.task.get("decoder_langtok") else None,
        )
        if not any(specs) and len(_listed(self.task.get("lang_pairs"))) > 1:
            raise InputError(
                f"{self.path}: was trained on several pairs of languages, but begins sentences with no language token "
                "(--langtoks, --encoder-langtok, --decoder-langtok): nothing tells it what to translate to"
            )
        of_source, of_target = specs
        return (
            self._token(source if of_source and of_source.startswith("src") else target, of_source),
            self._token(target, of_target),
        )

    def _token(self, language: str, spec: Optional[str]) -> Optional[str]:
        return get_lang_tok(language, self._style, spec) if spec else None


def _listed(names: Any) -> List[str]:
    """Names in a list, or with commas between them."""
    return names.split(",") if isinstance(names, str) else list(names or ())
