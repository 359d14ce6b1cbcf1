"""fairseq-preprocess inside a process leaves nothing of itself in it."""

import logging
import logging.config
import tempfile
from pathlib import Path

import pytest
from fairseq_cli import preprocess

from benchmarks.lib.preprocess import fairseq_preprocess


def binarise(folder: Path) -> None:
    for language in ("en", "de"):
        (folder / f"train.{language}").write_text("a b\nb a\n")
    fairseq_preprocess(["-s", "en", "-t", "de", "--trainpref", str(folder / "train"), "--destdir", str(folder / "bin")])
    assert (folder / "bin" / "train.en-de.de.idx").exists()


@pytest.fixture
def lines_are_written():
    """The level at which fairseq's line goes to its handlers, whatever ran before."""
    root = logging.getLogger()
    level, disabled = root.level, logging.root.manager.disable
    root.setLevel(logging.INFO)
    logging.disable(logging.NOTSET)
    yield
    root.setLevel(level)
    logging.disable(disabled)


def test_a_second_folder_after_the_first_is_gone_and_logging_was_configured_anew(lines_are_written):
    handlers = list(preprocess.logger.handlers)
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            binarise(Path(folder))
        logging.config.dictConfig({"version": 1, "disable_existing_loggers": False})  # closes the handlers there are
    assert preprocess.logger.handlers == handlers


def test_the_handlers_go_when_it_fails_too(lines_are_written, tmp_path):
    handlers = list(preprocess.logger.handlers)
    with pytest.raises(FileNotFoundError):
        fairseq_preprocess(
            ["-s", "en", "-t", "de", "--trainpref", str(tmp_path / "none"), "--destdir", str(tmp_path / "bin")]
        )
    assert preprocess.logger.handlers == handlers
