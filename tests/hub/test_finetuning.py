"""Fine-tuning of imported models with all mechanisms."""

import importlib.util
import json
import math
import os
import subprocess
from pathlib import Path

import pytest
import torch

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, TARGET_MECHANISMS
from docnmt_fairseq.corpus.pipeline import TextCodec, token_ids
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.marks import slow_except
from tests.support.pretrained import ENGLISH, GERMAN, imported, marian_folder, multilingual_folder

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "finetune_pretrained.sh"
SEARCH = ["--beam", "3", "--max-len-b", "30"]


def lines_of(sentences):
    """Returns three documents."""
    return [sentences[0], "<p>", *sentences[1:3], "", *sentences[3:5], "", *sentences[5:], ""]


class Imported:
    """Imported model with prepared data."""

    def __init__(self, folder, kind):
        self.folder, self.kind = folder / "imported", kind
        if kind == "marian":
            marian_folder(folder / "released")
        else:
            multilingual_folder(folder / "released", kind)
        imported(folder / "released", self.folder)
        for side, sentences in (("en", ENGLISH), ("de", GERMAN)):
            text = "\n".join(lines_of(sentences)) + "\n"
            for split in ("train", "test"):
                (folder / f"{split}.{side}").write_text(text, encoding="utf-8")
        self.data = folder / "data"
        self.prepare = ["prepare", "--reuse", str(self.folder), "-s", "en", "-t", "de", "--output", str(self.data)]
        self.prepare += ["--train", str(folder / "train"), "--test", str(folder / "test"), "--workers", "1"]
        assert main(self.prepare) == 0
        self.data_bin, self.checkpoint = self.data / "data-bin", self.folder / "checkpoint.pt"

    def train(self, folder, *options, mechanism="", updates=2):
        arch = "_".join(filter(None, ["document_transformer", mechanism.replace("-", "_"), "pretrained"]))
        command = ["--finetune-from-model", str(self.checkpoint), "--max-update", str(updates), "--dropout", "0"]
        command += ["--max-source-positions", "64", "--max-target-positions", "64"]  # as learned positions
        return toy.train(self.data_bin, folder, *command, *options, arch=arch, tiny=[])

    def translations(self, checkpoint):
        return toy.generate(self.data_bin, checkpoint, *SEARCH).hypotheses


@pytest.fixture(scope="module", params=slow_except({"m2m"}, ("marian", "m2m", "mbart")))
def model(request, tmp_path_factory):
    return Imported(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    return Imported(tmp_path_factory.mktemp("marian"), "marian")


def test_language_tokens_in_prepared_data(model):
    from fairseq.data.data_utils import load_indexed_dataset

    codec, task = TextCodec.of_output(model.folder), load_ensemble(model.checkpoint, data=model.data).task
    for side, language, sentences in ((0, "en", ENGLISH), (1, "de", GERMAN)):
        dictionary = (task.source_dictionary, task.target_dictionary)[side]
        items = load_indexed_dataset(str(model.data_bin / f"test.en-de.{language}"), dictionary)
        symbols = [" ".join(dictionary[int(number)] for number in items[item]) for item in range(len(items))]
        expected = codec.encode_lines(side, lines_of(sentences))
        known = [" ".join(word if word in dictionary else "<unk>" for word in line.split()) for line in expected]
        assert symbols == [f"{line} </s>".strip() for line in known]
        assert (task.language_tokens[side] is None) == (model.kind == "marian")


def test_translations_equal_fairseq_generate(model):
    found = model.translations(model.checkpoint)
    search = SearchOptions(beam=3, max_len_b=30)
    translator = DocumentTranslator.from_checkpoint(model.checkpoint, data=model.data, search=search, cpu=True)
    for number, line in enumerate(translator.translate_lines([lines_of(ENGLISH)])[0]):
        if line.translations:
            tokens, score = found[number]
            best = line.translations[0]
            assert best.text == tokens.replace(" ", "").replace("▁", " ").strip()
            assert best.score == pytest.approx(score * math.log(2), abs=1e-3)  # fairseq prints bits
    assert len(found) == len(ENGLISH)


def assert_starts_as_imported_and_learns(model, folder, *options, **kind):
    """Context is the identity at initialisation and changes in training."""
    expected = model.translations(model.checkpoint)
    assert model.translations(model.train(folder / "start", "--lr", "0", *options, **kind)) == expected
    assert model.translations(model.train(folder / "trained", "--lr", "0.01", *options, **kind)) != expected


def test_conditional_attention_trains(model, tmp_path):
    assert_starts_as_imported_and_learns(model, tmp_path, mechanism="conditional")


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [name for name in CONTEXT_MECHANISMS.names() if name != "conditional"])
def test_mechanisms_train(marian, tmp_path, mechanism):
    assert_starts_as_imported_and_learns(marian, tmp_path, mechanism=mechanism)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGET_MECHANISMS.names())
def test_target_mechanisms_train(marian, tmp_path, name):
    assert_starts_as_imported_and_learns(marian, tmp_path, "--target-context-attention", name)


