"""``concatenation_transformer``: fairseq's Transformer with segment embeddings, for ``concatenated_translation``."""

import re
from argparse import ArgumentParser, Namespace
from typing import Dict

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.tasks import FairseqTask
from torch import Tensor

from docnmt_fairseq.layers.positions import PositionsWithSegments
from docnmt_fairseq.models.transformer.presets import SIZES, set_size

_FEED_FORWARD = re.compile(r"(layers\.\d+)\.feed_forward\.(fc[12]\.(?:weight|bias))$")  # of document_transformer


@register_model("concatenation_transformer")
class ConcatenationTransformer(TransformerModel):
    """fairseq's ``transformer``, optionally with embeddings of each token's distance to the current sentence."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        super().add_args(parser)
        parser.add_argument(
            "--segment-embeddings",
            action="store_true",
            help="add learned encoder embeddings of the distance, in sentences, to the sentence to translate",
        )

    @classmethod
    def build_model(cls, args: Namespace, task: FairseqTask) -> "ConcatenationTransformer":
        """Builds the model; segment embeddings need the task ``concatenated_translation``."""
        model = super().build_model(args, task)
        if getattr(args, "segment_embeddings", False):
            trained = task.trained_view.get("concatenate_source") or task.view("concatenate_source")
            symbol = task.source_dictionary.index(str(task.view("break_symbol")))
            tokens, width = model.encoder.embed_positions, args.encoder_embed_dim
            model.encoder.embed_positions = PositionsWithSegments(tokens, trained, width, symbol)
        return model

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Accepts sentence-level checkpoints, of the stock Transformer and of ``document_transformer``.

        Missing segment embeddings start at zero.
        """
        for key in list(state_dict):
            stock = _FEED_FORWARD.sub(r"\1.\2", key)
            if stock != key:
                state_dict[stock] = state_dict.pop(key)
        super().upgrade_state_dict_named(state_dict, name)
        own, positions = self.state_dict(), "encoder.embed_positions"
        if f"{positions}.segments.weight" not in own or f"{positions}.segments.weight" in state_dict:
            return
        for key in [key for key in state_dict if key.startswith(f"{positions}.")]:
            state_dict[key.replace(positions, f"{positions}.words")] = state_dict.pop(key)
        state_dict[f"{positions}.segments.weight"] = own[f"{positions}.segments.weight"]


def _register(size: str) -> None:
    @register_model_architecture("concatenation_transformer", f"concatenation_transformer_{size}")
    def preset(args: Namespace) -> None:
        set_size(args, size)
        base_architecture(args)


for _size in SIZES:
    _register(_size)
register_model_architecture("concatenation_transformer", "concatenation_transformer")(base_architecture)
