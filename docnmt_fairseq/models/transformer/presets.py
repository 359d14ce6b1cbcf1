"""Named architectures of ``document_transformer``: presets of its options."""

from argparse import Namespace
from typing import Any

from fairseq.models import register_model_architecture

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.transformer.model import DocumentTransformer
from docnmt_fairseq.models.transformer.stock import structure_of_checkpoint

PRETRAINED = "pretrained"  # instead of a size: the size of the model to fine-tune
SIZES = {
    # width, feed-forward, heads, layers, dropout: fairseq's transformer_iwslt_de_en, base and big
    "tiny": (64, 128, 4, 2, 0.1),
    "small": (256, 1024, 4, 4, 0.1),
    "iwslt": (512, 1024, 4, 6, 0.3),
    "base": (512, 2048, 8, 6, 0.1),
    "big": (1024, 4096, 16, 6, 0.3),
}


def _default(args: Namespace, **values: Any) -> None:
    for name, value in values.items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)


def set_size(args: Namespace, size: str) -> None:
    """Sets options that are not given to the values of a size."""
    width, feed_forward, heads, layers, dropout = SIZES[size]
    _default(args, encoder_embed_dim=width, encoder_ffn_embed_dim=feed_forward, encoder_layers=layers)
    _default(args, encoder_attention_heads=heads, dropout=dropout)
    _default(args, decoder_embed_dim=args.encoder_embed_dim, decoder_ffn_embed_dim=args.encoder_ffn_embed_dim)
    _default(args, decoder_layers=layers, decoder_attention_heads=heads)


def set_structure(args: Namespace) -> None:
    """Sets options that are not given to the structure of the model in ``--finetune-from-model``.

    Configurations from checkpoints are complete already.

    Raises:
        InputError: the option is not given.
    """
    path = getattr(args, "finetune_from_model", None)
    if not path:
        if getattr(args, "encoder_embed_dim", None) is None:
            raise InputError(f"--arch …_{PRETRAINED}: needs --finetune-from-model, whose structure it takes")
        return
    for name, value in structure_of_checkpoint(path).items():
        if not getattr(args, name, None):  # argparse sets switches that are not given to False
            setattr(args, name, value)


def _register(mechanism: str, size: str) -> None:
    infix = "" if mechanism == "none" else f"_{mechanism.replace('-', '_')}"

    def preset(args: Namespace) -> None:
        DocumentTransformer.check_task(args)
        if size == PRETRAINED:
            set_structure(args)
        else:
            set_size(args, size)
        if mechanism == "none":
            _default(args, context_attention=mechanism)
            return
        _default(args, context_attention=mechanism, **CONTEXT_MECHANISMS[mechanism].preset(vars(args)))

    register_model_architecture("document_transformer", f"document_transformer{infix}_{size}")(preset)
    if size == "base" and infix:  # the default size
        register_model_architecture("document_transformer", f"document_transformer{infix}")(preset)


def _register_paper(mechanism: str, size: str) -> None:
    """Registers the model of [T]: selection is the self-attention of every encoder layer, without further losses."""

    def preset(args: Namespace) -> None:
        DocumentTransformer.check_task(args)
        set_size(args, size)
        _default(args, context_attention=mechanism, context_placement="replace", context_init="xavier")
        if not getattr(args, "context_layers", None):
            args.context_layers = list(range(args.encoder_layers))

    register_model_architecture("document_transformer", f"document_transformer_{mechanism}_paper_{size}")(preset)


for _mechanism in ("conditional", "tree"):
    for _size in SIZES:
        _register_paper(_mechanism, _size)

for _mechanism in ("none", *CONTEXT_MECHANISMS.names()):
    for _size in (*SIZES, PRETRAINED):
        _register(_mechanism, _size)
