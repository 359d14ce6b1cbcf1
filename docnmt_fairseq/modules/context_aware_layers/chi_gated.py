"""What χ-gated layers have in common."""

from typing import Callable, Iterator

import torch
from torch import Tensor, nn

from docnmt_fairseq.modules.recording import ContextFreeIndicator, observer


class ReportsChi(nn.Module):
    """A layer w = χ v + (1 − χ) w′ that reports its χ; see ``decomposition``."""

    def indicator(self, score: Tensor) -> Tensor:
        """Returns χ = σ(score) ([Z] eq. 19, 39) of the same shape; shows it to who records, one number an input."""
        chi = torch.sigmoid(score)
        self.show(lambda: chi)
        return chi

    def show(self, chi: Callable[[], Tensor]) -> None:
        """Shows χ, computed only now, to who records: one number an input, NaN of one that has none."""
        observe = observer(self, ContextFreeIndicator)
        if observe is not None:
            observe(ContextFreeIndicator(chi().detach().flatten()))


class ChiGated(ReportsChi):
    """One whose χ has parameters of its own, so that χ and the vectors can be trained in turn."""

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """Gives the parameters that decide χ; all others of the layer make the vectors."""
        raise NotImplementedError


def begin_constant(score: nn.Module, bias: float) -> nn.Module:
    """Returns a linear layer or convolution to one score, made to begin with χ = σ(bias) whatever the input."""
    nn.init.zeros_(score.weight)
    nn.init.constant_(score.bias, bias)
    return score
