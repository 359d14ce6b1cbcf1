"""The pages: links lead somewhere, options that they name exist, generated tables hold all of them, the site builds."""

import argparse
import os
import re
import subprocess
import sys
from dataclasses import fields

import pytest

from tests.support.pages import DOCS, PAGES, ROOT

sys.path.insert(0, str(DOCS / "hooks"))

LINK = re.compile(r"\]\(([^)#\s]+?)(#[^)\s]+)?\)")
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])")
# Options of other programs that pages speak of.
OTHERS = {"data-binary", "retry", "retry-delay", "retry-connrefused"}  # curl's
OTHERS |= {"slow", "no-build-isolation", "no-deps", "strict", "nproc-per-node", "cpu", "config-dir", "config-name"}
OTHERS |= {"nnodes", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "max-restarts"}  # of torchrun
OTHERS |= {"encoder-langtok", "decoder-langtok", "langtoks"}  # of fairseq's task of several languages
OTHERS |= {"clear-fuzzy"}  # of gettext
OTHERS |= {"logdir", "shell", "rm", "build-arg"}  # of TensorBoard, shtab, Docker
OTHERS |= {"pieces", "finished", "suite", "compare"}  # of benchmarks
OTHERS |= {
    "gpus-per-node",
    "ntasks-per-node",
    "time",
    "signal",
    "batch",
    "array",
    "gpus",
    "requeue",
    "nodes",
}  # of Slurm


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files(page):
    broken = [link for link, _ in LINK.findall(page.read_text(encoding="utf-8"))
              if "://" not in link and not (page.parent / link).exists()]  # fmt: skip
    assert broken == []


