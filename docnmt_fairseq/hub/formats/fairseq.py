"""Checkpoint of fairseq for inference: parameters and configuration without the state of the training."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.exporting import EXPORT_FORMATS, ExportFormat

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble

HISTORY = ("criterion_name", "optimizer_name", "num_updates")  # updates determine how many sentences are selected


@EXPORT_FORMATS.register("fairseq")
class FairseqCheckpoint(ExportFormat):
    """Checkpoint in float32 of any model, with merged low-rank updates."""

    help = "checkpoint for inference, of any model"
    folder = False

    def write(self, ensemble: "Ensemble", output: Path, precision: str, without_context: bool) -> None:
        """Writes the checkpoint."""
        from docnmt_fairseq.checkpoints import write_checkpoint

        if precision != "float32" or without_context:
            raise InputError("--precision, --without-context: need --format huggingface or ctranslate2")
        write_checkpoint(_state(ensemble), output)


def _state(ensemble: "Ensemble") -> Dict[str, Any]:
    """Returns what fairseq's loader needs of a checkpoint."""
    from omegaconf import OmegaConf

    from docnmt_fairseq.checkpoints import read_checkpoint
    from docnmt_fairseq.models.transformer.lora import merged_options

    original = read_checkpoint(ensemble.paths[0])
    last = original["optimizer_history"][-1]
    cfg: Any = OmegaConf.to_container(original["cfg"], resolve=True, enum_to_str=True)
    parameters = ensemble.model.state_dict(keep_vars=True)  # keeps shared parameters shared
    history = {name: last[name] for name in HISTORY if name in last}
    return {
        "args": None,
        "cfg": {**cfg, "model": merged_options(cfg["model"])},
        "model": {name: value.detach() for name, value in parameters.items()},
        "task_state": original.get("task_state", {}),
        "optimizer_history": [{**history, "lr_scheduler_state": {}}],
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    }
