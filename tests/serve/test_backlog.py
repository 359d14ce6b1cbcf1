"""Jobs take turns; what is dropped or failed frees its place."""

from types import SimpleNamespace

import numpy as np
import pytest

from docnmt_fairseq.serve.backlog import Backlog, Job
from docnmt_fairseq.serve.limits import Refusal
from docnmt_fairseq.serve.worker import Worker
from docnmt_fairseq.translate.encoded_text import EncodedText, Result
from tests.support.serving import soon


class Pieces(SimpleNamespace):
    """A dataset of chunks of so many tokens."""

    def num_tokens(self, number):
        return self.tokens[number]


def job(*tokens, sentences=2, **options):
    text = EncodedText([0], Pieces(tokens=tokens), np.full(len(tokens), sentences), [range(len(tokens))])
    told = []
    made = Job(text, lambda line, hypotheses: told.append(line), told.append)
    made.told = told
    return made


def named(backlog, **jobs):
    """The next batch: of which job each chunk is, and its number."""
    names = {made.text: name for name, made in jobs.items()}
    return [f"{names[chunk.text]}{chunk.number}" for chunk in next(backlog.batches()) or ()]


def test_jobs_take_turns_piece_by_piece():
    backlog = Backlog(100, 100, 99)
    long, short, other = job(*[40] * 9), job(10), job(30, 30)
    backlog.add(long)
    assert named(backlog, long=long) == ["long0", "long1"]
    backlog.add(short)
    backlog.add(other)
    jobs = {"long": long, "short": short, "other": other}
    assert named(backlog, **jobs) == ["long2", "short0", "other0"]
    assert named(backlog, **jobs) == ["long3", "other1"]  # of 110 tokens with the next one
    assert named(backlog, **jobs) == ["long4", "long5"]
    assert backlog.waiting == 6 and backlog.under_way == 18


def test_a_job_has_but_few_sentences_with_the_translator():
    backlog = Backlog(1000, 100, 4)
    jobs = {"long": job(*[1] * 20), "other": job(*[1] * 20)}
    for one in jobs.values():
        backlog.add(one)
    assert named(backlog, **jobs) == ["long0", "other0", "long1", "other1"] and not named(backlog, **jobs)
    for line in (0, 1):
        backlog.finished(Result(jobs["long"].text, line, []))
    assert named(backlog, **jobs) == ["long2"] and not named(backlog, **jobs)
    many = {str(number): job(1, 1) for number in range(9)}
    for one in many.values():
        backlog.add(one)
    assert named(backlog, **many) == ["00", "10", "20", "30"]  # 16 sentences are there, which is enough
    assert not named(backlog, **many)
    backlog.drop(jobs["other"])
    assert named(backlog, **many) == ["40", "50"] and backlog.under_way == 16


def test_a_piece_of_more_tokens_is_a_batch_by_itself():
    backlog = Backlog(100, 50, 99)
    long, short = job(200, 200), job(1)
    backlog.add(long)
    backlog.add(short)
    found = [named(backlog, long=long, short=short) for _ in range(3)]
    assert found == [["long0"], ["short0"], ["long1"]] and next(backlog.batches()) is None


def test_a_bounded_queue_and_what_is_dropped():
    backlog = Backlog(6, 100, 99)
    with pytest.raises(Refusal, match="8 sentences, but at most 6") as refused:
        backlog.add(job(1, 1, 1, 1))
    assert refused.value.status == 413
    first, second = job(90, 90), job(1)
    backlog.add(first)
    assert named(backlog, first=first) == ["first0"]
    backlog.add(second)
    with pytest.raises(Refusal, match="4 sentences wait already") as refused:
        backlog.add(job(1, 1))
    assert refused.value.status == 429 and refused.value.retry_after >= 1
    backlog.drop(first)
    backlog.drop(first)
    assert backlog.waiting == 2 and backlog.under_way == 0
    backlog.add(job(1, 1))
    backlog.finished(Result(first.text, 0, []))  # for nobody
    assert first.told == []


