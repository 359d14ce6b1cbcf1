"""Averages of checkpoints."""

import pytest
import torch

from docnmt_fairseq.checkpoints import load_ensemble, read_checkpoint
from docnmt_fairseq.cli import main
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.average import average, last_checkpoints, updates_of
from tests.support import toy

CONDITIONAL = ["--context-attention", "conditional", "--context-init", "xavier"]
KEPT = ["--save-interval-updates", "2", "--keep-interval-updates", "9", "--share-decoder-input-output-embed"]
TABLE, OUTPUT = "decoder.embed_tokens.weight", "decoder.output_projection.weight"


@pytest.fixture(scope="module")
def folder(data_bin, tmp_path_factory):
    """Returns the folder of a training with checkpoints of 2, 4, … 10 updates."""
    folder = tmp_path_factory.mktemp("training")
    toy.train(data_bin, folder, "--max-update", "10", "--lr", "0.01", *KEPT, *CONDITIONAL)
    return folder


@pytest.fixture(scope="module")
def three(folder):
    return last_checkpoints(folder, 3)


def model_of(path):
    return read_checkpoint(path)["model"]


def test_last_checkpoints_have_the_most_updates(folder, three):
    assert [updates_of(read_checkpoint(path)) for path in three] == [6, 8, 10]
    assert {path.name.count("_") for path in three} == {0, 2}  # of updates and of ends of epochs
    for number in (0, 9):
        with pytest.raises(InputError, match=f"--last {number}: .* has 5 checkpoints"):
            last_checkpoints(folder, number)


def test_numbers_in_names_are_compared_numerically(tmp_path):
    names = ["checkpoint2.pt", "checkpoint_9_90.pt", "checkpoint_9_100.pt", "checkpoint9.pt", "checkpoint_10_110.pt"]
    others = ["checkpoint_last.pt", "checkpoint_best.pt", "checkpoint.best_1.5.pt", "checkpoint3.pt.partial"]
    for name in (*names, *others):
        (tmp_path / name).touch()
    assert [path.name for path in last_checkpoints(tmp_path, 5)] == names


def test_every_parameter_is_the_mean(data_bin, three, tmp_path):
    average([three[2], three[0], three[1]], tmp_path / "mean.pt")
    states, found = [read_checkpoint(path) for path in three], read_checkpoint(tmp_path / "mean.pt")
    for name, value in found["model"].items():
        expected = sum(state["model"][name].double() for state in states) / 3
        torch.testing.assert_close(value.double(), expected, atol=1e-7, rtol=1e-6)
    assert sum(not torch.equal(value, states[2]["model"][name]) for name, value in found["model"].items()) > 20
    assert updates_of(found) == 10 and found["task_state"] == states[2]["task_state"]
    assert states[2]["last_optimizer_state"] and "last_optimizer_state" not in found
    assert found["model"][OUTPUT].data_ptr() == found["model"][TABLE].data_ptr()  # shared as before
    mean = load_ensemble(tmp_path / "mean.pt", data=data_bin).model
    assert torch.equal(mean.state_dict()[TABLE], found["model"][TABLE])
    begun = ["--finetune-from-model", str(tmp_path / "mean.pt"), "--max-update", "1"]
    toy.train(data_bin, tmp_path / "more", *begun, *CONDITIONAL, "--share-decoder-input-output-embed")


def test_selection_schedule_of_the_newest(data_bin, tmp_path):
    narrowing = ["--context-top-t", "1", "--context-top-t-anneal-start", "3", "--max-update", "4"]
    toy.train(data_bin, tmp_path / "training", *narrowing, *KEPT, *CONDITIONAL)
    paths = last_checkpoints(tmp_path / "training", 2)
    average(paths, tmp_path / "mean.pt")
    states = [model_of(path) for path in (*paths, tmp_path / "mean.pt")]
    assert [float(state["encoder.layers.1.context.schedule.progress"]) for state in states] == [0, 1, 1]


def test_means_of_half_types_are_float32(three, tmp_path):
    states = [torch.load(path, weights_only=False) for path in three[:2]]
    for number, state in enumerate(states):
        state["model"] = {name: value.bfloat16() for name, value in state["model"].items()}
        torch.save(state, tmp_path / f"{number}.pt")
    average([tmp_path / "0.pt", tmp_path / "1.pt"], tmp_path / "mean.pt")
    first, second = (state["model"][TABLE].float() for state in states)
    assert torch.equal(model_of(tmp_path / "mean.pt")[TABLE], (first + second) / 2)


def test_command(folder, three, tmp_path, capsys):
    output = tmp_path / "mean.pt"
    assert main(["average", str(folder), "--last", "2", "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}: 2 checkpoints, {three[1].name} {three[2].name}\n"
    content, paths = output.read_bytes(), list(map(str, three[1:]))
    assert main(["average", *paths, "--output", str(output)]) == 2
    assert main(["average", *paths, "--output", str(output), "--force"]) == 0
    assert output.read_bytes() == content
    before = three[1].read_bytes()
    assert main(["average", str(folder), "--last", "2", "--output", paths[0], "--force"]) == 2
    assert three[1].read_bytes() == before
    for given in ([*paths, "--last", "2"], [str(folder)]):
        assert main(["average", *given, "--output", str(tmp_path / "x.pt")]) == 2
    assert not (tmp_path / "x.pt").exists()


def test_different_models_are_refused(data_bin, three, tmp_path):
    others = [
        toy.train(data_bin, tmp_path / "a", "--max-update", "1", *KEPT, *CONDITIONAL, "--context-top-t", "2"),
        toy.train(data_bin, tmp_path / "b", "--max-update", "1", *CONDITIONAL),
        toy.train(toy.with_other_words(data_bin, tmp_path / "words"), tmp_path / "c", "--max-update", "1", *KEPT,
                  *CONDITIONAL),
    ]  # fmt: skip
    state = torch.load(three[1], weights_only=False)
    state["model"]["further"] = torch.zeros(1)
    torch.save(state, tmp_path / "more.pt")
    for path in (*others, tmp_path / "more.pt"):
        with pytest.raises(InputError):
            average([three[0], path], tmp_path / "mean.pt")
    assert not (tmp_path / "mean.pt").exists()
