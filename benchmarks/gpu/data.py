"""The data-bin that models are trained on: the one that was carried along, or one of made-up text."""

from argparse import Namespace
from pathlib import Path
from typing import List

from benchmarks.gpu.stage import Setting
from docnmt_fairseq import cli

BASE = {"layers": 6, "width": 512, "ffn": 2048, "heads": 8}
TOY = {"layers": 2, "width": 16, "ffn": 16, "heads": 2}


def data_bin(setting: Setting) -> Path:
    """The folder of the training data."""
    if setting.data is not None:
        return setting.data
    made = setting.output / "made-up"
    code = cli.main(["recipe", "en_de_small", "--smoke", "--until", "prepare", "--output", str(made), "--workers", "1"])
    if code:
        raise RuntimeError(f"no text could be made up in {made}")
    return made / "data" / "data-bin"


def model_arguments(setting: Setting, tokens: int, more: List[str]) -> Namespace:
    """What :class:`~benchmarks.lib.systems.System` takes: a model of base size, or a toy in a dry run.

    Args:
        setting: where.
        tokens: of a batch.
        more: options of fairseq-train.
    """
    sizes, device = (TOY if setting.dry else BASE), setting.device.type
    shared = ["--share-all-embeddings"] if setting.data is not None else []
    return Namespace(
        data_bin=str(data_bin(setting)), max_tokens=tokens, dropout=0.1, seed=1, device=device, **sizes,
        more=[*shared, *more],
    )  # fmt: skip
