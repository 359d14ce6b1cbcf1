"""docnmt export --push with a client that keeps what it would upload."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from docnmt_fairseq.cli import main
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import hub, pretrained
from tests.support.pretrained import ENGLISH

huggingface_hub = pytest.importorskip("huggingface_hub", reason="the extra pretrained is not installed")


class Client:
    """Client of a hub in a folder."""

    folder = Path()
    calls = ()  # arguments of each call
    failing = ""  # name of a method that fails

    def __init__(self, **options):
        pass

    def create_repo(self, name, **options):
        """Fails, or keeps the arguments."""
        self._call("create_repo", name, options)

    def upload_folder(self, repo_id, folder_path, commit_message):
        """Fails, or copies the folder."""
        self._call("upload_folder", repo_id, {})
        shutil.copytree(folder_path, self.folder / repo_id)

    def _call(self, method, name, options):
        if method == self.failing:
            raise OSError("401 Client Error\nof a hub")
        Client.calls = (*Client.calls, (method, name, options))


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "HfApi", Client)
    monkeypatch.setattr(Client, "folder", tmp_path / "hub")
    monkeypatch.setattr(Client, "calls", ())
    return Client


def export(data, output, *options):
    return main(
        ["export", "--path", str(data / "checkpoint.pt"), "--data", str(data), "--output", str(output), *options]
    )


def card(folder):
    """Returns metadata and text of a model card."""
    _, header, text = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(header), text


CONTEXT = ["--context-attention", "conditional", "--context-top-t", "3", "--sentence-positions", "sinusoidal"]


def test_document_models_are_usable_from_the_repository(client, data, tmp_path):
    trained = hub.trained(data, tmp_path, *CONTEXT, updates=30, arch="document_transformer_conditional_tiny")
    scores = ["--license", "cc-by-4.0", "--metric", "BLEU=31.25", "chrF=58", "--test-set", "talks"]
    assert export(trained, tmp_path / "a.pt", "--push", "me/model", "--private", *scores) == 0
    pushed = tmp_path / "hub" / "me" / "model"
    assert client.calls[0] == ("create_repo", "me/model", {"exist_ok": True, "private": True})
    shutil.move(trained, tmp_path / "elsewhere")  # the repository is complete
    ours, theirs = (
        DocumentTranslator.from_checkpoint(folder / "checkpoint.pt", data=folder, cpu=True).translate([ENGLISH])
        for folder in (tmp_path / "elsewhere", pushed)
    )
    assert ours == theirs
    assert str(tmp_path) not in (pushed / "manifest.json").read_text()
    about, text = card(pushed)
    assert about["language"] == ["en", "de"] and about["license"] == "cc-by-4.0"
    (result,) = about["model-index"][0]["results"]
    assert [(one["name"], one["value"]) for one in result["metrics"]] == [("BLEU", 31.25), ("chrF", 58.0)]
    assert result["dataset"]["name"] == "talks" and about["metrics"] == ["bleu", "chrf"]
    for option, value in zip(CONTEXT[::2], CONTEXT[1::2]):
        assert f"| `{option}` | {value} |" in text
    assert "docnmt translate" in text and "| BLEU | 31.25 |" in text


@pytest.mark.parametrize("kind, library", [("huggingface", "transformers"), ("ctranslate2", "ctranslate2")])
def test_folders_get_a_card(client, tmp_path, kind, library):
    pytest.importorskip(library)
    pretrained.marian_folder(tmp_path / "released")
    data = pretrained.imported(tmp_path / "released", tmp_path / "imported")
    assert export(data, tmp_path / "out", "--format", kind, "--push", "me/marian") == 0
    about, text = card(tmp_path / "hub" / "me" / "marian")
    assert about["license"] == "apache-2.0"  # of the imported model
    assert about["library_name"] == library and "model-index" not in about
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert ("me/marian" in program) == (kind == "huggingface")
    assert "translates every sentence separately" in text


def test_errors(client, data, tmp_path, monkeypatch, capsys):
    trained = hub.trained(data, tmp_path, updates=1)

    monkeypatch.setattr(client, "failing", "create_repo")
    assert export(trained, tmp_path / "a.pt", "--push", "me/model") == 2
    assert "--push me/model: 401 Client Error; log in" in capsys.readouterr().err
    assert not (tmp_path / "a.pt").exists() and client.calls == ()
    monkeypatch.setattr(client, "failing", "upload_folder")
    assert export(trained, tmp_path / "a.pt", "--push", "me/model") == 2 and "401" in capsys.readouterr().err
    assert (tmp_path / "a.pt").is_file()
