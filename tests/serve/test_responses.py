"""Answers of the server equal those of the translator, also for concurrent requests."""

import base64
import io
import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from docnmt_fairseq.report.inspection import dataset_of_lines, inspect
from docnmt_fairseq.report.views import views_of
from docnmt_fairseq.serve import responses
from docnmt_fairseq.translate.formats import FORMATS, Reading
from tests.support import toy
from tests.support.serving import JSON, Held, running, translator_of

LINES = ["a b c", "d", "<p>", "e e a", "", "c d", "b"]
PARAGRAPHS = [["a b c", "d"], ["e e a"]]


def body(lines):
    return "".join(f"{line}\n" for line in lines)


def test_plain_text(server, translator):
    assert server.text(body(LINES)) == (200, body(translator.translate([LINES])[0]))
    assert server.text("") == (200, "")
    assert server.text("\n\n<p>\n") == (200, "\n\n<p>\n")
    assert server.text("a b c") == (200, body(translator.translate([["a b c"]])[0]))


def test_concurrent_requests_equal_single_ones(server, checkpoint, prepared, translator):
    alone = translator_of(checkpoint, prepared, context="none")
    generator = random.Random(1)
    asked = []
    for number in range(60):
        sizes = [generator.randrange(1, 9) for _ in range(generator.randrange(1, 12))]
        lines = [" ".join(generator.choice("abcde") for _ in range(size)) for size in sizes]
        for place in range(1, len(lines), 4):
            lines.insert(place, generator.choice(["<p>", ""]))
        asked.append((lines, number % 3 == 0))
    with ThreadPoolExecutor(12) as clients:
        path = "/v1/translate?context={}"
        ask = lambda one: server.text(body(one[0]), path.format("none" if one[1] else "document"))  # noqa: E731
        answers = list(clients.map(ask, asked))
    for (lines, without), answer in zip(asked, answers):
        of = alone if without else translator
        assert answer == (200, body(of.translate([lines])[0]))
    found = {answer for (lines, _), answer in zip(asked, answers)}
    assert len(found) > 20
    assert not server.service.scheduler.jobs and server.service.scheduler.waiting == 0


def test_paragraphs_keep_their_shape(server, translator):
    first, second = translator.translate_lines([["a b c", "d", "<p>", "e e a"]])[0][:2]
    last = translator.translate([["a b c", "d", "<p>", "e e a"]])[0][3]
    status, found = server.json({"paragraphs": PARAGRAPHS})
    assert status == 200 and found == {"paragraphs": [[first.text, second.text], [last]]}
    with_holes = [["a b c", " \u200b", "d"], [], ["<p>", "e e a"], [""]]
    found = server.json({"paragraphs": with_holes})[1]
    assert found == {"paragraphs": [[first.text, "", second.text], [], ["", last], [""]]}
    assert server.json({"paragraphs": []}) == (200, {"paragraphs": []})


def test_nbest_and_scores(server, translator):
    expected = translator.translate_lines([["a b c", "d", "<p>", "e e a"]])[0]
    _, found = server.json({"paragraphs": PARAGRAPHS, "nbest": 2, "scores": True})
    assert [one["source"] for one in found["sentences"]] == ["a b c", "d", "e e a"]
    assert [(one["paragraph"], one["sentence"]) for one in found["sentences"]] == [(0, 0), (0, 1), (1, 0)]
    for one, line in zip(found["sentences"], (expected[0], expected[1], expected[3])):
        texts = [(two.text, pytest.approx(two.score, abs=1e-4)) for two in line.translations[:2]]
        assert [(two["text"], two["score"]) for two in one["translations"]] == texts
        assert (one["translation"], one["score"]) == texts[0]


def test_target_prefix(server, translator):
    found = translator.translate_lines([["a b c", "d", "<p>", "e e a"]], target_prefix=[["", "e d", "", "b"]])[0]
    lines = [line.text for line in found]
    prefixes = [["", "e d"], ["b"]]
    status, found = server.json({"paragraphs": PARAGRAPHS, "target_prefix": prefixes})
    assert status == 200 and found == {"paragraphs": [lines[:2], lines[3:]]}
    assert found != server.json({"paragraphs": PARAGRAPHS})[1]
    assert lines[1].startswith("e d") and lines[3].startswith("b")
    holes, prefixes = [["a b c", " \u200b", "d"], [""], ["e e a"]], [["", "", "e d"], [""], ["b"]]
    found = server.json({"paragraphs": holes, "target_prefix": prefixes})[1]["paragraphs"]
    assert found == [[lines[0], "", lines[1]], [""], lines[3:]]


