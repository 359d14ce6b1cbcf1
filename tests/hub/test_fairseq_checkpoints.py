"""Import of checkpoints of fairseq's translation task."""

import json
import shutil
import sys
from argparse import Namespace
from collections import OrderedDict

import pytest
import torch
from fairseq.data import Dictionary

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.fairseq_released import codec_of, log_probabilities, logits_of_fairseq, released, tokens
from tests.support.pretrained import ENGLISH, GERMAN, imported

STRUCTURES = {
    "post-norm": [],
    "pre-norm, shared": ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"],
    "learned positions": ["--encoder-learned-pos", "--decoder-learned-pos", "--layernorm-embedding"],
    "gelu without scale": ["--activation-fn", "gelu", "--no-scale-embedding", "--share-decoder-input-output-embed"],
}


@pytest.mark.parametrize("options", STRUCTURES.values(), ids=STRUCTURES)
def test_outputs_equal_those_of_fairseq(binarised, tmp_path, options):
    place = released(binarised, tmp_path, *options)
    imported(place, tmp_path / "imported")
    model, task = logits_of_fairseq(place / "model.pt", binarised / "bin")
    ensemble, codec = (
        load_ensemble(tmp_path / "imported" / "checkpoint.pt", data=tmp_path / "imported"),
        codec_of(tmp_path),
    )
    for source, target in zip(ENGLISH, GERMAN):
        ours, theirs = (
            log_probabilities(one, *tokens(codec, source, target, dictionaries))
            for one, dictionaries in (
                (ensemble.model, ensemble.dictionaries),
                (model, (task.source_dictionary, task.target_dictionary)),
            )
        )
        there = [ensemble.dictionaries[1].index(symbol) for symbol in task.target_dictionary.symbols]
        torch.testing.assert_close(ours[:, there], theirs, atol=1e-5, rtol=1e-5)


def test_paragraph_mark_in_a_padded_dictionary(binarised, tmp_path):
    """Dictionaries are padded to multiples of eight."""
    shutil.copytree(binarised, tmp_path / "data")
    for side in ("en", "de"):
        dictionary = Dictionary.load(str(binarised / "bin" / f"dict.{side}.txt"))
        dictionary.add_symbol("madeupword0000")
        dictionary.save(str(tmp_path / "data" / "bin" / f"dict.{side}.txt"))
    place = released(tmp_path / "data", tmp_path, "--share-all-embeddings")
    imported(place, tmp_path / "imported")
    ensemble = load_ensemble(tmp_path / "imported" / "checkpoint.pt", data=tmp_path / "imported")
    assert len(ensemble.dictionaries[0]) == len(dictionary)
    assert ensemble.dictionaries[0].index("<p>") == dictionary.index("madeupword0000")
    assert ensemble.model.decoder.output_projection.bias is None


def test_one_subword_model_with_two_dictionaries(binarised, tmp_path):
    shutil.copytree(binarised, tmp_path / "data")
    (tmp_path / "data" / "bin" / "dict.de.txt").write_text(
        "".join(reversed((binarised / "bin" / "dict.de.txt").read_text(encoding="utf-8").splitlines(keepends=True))),
        encoding="utf-8",
    )
    place = released(tmp_path / "data", tmp_path)
    imported(place, tmp_path / "imported")
    command = ["prepare", "--reuse", str(tmp_path / "imported"), "-s", "en", "-t", "de", "--workers", "1"]
    assert main([*command, "--test", str(binarised / "train"), "--output", str(tmp_path / "prepared")]) == 0
    for side in ("en", "de"):
        own, prepared = (tmp_path / name / "data-bin" / f"dict.{side}.txt" for name in ("imported", "prepared"))
        assert own.read_bytes() == prepared.read_bytes()
    assert own.read_bytes() != (own.parent / "dict.en.txt").read_bytes()


def test_checkpoint_for_fairseq_alone(tmp_path, binarised):
    """--architecture transformer needs no plugin."""
    place = released(binarised, tmp_path)
    with pytest.raises(InputError, match="--output-bias"):
        imported(place, tmp_path / "none", architecture="transformer")
    for side in ("en", "de"):
        path = place / f"dict.{side}.txt"
        path.write_text(path.read_text(encoding="utf-8") + "<p> 1\n", encoding="utf-8")
    state = torch.load(place / "model.pt", weights_only=True)
    for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"):
        state["model"][name] = torch.cat([state["model"][name], torch.randn(1, 8)])
    torch.save(state, place / "model.pt")
    imported(place, tmp_path / "plain", architecture="transformer")
    model, _ = logits_of_fairseq(tmp_path / "plain" / "checkpoint.pt", tmp_path / "plain" / "data-bin")
    assert type(model).__module__.startswith("fairseq.models.transformer")
    imported(place, tmp_path / "ours")
    ours = load_ensemble(tmp_path / "ours" / "checkpoint.pt", data=tmp_path / "ours").model
    source, target = torch.tensor([5, 6, 7, 2]), torch.tensor([9, 8, 2])
    torch.testing.assert_close(
        log_probabilities(model, source, target), log_probabilities(ours, source, target), atol=1e-5, rtol=1e-5
    )


