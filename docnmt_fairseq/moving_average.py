"""fairseq's ``--store-ema``: the moving average of a model's parameters, beside its checkpoints."""

from types import SimpleNamespace
from typing import Any, Dict, Optional, Tuple

from torch import nn


def patch_fairseq() -> None:
    """Lets it take over as it is what is no parameter, average each parameter once, and go on, in this process.

    fairseq averages buffers, too: it fails at integers, and where a schedule is comes out behind. They keep their types
    also in its copy in float32: of a rounded share t comes out one off. A parameter of several names, such as shared
    embeddings, it averages once a name: so they forget that many times faster than the others. And with
    ``--ema-update-freq`` it counts updates from where the process began, not from where the training did.
    """
    from fairseq.models.ema.ema import EMA

    initialise, step, ask = EMA.__init__, EMA._step_internal, EMA.step

    def of_parameters(self: Any, model: nn.Module, *args: Any, **kwargs: Any) -> None:
        initialise(self, model, *args, **kwargs)
        buffers = dict(model.named_buffers())
        self.skip_keys = {*self.skip_keys, *buffers}
        self.fp32_params.update({name: buffers[name].clone() for name in self.fp32_params.keys() & buffers.keys()})
        self.tied = _tied(self.model)
        of_first = {name: self.fp32_params[first] for name, first in self.tied.items() if first in self.fp32_params}
        self.fp32_params.update(of_first)  # of half types fairseq has a copy of each

    def each_once(self: Any, new_model: nn.Module, *args: Any, **kwargs: Any) -> None:
        state = {name: value for name, value in new_model.state_dict().items() if name not in self.tied}
        step(self, SimpleNamespace(state_dict=lambda: state), *args, **kwargs)

    def at_its_updates(self: Any, new_model: nn.Module, updates: Optional[int] = None) -> None:
        if updates is not None and self.config.ema_update_freq > 1:
            self.update_freq_counter = (updates - 1) % self.config.ema_update_freq
        ask(self, new_model, updates)

    EMA.__init__, EMA._step_internal, EMA.step = of_parameters, each_once, at_its_updates


def _tied(model: nn.Module) -> Dict[str, str]:
    """Further names of parameters that have several, and the first name of each."""
    first: Dict[Tuple[Any, ...], str] = {}
    names = [(name, (value.data_ptr(), value.shape)) for name, value in model.state_dict().items() if value.numel()]
    return {name: first[place] for name, place in names if first.setdefault(place, name) != name}