def test_what_is_finished_is_delivered_and_what_fails_is_told():
    backlog = Backlog(100, 10, 99)
    done, failing, waiting = job(5), job(5, 5), job(5)
    for one in (done, failing):
        backlog.add(one)
    assert named(backlog, done=done, failing=failing) == ["done0", "failing0"]
    backlog.add(waiting)
    for line in (1, 0):
        backlog.finished(Result(done.text, line, []))
    assert done.told == [1, 0] and done.text not in backlog.jobs
    error = ValueError("no")
    backlog.fail(ValueError("of them all"))
    assert named(backlog, failing=failing) == ["failing0", "failing1"]  # once more, alone
    backlog.fail(error)
    assert failing.told == [error] and waiting.told == []
    assert named(backlog, waiting=waiting) == ["waiting0"] and backlog.waiting == 0
    waiting.deliver = lambda line, hypotheses: 1 / 0
    backlog.finished(Result(waiting.text, 0, []))
    assert isinstance(waiting.told[0], ZeroDivisionError) and not backlog.jobs


def test_what_the_translator_had_when_it_failed_is_tried_again_one_after_another():
    backlog = Backlog(100, 100, 99)
    jobs = {"first": job(5, 5), "second": job(5), "third": job(5)}
    first, second, third = jobs.values()
    for one in (first, second):
        backlog.add(one)
    assert named(backlog, **jobs) == ["first0", "second0", "first1"]
    backlog.add(third)
    for line in (2, 0):
        backlog.finished(Result(first.text, line, []))
    backlog.fail(ValueError("of both"))
    assert backlog.waiting == 8 and not backlog.under_way and not first.told[2:] and not second.told
    assert named(backlog, **jobs) == ["first0", "first1"] and not named(backlog, **jobs)
    for line in range(4):
        backlog.finished(Result(first.text, line, []))
    assert first.told == [2, 0, 1, 3] and first.text not in backlog.jobs  # no sentence twice
    assert named(backlog, **jobs) == ["second0"]
    backlog.fail(ValueError("of the second"))
    assert len(second.told) == 1 and named(backlog, **jobs) == ["third0"]


def test_what_was_finished_before_a_failure_is_not_translated_for_nobody():
    backlog = Backlog(100, 9, 99)
    jobs = {"first": job(5, 5), "second": job(5)}
    first, second = jobs.values()
    backlog.add(first)
    assert [named(backlog, **jobs) for _ in range(2)] == [["first0"], ["first1"]]
    for line in (2, 3):
        backlog.finished(Result(first.text, line, []))
    backlog.fail(ValueError("no"))
    assert named(backlog, **jobs) == ["first0"] and backlog.waiting == 2
    for line in (0, 1):
        backlog.finished(Result(first.text, line, []))
    assert first.told == [2, 3, 0, 1] and not backlog.jobs and backlog.waiting == 0
    backlog.add(second)
    assert named(backlog, **jobs) == ["second0"]  # and no chunk of a text that is finished
    for line in (0, 1):
        backlog.finished(Result(second.text, line, []))
    assert backlog.waiting == backlog.under_way == backlog.for_nobody == 0


def test_a_text_is_alone_only_where_nothing_is_left_of_one_that_was_given_up():
    backlog = Backlog(100, 100, 99)
    jobs = {"first": job(5), "second": job(5)}
    first, second = jobs.values()
    for one in (first, second):
        backlog.add(one)
    assert named(backlog, **jobs) == ["first0", "second0"]
    backlog.fail(ValueError("of both"))
    assert named(backlog, **jobs) == ["first0"]
    backlog.drop(first)
    assert not named(backlog, **jobs)
    for line in range(2):
        backlog.finished(Result(first.text, line, []))
    assert named(backlog, **jobs) == ["second0"]


def test_one_text_that_the_translator_fails_at_fails_alone():
    backlog = Backlog(100, 100, 99)
    jobs = [job(5) for _ in range(4)]
    bad = jobs[1].text

    class Failing:
        def stream(self, batches, live):
            for chunks in batches:
                if not chunks:
                    return
                assert all(chunk.text is not bad for chunk in chunks), "bad"
                yield from (Result(chunk.text, line, []) for chunk in chunks for line in range(2))

    for one in jobs:
        backlog.add(one)
    worker = Worker(Failing(), backlog)
    worker.start()
    soon(lambda: not backlog.jobs)
    worker.stop()
    assert [one.told for one in (jobs[0], *jobs[2:])] == [[0, 1]] * 3
    assert len(jobs[1].told) == 1 and isinstance(jobs[1].told[0], AssertionError)
    assert backlog.waiting == backlog.under_way == backlog.for_nobody == 0


def test_it_waits_until_there_is_something_or_nothing_any_more():
    backlog = Backlog(100, 10, 99)
    called = []
    backlog.call(lambda: called.append(1))
    assert backlog.wait() and next(backlog.batches()) is None and called == [1]
    backlog.close()
    assert not backlog.wait() and list(backlog.batches()) == []
