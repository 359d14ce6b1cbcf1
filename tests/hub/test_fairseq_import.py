"""Import of fairseq's checkpoints: bilingual models, M2M-100, NLLB-200, mBART-50."""

import json
import re
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
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.fairseq_released import codec_of, log_probabilities, logits_of_fairseq, released, tokens, tokens_of
from tests.support.marks import slow_except
from tests.support.pretrained import ENGLISH, GERMAN, imported
from tests.support.toy import TINY

STRUCTURES = {
    "post-norm": [],
    "pre-norm, shared": ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"],
    "learned positions": ["--encoder-learned-pos", "--decoder-learned-pos", "--layernorm-embedding"],
    "gelu without scale": ["--activation-fn", "gelu", "--no-scale-embedding", "--share-decoder-input-output-embed"],
}
TABLES = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"]
BOTH_SIDES = ["--encoder-langtok", "src", "--decoder-langtok"]
MULTILINGUAL = "translation_multi_simple_epoch"


def load(folder):
    return load_ensemble(folder / "checkpoint.pt", data=folder)


@pytest.mark.parametrize("name", slow_except({"post-norm", "learned positions"}, STRUCTURES))
def test_outputs_equal_those_of_fairseq(binarised, tmp_path, name):
    place = released(binarised, tmp_path, *STRUCTURES[name])
    ensemble, codec = load(imported(place, tmp_path / "imported")), codec_of(tmp_path)
    model, task = logits_of_fairseq(place / "model.pt", binarised / "bin")
    there = [ensemble.dictionaries[1].index(symbol) for symbol in task.target_dictionary.symbols]
    for source, target in zip(ENGLISH, GERMAN):
        ours = log_probabilities(ensemble.model, *tokens(codec, source, target, ensemble.dictionaries))
        theirs = log_probabilities(
            model, *tokens(codec, source, target, (task.source_dictionary, task.target_dictionary))
        )
        torch.testing.assert_close(ours[:, there], theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", slow_except({"learned positions"}, STRUCTURES))
def test_pretrained_preset_takes_the_architecture(binarised, tmp_path, name):
    place = released(binarised, tmp_path, *STRUCTURES[name], updates="1")
    command = ["--finetune-from-model", str(place / "model.pt"), "--max-update", "1", "--lr", "0"]
    trained = toy.train(
        binarised / "bin", tmp_path / "document", *command, arch="document_transformer_conditional_pretrained", tiny=[]
    )
    before, after = toy.state(place / "model.pt"), toy.state(trained)
    weights = [name for name in before if name.endswith(("proj.weight", "embed_tokens.weight"))]
    assert len(weights) > 10 and all(torch.equal(before[name], after[name]) for name in weights)


def test_paragraph_mark_replaces_padding_of_the_dictionary(binarised, tmp_path):
    shutil.copytree(binarised, tmp_path / "data")
    for side in ("en", "de"):
        dictionary = Dictionary.load(str(binarised / "bin" / f"dict.{side}.txt"))
        dictionary.add_symbol("madeupword0000")
        dictionary.save(str(tmp_path / "data" / "bin" / f"dict.{side}.txt"))
    ensemble = load(imported(released(tmp_path / "data", tmp_path, "--share-all-embeddings"), tmp_path / "imported"))
    assert len(ensemble.dictionaries[0]) == len(dictionary)
    assert ensemble.dictionaries[0].index("<p>") == dictionary.index("madeupword0000")
    assert ensemble.model.decoder.output_projection.bias is None


def test_one_subword_model_with_two_dictionaries(binarised, tmp_path):
    shutil.copytree(binarised, tmp_path / "data")
    lines = (binarised / "bin" / "dict.de.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "data" / "bin" / "dict.de.txt").write_text("".join(reversed(lines)), encoding="utf-8")
    imported(released(tmp_path / "data", tmp_path), tmp_path / "imported")
    command = ["prepare", "--reuse", str(tmp_path / "imported"), "-s", "en", "-t", "de", "--workers", "1"]
    assert main([*command, "--test", str(binarised / "train"), "--output", str(tmp_path / "prepared")]) == 0
    for side in ("en", "de"):
        own, prepared = (tmp_path / name / "data-bin" / f"dict.{side}.txt" for name in ("imported", "prepared"))
        assert own.read_bytes() == prepared.read_bytes()
    assert own.read_bytes() != (own.parent / "dict.en.txt").read_bytes()


def with_more_rows(place, rows, **options):
    """Adds embeddings to a checkpoint and changes options of its task and model."""
    state = torch.load(place / "model.pt", weights_only=True)
    for values in (state["cfg"]["task"], state["cfg"]["model"]):
        getattr(values, "__dict__", values).update(options)
    more = torch.randn(rows, 8)
    for name in TABLES:
        state["model"][name] = torch.cat([state["model"][name], more])
    torch.save(state, place / "model.pt")
    return place


def test_checkpoint_for_fairseq_alone(tmp_path, binarised):
    """--architecture transformer needs no plugin."""
    place = released(binarised, tmp_path)
    with pytest.raises(InputError):
        imported(place, tmp_path / "none", architecture="transformer")
    for side in ("en", "de"):
        path = place / f"dict.{side}.txt"
        path.write_text(path.read_text(encoding="utf-8") + "<p> 1\n", encoding="utf-8")
    with_more_rows(place, 1)
    imported(place, tmp_path / "plain", architecture="transformer")
    model, _ = logits_of_fairseq(tmp_path / "plain" / "checkpoint.pt", tmp_path / "plain" / "data-bin")
    assert type(model).__module__.startswith("fairseq.models.transformer")
    ours = load(imported(place, tmp_path / "ours")).model
    pair = torch.tensor([5, 6, 7, 2]), torch.tensor([9, 8, 2])
    torch.testing.assert_close(log_probabilities(model, *pair), log_probabilities(ours, *pair), atol=1e-5, rtol=1e-5)


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


# --- Multilingual models ---

TOKENS = {  # options of language tokens, and the tokens
    "multilingual": (BOTH_SIDES, ("__en__", "__de__")),
    "mbart": ([*BOTH_SIDES, "--lang-tok-style", "mbart"], ("[en]", "[de]")),
    "target token in the source": (
        [*BOTH_SIDES, "--langtoks", "{'main': ('tgt', None), 'mined': ('src', 'tgt')}"], ("__de__", None),
    ),
    "mined data": (
        ["--langtoks-specs", "main,mined", "--langtoks", "{'main': ('src.mined', 'tgt')}"], ("__en_mined__", "__de__"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", slow_except({"multilingual", "target token in the source"}, TOKENS))
def test_translations_equal_those_of_the_multilingual_task(binarised, tmp_path, name):
    options, begins = TOKENS[name]
    options = ["--langs", "de,en,fr", *options]
    place = released(binarised, tmp_path, *options, task=MULTILINGUAL, updates="30")
    imported(place, tmp_path / "imported")
    output = toy.generate_text(
        binarised / "bin", place / "model.pt", "--lang-pairs", "en-de", *options, "--source-lang", "en",
        "--target-lang", "de", "--beam", "3", "--max-len-b", "20", "--required-batch-size-multiple", "1",
        task=MULTILINGUAL,
    )  # fmt: skip
    search = SearchOptions(beam=3, max_len_b=20)
    translator = DocumentTranslator.from_checkpoint(tmp_path / "imported" / "checkpoint.pt", search=search, cpu=True)
    found = toy.parse(output).hypotheses
    assert len(found) == len(ENGLISH)
    for number, line in enumerate(translator.translate_lines([ENGLISH])[0]):
        assert line.translations[0].text == found[number][0].replace(" ", "").replace("▁", " ").strip()
    assert tokens_of(tmp_path / "imported") == begins


@pytest.fixture(scope="module")
def multilingual(binarised, tmp_path_factory):
    """Returns a model of three languages with tokens on both sides."""
    options = ["--langs", "de,en,fr", *BOTH_SIDES, "--share-all-embeddings"]
    return released(binarised, tmp_path_factory.mktemp("multilingual"), *options, task=MULTILINGUAL, updates="1")


def test_nllb_data_source_symbols(multilingual, tmp_path):
    """Symbols of data sources, which only the NLLB branch of fairseq adds."""
    tagged = shutil.copytree(multilingual, tmp_path / "tagged")
    with_more_rows(tagged, 3, add_data_source_prefix_tags=True)
    plain, more = (load(imported(place, tmp_path / name)) for place, name in ((multilingual, "a"), (tagged, "b")))
    (few, _), (many, _) = plain.dictionaries, more.dictionaries
    assert few.symbols[-4:] == ["__de__", "__en__", "__fr__", "<p>"]
    assert many.symbols == [*few.symbols[:-1], "<MINED_DATA>", "<MMT_BT_DATA>", "<SMT_BT_DATA>", "<p>"]
    pair = torch.tensor([few.index("__en__"), 9, 8, 2]), torch.tensor([few.index("__de__"), 7, 2])
    logits = []
    for one in (plain, more):
        with torch.no_grad():
            logits.append(one.model(pair[0][None], torch.tensor([4]), pair[1][None])[0][..., : len(few) - 1])
    torch.testing.assert_close(*logits)


def test_multilingual_task_without_language_tokens(multilingual, tmp_path):
    none = dict(langtoks={}, encoder_langtok=None, decoder_langtok=False)
    place = with_more_rows(shutil.copytree(multilingual, tmp_path / "one"), 0, **none)
    assert tokens_of(imported(place, tmp_path / "imported")) == (None, None)


def test_mbart_50_equals_fairseq(binarised, tmp_path):
    """Architecture, languages in a file, and names of dictionaries of mBART-50."""
    names = {"en": "en_XX", "de": "de_DE"}
    (tmp_path / "bin").mkdir()
    for file in (binarised / "bin").iterdir():
        called = file.name
        for side, name in names.items():
            called = re.sub(rf"(?<=[.-]){side}(?=[.-])", name, called)
        shutil.copy(file, tmp_path / "bin" / called)
    (tmp_path / "ML50_langs.txt").write_text("ar_AR\nde_DE\nen_XX\n")
    task = ["--lang-dict", str(tmp_path / "ML50_langs.txt"), "--lang-tok-style", "mbart", *BOTH_SIDES]
    settings = ["--lang-pairs", "en_XX-de_DE", "--sampling-method", "concat", "--max-update", "2", "--lr", "0.01"]
    settings += ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"]
    trained = toy.train(
        tmp_path / "bin", tmp_path / "saved", *settings, *task, task=MULTILINGUAL, arch="mbart_large", tiny=TINY
    )
    place = tmp_path / "released"
    place.mkdir()
    for file in (trained, tmp_path / "ML50_langs.txt", binarised / "spm.model", *(tmp_path / "bin").glob("dict.*")):
        shutil.copy(file, place)
    (tmp_path / "ML50_langs.txt").unlink()
    ours = load(imported(place, tmp_path / "imported"))
    assert tokens_of(tmp_path / "imported") == ("[en_XX]", "[de_DE]")
    assert ours.model.encoder.layernorm_embedding is not None and ours.model.cfg.word_positions == "learned"
    overrides = dict(lang_dict=str(place / "ML50_langs.txt"), source_lang="en_XX", target_lang="de_DE")
    theirs, task = logits_of_fairseq(place / trained.name, tmp_path / "bin", **overrides)
    assert type(theirs).__name__ == "BARTModel"
    codec, there = codec_of(tmp_path), [ours.dictionaries[1].index(symbol) for symbol in task.target_dictionary.symbols]
    there[-1] = ours.dictionaries[1].index("<p>")  # in the place of <mask>
    for source, target in zip(ENGLISH, GERMAN):
        ids = tokens(codec, source, target, ours.dictionaries)
        found, expected = log_probabilities(ours.model, *ids)[:, there], log_probabilities(theirs, *ids)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


# --- Errors ---


def test_bad_files_are_refused(binarised, tmp_path):
    place = released(binarised, tmp_path, updates="1")

    def refuse():
        with pytest.raises(ValueError):
            imported(place, tmp_path / "imported")
        assert not (tmp_path / "made").exists()

    whole = torch.load(place / "model.pt", weights_only=True)
    name = "encoder.layers.0.fc1.weight"
    quantised = {**whole["model"], name: whole["model"][name].to(torch.int8)}
    torch.save({**whole, "model": quantised}, place / "model.pt")
    refuse()
    for option in ("adaptive_softmax_cutoff", "encoder_xformers_att_config"):  # executable in fairseq
        state = torch.load(place.parent / "saved" / "checkpoint_last.pt", weights_only=True)
        vars(state["cfg"]["model"])[option] = f"__import__('pathlib').Path({str(tmp_path / 'made')!r}).touch() or [5]"
        torch.save(state, place / "model.pt")
        refuse()
    torch.save(whole, place / "model.pt")
    path = place / "dict.en.txt"
    path.write_text(path.read_text(encoding="utf-8") + "more 1\n", encoding="utf-8")
    refuse()
    (place / "dict.de.txt").write_bytes(b"\xff 1\n")
    refuse()
    path.unlink()
    refuse()
    (place / "second.pt").write_bytes(b"x")
    refuse()
