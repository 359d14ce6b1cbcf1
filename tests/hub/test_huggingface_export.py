"""Outputs of exported models in ``transformers`` equal those of this package."""

import json
import re
import shutil

import pytest
import torch

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.exporting import size_of
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.documents import write_lines
from tests.support.hub import PRE_NORM, STOCK, assert_same, loaded, made, pair_of, trained
from tests.support.marks import slow_except
from tests.support.pretrained import (
    ENGLISH,
    GERMAN,
    imported,
    marian_folder,
    multilingual_folder,
    transformers,
)

RELEASED = {
    "marian": {},
    "marian with an untied output": dict(tie_word_embeddings=False, activation_function="relu"),
    "marian with two vocabularies": dict(separate=True, scale_embedding=False),
    "m2m": {},
    "nllb": {},
    "nllb with tokenizer.json": dict(saved_tokenizer=True, activation_function="gelu"),
    "mbart": dict(activation_function="gelu_new"),
}
CODES = {"nllb": ("eng_Latn", "deu_Latn")}


@pytest.mark.parametrize("name", slow_except({"marian", "nllb", "mbart"}, RELEASED))
def test_round_trip_is_bit_identical(tmp_path, name):
    kind, released, data, hub = name.split()[0], tmp_path / "released", tmp_path / "imported", tmp_path / "hub"
    if kind == "marian":
        model = marian_folder(released, **RELEASED[name])
        tokenizer = transformers.MarianTokenizer.from_pretrained(released)
    else:
        model, tokenizer = multilingual_folder(released, kind, **RELEASED[name])
    imported(released, data, codes=CODES.get(kind, (None, None)))
    toy.export(data / "checkpoint.pt", hub, "huggingface", data=data)
    pair = pair_of(hub, data)
    assert type(pair.model) is type(model) and type(pair.tokenizer) is type(tokenizer)
    expected, found = model.state_dict(), pair.model.state_dict()
    unused = {"model.shared.weight"} if "untied" in name else set()  # both sides have their own table
    assert expected.keys() - unused == found.keys()
    assert all(torch.equal(expected[key], value) for key, value in found.items())
    for given in ({"text": ENGLISH}, {"text_target": GERMAN}):
        assert tokenizer(**given).input_ids == pair.tokenizer(**given).input_ids
    for file in released.iterdir():
        if file.suffix in (".spm", ".model"):
            assert file.read_bytes() == (hub / file.name).read_bytes()
        elif file.name in ("vocab.json", "target_vocab.json"):
            assert json.loads(file.read_text()) == json.loads((hub / file.name).read_text())
    before, after = (json.loads((folder / "config.json").read_text()) for folder in (released, hub))
    chosen = {"forced_eos_token_id", "bos_token_id", "dropout", "attention_dropout"}  # of search and training
    same = (before.keys() & after.keys()) - chosen - ({"share_encoder_decoder_embeddings"} if unused else set())
    assert len(same) > 15
    assert {key: before[key] for key in same} == {key: after[key] for key in same}
    assert_same(pair)


