"""Outputs that authors publish have their published figures."""

import html
import os
from pathlib import Path

import pytest

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.evaluation.postprocess import tokenized_bleu
from docnmt_fairseq.reproduce.published import read_table

SUBTITLES = Path(os.environ.get("DOCNMT_SHARED_DATA") or Path(__file__).parents[3] / "shared" / "data") / "tvsub-zh-en"
OUTPUTS = {
    "sentence-level": "baseline",
    "cache": "cache",
    "HAN encoder": "HA-enc",
    "HAN decoder": "HA-dec",
    "HAN joint": "HA-enc-dec",
}


@pytest.mark.skipif(not SUBTITLES.exists(), reason="no tvsub-zh-en in DOCNMT_SHARED_DATA")
@pytest.mark.parametrize("row", OUTPUTS)
def test_subtitles_of_miculicich_et_al(row):
    """One line for each non-empty line of the test set; `&apos;` is escaped."""
    references = [list(filter(None, read_lines(SUBTITLES / f"test.{name}"))) for name in ("en", "en1", "en2")]
    output = [html.unescape(line) for line in read_lines(SUBTITLES / "published" / f"{OUTPUTS[row]}.en")]
    published = {one["title"]: one["published"][0] for one in read_table("han-table-1").rows}
    assert round(tokenized_bleu(output, *references).score, 2) == published[row]
