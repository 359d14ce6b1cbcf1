"""What the logs of trainings say of their validations."""

import re
from pathlib import Path
from typing import Dict, List, Tuple

_UPDATE = re.compile(r'"valid_num_updates": "(\d+)"')
_LOSSES = [re.compile(rf'"valid_{name}": "([\d.]+)"') for name in ("nll_loss", "loss")]  # the latter may be smoothed


def validation_curve(*logs: Path) -> List[Tuple[int, float]]:
    """The updates and the loss, bits a token, of every validation, in order.

    Args:
        logs: of a training, or of those that it consists of; of an update that comes twice, the last holds.
    """
    found: Dict[int, float] = {}
    for log in logs:
        for line in log.read_text(encoding="utf-8").splitlines():
            update = _UPDATE.search(line)
            losses = [loss for pattern in _LOSSES for loss in pattern.findall(line)]
            if update and losses:
                found[int(update[1])] = float(losses[0])
    return sorted(found.items())
