"""Many requests of many clients: all are answered, each with its own translation, and nothing is kept."""

import gc
import logging
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.serving import running, soon, translator_of

# Timers that asyncio removes in batches.
TIMERS = ("TimerHandle", "Context", "ReferenceType", "builtin_function_or_method")


@pytest.mark.slow
def test_requests_under_load(checkpoint, prepared):
    logging.disable(logging.INFO)  # pytest keeps log records
    generator = random.Random(1)
    sizes = [generator.randint(1, 3) if place % 10 else generator.randint(20, 40) for place in range(40)]
    texts = [
        "".join(" ".join(generator.choices("abcde", k=generator.randint(1, 8))) + "\n" for _ in range(size))
        for size in sizes
    ]
    with running(translator_of(checkpoint, prepared), max_waiting=10_000) as server:
        alone = [server.text(text) for text in texts]
        assert {status for status, _ in alone} == {200} and len({answer for _, answer in alone}) > 15
        kept = []
        for clients in (2, 12, 12):
            order = [generator.randrange(len(texts)) for _ in range(80)]
            with ThreadPoolExecutor(clients) as pool:
                answers = list(pool.map(lambda number: server.text(texts[number]), order))
            assert answers == [alone[number] for number in order]
            soon(lambda: not server.service.requests and not server.service.scheduler.jobs)
            del answers
            gc.collect()
            kept.append(sum(type(one).__name__ not in TIMERS for one in gc.get_objects()))
    # Threads of clients keep objects, so rounds of equally many are compared: fewer than one object per request.
    assert kept[2] - kept[1] < 80, f"objects: {kept}"
