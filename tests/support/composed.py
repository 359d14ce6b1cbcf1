"""Composition of fairseq's configuration, with a cache: Hydra's takes longer than a tiny training."""

import copy
from typing import Any

from fairseq.dataclass import utils
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

_by_hydra = utils.compose
_known: dict[tuple, tuple[list[str], Any]] = {}


def compose(config_name: str, overrides: list[str], strict: bool) -> Any:
    """Copies the configuration of earlier overrides of the same options and applies those whose value differs."""
    names = tuple(text if "." not in text.partition("=")[0] else text.partition("=")[0] for text in overrides)
    if names not in _known:
        _known[names] = overrides, _by_hydra(config_name, overrides=overrides, strict=strict)
    earlier, config = _known[names]
    config = copy.deepcopy(config)
    changed = [new for old, new in zip(earlier, overrides) if old != new]
    for override in OverridesParser.create().parse_overrides(changed):
        OmegaConf.update(config, override.key_or_group, override.value(), merge=True)
    return config


def compose_with_cache() -> None:
    """Makes fairseq use :func:`compose` in this process."""
    utils.compose = compose
