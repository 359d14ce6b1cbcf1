"""Data that a model was trained on, as docnmt prepare leaves it."""

import json
import shutil

import pytest


@pytest.fixture(scope="module")
def prepared(data_bin, tmp_path_factory):
    """Returns the toy data-bin as an output of docnmt prepare."""
    folder = tmp_path_factory.mktemp("prepared")
    shutil.copytree(data_bin, folder / "data-bin")
    options = {"source_lang": "src", "target_lang": "tgt", "tokenizer": "none", "truecase": False, "subwords": "none"}
    (folder / "manifest.json").write_text(json.dumps({"options": options}))
    return folder
