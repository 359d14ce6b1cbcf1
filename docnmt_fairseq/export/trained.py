"""The trained model that is exported, with all that belongs to it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Optional

from docnmt_fairseq.checkpoints import Ensemble, data_of_training, load_ensemble, read_checkpoint
from docnmt_fairseq.corpus.prepared import prepared_folder
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike


@dataclass(frozen=True)
class TrainedModel:
    """A model and where it comes from.

    Attributes:
        ensemble: the model, in float32 on the CPU, with its task and data.
        checkpoint: what its file holds, as fairseq loads it.
        without_context: that only the sentence-level model inside is wanted.
    """

    ensemble: Ensemble
    checkpoint: Dict[str, Any]
    without_context: bool = False

    @classmethod
    def load(cls, paths: str, data: Optional[PathLike] = None, without_context: bool = False) -> "TrainedModel":
        """The model of a checkpoint.

        Args:
            paths: the checkpoint; several with colons between would be an ensemble.
            data: the folder that ``docnmt prepare`` wrote, or a data-bin; None: where it was in training.
            without_context: that only the sentence-level model inside is wanted.

        Raises:
            InputError: an ensemble; no checkpoint; data that does not fit.
        """
        if ":" in paths:
            raise InputError(
                f"--path {paths}: an ensemble cannot be exported; export each model by itself, or the mean of several "
                "checkpoints of one training (docnmt average)"
            )
        checkpoint = read_checkpoint(paths)
        folder = prepared_folder(data_of_training(checkpoint) if data is None else Path(data))
        return cls(load_ensemble(paths, data=folder), checkpoint, without_context)
