"""``em_steps``: χ and the vectors that it mixes are trained in turn ([Z] sec. 4.2.1)."""

from typing import Callable, List

import torch
from torch import Tensor, nn

from docnmt_fairseq.ca_layers.decomposition import ChiGated


class AlternatingUpdates(nn.Module):
    """For ``em_steps`` updates only the parameters of χ are trained, for as many only the others, and so on.

    Of the χ-gated layers of a model; everything else is always trained. What rests gets a gradient of zero, so that
    processes that train together still exchange the same gradients. Gradients go on to the layers below unchanged.
    ([Z] fixes the *values* of χ or of w′, so that nothing flows through them; where w and w_σ are embeddings that is
    the same, but in a deep model whole layers below would rest, too. It leaves open where v_0, v and w_0 belong: here
    to the vectors, the other block.)

    The number of updates done, given by :meth:`set_num_updates`, decides alone: a resumed training is where it was.

    Args:
        model: holds the χ-gated layers.
        em_steps: updates of a block.

    Raises:
        ValueError: the model has no χ-gated layer.
    """

    def __init__(self, model: nn.Module, em_steps: int):
        super().__init__()
        gated = [module for module in model.modules() if isinstance(module, ChiGated)]
        if not gated:
            raise ValueError("the model has no χ-gated layer")
        self.em_steps = em_steps
        self.updates = 0
        of_chi = {parameter for layer in gated for parameter in layer.chi_parameters()}
        others = {parameter for layer in gated for parameter in layer.parameters()} - of_chi
        # Tuples of lists, since a module would take parameters for its own.
        self._blocks = ([*of_chi], [*others])
        for number, block in enumerate(self._blocks):
            for parameter in block:
                if parameter.requires_grad:
                    parameter.register_hook(self._hook(number))

    @property
    def resting(self) -> List[nn.Parameter]:
        """The parameters that are not trained now."""
        return self._blocks[1 - self._trained]

    @property
    def _trained(self) -> int:
        return self.updates // self.em_steps % 2

    def _hook(self, block: int) -> Callable[[Tensor], Tensor]:
        return lambda gradient: gradient if block == self._trained else torch.zeros_like(gradient)

    def set_num_updates(self, num_updates: int) -> None:
        """Called by fairseq before every update."""
        self.updates = num_updates

    def clear_resting(self) -> None:
        """Takes the gradients of zero away before an optimiser's step: neither momentum nor weight decay moves these.

        (A copy of all parameters that is trained in their place, as in fairseq's --fp16, has gradients of its own.)
        """
        for parameter in self.resting:
            parameter.grad = None
