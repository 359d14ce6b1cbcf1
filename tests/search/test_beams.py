"""Steps of beam search with given candidates."""

import numpy as np

from docnmt_fairseq.search.beams import Beams, Candidates
from docnmt_fairseq.search.options import SearchOptions

EOS = 2


def started(beam, prefix=(), limit=9, **options):
    """Returns beams with one sentence."""
    beams = Beams(SearchOptions(beam=beam, nbest=beam, **options), beam, EOS)
    beams.extend(1)
    beams.admit(0, limit, np.array(prefix, dtype=np.int64))
    return beams


def step(beams, tokens, parents=None, scores=None):
    """Advances by candidates; returns what has finished."""
    beams.constraints()
    parents = np.arange(len(tokens)) if parents is None else np.array(parents)
    scores = beams.totals[0][parents] - 1 if scores is None else np.array(scores)
    return beams.advance(Candidates(scores[None].astype(np.float32), np.array(tokens)[None], parents[None]))[1]


def tokens_of(finished):
    return [hypothesis["tokens"].tolist() for hypothesis in finished[0]]


def test_sampled_hypotheses_end_once():
    beams = started(2, sampling=True)
    assert step(beams, [EOS, 5]) == {}  # the finished hypothesis is ordered last from now on
    assert step(beams, [6, EOS]) == {}  # candidates of a finished hypothesis are ignored
    assert step(beams, [7, 8]) == {}
    assert step(beams, [9, EOS]) == {}
    assert tokens_of(step(beams, [EOS, 10])) == [[EOS], [5, 6, 7, 9, EOS]]
    assert not beams.busy.any()


def test_hypotheses_of_a_complete_prefix_are_copies_of_the_first():
    beams = started(2, prefix=[5, EOS])
    assert step(beams, [5, 6, 7, 8], [0, 1, 0, 1], [-1, -np.inf, -np.inf, -np.inf]) == {}
    finished = step(beams, [EOS, EOS, 5, 6], [0, 1, 0, 1], [-2, -2, -np.inf, -np.inf])
    assert tokens_of(finished) == [[5, EOS]] * 2
    assert [hypothesis["made_by"].tolist() for hypothesis in finished[0]] == [[0, 0]] * 2


def test_candidates_without_probability_do_not_end():
    beams = started(2, limit=3)
    assert step(beams, [5, EOS, 6, 7], [0, 0, 0, 0], [-1, -np.inf, -np.inf, -np.inf]) == {}
    assert beams.ended == [[]]
