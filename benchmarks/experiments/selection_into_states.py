"""fairseq-train with a selection loss whose gradient goes on into the tokens' states: what the stop of it is for.

python -m benchmarks.experiments.selection_into_states …    (as fairseq-train)
"""

from fairseq_cli.train import cli_main
from torch import Tensor

from docnmt_fairseq import register
from docnmt_fairseq.context.conditional.selection_loss import SelectionLoss


def as_they_are(x: Tensor) -> Tensor:
    return x


if __name__ == "__main__":
    register()
    SelectionLoss.given = staticmethod(as_they_are)
    cli_main()
