import json
import sys
from itertools import pairwise

import pytest
import torch

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, LayerConfig
from docnmt_fairseq.context.conditional.attention import conditional_attention
from docnmt_fairseq.context.conditional.kernels import kernel_for
from docnmt_fairseq.context.conditional.selection import KeptSentences
from tests.support.documents import make_layout


def _run(mechanism="tree", regime="schedule", t=4, seed=1, variant="", **figures):
    figures = figures or {"pronoun": {"1": [1, 2], "3": [2, 2], "100": [0, 4]}}
    budget = {"short": 1200, "long": 5, "narrow_from": 1, "narrow_to": 3}
    known = {"mechanism": mechanism, "variant": variant, "regime": regime, "t": t, "seed": seed}
    return {**known, "budget": budget, "options": "", "bleu": 1.0, "right_of_cases": figures}


def test_every_cell_has_a_name_of_its_own_and_the_first_seed_comes_first():
    from benchmarks.experiments.long_range import cells

    found = list(cells(["conditional", "tree"], [4, 1], [1, 2]))
    assert len(found) == 2 * 2 * (1 + 3 * 2) == len({cell.name for cell in found})
    assert [cell.seed for cell in found] == sorted(cell.seed for cell in found)


def _chain(training):
    """Returns the trainings that lead to one, itself first."""
    found = [training]
    while before := found[-1].begins_as or found[-1].goes_on:
        found.append(before)
    return found


def test_cells_share_what_they_have_in_common():
    from benchmarks.experiments.long_range import Budget, Cell, Variant, training_of

    budget = Budget(short=12, long=8, narrow_from=2, narrow_to=5)
    chains = {
        (regime, t): _chain(training_of(Cell("tree", regime, t, 1), budget, Variant()))
        for regime, t in [("all", 0), ("schedule", 1), ("schedule", 4), ("at once", 4), ("from start", 4)]
    }
    short = chains["all", 0][-1]
    assert [chain[-1] == short for chain in chains.values()] == [True, True, True, True, False]
    assert chains["schedule", 1][1] == chains["schedule", 4][1] and chains["schedule", 4][1].updates == 2
    assert all(chain[0].updates == 8 and chain[-1].updates == 12 for chain in chains.values())
    last = chains["schedule", 4][0].options
    assert last[-6:] == [
        "--context-top-t",
        "4",
        "--context-top-t-anneal-start",
        "2",
        "--context-top-t-anneal-updates",
        "3",
    ]
    assert "--context-top-t-anneal-start" not in chains["at once", 4][0].options
    assert chains["from start", 4][-1].options[-2:] == ["--context-top-t", "4"]


@pytest.mark.parametrize("field, shared", [("selecting", True), ("always", False)])
def test_variants_share_what_their_options_leave_alone(field, shared):
    from benchmarks.experiments.long_range import Budget, Cell, Variant, training_of

    def chain(name, variant):
        return _chain(training_of(Cell("tree", "schedule", 4, 1, name), Budget(12, 8, 2, 5), variant))

    usual, other = chain("", Variant()), chain("other", Variant(**{field: ["--selection-score", "cumulative"]}))
    assert usual[0] != other[0] and "cumulative" in other[0].options
    assert (usual[1:] == other[1:]) == shared and ("cumulative" in other[1].options) != shared


def test_shares_are_sums_over_ranges_of_distances():
    from benchmarks.experiments.long_range_report import BINS, shares

    assert shares(_run(), "pronoun") == [3 / 4, None, None, None, 0.0, 3 / 8]
    assert BINS[0][0] == 1 and all(before[1] + 1 == after[0] for before, after in pairwise(BINS))


def test_a_table_has_a_row_a_model_and_its_seeds_side_by_side():
    from benchmarks.experiments.long_range_report import kind_table

    all_right = {"pronoun": {"2": [2, 2], "50": [1, 2]}}
    runs = [_run(seed=2), _run(regime="all", t=0), _run(seed=1, **all_right), _run(mechanism="conditional")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in kind_table(runs, "pronoun").splitlines()]
    assert [row[0] for row in rows[2:]] == ["conditional, schedule, t = 4", "tree, all", "tree, schedule, t = 4"]
    assert rows[4][1:] == ["100.0 / 75.0", "- / -", "- / -", "50.0 / -", "- / 0.0", "75.0 / 37.5"]


def test_what_was_written_by_hand_stays_in_the_report(tmp_path):
    from benchmarks.experiments.long_range_report import COMMANDS, FINDINGS, write
    from benchmarks.lib.store import Store

    store = Store(tmp_path / "long_range.json")
    store.facts.update(ceilings={"pronoun": 0.33}, machine="a machine")
    store.called("a command")
    store.called("a command")
    cells = {str(distance): [1, 2] for distance in (1, 5, 20, 40, 80)}
    store.add("one", _run(pronoun=cells))
    store.add("all", _run(regime="all", t=0, pronoun=cells))
    write(Store(store.path), tmp_path)
    report = tmp_path / "long_range.md"
    assert "| usual | 1,200 | 5 | 1 to 3 |" in report.read_text() and report.read_text().count("a command") == 1
    text = report.read_text()
    report.write_text(text.replace(FINDINGS, FINDINGS + "\n\nIt learns."))
    write(Store(store.path), tmp_path)
    again = report.read_text()
    assert again == text.replace(FINDINGS, FINDINGS + "\n\nIt learns.") and again.count(COMMANDS) == 1
    assert (tmp_path / "long_range.png").stat().st_size > 10_000


