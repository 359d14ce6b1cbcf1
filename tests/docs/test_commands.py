"""The shell commands of README and documentation run as they are printed, at smoke size; or a comment says why not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.imported import Imported
from tests.support.pages import PAGES, ROOT, blocks, titled
from tests.support.shell import Shell

NOT_RUN = re.compile(r"not run: .{10,}")
EXTENDING = ROOT / "docs" / "extending.md"  # adds files to the package
RUN = [page for page in PAGES if any(not (block.mark or "").startswith("not run") for block in blocks(page, "bash"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_commands_is_run_or_says_why_not(page):
    for block in blocks(page, "bash"):
        assert block.mark is None or NOT_RUN.fullmatch(block.mark), f"{block}: {block.mark}"
    assert not list(blocks(page, "sh", "shell", "console", "")), f"{page}: blocks without a known language"


@pytest.fixture(scope="module")
def shared(tmp_path_factory, imported):
    """bash with the package of the repository."""
    return Shell(tmp_path_factory.mktemp("commands"), imported)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory) -> Path:
    """The corpora of a reader of the documentation: my/, ape/, talk.en, books/."""
    folder = tmp_path_factory.mktemp("corpora")
    for name in ("my", "ape", "books"):
        (folder / name).mkdir()
    words = ["amber", "basin", "cabin", "dozen", "ember", "fjord", "grove", "hotel"]
    words += ["ivory", "jelly", "kayak", "lemon", "mango", "nylon", "opera", "pizza"]
    sides = {"en": ("{} is here .", "it is {} ."), "de": ("{} ist hier .", "es ist {} .")}
    for split, first, documents in (("train", 0, 16), ("valid", 3, 2), ("test", 5, 2)):
        for side, (here, it) in sides.items():
            lines = []
            for word in words[first : first + documents]:
                lines += [here.format(word), "<p>", it.format(word), here.format("yes"), ""]
            (folder / f"my/{split}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for split in ("train", "dev", "test"):
        for suffix, text in (("src", "this is {} ."), ("mt", "das sein {} ."), ("pe", "das ist {} .")):
            (folder / f"ape/{split}.{suffix}").write_text("".join(f"{text.format(word)}\n" for word in words))
    for name in ("talk.en", "books/one.en", "books/two.en"):
        shutil.copy(folder / "my/test.en", folder / name)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_run(page, corpora, shared, tmp_path):
    folder = tmp_path / "work"
    shutil.copytree(corpora, folder)
    copied = page == EXTENDING
    for name in ("docnmt_fairseq", "configs", "scripts", "tests", "benchmarks"):
        if name == "docnmt_fairseq" and copied:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        elif (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    for name, text in titled(page).items():
        (folder / name).write_text(text, encoding="utf-8")
    own = Imported(tmp_path, folder) if copied else None
    shell = Shell(tmp_path, own) if own else shared
    try:
        for block in blocks(page, "bash"):
            if block.mark is None:
                done = shell.run(block.text, folder)
                assert done.returncode == 0, f"{block}\n{block.text}\n{done.stdout[-3000:]}"
        if copied:  # what the page adds keeps the contracts that all of its kind are held to
            contracts = "tests/context/test_contract.py tests/report/test_views.py"
            contracts += " tests/evaluation/test_metrics.py"
            chosen = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "fading or length-ratio"]
            command = [sys.executable, *chosen, *contracts.split()]
            environment = {**os.environ, "PYTHONPATH": str(folder)}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-3000:]
            assert re.search(r"\b\d\d passed", done.stdout)
    finally:
        if own:
            own.close()
