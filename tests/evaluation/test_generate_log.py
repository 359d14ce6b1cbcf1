import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.generate_log import parse_generate_log, restore_document_order

NOISE = "2024-01-01 00:00:00 | INFO | fairseq_cli.generate | loading H-3 model"
words = st.lists(st.sampled_from(["ba", "do", "gi", "S-1", "\u2028", "<unk>"]), min_size=0, max_size=4).map(" ".join)
text = st.lists(st.one_of(st.just(None), st.just("<p>"), words), min_size=1, max_size=12).filter(
    lambda lines: any(line and line.strip() and line != "<p>" for line in lines)
)


def block(identity, source, hypothesis, nbest=1):
    lines = [f"S-{identity}\t{source}", f"T-{identity}\treference"]
    for rank in range(nbest):
        shown = hypothesis if rank == 0 else f"worse {rank}"
        lines += [
            f"H-{identity}\t-0.{rank}1\t{shown}",
            f"D-{identity}\t-0.{rank}1\t{shown}",
            f"P-{identity}\t-0.1 -0.2",
        ]
    return lines


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@settings(max_examples=60, deadline=None)
@given(lines=text, nbest=st.integers(1, 3), seed=st.integers(0, 999), marks_too=st.booleans())
def test_any_order_is_restored(tmp_path_factory, lines, nbest, seed, marks_too):
    folder = tmp_path_factory.mktemp("log")
    lines = ["" if line is None or not line.strip() else line for line in lines]
    expected = [line if line in ("", "<p>") else f"{line.strip()} translated" for line in lines]
    blocks = [
        block(i, line, f"{line.strip()} translated", nbest)
        for i, line in enumerate(lines)
        if marks_too or line not in ("", "<p>")
    ]
    random.Random(seed).shuffle(blocks)
    log = write(
        folder / "log", [NOISE, *(line for part in blocks for line in [*part, NOISE]), "Generate test: BLEU4 = 1"]
    )
    assert restore_document_order(log, write(folder / "source", lines)) == expected


def test_plain_form_where_there_is_no_detokenised_and_empty_hypotheses(tmp_path):
    log = write(tmp_path / "log", ["S-1\ta", "H-1\t-inf\t", "S-0\tb", "H-0\t-1.5e-3\tx y"])
    assert parse_generate_log(log) == {0: "x y", 1: ""}
    log = write(tmp_path / "log", ["H-1\t-0.1\tone", "D-1\t-0.1\tOne.", "H-0\t-0.1\tzero"])
    assert parse_generate_log(log) == {0: "zero", 1: "One."}


def test_repeated_ids_are_named(tmp_path):
    lines = [line for i in [*range(8), *range(7)] for line in block(i, "a", "b")]
    message = "more than once: 0, 1, 2, 3, 4 and 2 more"
    with pytest.raises(InputError, match=message):
        parse_generate_log(write(tmp_path / "log", lines))
    with pytest.raises(InputError, match=message):
        parse_generate_log(write(tmp_path / "log", [line for line in lines if line.startswith("H")]))


def test_missing_ids_are_named(tmp_path):
    source = write(tmp_path / "source", ["a", "b", "<p>", "c", "", "d"])
    log = write(tmp_path / "log", block(1, "b", "x") + block(5, "d", "x"))
    with pytest.raises(InputError, match="without a hypothesis: 0, 3;"):
        restore_document_order(log, source)
    log = write(tmp_path / "log", [*block(1, "b", "x"), "S-5\td"])
    with pytest.raises(InputError, match="without a hypothesis: 5;"):
        restore_document_order(log, source)


def test_other_text_damage_and_empty_logs_are_refused(tmp_path):
    source = write(tmp_path / "source", ["a"])
    with pytest.raises(InputError, match=r"beyond the 1 lines of .*: 1;"):
        restore_document_order(write(tmp_path / "log", block(0, "a", "x") + block(1, "b", "x")), source)
    with pytest.raises(InputError, match="log:2: expected H-0<tab>score<tab>text"):
        parse_generate_log(write(tmp_path / "log", ["S-0\ta", "H-0\tx y"]))
    with pytest.raises(InputError, match="holds no line H-<id>"):
        parse_generate_log(write(tmp_path / "log", [NOISE]))
    with pytest.raises(InputError, match="cannot be read"):
        parse_generate_log(tmp_path / "none")
    (tmp_path / "log").write_bytes(b"H-0\t-1\t\xff\n")
    with pytest.raises(InputError, match="UTF-8"):
        parse_generate_log(tmp_path / "log")
