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


@pytest.fixture(scope="module")
def folder(data_bin, tmp_path_factory):
    """Returns the folder of a training with checkpoints of 2, 4, … 10 updates."""
    folder = tmp_path_factory.mktemp("training")
    toy.train(data_bin, folder, "--max-update", "10", "--lr", "0.01", *KEPT, *CONDITIONAL)
    return folder


@pytest.fixture(scope="module")
def three(folder):
    return last_checkpoints(folder, 3)


def test_last_checkpoints_have_the_most_updates(folder, three):
    """Checkpoints of updates and of ends of epochs."""
    assert [updates_of(read_checkpoint(path)) for path in three] == [6, 8, 10]
    assert {path.name.count("_") for path in three} == {0, 2}
    with pytest.raises(InputError, match=r"--last 9: .*has 5 checkpoints; .*--save-interval-updates N"):
        last_checkpoints(folder, 9)
    with pytest.raises(InputError, match="--last 0: at least 1"):
        last_checkpoints(folder, 0)


def test_numbers_in_names_are_compared_numerically(tmp_path):
    names = ["checkpoint2.pt", "checkpoint_9_90.pt", "checkpoint_9_100.pt", "checkpoint9.pt", "checkpoint_10_110.pt"]
    for name in (
        *names,
        "checkpoint_last.pt",
        "checkpoint_best.pt",
        "checkpoint.best_1.5.pt",
        "checkpoint3.pt.partial",
    ):
        (tmp_path / name).touch()
    assert [path.name for path in last_checkpoints(tmp_path, 5)] == names


def test_every_parameter_is_the_mean(data_bin, three, tmp_path):
    average([three[2], three[0], three[1]], tmp_path / "mean.pt")
    states, found = [read_checkpoint(path) for path in three], read_checkpoint(tmp_path / "mean.pt")
    changed = 0
    for name, value in found["model"].items():
        expected = sum(state["model"][name].double() for state in states) / 3
        torch.testing.assert_close(value.double(), expected, atol=1e-7, rtol=1e-6)
        changed += not torch.equal(value, states[2]["model"][name])
    assert changed > 20
    assert updates_of(found) == 10 and found["task_state"] == states[2]["task_state"]
    assert states[2]["last_optimizer_state"] and "last_optimizer_state" not in found
    assert found["model"]["decoder.output_projection.weight"].data_ptr() == (
        found["model"]["decoder.embed_tokens.weight"].data_ptr()
    )  # shared as before
    (mean,) = load_ensemble(tmp_path / "mean.pt", data=data_bin).models
    torch.testing.assert_close(
        mean.state_dict()["encoder.embed_tokens.weight"], found["model"]["encoder.embed_tokens.weight"]
    )
    begun = ["--finetune-from-model", str(tmp_path / "mean.pt"), "--max-update", "1"]
    toy.train(data_bin, tmp_path / "more", *begun, *CONDITIONAL, "--share-decoder-input-output-embed")


def test_selection_schedule_of_the_newest(data_bin, tmp_path):
    narrowing = ["--context-top-t", "1", "--context-top-t-anneal-start", "3", "--max-update", "4"]
    toy.train(data_bin, tmp_path / "training", *narrowing, *KEPT, *CONDITIONAL)
    average(last_checkpoints(tmp_path / "training", 2), tmp_path / "mean.pt")
    paths = [*last_checkpoints(tmp_path / "training", 2), tmp_path / "mean.pt"]
    states = [read_checkpoint(path)["model"] for path in paths]
    assert [float(state["encoder.layers.1.context.schedule.progress"]) for state in states] == [0, 1, 1]


def test_average_of_one_checkpoint(three, tmp_path):
    average([three[0], three[0]], tmp_path / "mean.pt")
    found, expected = read_checkpoint(tmp_path / "mean.pt")["model"], read_checkpoint(three[0])["model"]
    assert all(torch.equal(found[name], value) for name, value in expected.items()) and found.keys() == expected.keys()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=str)
def test_means_of_half_types_are_float32(three, tmp_path, kind):
    states = [torch.load(path, weights_only=False) for path in three[:2]]
    for number, state in enumerate(states):
        state["model"] = {name: value.to(kind) for name, value in state["model"].items()}
        torch.save(state, tmp_path / f"{number}.pt")
    average([tmp_path / "0.pt", tmp_path / "1.pt"], tmp_path / "mean.pt")
    found = read_checkpoint(tmp_path / "mean.pt")["model"]["encoder.embed_tokens.weight"]
    parts = [state["model"]["encoder.embed_tokens.weight"].float() for state in states]
    assert torch.equal(found, (parts[0] + parts[1]) / 2) and not torch.equal(found, found.to(kind).float())


def test_shared_parameters_of_float64_are_added_once(three, tmp_path):
    state = torch.load(three[0], weights_only=False)
    table = state["model"]["decoder.embed_tokens.weight"].double()
    for name in ("decoder.embed_tokens.weight", "decoder.output_projection.weight"):
        state["model"][name] = table.view_as(table)
    torch.save(state, tmp_path / "double.pt")
    average([tmp_path / "double.pt"] * 2, tmp_path / "mean.pt")
    assert torch.equal(read_checkpoint(tmp_path / "mean.pt")["model"]["decoder.output_projection.weight"], table)


def test_the_command(data_bin, folder, three, tmp_path, capsys):
    output = tmp_path / "mean.pt"
    assert main(["average", str(folder), "--last", "2", "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}: 2 checkpoints, {three[1].name} {three[2].name}\n"
    assert main(["average", *map(str, three[1:]), "--output", str(output)]) == 2
    capsys.readouterr()
    content = output.read_bytes()
    assert main(["average", *map(str, three[1:]), "--output", str(output), "--force"]) == 0
    assert output.read_bytes() == content
    before = three[1].read_bytes()
    assert main(["average", str(folder), "--last", "2", "--output", str(three[1]), "--force"]) == 2
    assert "checkpoint2.pt; give another file" in capsys.readouterr().err and three[1].read_bytes() == before
    assert main(["average", *map(str, three), "--last", "2", "--output", str(tmp_path / "x.pt")]) == 2
    assert "--last: needs one folder" in capsys.readouterr().err
    assert main(["average", str(folder), "--output", str(tmp_path / "x.pt")]) == 2
    assert not (tmp_path / "x.pt").exists()


def test_different_models_are_refused(data_bin, three, tmp_path):
    other_top_t = toy.train(data_bin, tmp_path / "a", "--max-update", "1", *KEPT, *CONDITIONAL, "--context-top-t", "2")
    wider = toy.train(data_bin, tmp_path / "b", "--max-update", "1", *CONDITIONAL)
    words = toy.with_other_words(data_bin, tmp_path / "words")
    other_words = toy.train(words, tmp_path / "c", "--max-update", "1", *KEPT, *CONDITIONAL)
    for path in (other_top_t, wider, other_words):
        with pytest.raises(InputError):
            average([three[0], path], tmp_path / "mean.pt")
    state = torch.load(three[1], weights_only=False)
    state["model"]["encoder.embed_tokens.weight"] = state["model"]["encoder.embed_tokens.weight"][:, :4]
    torch.save(state, tmp_path / "cut.pt")
    with pytest.raises(InputError):
        average([three[0], tmp_path / "cut.pt"], tmp_path / "mean.pt")
    state = torch.load(three[1], weights_only=False)
    state["model"]["further"] = torch.zeros(1)
    torch.save(state, tmp_path / "more.pt")
    with pytest.raises(InputError):
        average([three[0], tmp_path / "more.pt"], tmp_path / "mean.pt")
    assert not (tmp_path / "mean.pt").exists()
