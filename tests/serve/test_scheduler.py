"""Scheduler: jobs take turns; cancelled and failed jobs free their places."""

from types import SimpleNamespace

import numpy as np
import pytest

from docnmt_fairseq.serve.limits import RequestError
from docnmt_fairseq.serve.scheduler import Job, Scheduler
from docnmt_fairseq.translate.encoded_text import EncodedText, Result


class Pieces(SimpleNamespace):
    """Dataset of chunks with given numbers of tokens."""

    def num_tokens(self, number):
        return self.tokens[number]


def job(*tokens, sentences=2, **options):
    text = EncodedText([0], Pieces(tokens=tokens), np.full(len(tokens), sentences), [range(len(tokens))])
    results = []
    made = Job(text, lambda line, hypotheses: results.append(line), results.append)
    made.results = results
    return made


def named(scheduler, **jobs):
    """Returns job and number of each chunk of the next batch."""
    names = {made.text: name for name, made in jobs.items()}
    return [f"{names[chunk.text]}{chunk.number}" for chunk in next(scheduler.batches()) or ()]


def test_jobs_take_turns_chunk_by_chunk():
    scheduler = Scheduler(100, 100, 99)
    long, short, other = job(*[40] * 9), job(10), job(30, 30)
    scheduler.add(long)
    assert named(scheduler, long=long) == ["long0", "long1"]
    scheduler.add(short)
    scheduler.add(other)
    jobs = {"long": long, "short": short, "other": other}
    assert named(scheduler, **jobs) == ["long2", "short0", "other0"]
    assert named(scheduler, **jobs) == ["long3", "other1"]
    assert named(scheduler, **jobs) == ["long4", "long5"]
    assert scheduler.waiting == 6 and scheduler.in_flight == 18


def test_sentences_in_flight_are_bounded():
    scheduler = Scheduler(1000, 100, 4)
    jobs = {"long": job(*[1] * 20), "other": job(*[1] * 20)}
    for one in jobs.values():
        scheduler.add(one)
    assert named(scheduler, **jobs) == ["long0", "other0", "long1", "other1"] and not named(scheduler, **jobs)
    for line in (0, 1):
        scheduler.finish(Result(jobs["long"].text, line, []))
    assert named(scheduler, **jobs) == ["long2"] and not named(scheduler, **jobs)
    many = {str(number): job(1, 1) for number in range(9)}
    for one in many.values():
        scheduler.add(one)
    assert named(scheduler, **many) == ["00", "10", "20", "30"]  # at most 16 sentences in flight
    assert not named(scheduler, **many)
    scheduler.cancel(jobs["other"])
    assert named(scheduler, **many) == ["40", "50"] and scheduler.in_flight == 16


def test_queue_is_bounded_and_cancelled_jobs_free_their_places():
    scheduler = Scheduler(6, 100, 99)
    with pytest.raises(RequestError) as refused:
        scheduler.add(job(1, 1, 1, 1))
    assert refused.value.status == 413
    first, second = job(90, 90), job(1)
    scheduler.add(first)
    assert named(scheduler, first=first) == ["first0"]
    scheduler.add(second)
    with pytest.raises(RequestError) as refused:
        scheduler.add(job(1, 1))
    assert refused.value.status == 429 and refused.value.retry_after >= 1
    scheduler.cancel(first)
    scheduler.cancel(first)
    assert scheduler.waiting == 2 and scheduler.in_flight == 0
    scheduler.add(job(1, 1))
    scheduler.finish(Result(first.text, 0, []))
    assert first.results == []


def test_results_and_errors_are_delivered():
    scheduler = Scheduler(100, 10, 99)
    done, failing, waiting = job(5), job(5, 5), job(5)
    for one in (done, failing):
        scheduler.add(one)
    assert named(scheduler, done=done, failing=failing) == ["done0", "failing0"]
    scheduler.add(waiting)
    for line in (1, 0):
        scheduler.finish(Result(done.text, line, []))
    assert done.results == [1, 0] and done.text not in scheduler.jobs
    error = ValueError("no")
    scheduler.fail(ValueError("of them all"))
    assert named(scheduler, failing=failing) == ["failing0", "failing1"]  # repeated alone
    scheduler.fail(error)
    assert failing.results == [error] and waiting.results == []
    assert named(scheduler, waiting=waiting) == ["waiting0"] and scheduler.waiting == 0
    waiting.deliver = lambda line, hypotheses: 1 / 0
    scheduler.finish(Result(waiting.text, 0, []))
    assert isinstance(waiting.results[0], ZeroDivisionError) and not scheduler.jobs


def test_jobs_of_a_failed_search_are_repeated_one_by_one():
    scheduler = Scheduler(100, 100, 99)
    jobs = {"first": job(5, 5), "second": job(5), "third": job(5)}
    first, second, third = jobs.values()
    for one in (first, second):
        scheduler.add(one)
    assert named(scheduler, **jobs) == ["first0", "second0", "first1"]
    scheduler.add(third)
    for line in (2, 0):
        scheduler.finish(Result(first.text, line, []))
    scheduler.fail(ValueError("of both"))
    assert scheduler.waiting == 8 and not scheduler.in_flight and not first.results[2:] and not second.results
    assert named(scheduler, **jobs) == ["first0", "first1"] and not named(scheduler, **jobs)
    for line in range(4):
        scheduler.finish(Result(first.text, line, []))
    assert first.results == [2, 0, 1, 3] and first.text not in scheduler.jobs  # no sentence twice
    assert named(scheduler, **jobs) == ["second0"]
    scheduler.fail(ValueError("of the second"))
    assert len(second.results) == 1 and named(scheduler, **jobs) == ["third0"]


def test_waiting_ends_with_work_or_close():
    scheduler = Scheduler(100, 10, 99)
    done, failed = scheduler.call(lambda: 1), scheduler.call(lambda: 1 / 0)
    assert scheduler.wait() and next(scheduler.batches()) is None
    assert done.result(0) == 1 and isinstance(failed.exception(0), ZeroDivisionError)
    scheduler.close()
    assert not scheduler.wait() and list(scheduler.batches()) == []
