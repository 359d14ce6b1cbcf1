"""What M2M-100, NLLB-200 and mBART-50 have in common as Hugging Face has them.

They are fairseq's Transformer, pre-norm, of one table of embeddings, with language tokens on both sides.
"""

from pathlib import Path
from typing import Any, Dict, Sequence, Tuple

from torch import Tensor

from docnmt_fairseq.corpus.subwords import SENTENCEPIECE
from docnmt_fairseq.pretrained.bart import Configuration, layers_of, norms_of, shared_embeddings
from docnmt_fairseq.pretrained.multilingual_vocabulary import SENTENCEPIECE_MODEL, language_of, multilingual_vocabulary
from docnmt_fairseq.pretrained.released import CONFIGURATION, Family, Released, Request, TextModels, read_json
from docnmt_fairseq.pretrained.tensors import Tensors

STRUCTURE = {
    "encoder_normalize_before": True,
    "decoder_normalize_before": True,
    "share_all_embeddings": True,
    "share_decoder_input_output_embed": True,
}
NUMBERS = (("pad_token_id", 1), ("eos_token_id", 2), ("decoder_start_token_id", 2))
TOKENIZER = "tokenizer_config.json"


def tokenizer_of(request: Request) -> Tuple[Path, Dict[str, Any]]:
    """The file that says how text is split, and what it says; its class may stand in ``config.json``."""
    path = request.path / TOKENIZER
    kept = {name: value for name, value in request.configuration().items() if name == "tokenizer_class" and value}
    return path, {**kept, **(read_json(path) if path.is_file() else {})}


class MultilingualFamily(Family):
    """Models with language tokens; subclasses say where theirs differ.

    Class attributes:
        name: of the family, as ``FAMILIES`` knows it.
        own_structure: options of ``document_transformer`` beside ``STRUCTURE``.
        norms: layer norms of encoder and decoder, outside of layers.
    """

    name = ""
    own_structure: Dict[str, Any] = {}
    norms: Tuple[str, ...] = ("layer_norm",)

    def check(self, request: Request, languages: Sequence[str]) -> None:
        """Refuses relatives of the family that compute something else, or have language tokens elsewhere.

        Args:
            request: with the folder.
            languages: of the model.

        Raises:
            InputError: the folder has such a model.
        """
        raise NotImplementedError

    def positions(self, tensors: Tensors, rows: int, width: int) -> Dict[str, Tensor]:
        """The tables of positions by fairseq's names, for sentences of up to ``rows`` tokens."""
        raise NotImplementedError

    def read(self, request: Request) -> Released:
        """See :class:`Family`."""
        config = Configuration(request.path / CONFIGURATION, request.configuration())
        for name, value in NUMBERS:
            config.refuse(name, value, f"these models have {value}")
        config.refuse("tie_word_embeddings", True, "these models have one table of embeddings")
        structure = {**config.structure(), **STRUCTURE, **self.own_structure}
        vocabulary, tokens, files = multilingual_vocabulary(request, config.get("vocab_size", int))
        by_language = {language_of(token): token for token in tokens}
        self.check(request, [*by_language])
        tensors = Tensors.of_folder(request.path)
        longest = config.get("max_position_embeddings", int)
        state = {
            **layers_of(tensors, structure),
            **norms_of(tensors, config.width, *self.norms),
            **shared_embeddings(tensors, vocabulary, config.width),
            **self.positions(tensors, longest, config.width),
        }
        tensors.check_all_taken()
        structure["output_bias"] = "decoder.output_projection.bias" in state
        model = request.file(SENTENCEPIECE_MODEL)
        source, target = request.token(0, by_language), request.token(1, by_language)
        return Released(
            self.name,
            structure,
            state,
            (vocabulary, vocabulary),
            TextModels(SENTENCEPIECE, (model, model), language_tokens=(source, target)),
            (longest, longest),
            [config.path, *files, *tensors.files],
            [*by_language],
        )
