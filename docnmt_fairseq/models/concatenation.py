"""``concatenation_transformer``: fairseq's Transformer that knows of windows, for ``concatenated_translation``."""

import re
from argparse import ArgumentParser, Namespace
from typing import Dict

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.tasks import FairseqTask
from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.window_positions import PositionsWithSegments, RestartedPositions
from docnmt_fairseq.models.transformer.presets import SIZES, set_size

_FEED_FORWARD = re.compile(r"(layers\.\d+)\.feed_forward\.(fc[12]\.(?:weight|bias))$")  # of document_transformer
OF_WINDOWS = ("segment-embeddings", "restart-positions")


@register_model("concatenation_transformer")
class ConcatenationTransformer(TransformerModel):
    """fairseq's ``transformer``, whose tokens may know the distance of their sentence, or their place in it."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Adds fairseq's options and ours."""
        super().add_args(parser)
        parser.add_argument(
            "--segment-embeddings",
            action="store_true",
            help="the encoder adds a learned embedding by the distance of a token's sentence, 0 for the one to be "
            "translated",
        )
        parser.add_argument(
            "--restart-positions",
            action="store_true",
            help="encoder and decoder count tokens anew in each sentence of a window, as in sentence-level models that "
            "trainings begin as",
        )

    @classmethod
    def build_model(cls, args: Namespace, task: FairseqTask) -> "ConcatenationTransformer":
        """The model; ``InputError`` for windows that nobody makes."""
        model = super().build_model(args, task)
        wanted = [f"--{name}" for name in OF_WINDOWS if getattr(args, name.replace("-", "_"), False)]
        for option in wanted:
            if "concatenate_source" not in getattr(task, "view_defaults", {}):
                raise InputError(f"{option} needs --task concatenated_translation")
            if model.encoder.embed_positions is None:
                raise InputError(f"{option} cannot go with --no-token-positional-embeddings")
        if "--restart-positions" in wanted:
            for part, ends in ((model.encoder, True), (model.decoder, False)):
                known = part.dictionary
                symbol = known.index(str(task.view("break_symbol")))
                part.embed_positions = RestartedPositions(part.embed_positions, symbol, known.pad(), ends)
        if "--segment-embeddings" in wanted:
            trained = task.trained_view.get("concatenate_source") or task.view("concatenate_source")
            symbol = task.source_dictionary.index(str(task.view("break_symbol")))
            tokens, width = model.encoder.embed_positions, args.encoder_embed_dim
            model.encoder.embed_positions = PositionsWithSegments(tokens, trained, width, symbol)
        return model

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Makes sentence-level models loadable, the stock one and ``document_transformer`` without context.

        Segment embeddings, which these lack, begin at zero.
        """
        for key in list(state_dict):
            stock = _FEED_FORWARD.sub(r"\1.\2", key)
            if stock != key:
                state_dict[stock] = state_dict.pop(key)
        super().upgrade_state_dict_named(state_dict, name)
        for side, part in (("encoder", self.encoder), ("decoder", self.decoder)):
            positions = f"{side}.embed_positions"
            segments, inner = f"{positions}.segments.", positions
            while hasattr(part.get_submodule(inner.removeprefix(f"{side}.")), "words"):
                inner += ".words"
            for key in [key for key in state_dict if key.startswith(f"{positions}.")]:
                if not key.startswith(segments):
                    leaf = key.removeprefix(f"{positions}.").replace("words.", "")
                    state_dict[f"{inner}.{leaf}"] = state_dict.pop(key)
        own = self.state_dict()
        for key in [key for key in own if ".segments." in key]:
            state_dict.setdefault(key, own[key])


def _register(size: str) -> None:
    @register_model_architecture("concatenation_transformer", f"concatenation_transformer_{size}")
    def preset(args: Namespace) -> None:
        set_size(args, size)
        base_architecture(args)


for _size in SIZES:
    _register(_size)
register_model_architecture("concatenation_transformer", "concatenation_transformer")(base_architecture)
