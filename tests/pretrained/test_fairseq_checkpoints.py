"""Checkpoints of fairseq's own tasks, imported: they compute and translate as they are, from plain text."""

import json
import re
import shutil
import sys
from argparse import Namespace
from collections import OrderedDict

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.text_codec import TextCodec, token_ids
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.pretrained import ENGLISH, GERMAN, imported, train_sentencepiece
from tests.support.toy import TINY

STRUCTURES = {
    "post-norm": [],
    "pre-norm, shared": ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"],
    "learned positions": ["--encoder-learned-pos", "--decoder-learned-pos", "--layernorm-embedding"],
    "gelu without scale": ["--activation-fn", "gelu", "--no-scale-embedding", "--share-decoder-input-output-embed"],
}
BOTH_SIDES = ["--encoder-langtok", "src", "--decoder-langtok"]
# How language tokens are asked for, and what they are.
TOKENS = {
    "multilingual": (BOTH_SIDES, ("__en__", "__de__")),
    "mbart": ([*BOTH_SIDES, "--lang-tok-style", "mbart"], ("[en]", "[de]")),
    "by --langtoks": (["--langtoks", "{'main': ('src', 'tgt')}"], ("__en__", "__de__")),
    "the target's, in the source": (
        [*BOTH_SIDES, "--langtoks", "{'main': ('tgt', None), 'mined': ('src', 'tgt')}"], ("__de__", None),
    ),
    "of mined data": (
        ["--langtoks-specs", "main,mined", "--langtoks", "{'main': ('src.mined', 'tgt')}"], ("__en_mined__", "__de__"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def binarised(tmp_path_factory):
    """Makes a data-bin of SentencePiece's pieces, a sentence a line, as translation tasks have it."""
    from benchmarks.lib.preprocess import fairseq_preprocess

    folder = tmp_path_factory.mktemp("fairseq")
    processor = train_sentencepiece(folder / "spm.model", ENGLISH + GERMAN, 80)
    for side, lines in (("en", ENGLISH), ("de", GERMAN)):
        text = "".join(" ".join(processor.encode(line, out_type=str)) + "\n" for line in lines)
        (folder / f"train.{side}").write_text(text, encoding="utf-8")
    arguments = ["-s", "en", "-t", "de", "--trainpref", str(folder / "train"), "--testpref", str(folder / "train")]
    arguments += ["--destdir", str(folder / "bin"), "--joined-dictionary", "--padding-factor", "1"]
    fairseq_preprocess(arguments)
    return folder


def released(binarised, folder, *options, task="translation", arch="transformer", updates="3"):
    """Trains with a task of fairseq, and puts what would be released into a folder."""
    settings = ["--max-update", updates, "--source-lang", "en", "--target-lang", "de"]
    if task == "translation_multi_simple_epoch":
        settings = ["--max-update", updates, "--lang-pairs", "en-de", "--sampling-method", "concat"]
    toy.train(binarised / "bin", folder / "saved", *settings, *options, task=task, arch=arch, tiny=TINY)
    place = folder / "released"
    place.mkdir()
    for name in ("spm.model", "bin/dict.en.txt", "bin/dict.de.txt"):
        shutil.copy(binarised / name, place)
    shutil.copy(folder / "saved" / "checkpoint_last.pt", place / "model.pt")
    return place


def logits_of_fairseq(path, data_bin, **overrides):
    """The model as fairseq itself loads it."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(path)], arg_overrides={"data": str(data_bin), **overrides}
    )
    return model.eval(), task


@pytest.mark.parametrize("options", STRUCTURES.values(), ids=STRUCTURES)
def test_a_translation_model_computes_what_it_computes_in_fairseq(binarised, tmp_path, options):
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


def codec_of(folder):
    return TextCodec.of_output(folder / "imported")


def tokens(codec, source, target, dictionaries):
    return [token_ids(codec.encode(side, [line]), one)[0]
            for side, (line, one) in enumerate(zip((source, target), dictionaries))]  # fmt: skip


@torch.no_grad()
def log_probabilities(model, source, target):
    previous = torch.cat([torch.tensor([2]), target[:-1]])[None]
    return model(source[None], torch.tensor([len(source)]), previous)[0][0].log_softmax(-1)


def test_a_filled_dictionary_gives_a_place_to_the_paragraph_mark(binarised, tmp_path):
    """Released dictionaries are filled up to multiples of eight."""
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


def test_one_subword_model_may_have_two_dictionaries(binarised, tmp_path):
    shutil.copytree(binarised, tmp_path / "data")
    (tmp_path / "data" / "bin" / "dict.de.txt").write_text(
        "".join(reversed((binarised / "bin" / "dict.de.txt").read_text(encoding="utf-8").splitlines(keepends=True))),
        encoding="utf-8",
    )
    place = released(tmp_path / "data", tmp_path)
    imported(place, tmp_path / "imported")
    command = ["prepare", "--from", str(tmp_path / "imported"), "-s", "en", "-t", "de", "--workers", "1"]
    assert main([*command, "--test", str(binarised / "train"), "--output", str(tmp_path / "prepared")]) == 0
    for side in ("en", "de"):
        own, prepared = (tmp_path / name / "data-bin" / f"dict.{side}.txt" for name in ("imported", "prepared"))
        assert own.read_bytes() == prepared.read_bytes()
    assert own.read_bytes() != (own.parent / "dict.en.txt").read_bytes()


def test_the_same_checkpoint_for_fairseq_alone(tmp_path, binarised):
    """--architecture transformer needs no plugin, where the dictionary has a place for <p>."""
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("options", "begins"), TOKENS.values(), ids=TOKENS)
def test_a_multilingual_model_translates_as_its_own_task_does(binarised, tmp_path, options, begins):
    options = ["--langs", "de,en,fr", *options]
    place = released(
        binarised, tmp_path, *options, task="translation_multi_simple_epoch", updates="30",
    )  # fmt: skip
    imported(place, tmp_path / "imported")
    output = toy.generate_text(
        binarised / "bin", place / "model.pt", "--lang-pairs", "en-de", *options, "--source-lang", "en",
        "--target-lang", "de", "--beam", "3", "--max-len-b", "20",
        "--required-batch-size-multiple", "1", task="translation_multi_simple_epoch",
    )  # fmt: skip
    search = SearchOptions(beam=3, max_len_b=20)
    checkpoint = tmp_path / "imported" / "checkpoint.pt"
    translator = DocumentTranslator.from_checkpoint(checkpoint, search=search, cpu=True)
    lines = translator.translate_lines([ENGLISH])[0]
    found = toy.parse(output).hypotheses
    assert len(found) == len(ENGLISH)
    for number, line in enumerate(lines):
        assert line.translations[0].text == found[number][0].replace(" ", "").replace("▁", " ").strip()
    assert tokens_of(tmp_path / "imported") == begins


def tokens_of(folder):
    """The language tokens of an imported model."""
    options = json.loads((folder / "manifest.json").read_text())["options"]
    return options["source_lang_token"], options["target_lang_token"]


@pytest.fixture(scope="module")
def multilingual(binarised, tmp_path_factory):
    """A model of three languages, with tokens on both sides."""
    options = ["--langs", "de,en,fr", *BOTH_SIDES, "--share-all-embeddings"]
    folder = tmp_path_factory.mktemp("multilingual")
    return released(binarised, folder, *options, task="translation_multi_simple_epoch", updates="1")


def changed(place, folder, rows=0, **options):
    """A copy of what was released, with more rows of embeddings, and other options of its task."""
    shutil.copytree(place, folder)
    state = torch.load(folder / "model.pt", weights_only=True)
    for values in (state["cfg"]["task"], state["cfg"]["model"]):
        vars(values).update(options)
    more = torch.randn(rows, 8)
    for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"):
        state["model"][name] = torch.cat([state["model"][name], more])
    torch.save(state, folder / "model.pt")
    return folder


def test_nllb_has_symbols_behind_its_languages(multilingual, tmp_path):
    """Those of where a sentence is from, which only its own branch of fairseq adds."""
    tagged = changed(multilingual, tmp_path / "tagged", rows=3, add_data_source_prefix_tags=True)
    plain, more = (
        load_ensemble(folder / "checkpoint.pt", data=folder)
        for folder in (imported(place, tmp_path / name) for place, name in ((multilingual, "a"), (tagged, "b")))
    )
    (few, _), (many, _) = plain.dictionaries, more.dictionaries
    assert few.symbols[-4:] == ["__de__", "__en__", "__fr__", "<p>"]
    assert many.symbols == [*few.symbols[:-1], "<MINED_DATA>", "<MMT_BT_DATA>", "<SMT_BT_DATA>", "<p>"]
    source, previous = torch.tensor([[few.index("__en__"), 9, 8, 2]]), torch.tensor([[2, few.index("__de__"), 7]])
    with torch.no_grad():
        logits = [one.model(source, torch.tensor([4]), previous)[0] for one in (plain, more)]
    torch.testing.assert_close(logits[0][..., : len(few) - 1], logits[1][..., : len(few) - 1])


def test_nothing_that_tells_what_to_translate_to_is_refused(multilingual, tmp_path):
    none = dict(langtoks={}, encoder_langtok=None, decoder_langtok=False)
    one = changed(multilingual, tmp_path / "one", **none)
    assert tokens_of(imported(one, tmp_path / "imported")) == (None, None)
    several = changed(multilingual, tmp_path / "several", **none, lang_pairs=["en-de", "en-fr"])
    with pytest.raises(InputError, match=r"model\.pt: was trained on several pairs .* no language token"):
        imported(several, tmp_path / "other")


def test_mbart_50_of_fairseq_computes_what_it_computes_there(binarised, tmp_path):
    """Its architecture, the list of its languages in a file, dictionaries by the names that it has for them."""
    names = {"en": "en_XX", "de": "de_DE"}
    for file in (binarised / "bin").iterdir():
        called = file.name
        for side, name in names.items():
            called = re.sub(rf"(?<=[.-]){side}(?=[.-])", name, called)
        (tmp_path / "bin").mkdir(exist_ok=True)
        shutil.copy(file, tmp_path / "bin" / called)
    (tmp_path / "ML50_langs.txt").write_text("ar_AR\nde_DE\nen_XX\n")
    task = ["--lang-dict", str(tmp_path / "ML50_langs.txt"), "--lang-tok-style", "mbart", *BOTH_SIDES]
    settings = ["--lang-pairs", "en_XX-de_DE", "--sampling-method", "concat", "--max-update", "2", "--lr", "0.01"]
    settings += ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"]
    multilingual = dict(task="translation_multi_simple_epoch", arch="mbart_large", tiny=TINY)
    trained = toy.train(tmp_path / "bin", tmp_path / "saved", *settings, *task, **multilingual)
    place = tmp_path / "released"
    place.mkdir()
    for file in (trained, tmp_path / "ML50_langs.txt", binarised / "spm.model", *(tmp_path / "bin").glob("dict.*")):
        shutil.copy(file, place)
    (tmp_path / "ML50_langs.txt").unlink()
    imported(place, tmp_path / "imported")
    assert tokens_of(tmp_path / "imported") == ("[en_XX]", "[de_DE]")
    ours = load_ensemble(tmp_path / "imported" / "checkpoint.pt", data=tmp_path / "imported")
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


def as_of_2018(state, monkeypatch):
    """A checkpoint's content as fairseq 0.8 wrote it, in half precision, with its meters as objects."""
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


def test_a_checkpoint_of_2018_is_read(binarised, tmp_path, monkeypatch):
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


def test_a_model_with_bpe_codes_takes_and_gives_plain_text(binarised, tmp_path):
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


def test_what_does_not_belong_together_is_refused(binarised, tmp_path):
    place = released(binarised, tmp_path)
    path = place / "dict.en.txt"
    path.write_text(path.read_text(encoding="utf-8") + "more 1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"embeddings in the encoder, the dictionary .* do not belong together"):
        imported(place, tmp_path / "imported")
    path.unlink()
    with pytest.raises(InputError, match=r"lacks dict\.en\.txt"):
        imported(place, tmp_path / "imported")
    (place / "second.pt").write_bytes(b"x")
    with pytest.raises(InputError, match="holds 2 checkpoints"):
        imported(place, tmp_path / "imported")


def test_a_model_of_another_task_is_refused(data_bin, tmp_path):
    toy.train(
        data_bin, tmp_path, "--max-update", "1", task="concatenated_translation", arch="concatenation_transformer"
    )
    with pytest.raises(InputError, match="a model of the task concatenated_translation"):
        imported(tmp_path / "checkpoint_last.pt", tmp_path / "imported", languages=("src", "tgt"))


@pytest.mark.parametrize("options", STRUCTURES.values(), ids=STRUCTURES)
def test_a_document_model_takes_the_structure_of_a_model_of_fairseq(binarised, tmp_path, options):
    place = released(binarised, tmp_path, *options, updates="1")
    command = ["--finetune-from-model", str(place / "model.pt"), "--max-update", "1", "--lr", "0"]
    trained = toy.train(
        binarised / "bin", tmp_path / "document", *command, arch="document_transformer_conditional_pretrained", tiny=[]
    )
    before, after = toy.state(place / "model.pt"), toy.state(trained)
    weights = [name for name in before if name.endswith(("proj.weight", "embed_tokens.weight"))]
    assert len(weights) > 10 and all(torch.equal(before[name], after[name]) for name in weights)


def test_a_model_of_another_kind_has_no_such_structure(data_bin, tmp_path):
    checkpoint = toy.train(data_bin, tmp_path, "--max-update", "1", arch="document_rnn", tiny=toy.TINY_RNN)
    with pytest.raises(InputError, match="a model of the architecture document_rnn"):
        toy.build(
            data_bin, "--finetune-from-model", str(checkpoint), arch="document_transformer_pretrained", tiny=[]
        )  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["adaptive_softmax_cutoff", "encoder_xformers_att_config"])
def test_an_option_that_would_execute_something_is_refused(binarised, tmp_path, name):
    place = released(binarised, tmp_path, updates="1")
    state = torch.load(place / "model.pt", weights_only=True)
    vars(state["cfg"]["model"])[name] = f"__import__('pathlib').Path({str(tmp_path / 'made')!r}).touch() or [5]"
    torch.save(state, place / "model.pt")
    with pytest.raises(InputError, match=r"model\.pt: refused: an option is .* could execute something"):
        imported(place, tmp_path / "imported")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(("value", "message"), [(float("inf"), "no finite numbers"), (None, "is of type int8")])
def test_weights_that_are_none(binarised, multilingual, tmp_path, value, message):
    place = changed(multilingual, tmp_path / "released")
    state = torch.load(place / "model.pt", weights_only=True)
    weight = state["model"]["encoder.layers.0.fc1.weight"]
    state["model"]["encoder.layers.0.fc1.weight"] = weight.to(torch.int8) if value is None else weight.fill_(value)
    torch.save(state, place / "model.pt")
    with pytest.raises(InputError, match=rf"model\.pt: encoder.layers.0.fc1.weight .*{message}"):
        imported(place, tmp_path / "imported")
