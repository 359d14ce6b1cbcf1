"""Translations of exported models by CTranslate2 equal those of this package."""

import contextlib
import io
import json
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.formats.ctranslate2 import write_text_models
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import hub, pretrained, toy
from tests.support.hub import PRE_NORM, STOCK
from tests.support.marks import slow_except
from tests.support.pretrained import ENGLISH, GERMAN, changed

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")

LENGTH = 40
SENTENCES = ["a b c", "d", "e e a", "b", "c d", "a", "c", "e", "a b c d e a b", "b a d c a", "e d c b a", "b b b b"]
MODELS = {
    "post-norm": ([], {}),
    "pre-norm, all embeddings shared": ([*PRE_NORM, "--share-all-embeddings"], {}),
    "norms of two kinds": (["--decoder-normalize-before", "--activation-fn", "gelu"], {}),
    "learned positions": (
        ["--word-positions", "learned", "--decoder-learned-pos", "--layernorm-embedding", "--no-scale-embedding",
         "--share-decoder-input-output-embed"], {},
    ),
    "no positions": (["--word-positions", "none", "--activation-fn", "gelu_fast"], {}),
    "like Marian": (
        ["--sinusoids", "marian", "--decoder-start", "pad", "--output-bias", "--activation-fn", "swish"], {},
    ),
    "tanh": (["--activation-fn", "tanh"], {}),
    "sizes of two kinds": (
        ["--decoder-attention-heads", "4", "--decoder-ffn-embed-dim", "20", "--decoder-layers", "1", "--encoder-layers",
         "3", "--activation-fn", "gelu_accurate"], {},
    ),
    "fairseq's, pre-norm, learned positions": (
        [*PRE_NORM, "--encoder-learned-pos", "--decoder-learned-pos", "--layernorm-embedding"], STOCK,
    ),
    "fairseq's, without positions": (["--no-token-positional-embeddings", "--no-decoder-final-norm"], STOCK),
}  # fmt: skip
QUICK = {"pre-norm, all embeddings shared", "like Marian", "fairseq's, pre-norm, learned positions"}
LEARNING = ["--max-update", "120", "--lr", "0.03"]


def engine(folder):
    return ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=1)


def with_random_parameters(path, folder):
    """Returns a copy of a checkpoint without zero parameters."""
    held = torch.load(path, weights_only=True)
    generator = torch.Generator().manual_seed(3)
    for name, value in held["model"].items():
        if value.is_floating_point() and value.dim():
            is_norm = "norm" in name and name.endswith("weight")
            value.copy_(torch.randn(value.shape, generator=generator) * 0.5 + is_norm)
    torch.save(held, folder / "random.pt")
    return folder / "random.pt"


@torch.no_grad()
def log_probs_by_us(path, data, pairs):
    """Returns log-probabilities of all target tokens."""
    ensemble, found = load_ensemble(path, data=data), []
    for pair in pairs:
        sides = zip(pair, ensemble.dictionaries)
        source, target = (side.encode_line(text, add_if_not_exist=False).long()[None] for text, side in sides)
        before = torch.cat([target[:, -1:], target[:, :-1]], dim=1)
        output = ensemble.model(source, torch.tensor([source.size(1)]), before)
        log_probs = ensemble.model.get_normalized_probs(output, log_probs=True)
        found.append(log_probs.gather(-1, target[..., None]).flatten().tolist())
    return found


@pytest.mark.parametrize("model", slow_except(QUICK, MODELS))
def test_equal_probabilities(trained, prepared, tmp_path, model):
    options, kind = MODELS[model]
    path = with_random_parameters(trained(*options, **kind), tmp_path)
    toy.export(path, tmp_path / "model", "ctranslate2", data=prepared)
    pairs = list(zip(SENTENCES, reversed(SENTENCES)))
    expected = log_probs_by_us(path, prepared, pairs)
    found = engine(tmp_path / "model").score_batch(*([side.split() for side in sides] for sides in zip(*pairs)))
    assert len({round(value, 2) for of_pair in expected for value in of_pair}) > 20
    for one, other in zip(found, expected):
        assert list(one.log_probs) == pytest.approx(other, abs=1e-4)


def by_ctranslate2(folder, min_len=1):
    """Returns translations and their scores."""
    found = engine(folder).translate_batch(
        [line.split() for line in SENTENCES], beam_size=4, max_decoding_length=LENGTH, return_scores=True,
        min_decoding_length=min_len,
    )  # fmt: skip
    return [(" ".join(one.hypotheses[0]), one.scores[0]) for one in found]


