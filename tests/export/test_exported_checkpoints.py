"""Exported checkpoints translate as the checkpoint itself does in their precision, and are good for nothing else."""

import pickle

import pytest
import torch

from docnmt_fairseq import cli, compat
from docnmt_fairseq.checkpoints import load_ensemble, read_checkpoint
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.export.write import export
from docnmt_fairseq.exported import KEY, VERSION, WRITTEN_BY
from docnmt_fairseq.layers.rounding import rounded, weights_to_round
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.loading import precision_of
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy

LINES = [["a b c", "d", "e e a", "<p>", "b"], ["c d"], ["a", "b", "c", "d", "e", "a b c d e a b"]]
SELECTING = ["--context-attention", "conditional", "--context-top-t", "2", "--context-init", "xavier"]
MODELS = {
    "sentence": ([], {}),
    "shared": (["--share-all-embeddings"], {}),
    "conditional": (SELECTING, {}),
    "stock": ([], {"task": "translation", "arch": "transformer"}),
    "rnn": (["--encoder-cell", "gru"], {"arch": "document_rnn", "tiny": toy.TINY_RNN}),
    "rnn, updated state": (
        ["--attend-with", "updated", "--attention-sentinel", "--token-embedding", "ca-em"],
        {"arch": "document_rnn", "tiny": toy.TINY_RNN},
    ),
}
PRECISIONS = ("float32", "bf16", "int8")


def lines_of(data, *paths, **options):
    """Returns translations and scores of everything."""
    made = DocumentTranslator.from_checkpoint(
        *paths, data=data, cpu=True, search=SearchOptions(beam=3, max_len_b=10, nbest=3), **options
    )
    return made.translate_lines(LINES)


def parameters(path, data):
    return load_ensemble(path, data=data).model.state_dict()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", MODELS)
