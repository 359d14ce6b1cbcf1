"""Hundreds of requests by many clients: none is lost, none gets another one's text."""

import gc
import logging
import random
import sys

import pytest

from benchmarks.speed import serving
from tests.support.serving import running, soon, translator_of

# asyncio drops timers that are not needed any more, one a request, by the hundred.
OF_TIMERS = ("TimerHandle", "Context", "ReferenceType", "builtin_function_or_method")


@pytest.mark.slow
def test_no_request_is_lost_and_none_gets_another_ones_text(checkpoint, prepared, tmp_path, monkeypatch):
    chance = random.Random(1)
    lines = [" ".join(chance.choice("abcde") for _ in range(chance.randrange(1, 9))) for _ in range(800)]
    (tmp_path / "text").write_text("\n".join(lines[place] + "\n" * (place % 7 == 0) for place in range(800)))
    sizes = ["--requests", "400", "--each", "60", "--clients", "1", "12", "--documents", "80", "--beam", "3"]
    paths = ["--path", str(checkpoint), "--data", str(prepared), "--text", str(tmp_path / "text")]
    monkeypatch.setattr(sys, "argv", ["serving", *paths, *sizes])
    args = serving.options()
    assert max(map(len, serving.documents_of(args))) > 20
    found = serving.measure(args)
    parts = [*found["loads"], *found["long"]]
    assert sum(part["requests"] for part in parts) == 520
    assert [(part["lost"], part["other"]) for part in parts] == [(0, 0)] * len(parts)
    # What libraries keep for shapes of products grows until their caches are full; much less than this.
    assert found["long"][-1]["memory"] - found["long"][0]["memory"] < 64 * serving.MEBI
    assert found["documents"] == 80 and found["distinct"] > 20
    assert "520 requests under load: 0 lost, 0 answered with another document's" in serving.report(args, found)


@pytest.mark.slow
def test_nothing_is_kept_of_requests(checkpoint, prepared):
    logging.disable(logging.INFO)  # pytest keeps what is logged, and fairseq logs four lines a batch
    chance = random.Random(1)
    sizes = [chance.randint(1, 3) if place % 10 else chance.randint(20, 40) for place in range(60)]
    words = [[" ".join(chance.choices("abcde", k=chance.randint(1, 8))) for _ in range(size)] for size in sizes]
    with running(translator_of(checkpoint, prepared), max_waiting=10_000) as server:
        clients = serving.Clients(server.port, words)
        clients.alone()
        kept = []
        for _ in range(3):
            outcome = clients.together(6, [chance.randrange(len(words)) for _ in range(60)])
            assert (outcome.lost, outcome.other) == (0, 0)
            soon(lambda: not server.service.requests and not server.service.backlog.jobs)
            gc.collect()
            kept.append(sum(type(one).__name__ not in OF_TIMERS for one in gc.get_objects()))
    assert kept[2] - kept[0] < 120, f"objects: {kept}"  # one for each request since would be as many


def test_what_is_lost_or_anothers_is_seen(server):
    documents = [["a b c"], ["d", "e e a"]]
    clients = serving.Clients(server.port, documents)
    clients.alone()
    assert clients.expected == [server.text("a b c\n")[1], server.text("d\ne e a\n")[1]]
    clients.expected = clients.expected[::-1]
    outcome = clients.together(2, [0, 1, 0, 1])
    assert (outcome.lost, outcome.other, outcome.anothers) == (0, 4, 4) and len(outcome.seconds) == 4
    clients.documents = [["a b c", "<bad"], ["a" * 5000]]
    clients.expected = ["x\ny\n", "z\n"]
    outcome = clients.together(1, [0, 1])
    assert (outcome.lost, outcome.other, outcome.anothers) == (1, 1, 0)
