"""How models see documents: by the options that are given, else as they were trained."""

import logging
from typing import Any, Dict, Mapping

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of

logger = logging.getLogger(__name__)


class TrainedView:
    """Part of a task that has such options.

    Attributes:
        view_defaults: the options that say how a model sees documents, with their defaults: an unset one is what the
            model was trained with, else the default.
        trained_view: what the loaded models were trained with.
        cfg: of the task.
    """

    cfg: Any
    trained_view: Dict[str, Any]
    view_defaults: Mapping[str, Any] = {}

    def view(self, name: str) -> Any:
        """How documents are seen: the option if given, else as the model was trained, else the default."""
        given, trained = getattr(self.cfg, name), self.trained_view.get(name)
        if given is not None:
            return given
        return self.view_defaults[name] if trained is None else trained

    def remember_view(self, trained_view: Mapping[str, Any]) -> None:
        """Keeps how a loaded model saw documents in training; warns where the command line says otherwise."""
        for name, default in self.view_defaults.items():
            trained = trained_view.get(name)
            trained = default if trained is None else trained
            if str(self.trained_view.get(name, trained)) != str(trained) and getattr(self.cfg, name) is None:
                raise InputError(f"--path: models trained with different {flag_of(name)}; say which to use")
            self.trained_view[name] = trained
            if str(self.view(name)) != str(self.trained_view[name]):
                option = flag_of(name)
                logger.warning(f"{option} {self.view(name)}: the model was trained with {self.trained_view[name]}")