def test_translations_are_those_of_the_checkpoint_in_that_precision(trained, prepared, tmp_path, model, precision):
    options, kind = MODELS[model]
    path = trained(*options, **kind)
    export(str(path), tmp_path / "model.pt", precision=precision, data=prepared)
    found = lines_of(prepared, tmp_path / "model.pt")
    assert found == lines_of(prepared, path, precision=precision)
    assert found == lines_of(prepared, tmp_path / "model.pt", precision=precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_file_holds_rounded_weights_and_no_training(trained, prepared, tmp_path, precision):
    narrowing = ["--context-top-t-anneal-updates", "24"]  # how much of it is done is no float32
    path, exported = trained(*SELECTING, *narrowing), tmp_path / "model.pt"
    export(str(path), exported, precision=precision, data=prepared)
    held = torch.load(exported, weights_only=compat.SAFE_LOADER)
    assert held[KEY] == {"precision": precision, "version": VERSION, "written_by": WRITTEN_BY}
    assert not {"last_optimizer_state", "criterion"} & held.keys()
    before, after = parameters(path, prepared), parameters(exported, prepared)
    rounding = weights_to_round(load_ensemble(path, data=prepared).model)
    assert before.keys() == after.keys() and len(rounding) > 20
    for name, value in before.items():
        assert torch.equal(after[name], rounded(value, precision) if name in rounding else value), name
    bits = {"float32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}[precision]
    ending = ".int8" if precision == "int8" else ""
    assert {held["model"][name + ending].dtype for name in rounding} == {bits}
    assert load_ensemble(exported, data=prepared).rounded_to == (None if precision == "float32" else precision)


def test_of_the_training_it_knows_the_last_number_of_updates_alone(trained, prepared, tmp_path):
    held = torch.load(trained(), weights_only=compat.SAFE_LOADER)
    (last,) = held["optimizer_history"]
    held["optimizer_history"] = [{**last, "num_updates": number} for number in (3, 5)]  # it was continued
    torch.save(held, tmp_path / "continued.pt")
    export(str(tmp_path / "continued.pt"), tmp_path / "model.pt", data=prepared)
    made = torch.load(tmp_path / "model.pt", weights_only=compat.SAFE_LOADER)
    (history,) = made["optimizer_history"]
    assert history["num_updates"] == 5 and history["lr_scheduler_state"] == {} != last["lr_scheduler_state"]
    assert made["extra_state"] == {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_shared_weights_are_written_once_and_are_shared_again(trained, prepared, tmp_path, precision):
    path, ending = trained("--share-all-embeddings"), ".int8" if precision == "int8" else ""
    export(str(path), tmp_path / "model.pt", precision=precision, data=prepared)
    held = torch.load(tmp_path / "model.pt", weights_only=compat.SAFE_LOADER)["model"]
    names = [f"{name}.weight" for name in ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection")]
    assert len({held[f"{name}{ending}"].untyped_storage().data_ptr() for name in names}) == 1
    restored = read_checkpoint(tmp_path / "model.pt")["model"]
    assert len({restored[name].data_ptr() for name in names}) == 1


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_bytes_are_those_of_the_model(trained, prepared, tmp_path, precision):
    path, files = str(trained(*SELECTING)), [tmp_path / name for name in ("one.pt", "other.pt", "again.pt")]
    for file in files[:2]:
        export(path, file, precision=precision, data=prepared)
    export(str(files[0]), files[2], data=prepared)  # what was rounded is exported in its precision
    assert files[0].read_bytes() == files[1].read_bytes() == files[2].read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.pt", "one.pt", "other.pt"]


def test_fairseqs_commands_compute_with_the_rounded_weights(trained, prepared, tmp_path):
    path = trained(*SELECTING)
    export(str(path), tmp_path / "model.pt", precision="int8", data=prepared)
    plain = torch.load(path, weights_only=compat.SAFE_LOADER)
    plain["model"] = parameters(tmp_path / "model.pt", prepared)
    torch.save(plain, tmp_path / "plain.pt")
    found = [
        toy.generate(prepared / "data-bin", tmp_path / name, "--beam", "3", "--max-len-b", "10").hypotheses
        for name in ("model.pt", "plain.pt")
    ]
    assert found[0] == found[1] and len(found[0]) > 5
    losses = [toy.validate(prepared / "data-bin", tmp_path / name) for name in ("model.pt", "plain.pt")]
    assert losses[0] == losses[1]


def test_fairseq_by_itself_misses_what_it_does_not_understand(trained, prepared, tmp_path):
    export(str(trained()), tmp_path / "model.pt", precision="int8", data=prepared)
    held = torch.load(tmp_path / "model.pt", weights_only=compat.SAFE_LOADER)["model"]
    model = load_ensemble(trained(), data=prepared).model
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict(held, strict=True)


@pytest.mark.parametrize("flag", ["--finetune-from-model", "--restore-file"])
def test_no_training_begins_with_one(trained, prepared, tmp_path, flag):
    export(str(trained()), tmp_path / "model.pt", precision="bf16", data=prepared)
    with pytest.raises(InputError, match=r"model\.pt: was exported for inference.*--restore-file"):
        toy.train(prepared / "data-bin", tmp_path / "more", flag, str(tmp_path / "model.pt"), "--max-update", "9")


def test_another_precision_is_refused(trained, prepared, tmp_path):
    for precision in ("int8", "bf16", "float32"):
        export(str(trained()), tmp_path / f"{precision}.pt", precision=precision, data=prepared)
    with pytest.raises(InputError, match=r"--precision float32: .*int8\.pt was exported in int8; leave the option out"):
        lines_of(prepared, tmp_path / "int8.pt", precision="float32")
    with pytest.raises(InputError, match=r"--precision int8: .*bf16\.pt was exported in bf16"):
        export(str(tmp_path / "bf16.pt"), tmp_path / "new.pt", precision="int8", data=prepared)
    # What was not rounded serves in any; on a GPU, which has no products of int8, so does int8.
    export(str(tmp_path / "float32.pt"), tmp_path / "new.pt", precision="int8", data=prepared)
    assert (tmp_path / "new.pt").read_bytes() == (tmp_path / "int8.pt").read_bytes()
    of_int8, of_bf16 = (load_ensemble(tmp_path / f"{name}.pt", data=prepared) for name in ("int8", "bf16"))
    assert [precision_of(of_int8, given, cuda=True) for given in (None, "fp16")] == ["float32", "fp16"]
    assert precision_of(of_bf16, None, cuda=True) == "bf16"
    with pytest.raises(InputError, match="was exported in bf16"):
        precision_of(of_bf16, "fp16", cuda=True)


def test_ensembles_are_of_one_kind(trained, prepared, tmp_path):
    path, exported = trained(), tmp_path / "model.pt"
    export(str(path), exported, precision="int8", data=prepared)
    assert lines_of(prepared, exported, exported) == lines_of(prepared, path, path, precision="int8")
    with pytest.raises(InputError, match=r"model\.pt is exported in int8, .*last\.pt is exported in float32"):
        lines_of(prepared, exported, path)
    with pytest.raises(InputError, match=r"an ensemble cannot be exported.*docnmt average"):
        export(f"{path}:{path}", tmp_path / "both.pt", data=prepared)


def test_a_newer_format_is_said_so_in_one_line(trained, prepared, tmp_path):
    export(str(trained()), tmp_path / "model.pt", data=prepared)
    held = torch.load(tmp_path / "model.pt", weights_only=compat.SAFE_LOADER)
    held[KEY].update(version=VERSION + 1, written_by="docnmt_fairseq 9.0")
    torch.save(held, tmp_path / "model.pt")
    with pytest.raises(InputError, match=r"--path .*model\.pt: exported by docnmt_fairseq 9\.0 in version 2") as error:
        lines_of(prepared, tmp_path / "model.pt")
    assert "\n" not in str(error.value)


def test_files_that_are_no_export_stay(trained, prepared, tmp_path):
    for name in ("checkpoint.pt", "other.pt"):
        (tmp_path / name).write_bytes(trained().read_bytes())
    (tmp_path / "notes").write_text("x")
    path, before = tmp_path / "checkpoint.pt", trained().read_bytes()
    for name, message in (
        ("checkpoint.pt", r"would replace --path \S+checkpoint\.pt; give another"),
        ("other.pt", "is no such export, and so not replaced"),
        ("notes", "is no such export, and so not replaced"),
    ):
        with pytest.raises(InputError, match=rf"--output \S+{name}: {message}"):
            export(str(path), tmp_path / name, precision="int8", data=prepared, force=True)
    assert path.read_bytes() == (tmp_path / "other.pt").read_bytes() == before
    export(str(path), tmp_path / "model.pt", data=prepared)
    with pytest.raises(InputError, match="would replace --path"):
        export(str(tmp_path / "model.pt"), tmp_path / "model.pt", precision="int8", data=prepared, force=True)
    export(str(path), tmp_path / "model.pt", precision="int8", data=prepared, force=True)
    assert torch.load(tmp_path / "model.pt", weights_only=compat.SAFE_LOADER)[KEY]["precision"] == "int8"


@pytest.mark.parametrize("format_name", ["huggingface", "ctranslate2"])
def test_a_folder_with_the_checkpoint_in_it_stays(trained, prepared, tmp_path, format_name):
    """Also where it is an export, and by another name."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "docnmt_export.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "model", target_is_directory=True)
    path = tmp_path / "model" / "checkpoint.pt"
    path.write_bytes(trained().read_bytes())
    for one, other in (("model", "model"), ("link", "model"), ("model", "link")):
        with pytest.raises(InputError, match=rf"--output \S+{other}: would replace --path \S+{one}/checkpoint\.pt"):
            export(str(tmp_path / one / path.name), tmp_path / other, format_name, data=prepared, force=True)
    assert path.exists()


def test_the_command(trained, prepared, tmp_path, capsys):
    words = ["export", "--path", str(trained()), "--output", str(tmp_path / "new" / "model.pt"), "--precision", "int8"]
    assert cli.main(words) == 0  # the data are where they were in training
    assert capsys.readouterr().out.startswith(f"{tmp_path}/new/model.pt: 0.")
    assert cli.main(words) == 2
    assert "is there already; give another, or --force" in capsys.readouterr().err
    assert cli.main([*words, "--force"]) == 0
    (tmp_path / "none.pt").write_bytes(pickle.dumps([]))
    assert cli.main(["export", "--path", str(tmp_path / "none.pt"), "--output", str(tmp_path / "x")]) == 2
    assert "not a checkpoint" in capsys.readouterr().err
    assert cli.main(["export", "--path", str(trained()), "--data", str(tmp_path), "--output", str(tmp_path / "x")]) == 2
    assert "--data" in capsys.readouterr().err and not (tmp_path / "x").exists()
