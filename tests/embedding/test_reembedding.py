import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.embedding.methods import decompose, first_component, fit_context_vector, reembed
from tests.reference import embedding as reference


@st.composite
def corpora(draw, max_words=12, max_width=5):
    """Word vectors [V, d] of any scale and offset, with counts, 0 among them."""
    words, width = draw(st.integers(1, max_words)), draw(st.integers(2, max_width))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    vectors = draw(st.floats(0.1, 10)) * (
        rng.normal(size=(words, width)) + draw(st.floats(0, 2)) * rng.normal(size=width)
    )
    counts = rng.integers(0, 6, words)
    counts[rng.integers(words)] += 1
    return vectors, counts


def occurrences(vectors, counts):
    return [w for w, n in zip(vectors, counts) for _ in range(n)]


@settings(max_examples=30)
@given(corpora())
def test_first_component_of_all_occurrences(corpus):
    vectors, counts = corpus
    words = np.array(occurrences(vectors, counts))
    _, sizes, directions = np.linalg.svd(words)
    found = first_component(vectors, counts)
    assert np.linalg.norm(found) == pytest.approx(sizes[0] / np.sqrt(len(words)), rel=1e-9)  # root mean square
    assert found @ words.mean(0) >= -1e-9
    if len(sizes) > 1 and sizes[1] < 0.99 * sizes[0]:  # otherwise it is not unique
        assert abs(found @ directions[0]) == pytest.approx(np.linalg.norm(found), rel=1e-6)


@settings(max_examples=30)
@given(corpora(), st.integers(1, 5))
def test_algorithm_as_printed(corpus, iterations):
    vectors, counts = corpus
    v_0, energies = fit_context_vector(vectors, counts, iterations)
    start = first_component(vectors.astype(float), counts)
    wanted, printed = reference.alternate(occurrences(vectors, counts), start, len(energies) - 1)
    np.testing.assert_allclose(v_0, wanted, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(energies, printed, rtol=1e-7, atol=1e-9)


@settings(max_examples=30)
@given(corpora())
def test_decomposition_of_words(corpus):
    vectors, counts = corpus
    v_0 = first_component(vectors, counts)
    sensitive, chi = reference.step_1(vectors, v_0)
    _, across, found = decompose(vectors, v_0)
    np.testing.assert_allclose(found, chi, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(across, [w @ w for w in sensitive], rtol=1e-9, atol=1e-9)
    assert ((found >= 0) & (found <= 1)).all()
    wanted = [reference.sentence([w], 0, v_0) for w in vectors]
    np.testing.assert_allclose(reembed(vectors, v_0).numpy(), wanted, rtol=1e-9, atol=1e-9)
    in_float32 = reembed(vectors.astype(np.float32), v_0.astype(np.float32)).numpy()
    np.testing.assert_allclose(in_float32, wanted, rtol=1e-4, atol=1e-4)


@settings(max_examples=30)
@given(corpora())
def test_energy_decreases_in_every_iteration(corpus):
    vectors, counts = corpus
    v_0, energies = fit_context_vector(vectors, counts, 200)
    assert (np.diff(energies) < 0).all()
    last = reference.energy(occurrences(vectors, counts), v_0)
    assert last == pytest.approx(energies[-1], rel=1e-6, abs=1e-9) and last <= energies[0] * (1 + 1e-9) + 1e-9


def test_alternation_stops_before_the_energy_increases():
    rng = np.random.default_rng(110)
    vectors, counts = rng.normal(size=(6, 3)), np.array([40, 20, 10, 8, 5, 4])
    _, printed = reference.alternate(occurrences(vectors, counts), first_component(vectors, counts), 60)
    rises = np.flatnonzero(np.diff(printed) > 1e-6 * printed[0])
    assert len(rises)
    _, energies = fit_context_vector(vectors, counts, 60)
    assert len(energies) == rises[0] + 1 and (np.diff(energies) < 0).all()
    np.testing.assert_allclose(energies, printed[: len(energies)], rtol=1e-7)