def as_fairseq_released_it(data, folder, languages):
    """Writes an NLLB-200 as fairseq's checkpoint, with a dictionary without languages."""
    folder.mkdir()
    held = torch.load(data / "checkpoint.pt", weights_only=True)
    held["cfg"]["task"] = {
        "_name": "translation_multi_simple_epoch", "langs": languages, "lang_pairs": ["deu_Latn-eng_Latn"],
        "encoder_langtok": "src", "decoder_langtok": True, "add_data_source_prefix_tags": True,
    }  # fmt: skip
    torch.save(held, folder / "model.pt")
    lines = (data / "data-bin" / "dict.en.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    first = lines.index(f"{languages[0]} 1\n")
    (folder / "dictionary.txt").write_text("".join(lines[:first]), encoding="utf-8")
    shutil.copy(data / "models" / "subword.model", folder / "subword.model")


def test_nllb_of_fairseq(tmp_path):
    """Also the tokenizer, with other names of language tokens."""
    model, tokenizer = multilingual_folder(tmp_path / "released", "nllb")
    codes = CODES["nllb"]
    imported(tmp_path / "released", tmp_path / "plain", codes=codes, architecture="transformer")
    languages = json.loads((tmp_path / "released" / "special_tokens_map.json").read_text())["additional_special_tokens"]
    as_fairseq_released_it(tmp_path / "plain", tmp_path / "original", languages)
    data = imported(tmp_path / "original", tmp_path / "imported", codes=codes)
    toy.export(data / "checkpoint.pt", tmp_path / "hub", "huggingface", data=data)
    ours, theirs = loaded(tmp_path / "hub")
    assert type(theirs) is type(tokenizer)
    for given in ({"text": ENGLISH}, {"text_target": GERMAN}):
        assert theirs(**given).input_ids == tokenizer(**given).input_ids
    for key, value in model.state_dict().items():
        assert torch.equal(ours.state_dict()[key], value), key
    assert ours.generation_config.forced_bos_token_id == tokenizer.convert_tokens_to_ids("deu_Latn")


LIKE_MARIAN = ["--sinusoids", "marian", "--decoder-start", "pad", "--output-bias", "--activation-fn", "swish"]
LIKE_MBART = [*PRE_NORM, "--share-all-embeddings", "--word-positions", "learned", "--decoder-learned-pos",
              "--layernorm-embedding", "--max-source-positions", "70", "--max-target-positions", "60"]  # fmt: skip
TRAINED = {
    "post-norm": ([], {}, "FSMT"),
    "post-norm, one table": (["--share-all-embeddings", "--activation-fn", "gelu_accurate"], {}, "FSMT"),
    "pre-norm": ([*PRE_NORM, "--share-all-embeddings", "--no-scale-embedding"], {}, "M2M100"),
    "like Marian": (LIKE_MARIAN, {}, "Marian"),
    "low-rank updates": (["--lora-rank", "2", "--lora-alpha", "8"], {}, "FSMT"),
    "learned positions": (LIKE_MBART, {}, "MBart"),
    "fairseq's": (["--share-decoder-input-output-embed", "--decoder-layers", "1"], STOCK, "FSMT"),
}


@pytest.mark.parametrize("name", slow_except({"post-norm", "like Marian"}, TRAINED))
def test_models_trained_here(data, tmp_path, name):
    options, kind, expected = TRAINED[name]
    model = trained(data, tmp_path, *options, **kind)
    toy.export(model / "checkpoint.pt", tmp_path / "hub", "huggingface", data=model)
    pair = pair_of(tmp_path / "hub", model)
    assert type(pair.model).__name__.startswith(expected)
    assert_same(pair)
    updates = [value for key, value in toy.state(model / "checkpoint.pt").items() if "lora_" in key]
    assert bool(updates) == (name == "low-rank updates") and all(value.any() for value in updates)
    if expected == "FSMT" and not updates:
        again = toy.state(imported(tmp_path / "hub", tmp_path / "again") / "checkpoint.pt")
        before = toy.state(model / "checkpoint.pt")
        for key, value in before.items():
            assert torch.equal(again[key.replace(".feed_forward.", ".")], value), key


CONTEXT = {
    "block": ["--context-attention", "conditional"],
    "gate": ["--context-attention", "han"],
    "decoder": ["--decoder-context-attention", "ca-att"],
    "target context": ["--target-context-attention", "han"],
}


def with_silent_context(path):
    """Overwrites a checkpoint with random context whose gates are closed or outputs are 0."""
    held = torch.load(path, weights_only=True)
    for name, value in held["model"].items():
        if name.endswith("gate.scale") or re.search(r"\.context\..*(out_proj|attentions\.0\.project)\.", name):
            value.zero_()
    torch.save(held, path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTEXT)
def test_without_context_exports_the_sentence_level_part(data, tmp_path, name):
    ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")
    model = trained(data, tmp_path, *CONTEXT[name])
    path = model / "checkpoint.pt"
    for engine in ("huggingface", "ctranslate2"):
        with pytest.raises(InputError):
            toy.export(path, tmp_path / engine, engine, data=model)
        toy.export(path, tmp_path / engine, engine, data=model, without_context=True)
    if name == "block":  # the others have no context for a single sentence
        ours, theirs = pair_of(tmp_path / "huggingface", model).encoder_states(ENGLISH[0])
        assert not torch.allclose(ours, theirs, atol=1e-2)
    with_silent_context(path)
    pair = pair_of(tmp_path / "huggingface", model)
    assert_same(pair, translated=name != "decoder")  # without context its translations do not end
    engine = ctranslate2.Translator(str(tmp_path / "ctranslate2"), inter_threads=1, intra_threads=1)
    scored = engine.score_batch([line.split() for line in pair.codec.encode(0, ENGLISH)],
                                [line.split() for line in pair.codec.encode(1, GERMAN)])  # fmt: skip
    for source, target, one in zip(ENGLISH, GERMAN, scored):
        ours, _ = pair.log_probabilities(source, target)
        (tokens,) = pair.tokens(1, [target])
        assert list(one.log_probs) == pytest.approx(ours.gather(1, tokens[:, None]).flatten().tolist(), abs=1e-4)


@pytest.mark.slow
def test_round_trip_after_training(tmp_path):
    """Symbols that the import added are removed."""
    released = marian_folder(tmp_path / "released")
    imported(tmp_path / "released", tmp_path / "imported")
    for side, lines in (("en", ENGLISH), ("de", GERMAN)):
        write_lines(tmp_path / f"train.{side}", [lines[0], "<p>", *lines[1:], ""])
    command = ["prepare", "--reuse", str(tmp_path / "imported"), "-s", "en", "-t", "de", "--workers", "1"]
    assert main([*command, "--train", str(tmp_path / "train"), "--output", str(tmp_path / "data")]) == 0
    options = ["--finetune-from-model", str(tmp_path / "imported" / "checkpoint.pt"), "--sentence-positions", "none"]
    options += ["--max-source-positions", "64", "--max-target-positions", "64", "--lr", "0.0005"]
    kind = dict(tiny=[], arch="document_transformer_conditional_pretrained")
    model = trained(tmp_path / "data", tmp_path, *options, updates=4, **kind)
    toy.export(model / "checkpoint.pt", tmp_path / "hub", "huggingface", data=model, without_context=True)
    with_silent_context(model / "checkpoint.pt")
    pair = pair_of(tmp_path / "hub", model)
    before, after = released.state_dict(), pair.model.state_dict()
    assert {key: value.shape for key, value in before.items()} == {key: value.shape for key, value in after.items()}
    assert not torch.equal(before["lm_head.weight"], after["lm_head.weight"])
    assert pair.ids(0) == json.loads((tmp_path / "released" / "vocab.json").read_text())
    assert_same(pair)


# --- Files ---


@pytest.fixture(scope="module")
def post_norm(data, tmp_path_factory):
    return trained(data, tmp_path_factory.mktemp("plain"), updates=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["trained", "m2m", "marian"])
def test_program_of_the_page(data, tmp_path, kind):
    if kind == "m2m":
        multilingual_folder(tmp_path / "released", kind)
        model = imported(tmp_path / "released", tmp_path / "model")
    elif kind == "marian":  # a code at the start of sentences selects the target language
        marian_folder(tmp_path / "released", codes=[">>deu<<", ">>fra<<"])
        model = imported(tmp_path / "released", tmp_path / "model", codes=(None, "deu"))
    else:
        model = trained(data, tmp_path)
    command = ["export", "--format", "huggingface", "--path", str(model / "checkpoint.pt"), "--data", str(model)]
    assert main([*command, "--output", str(tmp_path / "hub")]) == 0
    (program,) = re.findall(r"```python\n(.*?)```", (tmp_path / "hub" / "README.md").read_text(), re.DOTALL)
    program = program.replace("FOLDER", str(tmp_path / "hub"))
    ((shown, begin),) = re.findall(r'(\["(.*?)A sentence\.", ".*?Another one\."\])', program)
    program = program.replace(shown, repr([begin + line for line in ENGLISH])).replace("print(", "found = (")
    names = {}
    exec(program, names)
    translator = DocumentTranslator.from_checkpoint(model / "checkpoint.pt", data=model, cpu=True)
    expected = [text.replace("<unk>", "") for (text,) in translator.translate([[line] for line in ENGLISH])]
    assert [line.strip() for line in names["found"]] == expected


def test_precisions_marker_and_reproducible_files(post_norm, tmp_path):
    path = str(post_norm / "checkpoint.pt")
    with pytest.raises(InputError):
        toy.export(path, tmp_path / "hub" / "model", "huggingface", "int8", data=post_norm)
    assert not list((tmp_path / "hub").iterdir())
    for name in ("float32", "bf16", "again"):
        toy.export(path, tmp_path / name, "huggingface", name.replace("again", "float32"), data=post_norm)
    marker = json.loads((tmp_path / "bf16" / "docnmt_export.json").read_text())
    assert (marker["format"], marker["precision"]) == ("huggingface", "bf16")
    assert size_of(tmp_path / "bf16") < size_of(tmp_path / "float32")
    whole, half = (loaded(tmp_path / name)[0] for name in ("float32", "bf16"))
    assert half.dtype == torch.bfloat16
    for name, value in whole.named_parameters():
        assert torch.equal(value.bfloat16(), dict(half.named_parameters())[name]) or "embed_positions" in name
    names = {file.name for file in (tmp_path / "again").iterdir()}
    assert {"config.json", "generation_config.json", "model.safetensors", "README.md", "source.spm"} <= names
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "float32" / name).read_bytes(), name


