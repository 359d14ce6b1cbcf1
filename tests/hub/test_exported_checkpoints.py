"""Exported checkpoints: parameters without training state."""

import pytest
import torch

from docnmt_fairseq import cli
from docnmt_fairseq.checkpoints import load_ensemble, read_checkpoint
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy

LINES = [["a b c", "d", "e e a", "<p>", "b"], ["c d"], ["a", "b", "c", "d", "e", "a b c d e a b"]]
SELECTING = ["--context-attention", "conditional", "--context-top-t", "2", "--context-init", "xavier"]
MODELS = {
    "shared": (["--share-all-embeddings"], {}),
    "conditional": ([*SELECTING, "--context-top-t-anneal-updates", "24"], {}),
    "rnn": (["--encoder-cell", "gru"], {"arch": "document_rnn", "tiny": toy.TINY_RNN}),
}


def translations(data, path):
    search = SearchOptions(beam=3, max_len_b=10, nbest=3)
    return DocumentTranslator.from_checkpoint(path, data=data, cpu=True, search=search).translate_lines(LINES)


@pytest.mark.parametrize("model", MODELS)
def test_translations_equal_those_of_the_checkpoint(trained, prepared, tmp_path, model):
    options, kind = MODELS[model]
    path = trained(*options, **kind)
    for name in ("model.pt", "again.pt"):
        toy.export(path, tmp_path / name, data=prepared)
    assert (tmp_path / "model.pt").read_bytes() == (tmp_path / "again.pt").read_bytes()
    held = torch.load(tmp_path / "model.pt")
    assert not {"last_optimizer_state", "criterion"} & held.keys()
    before, after = (load_ensemble(one, data=prepared).model.state_dict() for one in (path, tmp_path / "model.pt"))
    assert before.keys() == after.keys() and all(torch.equal(after[name], value) for name, value in before.items())
    assert translations(prepared, tmp_path / "model.pt") == translations(prepared, path)
    if model == "shared":
        names = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"]
        parameters = read_checkpoint(tmp_path / "model.pt")["model"]
        assert len({parameters[name].data_ptr() for name in names}) == 1


def test_number_of_updates_is_kept(trained, prepared, tmp_path):
    held = torch.load(trained())
    (last,) = held["optimizer_history"]
    held["optimizer_history"] = [{**last, "num_updates": number} for number in (3, 5)]
    torch.save(held, tmp_path / "continued.pt")
    toy.export(tmp_path / "continued.pt", tmp_path / "model.pt", data=prepared)
    (history,) = torch.load(tmp_path / "model.pt")["optimizer_history"]
    assert history["num_updates"] == 5 and history["lr_scheduler_state"] == {} != last["lr_scheduler_state"]


def test_other_files_are_not_replaced(trained, prepared, tmp_path):
    for name in ("checkpoint.pt", "other.pt"):
        (tmp_path / name).write_bytes(trained().read_bytes())
    (tmp_path / "notes").write_text("x")
    path, before = tmp_path / "checkpoint.pt", trained().read_bytes()
    for name in ("checkpoint.pt", "other.pt", "notes"):
        with pytest.raises(InputError, match=rf"--output \S+{name}"):
            toy.export(path, tmp_path / name, data=prepared, force=True)
    assert path.read_bytes() == (tmp_path / "other.pt").read_bytes() == before


def test_command(trained, prepared, tmp_path, capsys):
    path = str(trained())
    words = ["export", "--path", path, "--output", str(tmp_path / "new" / "model.pt")]
    assert cli.main(words) == 0  # the data of the training
    assert capsys.readouterr().out.startswith(f"{tmp_path}/new/model.pt: 0.")
    assert cli.main(words) == 2
    assert "--force" in capsys.readouterr().err
    assert cli.main([*words, "--force"]) == 0
    (tmp_path / "none.pt").write_bytes(b"x")
    for given in (
        ["--path", str(tmp_path / "none.pt")],
        ["--path", path, "--data", str(tmp_path)],
        ["--path", f"{path}:{path}"],
        ["--path", path, "--precision", "int8"],
        ["--path", path, "--without-context"],
    ):
        assert cli.main(["export", *given, "--output", str(tmp_path / "x")]) == 2
    assert not (tmp_path / "x").exists()
