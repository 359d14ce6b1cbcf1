"""Fine-tuning of imported models with all mechanisms."""

import json
import math

import pytest
import torch

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, TARGET_MECHANISMS
from docnmt_fairseq.corpus.text_codec import TextCodec, token_ids
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.pretrained import ENGLISH, GERMAN, imported, marian_folder, multilingual_folder, some_quick

KINDS = ("marian", "m2m", "mbart")
DOCUMENTS = [ENGLISH[:3], ENGLISH[3:5], ENGLISH[5:]]
SEARCH = ["--beam", "3", "--max-len-b", "30"]
POSITIONS = ["--max-source-positions", "64", "--max-target-positions", "64"]  # those of learned ones


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
        command = ["prepare", "--reuse", str(self.folder), "-s", "en", "-t", "de", "--output", str(self.data)]
        command += ["--train", str(folder / "train"), "--test", str(folder / "test"), "--workers", "1"]
        assert main(command) == 0
        self.data_bin, self.checkpoint = self.data / "data-bin", self.folder / "checkpoint.pt"

    def train(self, folder, *options, mechanism="", updates=2):
        arch = "_".join(filter(None, ["document_transformer", mechanism.replace("-", "_"), "pretrained"]))
        command = ["--finetune-from-model", str(self.checkpoint), "--max-update", str(updates), "--dropout", "0"]
        return toy.train(self.data_bin, folder, *command, *POSITIONS, *options, arch=arch, tiny=[])

    def translations(self, checkpoint, *options):
        return toy.generate(self.data_bin, checkpoint, *SEARCH, *options).hypotheses


@pytest.fixture(scope="module", params=some_quick(KINDS, {"m2m"}))
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
        token = task.language_tokens[side]
        assert (token is None) == (model.kind == "marian")


def test_translations_equal_fairseq_generate(model):
    found = model.translations(model.checkpoint)
    search = SearchOptions(beam=3, max_len_b=30)
    translator = DocumentTranslator.from_checkpoint(model.checkpoint, data=model.data, search=search, cpu=True)
    lines = translator.translate_lines([lines_of(ENGLISH)])[0]
    for number, line in enumerate(lines):
        if line.translations:
            tokens, score = found[number]
            best = line.translations[0]
            assert best.text == tokens.replace(" ", "").replace("▁", " ").strip()
            assert best.score == pytest.approx(score * math.log(2), abs=1e-3)  # fairseq prints bits
    assert len(found) == len(ENGLISH)


def test_document_model_starts_as_the_imported_one(model, tmp_path):
    trained = model.train(tmp_path, "--lr", "0", mechanism="conditional")
    assert model.translations(trained) == model.translations(model.checkpoint)


def test_target_context_starts_as_the_imported_one(model, tmp_path):
    (name, *_) = TARGET_MECHANISMS.names()
    trained = model.train(tmp_path, "--lr", "0", "--target-context-attention", name)
    assert model.translations(trained) == model.translations(model.checkpoint)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", CONTEXT_MECHANISMS.names())
def test_mechanisms_train(model, tmp_path, mechanism):
    """Context starts as the identity and changes in training."""
    trained = model.train(tmp_path / "as_it_begins", "--lr", "0", mechanism=mechanism)
    assert model.translations(trained) == model.translations(model.checkpoint)
    trained = model.train(tmp_path / "trained", "--lr", "0.01", mechanism=mechanism)
    assert model.translations(trained) != model.translations(model.checkpoint)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGET_MECHANISMS.names())
def test_target_mechanisms_train(marian, tmp_path, name):
    trained = marian.train(tmp_path / "as_it_begins", "--lr", "0", "--target-context-attention", name)
    assert marian.translations(trained) == marian.translations(marian.checkpoint)
    trained = marian.train(tmp_path / "trained", "--lr", "0.01", "--target-context-attention", name)
    assert marian.translations(trained) != marian.translations(marian.checkpoint)


def test_training_marian(marian, tmp_path):
    trained = marian.train(tmp_path, "--lr", "0.01", mechanism="conditional")
    before, after = toy.state(marian.checkpoint), toy.state(trained)
    bias = "decoder.output_projection.bias"
    assert not torch.equal(before[bias], after[bias])
    structure = json.loads((marian.folder / "manifest.json").read_text())["imported"]["structure"]
    cfg = torch.load(trained, weights_only=True)["cfg"]["model"]
    assert {name: cfg[name] for name in structure} == structure


