"""fairseq's ``--store-ema``: the moving average of a model's parameters, beside its checkpoints."""

from typing import Any

from torch import nn


def patch_fairseq() -> None:
    """Lets it take over as it is what is no parameter, in this process.

    fairseq averages buffers, too: it fails at integers, and where a schedule is comes out behind. They keep their types
    also in its copy in float32: of a rounded share t comes out one off.
    """
    from fairseq.models.ema.ema import EMA

    initialise = EMA.__init__

    def of_parameters(self: Any, model: nn.Module, *args: Any, **kwargs: Any) -> None:
        initialise(self, model, *args, **kwargs)
        buffers = dict(model.named_buffers())
        self.skip_keys = {*self.skip_keys, *buffers}
        self.fp32_params.update({name: buffers[name].clone() for name in self.fp32_params.keys() & buffers.keys()})

    EMA.__init__ = of_parameters
