"""Published contrastive sets are read whole; skipped where they are not at hand (DOCNMT_SHARED_DATA)."""

import csv
import json
import os
from pathlib import Path

import pytest

from docnmt_fairseq.evaluation.contrast import bawden, ctxpro, voita
from docnmt_fairseq.report.scat import read_scat

SETS = Path(os.environ.get("DOCNMT_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data")) / "contrastive"


def sets(name):
    if not (SETS / name).exists():
        pytest.skip(f"no contrastive/{name} in the shared data (DOCNMT_SHARED_DATA)")
    return SETS / name


@pytest.mark.parametrize("name", ["anaphora", "lexical-choice"])
def test_bawden(name):
    items = bawden.read(sets("discevalmt") / f"{name}.json")
    assert len(items) == 200
    assert all(len(item.document.source) == len(item.document.target) == 2 for item in items)


@pytest.mark.parametrize("name", ["deixis_dev", "lex_cohesion_dev", "ellipsis_vp"])
def test_voita(name, tmp_path):
    folder = sets("voita")
    source, target = (
        (folder / f"{name}.{side}").read_text(encoding="utf-8").split("\n") for side in ("src", "dst")
    )  # one candidate a line; the set's JSON has the same by item
    with open(folder / f"{name}.groups.tsv", encoding="utf-8") as file:
        groups = list(csv.DictReader(file, delimiter="\t"))
    entries = []
    for group in groups:
        first, number = int(group["first_line0"]), int(group["n_candidates"])
        facts = {"true_ind": int(group["true_ind"]), "ctx_dist": int(group["ctx_dist"])}
        entries.append({"src": source[first], "dst": target[first : first + number], **facts})
    path = tmp_path / "set.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    items = voita.read(path)
    assert len(items) == len(groups) == 500
    for item, group in zip(items, groups):  # false candidates that are the true one are left out
        assert len(item.candidates) <= int(group["n_candidates"])
        true = target[int(group["first_line0"]) + int(group["true_ind"])].split(" _eos ")
        assert all(item.candidates[item.right][line] == true[line].strip() for line in item.lines)


def test_ctxpro():
    folder = sets("ctxpro")
    (inputs,) = folder.glob("*inputs*")
    (path,) = folder.glob("*evalsets*.json")
    items = ctxpro.read(path, inputs)
    assert len(items) == 615
    assert all(item.expected for item in items)


@pytest.mark.parametrize("split, examples", [("valid", 112), ("test", 834)])
def test_scat(split, examples):
    assert len(read_scat(sets("scat") / f"highlighted.{split}", "en", "fr").examples) == examples