def test_data_bin_alone_has_no_tokenizer(data, post_norm, tmp_path):
    shutil.copytree(data / "data-bin", tmp_path / "alone")
    toy.export(post_norm / "checkpoint.pt", tmp_path / "hub", "huggingface", data=tmp_path / "alone")
    written = {path.name for path in (tmp_path / "hub").iterdir()}
    assert "vocab.json" in written and "tokenizer_config.json" not in written
    found = json.loads((tmp_path / "hub" / "generation_config.json").read_text())
    search = dict(num_beams=SearchOptions().beam, early_stopping=True, min_new_tokens=1, bad_words_ids=[[1]])
    numbers = dict(bos_token_id=0, pad_token_id=1, eos_token_id=2, forced_eos_token_id=2, decoder_start_token_id=2)
    longest = json.loads((tmp_path / "hub" / "config.json").read_text())["max_position_embeddings"]
    assert found == {**search, **numbers, "max_length": longest}


def test_unsupported_tokenizers_write_vocabularies_only(tmp_path, caplog):
    (tmp_path / "text").mkdir()
    model = trained(made(tmp_path / "text", subwords="none", tokenizer="moses"), tmp_path, updates=2)
    toy.export(model / "checkpoint.pt", tmp_path / "hub", "huggingface", data=model)
    hub, tokenizer = loaded(tmp_path / "hub")
    assert tokenizer is None and "no tokenizer" in caplog.text
    ensemble = load_ensemble(model / "checkpoint.pt", data=model)
    ids = json.loads((tmp_path / "hub" / "vocab.json").read_text())
    assert ids == {symbol: number for number, symbol in enumerate(ensemble.dictionaries[0].symbols)}
    tokens = torch.tensor([[ids["cat"], ids["sat"], ids["</s>"]]])
    with torch.no_grad():
        theirs = hub.get_encoder()(tokens)[0][0]
        ours = ensemble.model.encoder(tokens)["encoder_out"][0][:, 0]
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