def slug(heading: str) -> str:
    """The anchor that GitHub and Python-Markdown give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


def headings_of(page):
    """The anchors of a page: its headings', which are not in blocks of code, and those it gives itself."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    own = re.findall(r'<a id="([^"]+)">', text)
    return {*map(slug, re.findall(r"^#+ (.+)$", text, re.M)), *own}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings(page):
    text, broken = page.read_text(encoding="utf-8"), []
    for link, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
        target = page.parent / link if link else page
        made_by_the_site = anchor.startswith("docnmt_fairseq.") or target.name == "options.md"
        if "://" not in link and target.suffix == ".md" and not made_by_the_site and anchor not in headings_of(target):
            broken.append(f"{link}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_rows_of_tables(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for rows in re.findall(r"(?:^\|.*\n)+", text, re.M):
        cells = [len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()]
        assert len(set(cells)) == 1, f"{rows.splitlines()[0]}: rows of {cells} bars"


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 140 and len(text) < 16_000


def flags_of(parser):
    """All long options of a parser and its subparsers."""
    for action in parser._actions:
        yield from (option[2:] for option in action.option_strings if option.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from flags_of(inner)


@pytest.fixture(scope="module")
def flags():
    """Every option of every command."""
    import docnmt_fairseq

    docnmt_fairseq.register()
    from fairseq import options
    from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
    from fairseq.data.encoders.sentencepiece_bpe import SentencepieceConfig
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
    from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY
    from fairseq.optim.lr_scheduler import LR_SCHEDULER_DATACLASS_REGISTRY
    from fairseq.tasks import TASK_DATACLASS_REGISTRY

    from benchmarks.gpu.__main__ import parser_of
    from docnmt_fairseq.cli import build_parser

    found = {*flags_of(build_parser()), *flags_of(parser_of())}
    for make in ("training", "generation", "interactive_generation", "preprocessing", "validation"):
        found |= set(flags_of(getattr(options, f"get_{make}_parser")()))
    registries = (
        CRITERION_DATACLASS_REGISTRY, MODEL_DATACLASS_REGISTRY, OPTIMIZER_DATACLASS_REGISTRY,
        LR_SCHEDULER_DATACLASS_REGISTRY, TASK_DATACLASS_REGISTRY,
    )  # fmt: skip
    for registry in registries:
        for cls in registry.values():
            found |= {known.name.replace("_", "-") for known in fields(cls)}
    parser = argparse.ArgumentParser()
    ARCH_MODEL_REGISTRY["concatenation_transformer"].add_args(parser)
    found |= {known.name.replace("_", "-") for known in fields(SentencepieceConfig)}
    return found | set(flags_of(parser)) | OTHERS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_options_exist(page, flags):
    text = page.read_text(encoding="utf-8").replace("nproc_per_node", "nproc-per-node")
    own = {name.replace("_", "-") for name in re.findall(r"^ +(\w+): \w+ = option\(", text, re.MULTILINE)}
    assert set(FLAG.findall(text)) - flags - own == set()


def test_the_page_of_options_is_complete():
    import docnmt_fairseq

    docnmt_fairseq.register()
    from option_tables import documented, filled

    from docnmt_fairseq.corpus.readers import READERS
    from docnmt_fairseq.criterions.document_label_smoothed_cross_entropy import DocumentLabelSmoothedCrossEntropyConfig
    from docnmt_fairseq.evaluation.metrics import METRICS
    from docnmt_fairseq.models.rnn.config import DocumentRNNConfig
    from docnmt_fairseq.models.transformer.config import DocumentTransformerConfig
    from docnmt_fairseq.optim.fused_adamw import FusedAdamWConfig
    from docnmt_fairseq.tasks.concatenated_translation import ConcatenatedTranslationConfig
    from docnmt_fairseq.tasks.document_translation import DocumentTranslationConfig

    page = filled((DOCS / "options.md").read_text(encoding="utf-8"))
    assert "<!--" not in page
    told = re.findall(r"^\| `--([\w-]+)` \|", page, re.MULTILINE)
    owners = [DocumentTransformerConfig, DocumentRNNConfig, DocumentTranslationConfig, ConcatenatedTranslationConfig]
    wanted = {known.name.replace("_", "-") for owner in owners for known in documented(owner)}
    wanted |= {known.name.replace("_", "-") for name in METRICS.names() for known in documented(METRICS[name].Options)}
    wanted |= {known.name.replace("_", "-") for name in READERS.names() for known in documented(READERS[name].Options)}
    own = {"report-cxmi", "report-top-k", "report-forced-bleu"}  # of a criterion that also has fairseq's
    assert own <= {known.name.replace("_", "-") for known in documented(DocumentLabelSmoothedCrossEntropyConfig)}
    own |= {known.name.replace("_", "-") for known in documented(FusedAdamWConfig)}
    assert len(told) > 90 and set(told) == wanted | own


def test_tables_have_a_pointer_in_the_file():
    from option_tables import DIRECTIVE, filled

    found = [asked for page in PAGES for asked in DIRECTIVE.finditer(page.read_text(encoding="utf-8"))]
    assert len(found) > 30
    for asked in found:
        assert "*(" in asked[0], f"{asked[0]}: nothing is shown in the file"
        assert "*(" not in filled(asked[0])


def test_tags_in_cells_are_text():
    from option_tables import as_cell

    assert as_cell("<p>, <brk> | <note> `<p>`") == "&lt;p>, &lt;brk> \\| &lt;note> `<p>`"


def test_option_tables():
    from option_tables import filled

    table = filled("<!-- options of: docnmt_fairseq.context.base.CONTEXT_MECHANISMS -->").splitlines()
    assert table[0] == "| option | values | default | meaning | of |"
    (top_t,) = (row for row in table if row.startswith("| `--context-top-t` |"))
    assert top_t.split(" | ")[1:3] == ["integer", "`4`"] and top_t.endswith("| `conditional`, `tree` |")
    (selection,) = (row for row in table if row.startswith("| `--context-selection` |"))
    assert "`previous`, `next`, `random`, `random-each-epoch`, `similar`" in selection


@pytest.mark.slow
def test_the_site_builds_strictly_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs")
    # No proxy and no network: whatever would be fetched fails.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    environment |= {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    pages = {path.relative_to(tmp_path / "site"): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")}
    assert len(pages) > 45
    loaded = r"<(?:script|img|iframe)[^>]+src=\"(?:https?:)?//|<link[^>]+rel=\"stylesheet\"[^>]+href=\"(?:https?:)?//"
    assert [str(page) for page, text in pages.items() if re.search(loaded, text)] == []
    options = next(text for page, text in pages.items() if str(page) == "options.html")
    assert "--context-top-t" in options and "<!-- options" not in options
