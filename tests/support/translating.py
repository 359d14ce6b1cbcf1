"""Translators of tiny models."""

from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from docnmt_fairseq.translate.view import DocumentView

SELECTED = ["--context-attention", "conditional", "--context-top-t", "2", "--sentence-positions", "learned"]
SEARCH = SearchOptions(beam=3, max_len_b=10)
SAME_SEARCH = ["--beam", "3", "--max-len-b", "10"]


def translator(checkpoint, data, *, view=DocumentView(), **options):
    return DocumentTranslator.from_checkpoint(
        checkpoint, data=data, view=view, cpu=True, **{"search": SEARCH, **options}
    )
