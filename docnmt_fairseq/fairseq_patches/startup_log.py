"""Startup log: without deprecation warnings of fairseq's own calls and four lines per set of batches."""

import logging
import warnings

WARNINGS = (  # of calls inside fairseq; a user can change nothing about them
    r"hydra\.experimental\.\w+\(\) is no longer experimental",
    r"\s*The version_base parameter is not specified",
    r"\s*'\w+' is validated against ConfigStore schema",
    r"\s*The strict flag in the compose API is deprecated",
    r"In '\w+': Usage of deprecated keyword in package header",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"`torch\.cuda\.amp\.\w+\(args\.\.\.\)` is deprecated",
)
LOGGERS = ("fairseq.tasks.fairseq_task", "fairseq.data.data_utils")  # "can_reuse_epoch_itr = False", "loaded …"


def shorten() -> None:
    """Hides these warnings, and messages below warnings of these loggers."""
    for message in WARNINGS:
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", message, category)
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