def by_us(path, data, min_len=1):
    search = SearchOptions(beam=4, max_len_b=LENGTH, min_len=min_len)
    translator = DocumentTranslator.from_checkpoint(path, data=data, cpu=True, search=search)
    (found,) = translator.translate_lines([SENTENCES])
    return [(line.text, line.translations[0].score) for line in found]


def test_equal_translations(trained, prepared, tmp_path):
    path = trained(*LEARNING)
    toy.export(path, tmp_path / "model", "ctranslate2", data=prepared)
    expected, found = by_us(path, prepared), by_ctranslate2(tmp_path / "model")
    assert [text for text, _ in found] == [text for text, _ in expected]
    assert len({text for text, _ in expected}) > 5
    # With a minimum length CTranslate2 distributes the probability of the end among the other tokens.
    expected = by_us(path, prepared, min_len=0)
    for one, other in zip(by_ctranslate2(tmp_path / "model", min_len=0), expected):
        assert one == (other[0], pytest.approx(other[1], abs=1e-4))


@pytest.mark.parametrize("precision, kind", [("int8", "int8_float32"), ("bf16", "bfloat16")])
def test_precisions(trained, prepared, tmp_path, precision, kind):
    path = trained(*LEARNING)
    for name, form in (("float32", "float32"), (precision, precision), ("again", precision)):
        toy.export(path, tmp_path / name, "ctranslate2", precision=form, data=prepared)
    exact, rounded, again = ((tmp_path / name / "model.bin").read_bytes() for name in ("float32", precision, "again"))
    assert rounded == again and len(rounded) < 0.95 * len(exact)  # positions, the larger part of it, stay float32
    weight = load_ensemble(path, data=prepared).model.encoder.embed_tokens.weight.detach()
    scaled = weight * (127 / weight.abs().amax(1, keepdim=True))
    held = scaled.round().to(torch.int8) if precision == "int8" else weight.bfloat16().view(torch.int16)
    assert held.numpy().tobytes() in rounded
    assert engine(tmp_path / precision).compute_type == kind or precision == "bf16"  # not on every processor
    whole = dict(by_ctranslate2(tmp_path / "float32"))
    assert len(whole.keys() & dict(by_ctranslate2(tmp_path / precision)).keys()) > len(whole) / 2


CONCATENATION = {"task": "concatenated_translation"}
REFUSED = {
    "context": (["--context-attention", "conditional"], {}),
    "target context": (["--target-context-attention", "han"], {}),
    "sentence positions": (["--sentence-positions", "sinusoidal"], {}),
    "learned paragraph positions": (["--paragraph-positions", "learned"], {}),
    "words of the document": (["--word-positions-from", "document"], {}),
    "feed-forward": (["--feed-forward", "ca-nn"], {}),
    "recurrent": ([], {"arch": "document_rnn", "tiny": toy.TINY_RNN}),
    "windows": (["--concatenate-source", "2"], {**CONCATENATION, "arch": "transformer"}),
    "segments": (
        ["--concatenate-source", "2", "--segment-embeddings"], {**CONCATENATION, "arch": "concatenation_transformer"},
    ),
    "activation": (["--activation-fn", "linear"], {}),
    "softmax": (
        ["--adaptive-softmax-cutoff", "6", "--criterion", "adaptive_loss", "--ddp-backend", "legacy_ddp"], STOCK,
    ),
    "one attention": (["--cross-self-attention"], STOCK),
    "more parameters": (["--decoder-output-dim", "6"], STOCK),
}  # fmt: skip


@pytest.mark.parametrize("model", slow_except({"context", "windows", "softmax"}, REFUSED))
def test_unsupported_models_leave_no_files(trained, prepared, tmp_path, model):
    options, kind = REFUSED[model]
    with pytest.raises(InputError):
        toy.export(trained(*options, **kind), tmp_path / "model", "ctranslate2", data=prepared)
    assert not list(tmp_path.iterdir())


