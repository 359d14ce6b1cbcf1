"""Option of models with χ-gated layers: χ and what it weighs are trained in turn."""

from dataclasses import dataclass

from torch import nn

from docnmt_fairseq.ca_layers.alternating_updates import AlternatingUpdates
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import option


@dataclass
class AlternatingOptions:
    """How χ is trained."""

    em_steps: int = option(
        0, "train χ and what it weighs in turn, so many updates each, wherever the model has χ with parameters of its "
        "own (not in ca-rnn); 0: together", minimum=0,
    )  # fmt: skip


def alternate_updates(model: nn.Module, cfg: AlternatingOptions) -> None:
    """Lets the model train χ and the rest of its χ-gated layers in turn if the option says so.

    Raises:
        InputError: the model has no χ-gated layer.
    """
    if cfg.em_steps == 0:
        return
    try:
        model.alternating_updates = AlternatingUpdates(model, cfg.em_steps)
    except ValueError as error:
        raise InputError(
            f"--em-steps {cfg.em_steps}: {error}, such as --feed-forward ca-nn, --sentence-encoder ca-bsfe or "
            "--combination-attention ca-att bring"
        ) from error
