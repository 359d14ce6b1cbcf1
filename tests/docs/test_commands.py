"""The shell commands of README and documentation run as they are printed, at smoke size; or a comment says why not."""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.pages import PAGES, ROOT, blocks, titled
from tests.support.shell import Shell

NOT_RUN = re.compile(r"not run: .{10,}")
COPIED = ROOT / "docs" / "extending.md"  # adds files to the package
RUN = [page for page in PAGES if any(not (block.mark or "").startswith("not run") for block in blocks(page, "bash"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_commands_is_run_or_says_why_not(page):
    for block in blocks(page, "bash"):
        assert block.mark is None or NOT_RUN.fullmatch(block.mark), f"{block}: {block.mark}"
    assert not list(blocks(page, "sh", "shell", "console", "")), f"{page}: blocks without a known language"


@pytest.fixture
def shell(page, corpora, tmp_path):
    """bash in a folder with the package, the corpora that pages speak of, and the files that this page shows."""
    shutil.copytree(corpora, tmp_path, dirs_exist_ok=True)
    if page == COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / "docnmt_fairseq", tmp_path / "docnmt_fairseq", ignore=ignored)
    else:
        (tmp_path / "docnmt_fairseq").symlink_to(ROOT / "docnmt_fairseq")
    for folder in ("configs", "scripts"):
        if (ROOT / folder).exists():
            (tmp_path / folder).symlink_to(ROOT / folder)
    for name, text in titled(page).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    shell = Shell(tmp_path)
    yield shell
    shell.close()


@pytest.fixture(scope="session")
def corpora(tmp_path_factory) -> Path:
    """The corpora of a reader of the documentation: my/, ape/, talk.en, books/."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "my").mkdir()
    (folder / "ape").mkdir()
    (folder / "books").mkdir()
    sides = {"en": ("{} is here .", "it is {} ."), "de": ("{} ist hier .", "es ist {} .")}
    for split, first, documents in (("train", 0, 12), ("valid", 3, 2), ("test", 5, 2)):
        for side, sentences in sides.items():
            lines = []
            for number in range(first, first + documents):
                word = "abcdefghijklmnopqrst"[number % 20] * 3
                lines += [sentences[0].format(word), "<p>", sentences[1].format(word), sentences[0].format("yes"), ""]
            (folder / f"my/{split}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for split in ("train", "dev", "test"):
        for suffix, text in (("src", "this is {} ."), ("mt", "das sein {} ."), ("pe", "das ist {} .")):
            lines = [text.format("abcdefghij"[number] * 2) for number in range(10)]
            (folder / f"ape/{split}.{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in ("talk.en", "books/one.en", "books/two.en"):
        shutil.copy(folder / "my/test.en", folder / name)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run_one_after_another(page, shell):
    for block in blocks(page, "bash"):
        if block.mark is None:
            done = shell.run(block.text)
            assert done.returncode == 0, f"{block}\n{block.text}\n{done.stdout[-3000:]}"
