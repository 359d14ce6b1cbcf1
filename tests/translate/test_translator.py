"""Translator of documents: translations equal those of fairseq-generate."""

import gc
import shutil
import weakref
from types import SimpleNamespace

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS
from docnmt_fairseq.corpus.prepare import PrepareConfig, prepare
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.postprocess import read_translation
from docnmt_fairseq.translate.encoded_text import LineEncoder
from docnmt_fairseq.translate.loading import is_sentence_level
from docnmt_fairseq.translate.translator import DocumentTranslator
from docnmt_fairseq.translate.view import DocumentView
from tests.support import toy
from tests.support.documents import write_lines
from tests.support.translating import SAME_SEARCH, SEARCH, SELECTED, translator

LINES = [["a b c", "d", "e e a", "<p>", "b"], ["c d"], ["a", "b", "c", "d", "e", "a b c d e a b"]]
TRAIN = "The cat sat .\nIt was big .\n<p>\nwe saw the cat .\n\nthe dog saw us .\n\nso the Dog sat .\n"
RAW = "the  cat sat.\n\u200b\n<p>\na dog saw us.\nIt sat.\n\n\n  \nwe sat .\n<p>\nthe cat was big.\n"


def assert_as_generated(checkpoint, prepared, *extra, task="document_translation", **options):
    expected = toy.generate(prepared / "data-bin", checkpoint, *SAME_SEARCH, *extra, task=task).hypotheses
    hypotheses = iter(expected[number][0] for number in sorted(expected))
    wanted = [[line if line == "<p>" else next(hypotheses) for line in lines] for lines in LINES]
    assert next(hypotheses, None) is None
    for max_tokens in (1000, 1):
        found = translator(checkpoint, prepared, max_tokens=max_tokens, **options)
        assert found.translate(LINES) == wanted
        assert found.translate([LINES[1]]) == [wanted[1]]  # independent of earlier calls
        assert found.throughput.sentences == 12


MODELS = {
    "no context": [],
    **{name: ["--context-attention", name] for name in CONTEXT_MECHANISMS.names()},
    "selected": SELECTED,
    "in the decoder": ["--decoder-context-attention", "sentence-encodings"],
    "rounds": ["--target-context-attention", "han", "--context-sentences", "2", "--context-attention", "han"],
}


QUICK = ("selected", "rounds")


@pytest.mark.parametrize(
    "model", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in MODELS]
)
def test_every_mechanism_equals_fairseq_generate(prepared, tmp_path, model):
    options = [*MODELS[model], "--context-init", "xavier", "--max-update", "8"]
    assert_as_generated(toy.train(prepared / "data-bin", tmp_path, *options), prepared)


@pytest.mark.parametrize("target", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_concatenation_equals_fairseq_generate(prepared, tmp_path, target):
    options = ["--concatenate-source", "2", "--concatenate-target", target, "--max-update", "8"]
    task = "concatenated_translation"
    trained = toy.train(prepared / "data-bin", tmp_path, *options, task=task, arch="transformer")
    assert_as_generated(trained, prepared, task=task)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["1", "2"])
def test_concatenation_without_context(prepared, tmp_path, target):
    options = ["--concatenate-source", "2", "--concatenate-target", target, "--segment-embeddings"]
    trained = toy.train(
        prepared / "data-bin", tmp_path, *options, "--max-update", "30", task="concatenated_translation",
        arch="concatenation_transformer",
    )  # fmt: skip
    document = [line for line in LINES[2] if line != "<p>"]
    true = translator(trained, prepared, view=DocumentView(context="document")).translate([document])
    alone = translator(trained, prepared, view=DocumentView(context="none")).translate([document])
    assert true == translator(trained, prepared).translate([document]) != alone
    assert alone == [[line for (line,) in translator(trained, prepared).translate([[line] for line in document])]]
    both = translator(trained, prepared)
    texts = [both.prepare([document], alone=without) for without in (False, True)]
    together = iter([[chunk for text in texts for chunk in text.chunks]])
    found = {(result.text, result.line): result.hypotheses[0] for result in both.stream(together)}
    assert [[both.translation(found[text, line]).text for line in text.sentences] for text in texts] == [*true, *alone]


@pytest.mark.slow
def test_fairseq_transformer(prepared, tmp_path):
    trained = toy.train(prepared / "data-bin", tmp_path, "--max-update", "8", task="translation", arch="transformer")
    assert_as_generated(trained, prepared)
    assert is_sentence_level(trained) and not is_sentence_level(trained, "document")


