"""fairseq-preprocess inside this process."""

import logging
from typing import Sequence

from fairseq import options
from fairseq_cli import preprocess


def fairseq_preprocess(arguments: Sequence[str]) -> None:
    """Runs fairseq-preprocess with these arguments, and leaves its logger as it was.

    It opens a log file in --destdir and never closes it. What reconfigures logging later (a web server, Hydra) closes
    it, and the next line would be written by opening it again, in a folder that may be gone.
    """
    before = list(preprocess.logger.handlers)
    try:
        preprocess.main(options.get_preprocessing_parser().parse_args(list(arguments)))
    finally:
        for handler in [one for one in preprocess.logger.handlers if one not in before]:
            preprocess.logger.removeHandler(handler)
            if isinstance(handler, logging.FileHandler):
                handler.close()
