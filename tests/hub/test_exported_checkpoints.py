"""Exported checkpoints: parameters without training state."""

import pickle

import pytest
import torch

from docnmt_fairseq import cli
from docnmt_fairseq.checkpoints import load_ensemble, read_checkpoint
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.exporting import export
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy

LINES = [["a b c", "d", "e e a", "<p>", "b"], ["c d"], ["a", "b", "c", "d", "e", "a b c d e a b"]]
SELECTING = ["--context-attention", "conditional", "--context-top-t", "2", "--context-init", "xavier"]
MODELS = {
    "shared": (["--share-all-embeddings"], {}),
    "conditional": ([*SELECTING, "--context-top-t-anneal-updates", "24"], {}),
    "stock": ([], {"task": "translation", "arch": "transformer"}),
    "rnn": (["--encoder-cell", "gru"], {"arch": "document_rnn", "tiny": toy.TINY_RNN}),
}


def lines_of(data, *paths, **options):
    """Returns translations and scores."""
    made = DocumentTranslator.from_checkpoint(
        *paths, data=data, cpu=True, search=SearchOptions(beam=3, max_len_b=10, nbest=3), **options
    )
    return made.translate_lines(LINES)


SLOW = (pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name != "shared")


@pytest.mark.parametrize("model", ["shared", *SLOW])
def test_translations_are_those_of_the_checkpoint(trained, prepared, tmp_path, model):
    options, kind = MODELS[model]
    path = trained(*options, **kind)
    export(str(path), tmp_path / "model.pt", data=prepared)
    assert not {"last_optimizer_state", "criterion"} & torch.load(tmp_path / "model.pt").keys()
    before, after = (load_ensemble(one, data=prepared).model.state_dict() for one in (path, tmp_path / "model.pt"))
    assert before.keys() == after.keys() and all(torch.equal(after[name], value) for name, value in before.items())
    for precision in (None, "int8"):
        found = lines_of(prepared, tmp_path / "model.pt", precision=precision)
        assert found == lines_of(prepared, path, precision=precision)


def test_the_number_of_updates_is_kept(trained, prepared, tmp_path):
    held = torch.load(trained())
    (last,) = held["optimizer_history"]
    held["optimizer_history"] = [{**last, "num_updates": number} for number in (3, 5)]
    torch.save(held, tmp_path / "continued.pt")
    export(str(tmp_path / "continued.pt"), tmp_path / "model.pt", data=prepared)
    (history,) = torch.load(tmp_path / "model.pt")["optimizer_history"]
    assert history["num_updates"] == 5 and history["lr_scheduler_state"] == {} != last["lr_scheduler_state"]


def test_shared_weights_are_written_once(trained, prepared, tmp_path):
    export(str(trained("--share-all-embeddings")), tmp_path / "model.pt", data=prepared)
    held = read_checkpoint(tmp_path / "model.pt")["model"]
    names = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"]
    assert len({held[name].data_ptr() for name in names}) == 1


def test_files_are_reproducible(trained, prepared, tmp_path):
    for name in ("one.pt", "other.pt"):
        export(str(trained(*SELECTING)), tmp_path / name, data=prepared)
    assert (tmp_path / "one.pt").read_bytes() == (tmp_path / "other.pt").read_bytes()


def test_other_precisions_and_ensembles_are_refused(trained, prepared, tmp_path):
    path = trained()
    with pytest.raises(InputError, match="--precision int8"):
        export(str(path), tmp_path / "model.pt", precision="int8", data=prepared)
    with pytest.raises(InputError, match="ensemble"):
        export(f"{path}:{path}", tmp_path / "both.pt", data=prepared)


def test_other_files_are_not_replaced(trained, prepared, tmp_path):
    for name in ("checkpoint.pt", "other.pt"):
        (tmp_path / name).write_bytes(trained().read_bytes())
    (tmp_path / "notes").write_text("x")
    path, before = tmp_path / "checkpoint.pt", trained().read_bytes()
    for name in ("checkpoint.pt", "other.pt", "notes"):
        with pytest.raises(InputError, match=rf"--output \S+{name}"):
            export(str(path), tmp_path / name, data=prepared, force=True)
    assert path.read_bytes() == (tmp_path / "other.pt").read_bytes() == before
    export(str(path), tmp_path / "model.pt", data=prepared)
    export(str(path), tmp_path / "model.pt", data=prepared, force=True)


def test_the_command(trained, prepared, tmp_path, capsys):
    words = ["export", "--path", str(trained()), "--output", str(tmp_path / "new" / "model.pt")]
    assert cli.main(words) == 0  # the data are where they were in training
    assert capsys.readouterr().out.startswith(f"{tmp_path}/new/model.pt: 0.")
    assert cli.main(words) == 2
    assert "--force" in capsys.readouterr().err
    assert cli.main([*words, "--force"]) == 0
    (tmp_path / "none.pt").write_bytes(pickle.dumps([]))
    assert cli.main(["export", "--path", str(tmp_path / "none.pt"), "--output", str(tmp_path / "x")]) == 2
    assert "not a checkpoint" in capsys.readouterr().err
    assert cli.main(["export", "--path", str(trained()), "--data", str(tmp_path), "--output", str(tmp_path / "x")]) == 2
    assert "--data" in capsys.readouterr().err and not (tmp_path / "x").exists()