def test_chunks_with_overlap(prepared, checkpoint):
    view = ["--max-document-sentences", "2", "--context-overlap", "1", "--context-overlap-after", "1"]
    assert_as_generated(
        checkpoint, prepared, *view,
        view=DocumentView(max_document_sentences=2, context_overlap=1, context_overlap_after=1),
    )  # fmt: skip


def test_ensemble_and_default_data(prepared, checkpoint):
    one = translator(checkpoint, None)
    both = DocumentTranslator.from_checkpoint(checkpoint, checkpoint, cpu=True, search=SEARCH)
    assert both.translate(LINES) == one.translate(LINES)


def test_empty_lines(prepared, checkpoint):
    found = translator(checkpoint, prepared)
    seen = []
    divided = found.translate([["", "a b c", "", "", "d e"]], progress=seen.append)[0]
    assert divided == ["", *found.translate([["a b c"]])[0], "", "", *found.translate([["d e"]])[0]] and sum(seen) == 2
    marked = found.translate([["a b c", "<p>", "d e", "<p>"]])[0]
    assert found.translate([["a b c", "", "d e", ""]], empty_lines="paragraph") == [[marked[0], "", marked[2], ""]]
    assert found.translate([[], [""], [" <p>\u200b"]]) == [[], [""], ["<p>"]]


def test_bad_input(prepared, checkpoint, data_bin):
    found = translator(checkpoint, prepared)
    assert len(found.translate([["a", "a " * 1023]])[0]) == 2
    with pytest.raises(InputError, match=r"x:2: 1,025 tokens"):
        found.translate([["a", "a " * 1024]], ["x"])
    for documents in ("a b c", ["a b c", "d"]):
        with pytest.raises(InputError):
            found.translate(documents)
    windows = LineEncoder(found.encoder.codec, SimpleNamespace(window=(2, 2)), (9, 9))
    with pytest.raises(InputError):
        windows.target("--target-prefix", [["a"]], [0], [["b"]])
    with pytest.raises(InputError):
        translator(checkpoint, data_bin)
    for options in ({"precision": "fp16"}, {"view": DocumentView(max_document_sentences=-1)}):
        with pytest.raises(InputError):
            translator(checkpoint, prepared, **options)


@pytest.mark.slow
def test_ensembles_need_the_same_context(prepared, checkpoint, tmp_path):
    alone = toy.train(prepared / "data-bin", tmp_path, "--max-update", "1", "--context", "none")
    for members in ((alone, checkpoint), (checkpoint, alone)):
        with pytest.raises(InputError):
            DocumentTranslator.from_checkpoint(*members, data=prepared)
    DocumentTranslator.from_checkpoint(alone, checkpoint, data=prepared, view=DocumentView(context="none"))


def test_data_must_fit_the_checkpoint(prepared, checkpoint, tmp_path):
    other = shutil.copytree(prepared, tmp_path / "other")
    dictionary = other / "data-bin" / "dict.tgt.txt"
    lines = dictionary.read_text().splitlines(keepends=True)
    for changed in ([*lines, "f 1\n"], [*lines[:-2], lines[-1], lines[-2]]):
        dictionary.write_text("".join(changed))
        with pytest.raises(InputError):
            translator(checkpoint, other)
    (other / "manifest.json").write_text((other / "manifest.json").read_text().replace("src", "xx"))
    with pytest.raises(InputError):
        translator(checkpoint, other)


