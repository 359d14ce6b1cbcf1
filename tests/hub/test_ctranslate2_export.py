"""Translations of exported models by CTranslate2 equal those of this package."""

import contextlib
import io
import re
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.corpus.prepare import PrepareConfig, prepare
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.exporting import export
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import pretrained, toy
from tests.support.documents import write_lines

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")

LENGTH = 40
SENTENCES = ["a b c", "d", "e e a", "b", "c d", "a", "c", "e", "a b c d e a b", "b a d c a", "e d c b a", "b b b b"]
STOCK = {"task": "translation", "arch": "transformer"}
PRE_NORM = ["--encoder-normalize-before", "--decoder-normalize-before"]
MODELS = {
    "post-norm": ([], {}),
    "pre-norm, all embeddings shared": ([*PRE_NORM, "--share-all-embeddings"], {}),
    "norms of two kinds": (["--decoder-normalize-before", "--activation-fn", "gelu"], {}),
    "learned positions": (
        ["--word-positions", "learned", "--decoder-learned-pos", "--layernorm-embedding", "--no-scale-embedding",
         "--share-decoder-input-output-embed"], {},
    ),
    "no positions": (["--word-positions", "none", "--activation-fn", "gelu_fast"], {}),
    "Marian's": (["--sinusoids", "marian", "--decoder-start", "pad", "--output-bias"], {}),
    "sizes of two kinds": (
        ["--decoder-attention-heads", "4", "--decoder-ffn-embed-dim", "20", "--decoder-layers", "1", "--encoder-layers",
         "3", "--activation-fn", "gelu_accurate"], {},
    ),
    "fairseq's": ([], STOCK),
    "fairseq's, pre-norm, learned positions": (
        [*PRE_NORM, "--encoder-learned-pos", "--decoder-learned-pos", "--layernorm-embedding"], STOCK,
    ),
    "fairseq's, without positions": (["--no-token-positional-embeddings", "--no-decoder-final-norm"], STOCK),
}  # fmt: skip


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


def log_probs_by_us(path, data, pairs):
    """Returns log-probabilities of all target tokens."""
    ensemble, found = load_ensemble(path, data=data), []
    for pair in pairs:
        sides = zip(pair, ensemble.dictionaries)
        source, target = (side.encode_line(text, add_if_not_exist=False).long()[None] for text, side in sides)
        before = torch.cat([target[:, -1:], target[:, :-1]], dim=1)
        with torch.no_grad():
            output = ensemble.model(source, torch.tensor([source.size(1)]), before)
        log_probs = ensemble.model.get_normalized_probs(output, log_probs=True)
        found.append(log_probs.gather(-1, target[..., None]).flatten().tolist())
    return found


def by_ctranslate2(folder, lines, beam=4, min_len=1):
    """Returns translations and their scores."""
    engine = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=1)
    found = engine.translate_batch(
        [line.split() for line in lines], beam_size=beam, max_decoding_length=LENGTH, return_scores=True,
        min_decoding_length=min_len,
    )  # fmt: skip
    return [(" ".join(one.hypotheses[0]), one.scores[0]) for one in found]


def by_us(path, data, lines, beam=4, min_len=1):
    search = SearchOptions(beam=beam, max_len_b=LENGTH, min_len=min_len)
    translator = DocumentTranslator.from_checkpoint(path, data=data, cpu=True, search=search)
    (found,) = translator.translate_lines([lines])
    return [(line.text, line.translations[0].score) for line in found]


def quick_or_slow(names, quick):
    """Returns parameters, most of them marked slow."""
    return [pytest.param(name, marks=[] if name in quick else [pytest.mark.slow]) for name in names]


QUICK = [
    "pre-norm, all embeddings shared",
    "learned positions",
    "Marian's",
    "sizes of two kinds",
    "fairseq's, pre-norm, learned positions",
]


@pytest.mark.parametrize("model", quick_or_slow(MODELS, QUICK))
def test_probabilities_equal(trained, prepared, tmp_path, model):
    options, kind = MODELS[model]
    path = with_random_parameters(trained(*options, **kind), tmp_path)
    export(str(path), tmp_path / "model", "ctranslate2", data=prepared)
    pairs = list(zip(SENTENCES, reversed(SENTENCES)))
    expected = log_probs_by_us(path, prepared, pairs)
    engine = ctranslate2.Translator(str(tmp_path / "model"), inter_threads=1, intra_threads=1)
    found = engine.score_batch(*([side.split() for side in sides] for sides in zip(*pairs)))
    assert len({round(value, 2) for of_pair in expected for value in of_pair}) > 20
    for one, other in zip(found, expected):
        assert list(one.log_probs) == pytest.approx(other, abs=1e-4)