@pytest.mark.slow
def test_target_context(prepared, tmp_path_factory):
    options = ["--target-context-attention", "han", "--context-init", "xavier", "--max-update", "60"]
    trained = toy.train(prepared / "data-bin", tmp_path_factory.mktemp("han"), *options, "-s", "src", "-t", "tgt")
    corrected = [["", "e d b", ""], ["a c"]]
    found = translator_of(trained, prepared).translate_lines(
        [["a b c", "d", "<p>", "e e a"]], target_context=[["", "e d b", "", "a c"]]
    )[0]
    asked = {"paragraphs": [["a b c", "d", " "], ["e e a"]], "scores": True}
    with running(translator_of(trained, prepared)) as server:
        status, found_now = server.json({**asked, "target_context": corrected})
        free = server.json(asked)[1]
    assert status == 200
    scores = [[one["score"] for one in answer["sentences"]] for answer in (found_now, free)]
    wanted = [line.translations[0].score for line in found if line.translations]
    assert scores[0] == pytest.approx(wanted, abs=1e-4)
    same = [one == pytest.approx(other, abs=1e-6) for one, other in zip(*scores)]
    assert same == [True, True, False]  # only the third sentence follows a corrected one


def test_running_text(server, translator):
    status, found = server.json({"text": "a b c here. D e there.\n\nE e a now.\n"})
    lines = translator.translate([["a b c here.", "D e there.", "<p>", "E e a now."]])[0]
    assert status == 200 and found["paragraphs"] == [lines[:2], lines[3:]]
    assert found["text"] == f"{lines[0]} {lines[1]}\n\n{lines[3]}\n"
    for path in ("/v1/translate", "/v1/inspect"):
        last = server.stream({"text": "a b c here. D e there.\n\nE e a now.\n"}, path)[-1]
        assert (last["done"], last["text"]) == (True, found["text"])


@pytest.mark.parametrize("accept, sign", [("text/event-stream", b": keep-alive\n\n"), ("application/x-ndjson", b"   ")])
def test_waiting_streams_are_kept_alive(checkpoint, prepared, monkeypatch, accept, sign):
    monkeypatch.setattr(responses, "KEEP_ALIVE", 0.05)
    translator = Held(translator_of(checkpoint, prepared))
    with running(translator) as server:
        connection = server.connect("POST", "/v1/translate", {"paragraphs": [["a"]]}, JSON, Accept=accept)
        answer = connection.getresponse()
        assert answer.read(len(sign)) == sign
        translator.free.set()
        lines = [line.removeprefix(b"data: ") for line in answer.read().split(b"\n")]
        found = [json.loads(line) for line in lines if line and not line.startswith(b":")]
        assert [set(one) >= {"translation"} or one["done"] for one in found] == [True, True]
        connection.close()


@pytest.mark.parametrize("accept", ["*/*", "application/x-ndjson"])
def test_stream_has_all_sentences_in_order(server, translator, accept):
    paragraphs = [["a b c d e", "a", "b c"], ["d"], ["e d c b a", "a a"]]
    found = server.stream({"paragraphs": paragraphs, "scores": True}, Accept=accept)
    lines = translator.translate([["a b c d e", "a", "b c", "<p>", "d", "<p>", "e d c b a", "a a"]])[0]
    places = [(p, s) for p, sentences in enumerate(paragraphs) for s in range(len(sentences))]
    assert [(one["paragraph"], one["sentence"]) for one in found[:-1]] == places
    assert [one["source"] for one in found[:-1]] == ["a b c d e", "a", "b c", "d", "e d c b a", "a a"]
    assert [one["translation"] for one in found[:-1]] == [line for line in lines if line != "<p>"]
    assert all(one["score"] < 0 for one in found[:-1]) and found[-1] == {"done": True, "sentences": 6}


def test_stream_of_events_and_of_plain_text(server):
    expected = server.stream({"paragraphs": [["a b", "c"]]})
    status, headers, found = server.ask("POST", "/v1/translate", {"paragraphs": [["a b", "c"]]}, JSON,
                                        Accept="text/event-stream")  # fmt: skip
    assert status == 200 and headers["content-type"].startswith("text/event-stream")
    events = found.decode().split("\n\n")
    assert [json.loads(event.removeprefix("data: ")) for event in events[:-1]] == expected and events[-1] == ""
    _, text = server.text("a b\nc\n", "/v1/translate?stream=true")
    assert [json.loads(line) for line in text.splitlines()] == expected