def test_the_diagnosis_is_tabulated():
    from benchmarks.experiments.long_range_report import SHARES, walk_tables

    figures = {**dict.fromkeys(SHARES, 0.25), "words": 7, "spread": [2.0, 0.5], "cut": [0.25, 0.5]}
    texts = walk_tables({"tree": {"t": 4, "documents": 30, "kinds": {"pronoun": figures}}})
    assert "in 30 test documents, t = 4" in texts[0]
    assert "| tree: pronoun | 7 | 25.0 |" in texts[1]
    assert texts[3].splitlines()[2:] == [
        "| tree: pronoun, spread | 2.00 | 0.50 |",
        "| tree: pronoun, cut | 25.0 | 50.0 |",
    ]


@pytest.mark.parametrize("score", ["level", "cumulative"])
def test_the_diagnosis_finds_what_the_product_finds(score):
    from benchmarks.experiments.long_range_diagnosis import measure

    torch.manual_seed(1)
    layout, d_k, t = make_layout([2, 3, 1, 2, 4] * 7, [13, 16, 6]), 16, 2
    tree = CONTEXT_MECHANISMS["tree"]
    options = tree.Options(tree_merge="multi-dim-source2token", selection_score=score)
    attention, x = tree(LayerConfig(2 * d_k, 2, d_k), options), torch.randn(layout.tokens.total, 2 * d_k)
    q, k, q_s = (
        proj(x).unflatten(-1, (2, d_k)) for proj in (attention.q_proj, attention.k_proj, attention.sentence_q_proj)
    )
    kept = KeptSentences(t)
    k_s, choose = attention.sentence_keys(attention.sentence_encoder(x, layout.tokens), q_s, kept, layout)
    chosen, best = choose(kernel_for("auto", q)), kernel_for("auto", q).choose(q_s, k_s, layout, kept)
    place = layout.token_sentence - torch.from_numpy(layout.sentences.offsets)[layout.token_document]
    one_hot = torch.nn.functional.one_hot(place, d_k).float().unsqueeze(1).expand(-1, 2, -1)
    weights = conditional_attention(q, k, one_hot, q_s, k_s, layout, KeptSentences(0))  # of every sentence

    words = {0: 4, 1: 40, 2: 70}  # one of each document, with every sentence in turn for the one that decides
    every = {document: [(word, leaf) for leaf in range(n)] for (document, word), n in zip(words.items(), (13, 16, 6))}
    for (document, word), figures in zip(words.items(), measure(attention, x, layout, every, t)):
        first, end = layout.sentences.offsets[document : document + 2]
        rows = torch.arange(first, end)[:, None, None]
        torch.testing.assert_close(figures["attention"], weights[word, :, : end - first].T)
        assert torch.equal(figures["best first"].bool(), (best[word] == rows).any(-1))
        assert torch.equal(figures[f"walk by {score}"].bool(), (chosen[word] == rows).any(-1))
        assert torch.equal(figures["cut"] < 0, figures["walk by level"].bool())


def test_a_path_is_cut_where_the_walk_leaves_it():
    from benchmarks.experiments.long_range_diagnosis import cut_height

    scores = [[1.0, 2.0, 9.0], [3.0, 0.0], [0.0]]  # a copied node above the third leaf
    heights = [torch.tensor(row).expand(3, 1, -1) for row in scores]
    assert cut_height(heights, 1, torch.arange(3)).flatten().tolist() == [0, -1, 1]
    assert cut_height(heights, 2, torch.arange(3)).flatten().tolist() == [0, -1, -1]


@pytest.mark.slow
def test_small_run_covers_all_regimes_and_is_not_repeated(tmp_path, monkeypatch, capsys, starts_soon):
    from benchmarks.experiments import long_range, long_range_runs

    monkeypatch.setattr(long_range_runs, "SEARCH", [*long_range_runs.SEARCH, "--max-len-b", "8"])
    sizes = "--train-documents 60 4 --test-documents 2 --short-updates 4 --long-updates 4 --narrow-from 1 --narrow-to 3"
    words = f"--mechanisms tree --kept 2 --seeds 1 --work {tmp_path / 'work'} --results {tmp_path} {sizes}"
    monkeypatch.setattr(sys, "argv", ["long_range", *words.split()])
    long_range.main()
    first = capsys.readouterr().out
    runs = json.loads((tmp_path / "long_range.json").read_text())["runs"]
    assert [run["regime"] for run in runs.values()] == ["all", "schedule", "from start", "at once"]
    # Short: all and t = 2; long: all, shared by schedules, schedule, from start, at once.
    assert len(list((tmp_path / "work").glob("*/training.json"))) == 2 + 5
    assert len(list((tmp_path / "work").glob("*/generate.log"))) == 4
    checkpoint = tmp_path / "work" / "tree-s1-schedule-t2" / "checkpoint_last.pt"
    written = checkpoint.stat().st_mtime_ns
    long_range.main()
    second = capsys.readouterr().out
    assert second and first.endswith(second) and checkpoint.stat().st_mtime_ns == written
