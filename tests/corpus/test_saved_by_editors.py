"""Files that an editor saved with a byte order mark and CR LF hold what they held before, whoever reads them."""

import io
import json

import pytest

from docnmt_fairseq.corpus.synth import SynthOptions, read_cases, write_corpus
from docnmt_fairseq.embedding.word_vectors import read_text_vectors
from docnmt_fairseq.evaluation.contrast import synth, voita
from docnmt_fairseq.evaluation.generate_log import parse_generate_log
from docnmt_fairseq.evaluation.metrics.register import read_labels
from docnmt_fairseq.evaluation.metrics.terms import read_terms
from docnmt_fairseq.evaluation.register_rules import RULES
from docnmt_fairseq.evaluation.texts import read_references, read_text
from docnmt_fairseq.translate.formats import Reading, format_of
from tests.support.reading import read, write

NEWS = "a\tA\nb\tB\n\t\nc\tC\n"
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
WMT = f'{XML}<doc id="x"><src lang="en"><seg id="1">a</seg></src><ref lang="de"><seg id="1">A</seg></ref></doc>'
TMX = (
    f'{XML}<tmx><body><tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de"><seg>A</seg></tuv></tu></body></tmx>'
)
CORPORA = {
    "delimited": {"x.en": "a b\n\nc\n", "x.de": "A B\n\nC\n"},
    "d-lines": {"x.en": "<d>\na\n<d>\nb\n", "x.de": "<d>\nA\n<d>\nB\n"},
    "news-commentary": {"x.en-de.tsv": NEWS},
    "jsonl": {"x.jsonl": "".join(json.dumps({"en": [text], "de": [text.upper()]}) + "\n" for text in "ab")},
    "wmt-xml": {"x.xml": WMT},
    "tmx": {"x.tmx": TMX},
    "ted-xml": {
        f"x.{side}": f'<mteval>\n<doc docid="1">\n<seg id="1">{side}</seg>\n</doc>\n</mteval>\n'
        for side in ("en", "de")
    },
    "opus-moses": {"x.en": "a\n", "x.de": "A\n", "x.ids": "de/1.xml.gz\ten/1.xml.gz\t1\t2 3\n"},
}


def saved(text):
    return b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()


@pytest.mark.parametrize("name", CORPORA)
def test_corpora(tmp_path, name):
    def documents(contents):
        return [document.paragraphs for document in read(name, [write(tmp_path, *one) for one in contents])]

    plain = documents(CORPORA[name].items())
    assert plain and plain == documents((file, saved(text)) for file, text in CORPORA[name].items())


def translated(path):
    documents = list(format_of("x", "text", Reading()).documents(io.BytesIO(path.read_bytes()), "standard input"))
    return [(document.lines, document.finish(document.lines), document.first_line) for document in documents]


def labels(path):
    reference = write(path.parent, "reference", "Du gehst.\n\nSie gehen.\n")
    return read_labels(path, read_references([reference]), RULES["de"]())


def scored(path):
    return read_text(path, read_references([write(path.parent, "reference", "a b\n\nc\n")]))


VOITA = [{"src": "a _eos b", "dst": ["A _eos B", "A _eos X"], "true_ind": 0}]
FILES = {
    "text to translate": (translated, "a b\n<p>\nc\n\nd\n"),
    "translations": (scored, "a b\n\nd\n"),
    "references": (lambda path: read_references([path]).streams, "a b\n\nc\n"),
    "fairseq-generate's log": (parse_generate_log, "S-0\ta\nH-0\t-1.0\tA b\nD-0\t-1.0\tA b\n"),
    "registers": (labels, "0\tdu\n2\tSie\n"),
    "terms": (read_terms, "bank\tUfer|Bank\nriver\tFluss\n"),
    "vectors": (read_text_vectors, "a 1 2\nb 3 4\n"),
    "contrastive set": (voita.read, json.dumps(VOITA, indent=1)),
}


@pytest.mark.parametrize("what", FILES)
def test_files_of_one_text(tmp_path, what):
    reader, text = FILES[what]
    plain = reader(write(tmp_path, "x", text))
    assert plain and repr(plain) == repr(reader(write(tmp_path, "x", saved(text))))


def test_files_of_docnmt_synth(tmp_path):
    write_corpus(SynthOptions(train_documents=4, valid_documents=1, test_documents=1), tmp_path)
    table = tmp_path / "test.phenomena.tsv"
    plain = read_cases(table), repr(synth.read(table))
    for path in (table, tmp_path / "test.src", tmp_path / "test.tgt"):
        path.write_bytes(saved(path.read_text(encoding="utf-8")))
    assert (read_cases(table), repr(synth.read(table))) == plain
