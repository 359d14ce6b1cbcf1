"""Makes the checkpoints of this folder: ``python -m tests.compat.make_checkpoints``.

One tiny model of every family, trained for a few updates, the data-bin ``data-bin`` that belongs to them, and in
``expected.json`` the loss and the translations of the test set at that time. They are made once per version whose
checkpoints must stay loadable, never to repair ``test_checkpoints.py``.
"""

import json
import shutil
import tempfile
from pathlib import Path

import torch

from docnmt_fairseq.checkpoints import load_ensemble
from tests.support import toy
from tests.support.documents import DOCUMENTS, write_data_bin
from tests.support.extra_sources import with_extra_sources

FOLDER = Path(__file__).parent
ONE_LAYER = ["--encoder-layers", "1", "--decoder-layers", "1"]
FAMILIES = {
    "conditional": ["--context-attention", "conditional", "--context-top-t", "2", "--sentence-positions", "learned"],
    "memory": ["--context-attention", "memory", "--context-sentences", "2"],
    "multi-source": ["--extra-sources", "previous,text:mt,features:image", "--attention-sentinel"],
    "rnn": ["--decoder-cell", "conditional-gru"],
}


def measured(checkpoint, data_bin):
    """Returns the loss per token and the translations of the test set by sentence number."""
    ensemble = load_ensemble(checkpoint, data=data_bin)
    sample = toy.batch_of(ensemble.task)
    with torch.no_grad():
        log_probs = ensemble.model(**sample["net_input"])[0].log_softmax(-1)
    loss = -log_probs.gather(2, sample["target"].unsqueeze(2))[sample["target"].ne(1)].mean()
    found = toy.generate(data_bin, checkpoint, "--beam", "3", "--max-len-b", "8").hypotheses
    return {"loss": float(loss), "translations": {str(number): tokens for number, (tokens, _) in sorted(found.items())}}


def main() -> None:
    """Writes all files."""
    expected = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        data_bin = with_extra_sources(write_data_bin(work, DOCUMENTS), work / "data-bin")
        (FOLDER / "data-bin").mkdir(exist_ok=True)
        for file in [*data_bin.glob("dict.*"), *data_bin.glob("test.*")]:
            shutil.copy(file, FOLDER / "data-bin")
        for name, options in FAMILIES.items():
            kind = {"arch": "document_rnn", "tiny": toy.TINY_RNN} if name == "rnn" else {}
            options = [*options, *ONE_LAYER, "--max-update", "60", "--no-save-optimizer-state"]
            shutil.copy(toy.train(data_bin, work / name, *options, **kind), FOLDER / f"{name}.pt")
            expected[name] = measured(FOLDER / f"{name}.pt", data_bin)
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
