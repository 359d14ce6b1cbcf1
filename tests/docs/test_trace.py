"""The walk of a batch from disk to loss in docs/architecture.md is true: its code runs, its shapes are these."""

import re
import sys
from numbers import Number
from pathlib import Path

import pytest
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from docnmt_fairseq.cli import main
from tests.support.pages import DOCS, blocks, tables, titled

PAGE = DOCS / "architecture.md"
HEADER = ("expression", "shape", "what it is")


def shape(value):
    """As the page writes it: [a, b] of arrays, [n] of lists, a number as it is."""
    if isinstance(value, Number):
        return str(value)
    return str(list(value.shape if hasattr(value, "shape") else (len(value),)))


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """Names that the page's code defines."""
    folder = tmp_path_factory.mktemp("walk")
    for name, text in titled(PAGE).items():
        (folder / name).write_text(text, encoding="utf-8")
    (prepare,) = blocks(PAGE, "bash")
    names = {"folder": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*prepare.text.split()[1:], "--workers", "1"]) == 0
        for block in blocks(PAGE, "python"):
            exec(compile(block.text, str(block), "exec"), names)
    return names


def test_shapes_of_expressions(walk):
    rows = list(tables(PAGE, *HEADER))
    assert len(rows) > 30
    told = {row[0]: row[1] for row in rows}
    assert {text: shape(eval(text.strip("`"), walk)) for text in told} == told


def test_listed_numbers(walk):
    listed = {}
    for text, size, meaning in tables(PAGE, *HEADER):
        numbers = re.search(r": ((?:\*{0,2}\d+\*{0,2} ){1,}\*{0,2}\d+\*{0,2})(?=[;,]|$)", f"{meaning}")
        if numbers and re.fullmatch(r"\[\d+\]", size):
            listed[text] = [int(number) for number in numbers[1].replace("*", "").split()]
    assert len(listed) >= 6
    assert {text: [int(number) for number in eval(text.strip("`"), walk)] for text in listed} == {
        text: numbers for text, numbers in listed.items()
    }


def test_named_files_exist():
    package = DOCS.parent / "docnmt_fairseq"
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 15
    assert [name for name in named if not (package / name).exists() and not (package.parent / name).exists()] == []


def files_on_the_way(walk, *options_):
    """The package's files in which something is called between loading a split and a loss's backward pass."""
    command = ["work/data-bin", "--task", "document_translation", "--sentence-positions", "learned", *options_]
    parser = options.get_training_parser()
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, command))
    package, files = DOCS.parent / "docnmt_fairseq", set()

    def remember(frame, event, _):
        if event == "call":
            files.add(frame.f_code.co_filename)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(walk["folder"])
        task = tasks.setup_task(cfg.task)
        model, criterion = task.build_model(cfg.model).train(), task.build_criterion(cfg.criterion)
        sys.setprofile(remember)
        try:
            task.load_dataset("train")
            dataset = task.dataset("train")
            (batch,) = dataset.batch_by_size(dataset.ordered_indices(), max_tokens=100)
            loss, _, _ = criterion(model, dataset.collater([dataset[number] for number in batch]))
            loss.backward()
        finally:
            sys.setprofile(None)
    found = {Path(file).relative_to(package).as_posix() for file in files if Path(file).is_relative_to(package)}
    return found


def test_files_on_the_way(walk):
    sentence_level = files_on_the_way(walk, "--arch", "document_transformer_tiny")
    of_conditional = ["--arch", "document_transformer_conditional_tiny", "--context-top-t", "2"]
    conditional = files_on_the_way(walk, *of_conditional, "--context-kernel", "torch")
    section = PAGE.read_text(encoding="utf-8").split("## The files on the way")[1].split("\n## ")[0]
    parts = section.split("Conditional attention adds")
    listed = [set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", part)) for part in parts]
    assert (sentence_level, conditional - sentence_level) == (listed[0], listed[1])
