"""TensorBoard and Weights & Biases through fairseq's options: figures of this package reach both."""

from fairseq.logging import progress_bar

from tests.support import toy

OPTIONS = ["--context-attention", "conditional", "--context-top-t", "2", "--context-init", "xavier"]
OPTIONS += ["--criterion", "document_label_smoothed_cross_entropy", "--max-update", "3", "--log-interval", "1"]
FIGURES = {"loss", "first_nll_loss", "later_nll_loss", "kept_sentences"}


def test_tensorboard(data_bin, tmp_path, monkeypatch):
    written = {}

    class Writer:
        def __init__(self, folder):
            self.figures = written.setdefault(folder.removeprefix(f"{tmp_path}/logs/"), {})

        def add_scalar(self, name, value, step):
            self.figures.setdefault(name, {})[step] = value

        def add_text(self, *_):
            pass

        flush = close = lambda self: None

    monkeypatch.setattr(progress_bar, "SummaryWriter", Writer)
    monkeypatch.setattr(progress_bar, "_tensorboard_writers", {})
    toy.train(data_bin, tmp_path / "model", *OPTIONS, "--tensorboard-logdir", str(tmp_path / "logs"))
    assert written["train_inner"].keys() >= FIGURES and written["train_inner"]["loss"].keys() == {1, 2, 3}
    assert written["train"].keys() >= FIGURES