def test_interactive_input_gets_the_language_token(model, tmp_path):
    (tmp_path / "typed").write_text("\n".join(ENGLISH[:3]) + "\n")
    options = [*SEARCH, "--buffer-size", "3", "--source-lang", "en", "--target-lang", "de"]
    options += ["--bpe", "sentencepiece", "--sentencepiece-model", str(subwords(model))]
    found = toy.interactive(model.data_bin, model.checkpoint, tmp_path / "typed", *options).hypotheses
    expected = model.translations(model.checkpoint)
    by_text = {line: number for number, line in enumerate(lines_of(ENGLISH))}
    for number, line in enumerate(ENGLISH[:3]):
        assert found[number] == expected[by_text[line]]


def subwords(model):
    return next(path for name in ("subword.en.model", "subword.model")
                if (path := model.folder / "models" / name).is_file())  # fmt: skip


def likelihood(ensemble, codec, source, target):
    """Returns the log-probability of a sentence with language token and end of sentence."""
    source, target = (
        token_ids(codec.encode(side, [line]), ensemble.dictionaries[side])[0]
        for side, line in enumerate((source, target))
    )
    previous = torch.cat([torch.tensor([2]), target[:-1]])[None]
    with torch.no_grad():
        scores = ensemble.model(source[None], torch.tensor([len(source)]), previous)[0][0].log_softmax(-1)
    return float(scores.gather(1, target[:, None]).sum())


def test_contrastive_evaluation_with_language_tokens(model, tmp_path, capsys):
    """Language tokens count in likelihoods, and are not shown in translations."""
    candidates = [[GERMAN[0], GERMAN[1]], [GERMAN[0], GERMAN[2]]]
    item = {"src": f"{ENGLISH[0]} _eos {ENGLISH[1]}", "dst": [" _eos ".join(one) for one in candidates], "true_ind": 0}
    (tmp_path / "set.json").write_text(json.dumps([item]), encoding="utf-8")
    of_model = ["--path", str(model.checkpoint), "--data", str(model.data), "--cpu"]
    command = ["contrast", *of_model, "--set", "voita", "--items", str(tmp_path / "set.json"), "--format", "json"]
    assert main(command) == 0
    (answer,) = json.loads(capsys.readouterr().out)["answers"]
    ensemble, codec = load_ensemble(model.checkpoint, data=model.data), TextCodec.of_output(model.data)
    expected = [likelihood(ensemble, codec, ENGLISH[1], second) for _, second in candidates]
    assert answer["scores"] == pytest.approx(expected, abs=1e-3)
    text, output = model.folder.parent / "test", tmp_path / "translation"
    assert (
        main(["translate", *of_model, "--input", f"{text}.en", "--output", str(output), "--empty-lines", "document"])
        == 0
    )
    shown = output.read_text(encoding="utf-8")
    tokens = [
        symbol for side in (0, 1) for symbol in [codec.encode(side, ["x"])[0].split()[0]] if model.kind != "marian"
    ]
    assert not any(token in shown for token in tokens)
    capsys.readouterr()
    scored = ["score", "--reference", f"{text}.de", "--system", f"it={output}", "--metrics", "bleu", "--format", "json"]
    assert main(scored) == 0
    assert "BLEU" in capsys.readouterr().out


@pytest.mark.slow
def test_evaluation_commands(model, tmp_path):
    trained = model.train(tmp_path / "document", mechanism="conditional")
    for name, path in (("sentence", model.checkpoint), ("document", trained)):
        of_model = ["--path", str(path), "--data", str(model.data), "--cpu"]
        assert main(["cxmi", *of_model, "--split", "test", "--output", str(tmp_path / f"{name}.cxmi")]) == 0
        report = ["report", *of_model[:-1], "--document", "1", "--output", str(tmp_path / f"{name}.html")]
        assert main(report) == 0
        assert (tmp_path / f"{name}.cxmi").stat().st_size and (tmp_path / f"{name}.html").stat().st_size > 1000


def test_prepare_prints_the_training_command(model, tmp_path, capsys):
    command = ["prepare", "--reuse", str(model.folder), "-s", "en", "-t", "de", "--output", str(model.data)]
    text = str(model.folder.parent / "train")
    command += ["--train", text, "--test", text.replace("train", "test"), "--workers", "1"]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert f"--finetune-from-model {model.checkpoint} --max-source-positions 64" in told


def test_pretrained_preset_needs_a_model(model):
    with pytest.raises(InputError):
        toy.build(model.data_bin, arch="document_transformer_pretrained", tiny=[])


@pytest.mark.slow
def test_learned_positions_need_maximum_lengths(tmp_path_factory):
    model = Imported(tmp_path_factory.mktemp("mbart"), "mbart")
    with pytest.raises(InputError, match=r"--max-source-positions 1024: must be 64"):
        toy.build(
            model.data_bin, "--finetune-from-model", str(model.checkpoint), arch="document_transformer_pretrained",
            tiny=[],
        )  # fmt: skip