def test_only_exports_are_replaced(trained, prepared, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    for force in (False, True):
        with pytest.raises(InputError):
            toy.export(trained(), tmp_path / "mine", "ctranslate2", data=prepared, force=force)
    toy.export(trained(), tmp_path / "model", "ctranslate2", data=prepared)
    (tmp_path / "model" / "old").write_text("x")
    toy.export(trained(), tmp_path / "model", "ctranslate2", data=prepared, force=True)
    assert not (tmp_path / "model" / "old").exists() and (tmp_path / "mine" / "file").exists()


# --- Text models and README.md ---

STEPS = {
    "words": dict(subwords="none"),
    "BPE codes": dict(subwords="subword-nmt", vocab_size=60, tokenizer="moses"),
    "two models": dict(subwords="bpe", vocab_size=60, joint=False, truecase=True, source_tokenizer="moses"),
    "language tokens": dict(
        subwords="unigram", vocab_size=60, source_lang_token="__en__", target_lang_token="__de__", joint=True
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_text_models_equal_those_of_prepare(tmp_path, name):
    data, folder = hub.made(tmp_path, **STEPS[name]), tmp_path / "model"
    write_text_models(data, folder)
    before, after = TextCodec.of_output(data), TextCodec.of_output(folder / "text")
    for side, lines in ((0, ENGLISH), (1, GERMAN)):
        tokens = before.encode(side, lines)
        assert after.encode(side, lines) == tokens and after.begin(side) == before.begin(side)
    assert [after.decode(line) for line in tokens] == [before.decode(line) for line in tokens]
    page = (folder / "README.md").read_text()
    assert ('target_prefix=[["__de__"]]' in page) == (name == "language tokens")


def test_two_vocabularies(tmp_path):
    model = hub.trained(hub.made(tmp_path, subwords="none", joint=False), tmp_path, updates=1)
    toy.export(model / "checkpoint.pt", tmp_path / "hub", "ctranslate2", data=model)
    dictionaries = load_ensemble(model / "checkpoint.pt", data=model).dictionaries
    assert dictionaries[0].symbols != dictionaries[1].symbols
    for side, dictionary in zip(("source", "target"), dictionaries):
        assert json.loads((tmp_path / "hub" / f"{side}_vocabulary.json").read_text()) == dictionary.symbols


@pytest.mark.parametrize("change", ["edits_of", "model"])
def test_missing_text_models_are_refused(tmp_path, change):
    data = hub.made(tmp_path, subwords="unigram", vocab_size=60)
    if change == "model":
        (data / "models" / "subword.model").unlink()
    else:
        options = json.loads((data / "manifest.json").read_text())["options"]
        changed(data / "manifest.json", options={**options, change: "source"})
    with pytest.raises(InputError):
        write_text_models(data, tmp_path / "model")


TEXT = {
    "subwords": dict(subwords="unigram", vocab_size=40),
    "all steps": dict(subwords="bpe", vocab_size=60, tokenizer="moses", truecase=True, joint=False),
    "a data-bin": dict(subwords="none"),
}


def by_the_page(folder, lines):
    """Returns the output of the program in README.md for two sentences."""
    (program,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    for written, line in zip(
        re.findall(r'"([Aa] sentence \.|[Aa]nother one \.|A sentence\.|Another one\.)"', program), lines
    ):
        program = program.replace(written, line)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(program.replace("FOLDER", str(folder)), {})
    return eval(output.getvalue())


def translations(model, lines):
    return DocumentTranslator.from_checkpoint(model / "checkpoint.pt", data=model, cpu=True).translate([lines])[0]


@pytest.mark.parametrize("steps", slow_except({"subwords"}, TEXT))
def test_program_of_the_page(tmp_path, steps):
    """The program in README.md translates as docnmt translate."""
    model = hub.trained(hub.made(tmp_path, **TEXT[steps]), tmp_path)
    given = shutil.copytree(model / "data-bin", tmp_path / "alone") if steps == "a data-bin" else model
    toy.export(model / "checkpoint.pt", tmp_path / "model.ct2", "ctranslate2", data=given)
    assert by_the_page(tmp_path / "model.ct2", ENGLISH[:2]) == translations(model, ENGLISH[:2])


@pytest.mark.slow
def test_page_of_a_multilingual_model(tmp_path):
    pretrained.multilingual_folder(tmp_path / "released", "m2m")
    data = pretrained.imported(tmp_path / "released", tmp_path / "imported")
    toy.export(data / "checkpoint.pt", tmp_path / "model", "ctranslate2", data=data)
    assert by_the_page(tmp_path / "model", ENGLISH[:2]) == translations(data, ENGLISH[:2])


def test_page_of_a_marian_model_excludes_padding(tmp_path):
    """The logit of padding is arbitrary in MarianMT."""
    released = tmp_path / "released"
    pretrained.marian_folder(released)
    state = load_file(released / "model.safetensors")
    state["final_logits_bias"][0, -1] = 9.0  # <pad>
    save_file(state, released / "model.safetensors", metadata={"format": "pt"})
    data = pretrained.imported(released, tmp_path / "imported")
    toy.export(data / "checkpoint.pt", tmp_path / "model", "ctranslate2", data=data)
    found = by_the_page(tmp_path / "model", ENGLISH[:2])
    assert found == translations(data, ENGLISH[:2])
    assert found[1] == GERMAN[1] and "<pad>" not in found[0]