LEARNT = ["post-norm", "pre-norm, all embeddings shared", "fairseq's"]
LEARNING, LONGER = ["--max-update", "120", "--lr", "0.03"], ["--max-update", "300"]


@pytest.mark.parametrize("model", quick_or_slow(LEARNT, LEARNT[:1]))
def test_translations_equal(trained, prepared, tmp_path, model):
    options, kind = MODELS[model]
    path = trained(*options, *(LONGER if model in LEARNT[1:] else LEARNING), **kind)
    export(str(path), tmp_path / "model", "ctranslate2", data=prepared)
    expected, found = by_us(path, prepared, SENTENCES), by_ctranslate2(tmp_path / "model", SENTENCES)
    assert [text for text, _ in found] == [text for text, _ in expected]
    assert len({text for text, _ in expected}) > 5
    # Where an end may not come first, CTranslate2 shares its probability out among the other tokens.
    expected = by_us(path, prepared, SENTENCES, min_len=0)
    for one, other in zip(by_ctranslate2(tmp_path / "model", SENTENCES, min_len=0), expected):
        assert one == (other[0], pytest.approx(other[1], abs=1e-4))


@pytest.mark.parametrize("precision, kind", [("int8", "int8_float32"), ("bf16", "bfloat16")])
def test_precisions(trained, prepared, tmp_path, precision, kind):
    path = trained(*LEARNING)
    sizes = {}
    for name in ("float32", precision):
        export(str(path), tmp_path / name, "ctranslate2", precision=name, data=prepared)
        sizes[name] = (tmp_path / name / "model.bin").stat().st_size
    assert sizes[precision] < 0.95 * sizes["float32"]  # positions, the larger part of it, stay as they are
    weight = load_ensemble(path, data=prepared).model.encoder.embed_tokens.weight.detach()
    scaled = weight * (127 / weight.abs().amax(1, keepdim=True))
    held = scaled.round().to(torch.int8) if precision == "int8" else weight.bfloat16().view(torch.int16)
    assert held.numpy().tobytes() in (tmp_path / precision / "model.bin").read_bytes()
    engine = ctranslate2.Translator(str(tmp_path / precision))
    assert engine.compute_type == kind or precision == "bf16"  # which not every processor has
    exact = dict(by_ctranslate2(tmp_path / "float32", SENTENCES))
    assert len(exact.keys() & dict(by_ctranslate2(tmp_path / precision, SENTENCES)).keys()) > len(exact) / 2


def test_files_are_reproducible(trained, prepared, tmp_path):
    for name in ("one", "other"):
        export(str(trained()), tmp_path / name, "ctranslate2", precision="int8", data=prepared)
    files = {path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()}
    assert {"model.bin", "config.json", "README.md", "docnmt_export.json"} <= {str(file) for file in files}
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes(), file


REFUSED = {
    "context": (["--context-attention", "conditional"], {}, "has context sub-layers in the encoder"),
    "target context": (["--target-context-attention", "han"], {}, "has target context"),
    "sentence positions": (["--sentence-positions", "sinusoidal"], {}, "has sentence positions"),
    "learned paragraph positions": (["--paragraph-positions", "learned"], {}, "has paragraph positions"),
    "section positions": (["--section-positions", "sinusoidal"], {}, "has section positions"),
    "learned part positions": (["--part-positions", "learned"], {}, "has part positions"),
    "words of the document": (["--word-positions-from", "document"], {}, "counts words from the start of the document"),
    "feed-forward": (["--feed-forward", "ca-nn"], {}, "has context-aware feed-forward in the encoder"),
    "recurrent": ([], {"arch": "document_rnn", "tiny": toy.TINY_RNN}, "is a DocumentRNN"),
    "windows": (
        ["--concatenate-source", "2"],
        {"task": "concatenated_translation", "arch": "transformer"},
        "reads windows of several sentences",
    ),
    "segments": (
        ["--concatenate-source", "2", "--segment-embeddings"],
        {"task": "concatenated_translation", "arch": "concatenation_transformer"},
        "is a ConcatenationTransformer",
    ),
    "activation": (["--activation-fn", "tanh"], {}, "--activation-fn tanh, which CTranslate2 does not know"),
    "softmax": (
        ["--adaptive-softmax-cutoff", "6", "--criterion", "adaptive_loss", "--ddp-backend", "legacy_ddp"],
        STOCK,
        "has an adaptive softmax",
    ),
    "one attention": (["--cross-self-attention"], STOCK, "has one attention to both sides"),
    "more parameters": (
        ["--decoder-output-dim", "6"],
        STOCK,
        r"has decoder\.project_out_dim\.weight, for which CTranslate2 has no place",
    ),
}