def as_of_2018(state, monkeypatch):
    """Returns the content of a checkpoint in the form of fairseq 0.8."""
    from fairseq.logging import meters

    monkeypatch.setitem(sys.modules, "fairseq.meters", meters)
    kept = {"train_loss": meters.AverageMeter(), "wps": meters.TimeMeter(), "train_wall": meters.StopwatchMeter()}
    for meter in kept.values():
        monkeypatch.setattr(type(meter), "__module__", "fairseq.meters")
    parameters = {}
    for name, value in state["model"].items():
        if name == "decoder.output_projection.weight":
            name = "decoder.embed_out"
        elif ".self_attn.q_proj." in name:
            value = torch.cat([state["model"][name.replace("q_proj", f"{one}_proj")] for one in "qkv"])
            name = name.replace("q_proj.", "in_proj_")
        if ".self_attn.k_proj." not in name and ".self_attn.v_proj." not in name:
            parameters[name] = value.half() if value.is_floating_point() and "version" not in name else value
    args = Namespace(**vars(state["cfg"]["model"]))
    extra = {"train_iterator": {"epoch": 1}, "train_meters": OrderedDict(kept), "val_loss": 2.5}
    history = [{**state["optimizer_history"][0], "best_loss": 2.5}]
    return {"args": args, "model": parameters, "optimizer_history": history, "extra_state": extra,
            "last_optimizer_state": None}  # fmt: skip


def test_checkpoint_of_2018(binarised, tmp_path, monkeypatch):
    place = released(binarised, tmp_path, updates="1")
    imported(place, tmp_path / "today")
    state = torch.load(place / "model.pt", weights_only=True)
    with monkeypatch.context() as patches:
        torch.save(as_of_2018(state, patches), place / "model.pt", _use_new_zipfile_serialization=False)
    assert b"fairseq.meters\nStopwatchMeter" in (place / "model.pt").read_bytes()
    imported(place, tmp_path / "old")
    today, old = (toy.state(tmp_path / name / "checkpoint.pt") for name in ("today", "old"))
    assert today.keys() == old.keys() and {value.dtype for value in old.values()} == {torch.float32}
    for name, value in today.items():
        torch.testing.assert_close(old[name], value, atol=1e-3, rtol=1e-3)


def test_bpe_codes(binarised, tmp_path):
    place = released(binarised, tmp_path)
    (place / "spm.model").unlink()
    (place / "bpecodes").write_text("#version: 0.2\nt h\nth e</w>\no n</w>\n@ -\n@- @</w>\n")
    imported(place, tmp_path / "imported")
    options = json.loads((tmp_path / "imported" / "manifest.json").read_text())["options"]
    assert (options["tokenizer"], options["subwords"]) == ("moses-escaped", "codes")
    codec = codec_of(tmp_path)
    assert codec.encode(0, ["the mat's on-top"]) == ["the m@@ a@@ t &@@ a@@ p@@ o@@ s@@ ;@@ s on @-@ t@@ o@@ p"]
    assert codec.decode("the m@@ a@@ t &apos;s on @-@ t@@ o@@ p") == "the mat 's on-top"
    translator = DocumentTranslator.from_checkpoint(tmp_path / "imported" / "checkpoint.pt", cpu=True)
    assert all("@@" not in line for line in translator.translate([ENGLISH])[0])


def test_mismatched_files_are_refused(binarised, tmp_path):
    place = released(binarised, tmp_path)
    path = place / "dict.en.txt"
    path.write_text(path.read_text(encoding="utf-8") + "more 1\n", encoding="utf-8")
    with pytest.raises(InputError):
        imported(place, tmp_path / "imported")
    (place / "dict.de.txt").write_bytes(b"\xff 1\n")  # the other one is whole
    with pytest.raises(InputError):
        imported(place, tmp_path / "imported")
    path.unlink()
    with pytest.raises(InputError):
        imported(place, tmp_path / "imported")
    (place / "second.pt").write_bytes(b"x")
    with pytest.raises(InputError):
        imported(place, tmp_path / "imported")


def test_other_tasks_are_refused(data_bin, tmp_path):
    toy.train(
        data_bin, tmp_path, "--max-update", "1", task="concatenated_translation", arch="concatenation_transformer"
    )
    with pytest.raises(InputError):
        imported(tmp_path / "checkpoint_last.pt", tmp_path / "imported", languages=("src", "tgt"))


@pytest.mark.parametrize("options", STRUCTURES.values(), ids=STRUCTURES)
def test_pretrained_preset_takes_the_architecture(binarised, tmp_path, options):
    place = released(binarised, tmp_path, *options, updates="1")
    command = ["--finetune-from-model", str(place / "model.pt"), "--max-update", "1", "--lr", "0"]
    trained = toy.train(
        binarised / "bin", tmp_path / "document", *command, arch="document_transformer_conditional_pretrained", tiny=[]
    )
    before, after = toy.state(place / "model.pt"), toy.state(trained)
    weights = [name for name in before if name.endswith(("proj.weight", "embed_tokens.weight"))]
    assert len(weights) > 10 and all(torch.equal(before[name], after[name]) for name in weights)


def test_pretrained_preset_refuses_other_architectures(data_bin, tmp_path):
    checkpoint = toy.train(data_bin, tmp_path, "--max-update", "1", arch="document_rnn", tiny=toy.TINY_RNN)
    with pytest.raises(InputError):
        toy.build(
            data_bin, "--finetune-from-model", str(checkpoint), arch="document_transformer_pretrained", tiny=[]
        )  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["adaptive_softmax_cutoff", "encoder_xformers_att_config"])
def test_executable_options_are_refused(binarised, tmp_path, name):
    place = released(binarised, tmp_path, updates="1")
    state = torch.load(place / "model.pt", weights_only=True)
    vars(state["cfg"]["model"])[name] = f"__import__('pathlib').Path({str(tmp_path / 'made')!r}).touch() or [5]"
    torch.save(state, place / "model.pt")
    with pytest.raises(InputError):
        imported(place, tmp_path / "imported")
    assert not (tmp_path / "made").exists()
