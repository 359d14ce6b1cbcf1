"""Files of exports to ``transformers``."""

import json
import re
import sys

import pytest
import torch

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.exporting import export
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.hub import PRE_NORM, STOCK, loaded, made, trained
from tests.support.pretrained import ENGLISH, imported, marian_folder, multilingual_folder

REFUSED = {
    "replaced": (
        ["--context-attention", "conditional", "--context-placement", "replace"], {}, "--context-placement replace",
    ),
    "sentence positions": (["--sentence-positions", "learned"], {}, "has sentence positions"),
    "feed-forward": (["--feed-forward", "ca-nn"], {}, "has context-aware feed-forward"),
    "mixed norms": (["--decoder-normalize-before"], {}, "has layer norms of two kinds"),
    "learned positions after norms": (
        ["--word-positions", "learned", "--decoder-learned-pos"], {},
        "has layer norms after sub-layers, learned positions, .* which no class of Hugging Face's transformers has",
    ),
    "one side learned": (["--decoder-learned-pos"], {}, "positions of two kinds"),
    "no positions": (["--word-positions", "none"], {}, "positions of two kinds"),
    "pre-norm, several tables": (PRE_NORM, {}, "several tables of embeddings"),
    "recurrent": ([], {"arch": "document_rnn", "tiny": toy.TINY_RNN}, "is a DocumentRNN"),
    "more parameters": (["--decoder-output-dim", "6"], STOCK, "project_out_dim"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_models_leave_no_files(data, tmp_path, name):
    options, kind, *_ = REFUSED[name]
    model = trained(data, tmp_path, *options, updates=1, **kind)
    with pytest.raises(InputError):
        export(str(model / "checkpoint.pt"), tmp_path / "out" / "hub", "huggingface", data=model, without_context=True)
    assert not list((tmp_path / "out").iterdir())


@pytest.fixture(scope="module")
def post_norm(data, tmp_path_factory):
    return trained(data, tmp_path_factory.mktemp("plain"), updates=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["trained", "m2m", "marian"])
def test_program_of_the_page(data, tmp_path, kind):
    if kind == "m2m":
        multilingual_folder(tmp_path / "released", kind)
        model = imported(tmp_path / "released", tmp_path / "model")
    elif kind == "marian":  # which is told the target language by what sentences begin with
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


def test_int8_is_not_supported(post_norm, tmp_path):
    path = str(post_norm / "checkpoint.pt")
    with pytest.raises(InputError, match="--precision int8"):
        export(path, tmp_path / "hub", "huggingface", "int8", data=post_norm)
    assert not list(tmp_path.iterdir())


def test_bf16(post_norm, tmp_path):
    for precision in ("float32", "bf16"):
        export(str(post_norm / "checkpoint.pt"), tmp_path / precision, "huggingface", precision, data=post_norm)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("bf16", "float32")]
    assert sizes[0] < 0.7 * sizes[1]
    whole, half = (loaded(tmp_path / name)[0] for name in ("float32", "bf16"))
    assert half.dtype == torch.bfloat16
    assert json.loads((tmp_path / "bf16" / "config.json").read_text())["torch_dtype"] == "bfloat16"
    for name, value in whole.named_parameters():
        assert torch.equal(value.bfloat16(), dict(half.named_parameters())[name]) or "embed_positions" in name


def test_files_are_reproducible(post_norm, tmp_path):
    for name in ("one", "other"):
        export(str(post_norm / "checkpoint.pt"), tmp_path / name, "huggingface", data=post_norm)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert {"config.json", "generation_config.json", "model.safetensors", "README.md", "source.spm"} <= {*names}
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes(), name


def test_missing_safetensors(post_norm, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(InputError, match=r"pip install 'docnmt_fairseq\[pretrained\]'"):
        export(str(post_norm / "checkpoint.pt"), tmp_path / "hub", "huggingface", data=post_norm)


def test_unsupported_tokenizers_write_vocabularies_only(tmp_path, caplog):
    (tmp_path / "text").mkdir()
    model = trained(made(tmp_path / "text", subwords="none", tokenizer="moses"), tmp_path, updates=2)
    export(str(model / "checkpoint.pt"), tmp_path / "hub", "huggingface", data=model)
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