def test_training_keeps_the_structure_and_trains_the_bias(marian, tmp_path):
    trained = marian.train(tmp_path, "--lr", "0.01", mechanism="conditional")
    bias = "decoder.output_projection.bias"
    assert not torch.equal(toy.state(marian.checkpoint)[bias], toy.state(trained)[bias])
    structure = json.loads((marian.folder / "manifest.json").read_text())["imported"]["structure"]
    cfg = torch.load(trained, weights_only=True)["cfg"]["model"]
    assert {name: cfg[name] for name in structure} == structure


def test_interactive_input_gets_the_language_token(model, tmp_path):
    (tmp_path / "typed").write_text("\n".join(ENGLISH[:3]) + "\n")
    subwords = sorted((model.folder / "models").glob("subword*.model"))[-1]  # of the source, or joint
    options = [*SEARCH, "--buffer-size", "3", "--source-lang", "en", "--target-lang", "de"]
    options += ["--bpe", "sentencepiece", "--sentencepiece-model", str(subwords)]
    found = toy.interactive(model.data_bin, model.checkpoint, tmp_path / "typed", *options).hypotheses
    expected = model.translations(model.checkpoint)
    numbers = [lines_of(ENGLISH).index(line) for line in ENGLISH[:3]]
    assert [found[number] for number in range(3)] == [expected[number] for number in numbers]


@torch.no_grad()
def likelihood(ensemble, codec, *pair):
    """Returns the log-probability of a sentence with language token and end of sentence."""
    source, target = (
        token_ids(codec.encode(side, [line]), ensemble.dictionaries[side])[0] for side, line in enumerate(pair)
    )
    previous = torch.cat([torch.tensor([2]), target[:-1]])[None]
    scores = ensemble.model(source[None], torch.tensor([len(source)]), previous)[0][0].log_softmax(-1)
    return float(scores.gather(1, target[:, None]).sum())


def test_contrastive_evaluation_with_language_tokens(model, tmp_path, capsys):
    """Language tokens count in likelihoods."""
    candidates = [[GERMAN[0], GERMAN[1]], [GERMAN[0], GERMAN[2]]]
    item = {"src": f"{ENGLISH[0]} _eos {ENGLISH[1]}", "dst": [" _eos ".join(one) for one in candidates], "true_ind": 0}
    (tmp_path / "set.json").write_text(json.dumps([item]), encoding="utf-8")
    command = ["contrast", "--path", str(model.checkpoint), "--data", str(model.data), "--cpu", "--format", "json"]
    assert main([*command, "--set", "voita", "--items", str(tmp_path / "set.json")]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["answers"]
    ensemble, codec = load_ensemble(model.checkpoint, data=model.data), TextCodec.of_output(model.data)
    expected = [likelihood(ensemble, codec, ENGLISH[1], second) for _, second in candidates]
    assert answer["scores"] == pytest.approx(expected, abs=1e-3)


def test_prepare_prints_the_training_command(model, capsys):
    assert main(model.prepare) == 0
    assert f"--finetune-from-model {model.checkpoint} --max-source-positions 64" in capsys.readouterr().out


# --- scripts/finetune_pretrained.sh ---


def run_script(*arguments, **environment):
    environment = {**os.environ, "DOCNMT_SET_UP": "1", **environment}
    return subprocess.run(["bash", str(SCRIPT), *map(str, arguments)], env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs transformers")
def test_script_from_import_to_scores_is_resumed(tmp_path, tmp_path_factory, imported):
    ready = imported.commands(tmp_path_factory.mktemp("commands"))
    done = run_script("--smoke", tmp_path, **ready)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "family: marian" in done.stdout
    for name in ("sentence", "document"):
        files = (tmp_path / name / "test.txt", tmp_path / "corpus" / "test.src")
        lines, source = (file.read_text(encoding="utf-8").splitlines() for file in files)
        assert len(lines) == len(source)
        assert "accuracy" in (tmp_path / name / "contrast.txt").read_text(encoding="utf-8")
    scores = (tmp_path / "scores.txt").read_text(encoding="utf-8")
    os.utime(tmp_path / "document" / "test.txt", (1, 1))  # older than its model
    again = run_script("--smoke", tmp_path, **ready)
    assert "sentence: already translated" in again.stderr and "document: already translated" not in again.stderr
    assert again.returncode == 0 and (tmp_path / "scores.txt").read_text() == scores


@pytest.mark.slow
def test_script_keeps_other_imports_and_passes_options(tmp_path, tmp_path_factory, imported):
    ready = imported.commands(tmp_path_factory.mktemp("commands"))
    output, data = tmp_path / "output", tmp_path / "data"
    data.mkdir()
    for name in ("train", "valid", "test"):
        for side in ("en", "de"):
            (data / f"{name}.{side}").touch()

    def failure(model, options):
        done = run_script(model, data, output, **{**ready, "IMPORT_OPTIONS": options})
        assert done.returncode != 0
        return done.stderr

    assert "invalid choice: 'own'" in failure(data, "--architecture own")
    (output / "model").mkdir()
    (output / "model" / "manifest.json").touch()
    assert "was imported with other options" in failure(data, "--revision v2")
