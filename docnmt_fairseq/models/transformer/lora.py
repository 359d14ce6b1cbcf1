"""Which projections of ``document_transformer`` have low-rank updates (LoRA), by which options."""

import re
from dataclasses import dataclass, fields
from typing import Any, Iterator, List

from torch import nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.lora import add_lora
from docnmt_fairseq.options import Choices, default_of, flag_of, option, plain, shown

PROJECTIONS = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "out_proj", "fc1": "fc1", "fc2": "fc2"}
BOTH, ENCODER, DECODER = SIDES = ("both", "encoder", "decoder")


@dataclass
class LoRAOptions:
    """Low-rank updates of the sentence-level model's projections, trained in the place of their weights."""

    lora_rank: int = option(
        0, "rank r of the updates W + (α/r) B A of projections, whose weights W then rest (LoRA); 0: no updates. With "
        "--freeze-sentence-model these, and what looks at context, are all that is trained", minimum=0,
    )  # fmt: skip
    lora_alpha: float = option(8.0, "α: updates are multiplied by α/r")
    lora_dropout: float = option(0.0, "dropout probability of the updates' inputs")
    lora_on: str = option("q,v", f"which projections have updates: some of {', '.join(PROJECTIONS)}, by commas")
    lora_side: str = option(BOTH, "which layers have updates", names=Choices(SIDES))


def lora_projections(cfg: LoRAOptions) -> List[str]:
    """The projections that ``--lora-on`` names."""
    return [name.strip() for name in cfg.lora_on.split(",")]


def lora_problems(cfg: LoRAOptions) -> Iterator[str]:
    """What is wrong with these options, each by its flag."""
    if cfg.lora_rank == 0:
        for known in fields(LoRAOptions):
            value = plain(getattr(cfg, known.name))
            if value != default_of(known):
                yield f"{flag_of(known.name)} {shown(value)}: needs --lora-rank"
        return
    if not cfg.lora_alpha > 0:
        yield f"--lora-alpha {cfg.lora_alpha:g}: must be positive"
    if not 0 <= cfg.lora_dropout < 1:
        yield f"--lora-dropout {cfg.lora_dropout:g}: must be at least 0, and less than 1"
    if not set(lora_projections(cfg)) <= PROJECTIONS.keys():
        yield f"--lora-on {cfg.lora_on}: must be some of {', '.join(PROJECTIONS)}, with commas between"


def add_updates(model: nn.Module, cfg: LoRAOptions) -> None:
    """Gives the chosen projections of a model their updates, after all else has its initial values.

    Of its layers' attention to tokens and feed-forwards, also of those inside a context-aware one; what looks at
    context, and combinations of attentions, are new themselves and trained in full.

    Raises:
        InputError: the model has none of these projections.
    """
    if cfg.lora_rank == 0:
        return
    side = str(plain(cfg.lora_side))
    sides = f"{ENCODER}|{DECODER}" if side == BOTH else side
    names = "|".join(PROJECTIONS[name] for name in lora_projections(cfg))
    chosen = re.compile(rf"({sides})\.layers\.\d+\.(self_attn|encoder_attn|feed_forward(\.v)?)\.({names})")
    linears = [part for name, part in model.named_modules() if chosen.fullmatch(name) and type(part) is nn.Linear]
    if not linears:
        where = "" if side == BOTH else f" in the {side}"
        raise InputError(f"--lora-on {cfg.lora_on}: this model has no such projections{where}; name others")
    for linear in linears:
        add_lora(linear, cfg.lora_rank, cfg.lora_alpha, cfg.lora_dropout)


def merged_options(options: Any) -> Any:
    """The options of a model in a checkpoint, after its updates were merged; those without updates as they are."""
    if not isinstance(options, dict) or not options.get("lora_rank"):
        return options
    defaults = {known.name: default_of(known) for known in fields(LoRAOptions)}
    return {**options, **defaults, "freeze_sentence_model": False}  # which may need updates to train
