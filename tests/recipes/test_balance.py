"""Documents of the rarer register come again, whole and unchanged, until both registers mark as many lines."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.register_rules import RULES
from docnmt_fairseq.recipes.balance import balanced, marked_lines, repetitions
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from tests.support.recipes import raw, recipe

DU, SIE, NEITHER = "Hast du dein Buch?", "Haben Sie Ihr Buch?", "Das Buch ist da."


def document(name, *lines):
    return Document([[(f"{name} {number}", line) for number, line in enumerate(lines)]])


def test_lines_are_counted_where_they_surely_show_a_register():
    several = Document([[("a", DU), ("b", NEITHER)], [("c", SIE), ("d", DU), ("e", "Sie geht.")]])
    assert marked_lines(several, RULES["de"]()) == Counter({"du": 2, "Sie": 1})


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40), st.integers(1, 9))
def test_both_registers_mark_as_many_lines_up_to_one_document(pairs, seed):
    marked = [Counter({"du": du, "Sie": sie}) for du, sie in pairs]
    mostly = {name: [d for d, one in enumerate(marked) if one[name] > one[other]] for name, other in
              (("du", "Sie"), ("Sie", "du"))}  # fmt: skip
    lines = {name: sum(marked[d][name] for d in found) for name, found in mostly.items()}
    if not all(lines.values()):
        with pytest.raises(InputError, match="no two registers"):
            repetitions(marked, seed)
        return
    times = repetitions(marked, seed)
    common, rare = sorted(lines, key=lambda name: (-lines[name], name))
    reached = sum(times[d] * marked[d][rare] for d in mostly[rare])
    assert lines[common] <= reached < lines[common] + max(marked[d][rare] for d in mostly[rare])
    copies = {times[d] for d in mostly[rare]}
    assert max(copies) - min(copies) <= 1  # none much oftener than another
    assert all(times[d] == 1 for d in range(len(times)) if d not in mostly[rare])


def test_copies_follow_the_originals():
    corpus = [document("a", DU), document("b", SIE, SIE, NEITHER, SIE), document("c", NEITHER), document("d", DU, SIE)]
    read = balanced(lambda: iter(corpus), "de")
    assert list(read()) == [*corpus, corpus[0], corpus[0]] == list(read())


def test_a_training_set_is_prepared_anew_where_it_is_to_be_balanced(tmp_path):
    dataset = replace(read_dataset_config(named_recipes()["en_de_small"]), prepare={"subwords": "none"})
    files = raw(dataset, tmp_path / "raw")
    for side, lines in (("en", ["a", "b", "c"]), ("de", [DU, SIE, SIE])):
        (files / f"train.{side}").write_text("".join(f"{line}\n\n" for line in lines), encoding="utf-8")
    dataset.splits["valid"] = replace(dataset.splits["valid"], documents=[0, 1])  # so that splits are written anyway
    found = []
    for language in (None, "de", None):
        dataset.splits["train"] = replace(dataset.splits["train"], balance_register=language)
        recipe(dataset, tmp_path / "out", smoke=False, raw=files, until="prepare").run()
        counts = json.loads((tmp_path / "out" / "data" / "manifest.json").read_text())["counts"]
        found.append(counts["train"]["documents"])
    assert found == [3, 4, 3]
