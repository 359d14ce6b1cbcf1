"""``concatenation_transformer``: fairseq's Transformer with segment embeddings, for ``concatenated_translation``."""

import re
from argparse import ArgumentParser, Namespace
from typing import Dict

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.tasks import FairseqTask
from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.positions import PositionsWithSegments, RestartedPositions
from docnmt_fairseq.models.transformer.presets import SIZES, set_size

BREAK_INITS = OWN, END = "own", "end"
SEGMENTS = "encoder.embed_positions.segments.weight"
_EMBEDDINGS = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"
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
        parser.add_argument(
            "--restart-positions",
            action="store_true",
            help="count token positions from the start of each sentence of a window, as a sentence-level model does",
        )
        parser.add_argument(
            "--break-init",
            choices=BREAK_INITS,
            default=BREAK_INITS[0],
            help="embedding of the break symbol when starting from a sentence-level model: its own, or that of the end "
            "of sentence; needs --segment-embeddings",
        )

    @classmethod
    def build_model(cls, args: Namespace, task: FairseqTask) -> "ConcatenationTransformer":
        """Builds the model.

        Raises:
            InputError: these options with a task that does not concatenate sentences.
        """
        model = super().build_model(args, task)
        segments, restart = getattr(args, "segment_embeddings", False), getattr(args, "restart_positions", False)
        if not segments and not restart:
            return model
        if "concatenate_source" not in getattr(task, "view_defaults", {}):
            raise InputError("--segment-embeddings, --restart-positions: need --task concatenated_translation")
        encoder, decoder = model.encoder, model.decoder
        for side, dictionary in ((encoder, task.source_dictionary), (decoder, task.target_dictionary)):
            symbol = dictionary.index(str(task.view("break_symbol")))
            if restart:
                side.embed_positions = RestartedPositions(
                    side.embed_positions, dictionary.pad(), symbol, at_break=side is decoder
                )
            if args.break_init == END:
                side.break_symbol, side.end_symbol = symbol, dictionary.eos()
        if segments:
            trained = task.trained_view.get("concatenate_source") or task.view("concatenate_source")
            symbol = task.source_dictionary.index(str(task.view("break_symbol")))
            width = args.encoder_embed_dim
            encoder.embed_positions = PositionsWithSegments(encoder.embed_positions, trained, width, symbol)
        return model

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Accepts sentence-level checkpoints, of the stock Transformer and of ``document_transformer``.

        Missing segment embeddings start at zero, and the break symbol as ``--break-init`` says.
        """
        for key in list(state_dict):
            stock = _FEED_FORWARD.sub(r"\1.\2", key)
            if stock != key:
                state_dict[stock] = state_dict.pop(key)
        super().upgrade_state_dict_named(state_dict, name)
        own = self.state_dict()
        if SEGMENTS in own and SEGMENTS not in state_dict:
            state_dict[SEGMENTS] = own[SEGMENTS]
            for side, keys in ((self.encoder, _EMBEDDINGS[:1]), (self.decoder, _EMBEDDINGS[1:])):
                for key in keys if hasattr(side, "break_symbol") else ():
                    state_dict[key] = state_dict[key].clone()
                    state_dict[key][side.break_symbol] = state_dict[key][side.end_symbol]
        for key, value in own.items():
            stock = key.replace(".words", "")
            if stock != key and key not in state_dict and (stock in state_dict or key.endswith("._float_tensor")):
                state_dict[key] = state_dict.pop(stock, value)


def _register(size: str) -> None:
    @register_model_architecture("concatenation_transformer", f"concatenation_transformer_{size}")
    def preset(args: Namespace) -> None:
        set_size(args, size)
        base_architecture(args)


for _size in SIZES:
    _register(_size)
register_model_architecture("concatenation_transformer", "concatenation_transformer")(base_architecture)
