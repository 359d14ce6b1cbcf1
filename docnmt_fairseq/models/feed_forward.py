"""The feed-forward sub-layer of ``document_transformer``: fairseq's, or a context-aware layer in its place."""

from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Set

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import Tensor, nn

from docnmt_fairseq.modules.context_aware_layers.layer import ContextAwareLayer
from docnmt_fairseq.modules.context_aware_layers.residual import ContextAwareResidual, ResidualBlock
from docnmt_fairseq.options import option

FEED_FORWARDS = ("standard", "ca-nn", "ca-res")


@dataclass
class FeedForwardConfig(FairseqDataclass):
    """Options of the feed-forward sub-layers."""

    feed_forward: ChoiceEnum(FEED_FORWARDS) = option(
        "standard", "feed-forward of encoder and decoder: standard; ca-nn: that behind an indicator χ of its input, "
        "χ v(c) + (1 - χ) w0 (as many parameters as standard with one hidden unit less); ca-res: a block of such layers"
    )  # fmt: skip
    encoder_feed_forward: Optional[ChoiceEnum(FEED_FORWARDS)] = option(
        None, "feed-forward of the encoder (default: --feed-forward)"
    )
    decoder_feed_forward: Optional[ChoiceEnum(FEED_FORWARDS)] = option(
        None, "feed-forward of the decoder (default: --feed-forward)"
    )
    ca_res_block: str = option(
        "2,1,1,0", "block of ca-res as l,n_v,n_σ,b: layers; how many layers before it a layer sees beside the block's "
        "input, and its χ; 1 for χ = 1 throughout (n_σ may then be -). --encoder-ffn-embed-dim and "
        "--decoder-ffn-embed-dim are shared out among the l - 1 hidden layers"
    )  # fmt: skip
    chi_bias: float = option(
        3.0, "initial bias of χ in feed-forwards: at 3 χ begins at 0.95 for every word, near the standard feed-forward"
    )


class StockFeedForward(nn.Module):
    """W_2 f(W_1 c + b_1) + b_2 of the parts that a stock layer has made."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.fc1, self.fc2 = layer.fc1, layer.fc2
        self.activation_fn = layer.activation_fn
        self.activation_dropout_module = layer.activation_dropout_module

    def forward(self, c: Tensor) -> Tensor:
        """Returns [..., d] from c [..., d]."""
        return self.fc2(self.activation_dropout_module(self.activation_fn(self.fc1(c))))


class DroppingActivation(nn.Module):
    """Dropout behind an activation."""

    def __init__(self, activation: Callable[[Tensor], Tensor], dropout: nn.Module):
        super().__init__()
        self.activation = activation
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        """Returns the same shape."""
        return self.dropout(self.activation(x))


def kind_of(cfg: FeedForwardConfig, side: str) -> str:
    """Returns the feed-forward of the encoder or the decoder."""
    own = getattr(cfg, f"{side}_feed_forward")
    return str(cfg.feed_forward if own is None else own)


def choose_feed_forward(layer: nn.Module, cfg: FeedForwardConfig, side: str) -> None:
    """Puts what the options ask for into a stock layer of the encoder or the decoder; standard leaves it alone.

    Stock code computes fc2(dropout(activation(fc1(c)))): the whole sub-layer takes the place of fc1, and what comes
    after it passes it on, so that no forward is copied.
    """
    kind, d = kind_of(cfg, side), layer.embed_dim
    if kind == "standard":
        return
    if kind == "ca-nn":
        sub_layer = ContextAwareLayer(StockFeedForward(layer), d, d, cfg.chi_bias)
    else:
        block = ResidualBlock.parse(cfg.ca_res_block)
        hidden = getattr(cfg, f"{side}_ffn_embed_dim") // max(1, block.layers - 1)
        activation = DroppingActivation(layer.activation_fn, layer.activation_dropout_module)
        widths = [d, *[hidden] * (block.layers - 1), d]
        sub_layer = ContextAwareResidual.joined(block, widths, activation, cfg.chi_bias)
    layer.fc1, layer.fc2 = sub_layer, nn.Identity()
    layer.activation_fn, layer.activation_dropout_module = nn.Identity(), nn.Identity()


def problems(cfg: FeedForwardConfig) -> List[str]:
    """Returns what is wrong with the options."""
    kinds = {kind_of(cfg, side) for side in ("encoder", "decoder")}
    found = []
    if cfg.ca_res_block != FeedForwardConfig.ca_res_block and "ca-res" not in kinds:
        found.append(f"--ca-res-block {cfg.ca_res_block}: needs --feed-forward ca-res")
    if cfg.chi_bias != FeedForwardConfig.chi_bias and kinds == {"standard"}:
        found.append(f"--chi-bias {cfg.chi_bias:g}: needs --feed-forward ca-nn or ca-res")
    try:
        block = ResidualBlock.parse(cfg.ca_res_block)
    except ValueError as error:
        return [*found, f"--ca-res-block {error}"]
    for side in ("encoder", "decoder"):
        width, hidden = getattr(cfg, f"{side}_ffn_embed_dim"), block.layers - 1
        if kind_of(cfg, side) == "ca-res" and hidden and width % hidden:
            found.append(f"--{side}-ffn-embed-dim {width} cannot be shared out among {hidden} hidden layers")
    return found


def context_aware_keys(model: nn.Module) -> Dict[str, Set[str]]:
    """Returns the state-dict keys of context-aware feed-forwards that a stock model does not have, by side."""
    parts: Dict[str, Set[str]] = {}
    for name, module in model.named_modules():
        if name.endswith(".fc1") and isinstance(module, (ContextAwareLayer, ContextAwareResidual)):
            stock = isinstance(module, ContextAwareLayer)
            keys = {f"{name}.{key}" for key in module.state_dict() if not (stock and key.startswith("v."))}
            parts.setdefault(f"context-aware feed-forward in the {name.split('.')[0]}", set()).update(keys)
    return parts


def rename_stock_keys(model: nn.Module, state_dict: Dict[str, Tensor]) -> None:
    """Renames the weights of a checkpoint's standard feed-forwards to where a model with ca-nn has them."""
    for name, module in model.named_modules():
        layer = name[: -len(".fc1.v")]
        if not isinstance(module, StockFeedForward) or f"{name}.fc1.weight" in state_dict:
            continue
        for key in (f"fc{number}.{part}" for number in (1, 2) for part in ("weight", "bias")):
            if f"{layer}.{key}" in state_dict:
                state_dict[f"{name}.{key}"] = state_dict.pop(f"{layer}.{key}")
