"""Which hypotheses go on, which have ended: steps by hand, of candidates as a search gives them."""

import numpy as np
import pytest

from docnmt_fairseq.search.beams import Beams, Candidates
from docnmt_fairseq.search.options import SearchOptions

EOS = 2


def begun(beam, prefix=(), limit=9, **options):
    """One sentence in one slot."""
    beams = Beams(SearchOptions(beam=beam, nbest=beam, **options), beam, EOS)
    beams.extend(1)
    beams.admit(0, limit, np.array(prefix, dtype=np.int64))
    return beams


def step(beams, tokens, parents=None, scores=None):
    """Goes on with candidates of the only sentence; returns what has finished."""
    beams.constraints()
    parents = np.arange(len(tokens)) if parents is None else np.array(parents)
    scores = beams.totals[0][parents] - 1 if scores is None else np.array(scores)
    return beams.advance(Candidates(scores[None].astype(np.float32), np.array(tokens)[None], parents[None]))[1]


def tokens_of(finished):
    return [hypothesis["tokens"].tolist() for hypothesis in finished[0]]


def test_a_drawn_translation_that_has_ended_neither_ends_again_nor_goes_on():
    beams = begun(2, sampling=True)
    assert step(beams, [EOS, 5]) == {}  # what has ended stands behind the other from now on
    assert step(beams, [6, EOS]) == {}  # what is drawn behind an end means nothing
    assert step(beams, [7, 8]) == {}
    assert step(beams, [9, EOS]) == {}
    assert tokens_of(step(beams, [EOS, 10])) == [[EOS], [5, 6, 7, 9, EOS]]
    assert not beams.busy.any()


def test_the_hypotheses_of_a_complete_prefix_are_made_by_the_first():
    """The others are of no probability, and were read as other tokens."""
    beams = begun(2, prefix=[5, EOS])
    assert step(beams, [5, 6, 7, 8], [0, 1, 0, 1], [-1, -np.inf, -np.inf, -np.inf]) == {}
    finished = step(beams, [EOS, EOS, 5, 6], [0, 1, 0, 1], [-2, -2, -np.inf, -np.inf])
    assert tokens_of(finished) == [[5, EOS]] * 2
    assert [hypothesis["made_by"].tolist() for hypothesis in finished[0]] == [[0, 0]] * 2


def test_candidates_behind_the_first_do_not_end_a_sentence():
    """As fairseq's search: of twice as many candidates the first half alone."""
    beams = begun(2)
    assert step(beams, [5, 6, EOS, 7], [0, 0, 0, 0], [-1, -2, -3, -4]) == {}
    assert beams.tokens[0, :, 1].tolist() == [5, 6] and beams.ended == [[]]
    assert step(beams, [EOS, 8, 9, EOS], [0, 1, 0, 1], [-2, -3, -4, -5]) == {}
    assert beams.tokens[0, :, :3].tolist() == [[EOS, 6, 8], [EOS, 5, 9]]
    assert tokens_of(step(beams, [EOS, 7, 8, 9], [1, 0, 0, 1], [-4.5, -5, -6, -7])) == [[5, EOS], [5, 9, EOS]]


def test_what_has_no_probability_does_not_end():
    beams = begun(2, limit=3)
    assert step(beams, [5, EOS, 6, 7], [0, 0, 0, 0], [-1, -np.inf, -np.inf, -np.inf]) == {}
    assert beams.ended == [[]]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("unnormalized", "scores"), [(False, [-1.0, -1.5]), (True, [-2.0, -3.0])])
def test_the_best_comes_first(unnormalized, scores):
    beams = begun(2, unnormalized=unnormalized)
    step(beams, [5, 6, 7, 8], [0, 0, 0, 0], [-1, -1, -9, -9])
    finished = step(beams, [EOS, EOS, 5, 6], [1, 0, 0, 1], [-2, -3, -4, -5])
    assert [float(hypothesis["score"]) for hypothesis in finished[0]] == scores
    assert tokens_of(finished) == [[6, EOS], [5, EOS]]
    assert finished[0][1]["positional_scores"].tolist() == [-1.0, -2.0]