def test_command_equals_prepare_generate_and_postprocess(tmp_path, capsys, caplog):
    for side, text in (("en", TRAIN), ("de", TRAIN.upper().replace("<P>", "<p>"))):
        (tmp_path / f"train.{side}").write_text(text)
    source = ["the cat sat .", "", *RAW.splitlines()[3:]]  # as prepare takes it
    write_lines(tmp_path / "test.en", source)
    write_lines(tmp_path / "test.de", [line if line.strip() in ("", "<p>") else "X" for line in source])
    train = str(tmp_path / "train")
    files = {"train": train, "valid": [train], "test": [str(tmp_path / "test")], "output": tmp_path / "out"}
    prepare(PrepareConfig("en", "de", **files, tokenizer="moses", truecase=True, subwords="bpe", vocab_size=60))
    options = [*MODELS["selected"], "--max-update", "30"]
    trained = toy.train(tmp_path / "out" / "data-bin", tmp_path / "model", *options)
    log = tmp_path / "log"
    log.write_text(
        toy.generate_text(tmp_path / "out" / "data-bin", trained, *SAME_SEARCH, "--remove-bpe", "sentencepiece")
    )
    expected = iter(line for line in read_translation(tmp_path / "out", "test", log).text if line not in ("", "<p>"))

    (tmp_path / "raw").write_text(RAW)
    caplog.set_level("INFO")
    caplog.set_level("INFO", "fairseq")  # restores the level that the command changes
    arguments = ["--path", str(trained), "--input", str(tmp_path / "raw"), "--output", str(tmp_path / "translated")]
    arguments += ["--cpu", *SAME_SEARCH]
    assert cli.main(["translate", *arguments]) == 0
    lines = (tmp_path / "translated").read_text().split("\n")
    assert lines == [next(expected) if text.isascii() and text.strip(" <p>") else text.strip("\u200b ")
                     for text in RAW.split("\n")]  # fmt: skip
    assert next(expected, None) is None and len(set(lines)) > 2
    assert "sentences/s" in caplog.text and "raw:2: " in caplog.text
    assert cli.main(["translate", *arguments]) == 2
    assert "translated: exists" in capsys.readouterr().err
    assert cli.main(["translate", *arguments, "--resume"]) == 0


@pytest.mark.slow
def test_formats_with_a_trained_model_and_shards(prepared, checkpoint, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "page.html").write_text("<h1>a b</h1><p>c <b>d e</b>. <code>x</code> a</p>")
    cue = "{}\n00:00:0{},000 --> 00:00:0{},900\n{}\n\n"
    (tmp_path / "in" / "film.srt").write_text("".join(cue.format(n, n, n, text) for n, text in enumerate("abcde", 1)))
    write_lines(tmp_path / "in" / "long.src", ["a b", "c", "<p>", "d", ""] * 8)
    model = ["--path", str(checkpoint), "--data", str(prepared), "--cpu", *SAME_SEARCH]
    arguments = ["translate", *model, "--input", str(tmp_path / "in"), "--output"]
    assert cli.main([*arguments, str(tmp_path / "whole")]) == 0
    for shard in ("1", "2"):
        assert cli.main([*arguments, str(tmp_path / "shared"), "--shard", f"{shard}/2"]) == 0
    whole, shared = (
        {path.name: path.read_text() for path in (tmp_path / name).iterdir()} for name in ("whole", "shared")
    )
    assert whole == shared and set(whole) == {"page.html", "film.srt", "long.src"}
    assert [line for line in whole["film.srt"].splitlines() if "-->" in line] == [
        f"00:00:0{n},000 --> 00:00:0{n},900" for n in range(1, 6)
    ]
    assert whole["page.html"].count("<") == 8 and "<code>x</code>" in whole["page.html"]
    lines = whole["long.src"].split("\n")
    assert [n for n, line in enumerate(lines) if line == "<p>"] == list(range(2, 40, 5)) and len(lines) == 41
    found = translator(checkpoint, prepared)
    assert lines[:5] == found.translate([["a b", "c", "<p>", "d", ""]])[0]


def test_texts_can_join_a_running_search(prepared, checkpoint):
    found = translator(checkpoint, prepared)
    alone = translator(checkpoint, prepared, view=DocumentView(context="none"))
    texts = [found.prepare([lines], alone=number == 1) for number, lines in enumerate(LINES * 2)]
    results = {text: {} for text in texts}

    def batches():
        yield texts[0].chunks
        yield None  # the search continues
        yield [texts[1].chunks[0], texts[2].chunks[0], texts[4].chunks[0]]
        for _ in range(3):
            yield None
        yield from (text.chunks for text in (texts[3], texts[5]))

    given = batches()
    while set(map(len, results.values())) == {0} or any(len(of) < len(text.sentences) for text, of in results.items()):
        for result in found.stream(given):
            results[result.text][result.line] = found.translation(result.hypotheses[0]).text
    for number, (text, lines) in enumerate(zip(texts, LINES * 2)):
        (expected,) = (alone if number == 1 else found).translate([lines])
        assert [results[text].get(line, "<p>") for line in range(len(lines))] == expected
    assert next(given, "end") == "end"


def test_texts_are_not_cached(prepared, checkpoint):
    found = translator(checkpoint, prepared)
    text = weakref.ref(found.prepare([LINES[0]], max_tokens=100))
    found.translate([LINES[1]])
    gc.collect()
    assert text() is None and not found.task.dataset_to_epoch_iter
