"""Translations of every kind of model: complete, independent of the batch, the same of typed lines, using context."""

import pytest

from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.documents import IDS, text_of, write_lines

SEARCH = ["--beam", "3", "--max-len-b", "10"]
RNN = {"arch": "document_rnn_tiny", "tiny": ["--dropout", "0.1"]}
CONCATENATION = {"task": "concatenated_translation", "arch": "concatenation_transformer"}
XAVIER = "--context-init xavier --context-sentences 2"
MODELS = {
    "sentence-level": ("--context none", {}),
    "conditional": ("--context-attention conditional --context-top-t 2 --sentence-positions learned", {}),
    "memory": (f"--context-attention memory --context-selection random {XAVIER}", {}),
    "han in chunks": (f"--context-attention han --max-document-sentences 2 --context-overlap 1 {XAVIER}", {}),
    "training set": (f"--context-attention context-aware --context-selection training-set {XAVIER}", {}),
    "decoder": (f"--context-attention conditional --decoder-context-attention ca-att {XAVIER}", {}),
    "previous translations": (f"--target-context-attention han {XAVIER}", {}),
    "extra sources": ("--extra-sources previous,next:2,random --attention-combination parallel", {}),
    "recurrent": ("--extra-sources previous", RNN),
    "concatenation": ("--segment-embeddings", CONCATENATION),
}
QUICK = ("conditional", "training set", "previous translations", "recurrent")
FIRST = {0, 6, 8}  # sentences of documents


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MODELS]
)
def test_translations(data_bin, tmp_path, name):
    options, kind = MODELS[name]
    task = {"task": kind["task"]} if "task" in kind else {}
    trained = toy.train(data_bin, tmp_path, *options.split(), "--max-update", "12", **kind)

    def translations(*more):
        return toy.generate(data_bin, trained, *SEARCH, *more, **task).hypotheses

    together = translations()
    assert sorted(together) == IDS
    batching = ["--max-tokens", "25", "--required-batch-size-multiple", "8", "--seed", "5"]
    assert translations(*batching) == together
    lines = [" ".join(words) for words in text_of("test")[0]]
    if name != "han in chunks":  # typed lines keep the context that chunks lose
        write_lines(tmp_path / "input", lines)
        typed = toy.interactive(data_bin, trained, tmp_path / "input", "--buffer-size", "100", *SEARCH, **task)
        assert typed.hypotheses == together
    alone = translations(*(["--concatenate-source", "1"] if task else ["--context", "none"]))
    changed = {number for number in IDS if alone[number] != together[number]}
    if name == "sentence-level":
        assert not changed
    elif name == "training set":
        assert 6 in changed  # a document of one sentence
        search, prepared = SearchOptions(beam=3, max_len_b=10), toy.as_prepared(data_bin, tmp_path / "prepared")
        translator = DocumentTranslator.from_checkpoint(trained, data=prepared, cpu=True, search=search)
        (found,) = translator.translate([lines])
        assert [found[number] for number in IDS] == [together[number][0] for number in IDS]
    else:
        assert changed and 6 not in changed
    if name in ("previous translations", "concatenation"):
        assert not changed & FIRST


MEMORY = [
    "--memory-rnn ca-cnn --em-steps 1 --memory-scope batch",
    "--context-sentences 3 --memory-combination parallel --memory-scope document --freeze-sentence-model",
    "--memory-without-rnn --memory-without-attention --encoder-normalize-before",
    "--context-selection next --checkpoint-activations --memory-without-attention --context-layers 0,1",
]


@pytest.mark.parametrize("options", [MEMORY[0], *(pytest.param(one, marks=pytest.mark.slow) for one in MEMORY[1:])])
def test_memory_options(data_bin, tmp_path, options):
    trained = toy.train(data_bin, tmp_path, "--context-attention", "memory", *options.split(), "--max-update", "2")
    assert sorted(toy.generate(data_bin, trained, *SEARCH).hypotheses) == IDS