@pytest.mark.parametrize("model", REFUSED)
def test_unsupported_models_leave_no_files(trained, prepared, tmp_path, model):
    options, kind, *_ = REFUSED[model]
    with pytest.raises(InputError):
        export(str(trained(*options, **kind)), tmp_path / "model", "ctranslate2", data=prepared)
    assert not list(tmp_path.iterdir())


def test_only_exports_are_replaced(trained, prepared, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    for force in (False, True):
        with pytest.raises(InputError):
            export(str(trained()), tmp_path / "mine", "ctranslate2", data=prepared, force=force)
    export(str(trained()), tmp_path / "model", "ctranslate2", data=prepared)
    (tmp_path / "model" / "old").write_text("x")
    export(str(trained()), tmp_path / "model", "ctranslate2", data=prepared, force=True)
    assert not (tmp_path / "model" / "old").exists() and (tmp_path / "mine" / "file").exists()


def test_missing_library(trained, prepared, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(InputError, match=r"pip install 'docnmt_fairseq\[ctranslate2\]'"):
        export(str(trained()), tmp_path / "model", "ctranslate2", data=prepared)


TEXT = {
    "subwords": {"subwords": "unigram", "vocab_size": 26, "tokenizer": "none", "truecase": False},
    "all steps": {"subwords": "bpe", "vocab_size": 60, "tokenizer": "moses", "truecase": True, "joint": False},
    "words": {"subwords": "none"},
    "a data-bin": {"subwords": "none", "tokenizer": "none", "truecase": False},  # alone
    "merges": {"subwords": "subword-nmt", "vocab_size": 40, "tokenizer": "none", "truecase": False},
}


def by_the_page(folder, lines):
    """Returns the output of the program in README.md for two sentences."""
    page = (folder / "README.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for written, line in zip(
        re.findall(r'"([Aa] sentence \.|[Aa]nother one \.|A sentence\.|Another one\.)"', program), lines
    ):
        program = program.replace(written, line)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(program.replace("FOLDER", str(folder)), {})
    return eval(output.getvalue())


@pytest.mark.parametrize("steps", quick_or_slow(TEXT, ["subwords", "merges"]))
def test_program_of_the_page(tmp_path, steps):
    """The program in README.md translates as docnmt translate."""
    text = [
        "The cat sat here .",
        "It was big .",
        "",
        "we saw the cat .",
        "",
        "the dog saw us .",
        "So the dog sat .",
    ] * 4
    for side in ("en", "de"):
        write_lines(tmp_path / f"train.{side}", text)
    prefix, data = str(tmp_path / "train"), tmp_path / "data"
    prepare(PrepareConfig("en", "de", train=prefix, valid=[prefix], test=[prefix], output=data, **TEXT[steps]))
    path = toy.train(
        data / "data-bin", tmp_path / "trained", "--max-update", "30", "--lr", "0.02", "-s", "en", "-t", "de"
    )
    given = shutil.copytree(data / "data-bin", tmp_path / "alone") if steps == "a data-bin" else data
    export(str(path), tmp_path / "model", "ctranslate2", data=given)
    translator = DocumentTranslator.from_checkpoint(path, data=data, cpu=True)
    lines = ["The cat sat here.", "We saw the dog ."]
    assert by_the_page(tmp_path / "model", lines) == translator.translate([lines])[0]


def test_page_of_a_multilingual_model(tmp_path):
    released, data = tmp_path / "released", tmp_path / "imported"
    pretrained.multilingual_folder(released, "m2m")
    pretrained.imported(released, data)
    export(str(data / "checkpoint.pt"), tmp_path / "model", "ctranslate2", data=data)
    translator = DocumentTranslator.from_checkpoint(data / "checkpoint.pt", data=data, cpu=True)
    lines = pretrained.ENGLISH[:2]
    assert by_the_page(tmp_path / "model", lines) == translator.translate([lines])[0]


def test_page_of_a_marian_model_excludes_padding(tmp_path):
    """The logit of padding is arbitrary in MarianMT."""
    released, data = tmp_path / "released", tmp_path / "imported"
    pretrained.marian_folder(released, activation_function="relu")
    state = load_file(released / "model.safetensors")
    state["final_logits_bias"][0, -1] = 9.0  # <pad>
    save_file(state, released / "model.safetensors", metadata={"format": "pt"})
    pretrained.imported(released, data)
    export(str(data / "checkpoint.pt"), tmp_path / "model", "ctranslate2", data=data)
    found = by_the_page(tmp_path / "model", pretrained.ENGLISH[:2])
    assert found[1] == pretrained.GERMAN[1] and "<pad>" not in found[0]
