"""fairseq's ``--store-ema``: the moving average of a model's parameters, beside its checkpoints."""

from typing import Any

from torch import nn


def patch_fairseq() -> None:
    """Lets it take over as it is what is no parameter, in this process.

    fairseq averages buffers, too: it fails at integers, and where a schedule is comes out behind.
    """
    from fairseq.models.ema.ema import EMA

    initialise = EMA.__init__

    def of_parameters(self: Any, model: nn.Module, *args: Any, **kwargs: Any) -> None:
        initialise(self, model, *args, **kwargs)
        self.skip_keys = {*self.skip_keys, *(name for name, _ in model.named_buffers())}

    EMA.__init__ = of_parameters
