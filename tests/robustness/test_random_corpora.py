"""Random corpora from their files to a translation, every sentence accounted for."""

import pytest

from benchmarks.robustness import corpora


@pytest.mark.parametrize("number", [pytest.param(n, marks=[pytest.mark.slow] if n > 3 else []) for n in range(40)])
def test_every_sentence_is_accounted_for(number, tmp_path):
    found = corpora.one(f"1-{number}", tmp_path)
    assert found["outcome"] in ("whole", "refused"), found


@pytest.mark.slow
def test_what_is_lost_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "shows", lambda pair: True)  # those that are dropped are expected, too
    found = [corpora.one(f"1-{number}", tmp_path / str(number)) for number in range(12)]
    assert any(one["outcome"] == "fault" and "sentences" in one["detail"] for one in found), found