def test_files(server, translator):
    page = "<h1>a b</h1><p>c <b>d e</b>. <code>x</code> a</p>"
    status, headers, found = server.ask("POST", "/v1/files?name=page.html", page, "text/html")
    assert status == 200 and headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"] == "attachment"  # never shown as a page
    assert found.decode().count("<") == page.count("<") and "<code>x</code>" in found.decode()
    (document,) = FORMATS["html"](Reading(lambda: ("src", "tgt"))).documents(io.BytesIO(page.encode()), "page")
    assert document.finish(translator.translate([document.lines])[0]) == found
    assert server.text(page, "/v1/files?format=html")[1] == found.decode()
    assert server.text("a b c\n\nd\n", "/v1/files?name=x.txt") == server.text("a b c\n\nd\n")


def test_stream_of_a_file(server):
    page = "<h1>a b</h1><p>c <b>d e</b>. <code>x</code> a</p>"
    whole = server.text(page, "/v1/files?name=page.html")[1]
    _, found = server.text(page, "/v1/files?name=page.html&stream=true")
    *sentences, last = map(json.loads, found.splitlines())
    assert [one["source"] for one in sentences] == ["a b", "c d e. a"]
    assert base64.b64decode(last.pop("file")).decode() == whole and last == {"done": True, "sentences": 2}
    assert sentences[0]["translation"] in whole
    assert server.text(page, "/v1/files?name=page.html", accept="application/x-ndjson")[1] == found


def test_inspection_equals_the_report(server, translator, checkpoint, prepared):
    _, found = server.json({"paragraphs": PARAGRAPHS, "viewer": True}, "/v1/inspect")
    ensemble = translator_of(checkpoint, prepared).ensemble
    dataset = dataset_of_lines(ensemble, ["a b c", "d", "<p>", "e e a"], "text")
    inspection = inspect(ensemble, dataset, 0, beam=3)
    expected = [view.to_json() for view in views_of(ensemble.model, inspection)]
    views = found["inspection"]["views"]
    assert [view["title"] for view in views] == [view["title"] for view in expected]
    assert found["inspection"]["tokens"][0]["source"] == ["a", "b", "c", "</s>"]
    for one, other in zip(views, json.loads(json.dumps(expected))):
        assert one["words"].keys() == other["words"].keys()
        for measure, words in other["sentences"].items():
            assert {k: [[e[0] for e in head] for head in v] for k, v in one["sentences"][measure].items()} == {
                k: [[e[0] for e in head] for head in v] for k, v in words.items()
            }
    assert [one["translation"] for one in found["sentences"]] == [
        line for line in translator.translate([["a b c", "d", "<p>", "e e a"]])[0] if line != "<p>"
    ]
    assert found["viewer"].count('class="sentence') == 3
    _, found = server.json({"text": "a Жук b"}, "/v1/inspect")
    assert found["inspection"]["tokens"][0]["source"] == ["a", "Жук", "b", "</s>"]  # not <unk>


@pytest.mark.slow
def test_texts_that_cannot_be_inspected(server, plain, prepared):
    long = {"paragraphs": [["a b c d"] * 30]}
    status, found = server.json(long, "/v1/inspect")
    assert status == 422 and "150 tokens" in found["error"]
    *sentences, last = server.stream(long, "/v1/inspect")
    assert len(sentences) == 30 and last["not_inspected"] == found["error"]
    assert server.json({"text": "1 2"}, "/v1/inspect")[0] == 422  # no sentence
    alone = server.json({"paragraphs": PARAGRAPHS, "context": "none"}, "/v1/inspect")[1]
    own = dict(enumerate([0] * 4 + [1] * 2 + [2] * 4))  # sentence of each token
    for view in alone["inspection"]["views"]:
        seen = {int(k): {e[0] for head in v for e in head} for m in view["sentences"].values() for k, v in m.items()}
        assert seen == {token: {sentence} for token, sentence in own.items()}
    with running(translator_of(plain, prepared)) as other:
        status, found = other.json({"paragraphs": PARAGRAPHS}, "/v1/inspect")
        assert status == 422 and "cannot be inspected" in found["error"]
        assert other.text("a b c\n")[0] == 200
        assert "cannot be inspected" in json.loads(other.get("/v1/model")[1])["not_inspected"]
