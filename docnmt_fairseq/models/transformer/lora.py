"""Low-rank adaptation (LoRA) of the projections of ``document_transformer``."""

import re
from dataclasses import dataclass, fields
from typing import Any

from torch import nn

from docnmt_fairseq.layers.lora import add_lora
from docnmt_fairseq.options import Choices, default_of, option, plain

PROJECTIONS = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "out_proj", "fc1": "fc1", "fc2": "fc2"}
BOTH, ENCODER, DECODER = SIDES = ("both", "encoder", "decoder")


@dataclass
class LoRAOptions:
    """Low-rank updates of the sentence-level model's projections."""

    lora_rank: int = option(
        0, "rank r of low-rank updates W + (α/r) B A of projections, whose W is then frozen (LoRA); 0: none. With "
        "--freeze-sentence-model, updates and context modules are all that is trained", minimum=0,
    )  # fmt: skip
    lora_alpha: float = option(8.0, "α: updates are multiplied by α/r")
    lora_dropout: float = option(0.0, "dropout probability of the updates' inputs", minimum=0, maximum=1)
    lora_on: str = option("q,v", f"projections with updates, comma-separated: {', '.join(PROJECTIONS)}")
    lora_side: str = option(BOTH, "layers with updates", names=Choices(SIDES))


def add_updates(model: nn.Module, cfg: LoRAOptions) -> None:
    """Adds updates to the chosen projections of a model, after all its parameters are initialised.

    Projections are those of the layers' attention to tokens and of feed-forwards, including those inside context-aware
    feed-forwards. Context modules and attention combinations are trained in full.
    """
    if cfg.lora_rank == 0:
        return
    side = str(plain(cfg.lora_side))
    sides = f"{ENCODER}|{DECODER}" if side == BOTH else side
    projections = "|".join(PROJECTIONS[name.strip()] for name in cfg.lora_on.split(","))
    chosen = re.compile(rf"({sides})\.layers\.\d+\.(self_attn|encoder_attn|feed_forward(\.v)?)\.({projections})")
    linears = [part for name, part in model.named_modules() if chosen.fullmatch(name) and type(part) is nn.Linear]
    for linear in linears:
        add_lora(linear, cfg.lora_rank, cfg.lora_alpha, cfg.lora_dropout)


def merged_options(options: Any) -> Any:
    """Options of a model in a checkpoint after merging its updates; unchanged without updates."""
    if not isinstance(options, dict) or not options.get("lora_rank"):
        return options
    defaults = {known.name: default_of(known) for known in fields(LoRAOptions)}
    return {**options, **defaults, "freeze_sentence_model": False}  # which may have depended on updates
