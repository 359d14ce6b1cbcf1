"""What MkDocs does for this site beyond its own: generated tables, and the reports of the benchmarks as pages."""

import logging
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from option_tables import filled

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "benchmarks" / "results"
# Links work where the repository is read as files, too; in the site the reports stand beside the other pages.
TO_REPORTS = re.compile(r"\]\((?:\.\./)+benchmarks/results/")


def on_startup(command: str, dirty: bool) -> None:
    """Keeps quiet what importing fairseq makes talkative."""
    logging.getLogger("MARKDOWN").setLevel(logging.WARNING)
    logging.getLogger("fairseq").setLevel(logging.WARNING)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the reports and their pictures."""
    for path in sorted(REPORTS.iterdir()):
        if path.suffix in (".md", ".png"):
            level = InclusionLevel.NOT_IN_NAV if path.suffix == ".md" else InclusionLevel.UNDEFINED
            files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path), inclusion=level))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fills in tables, and leads links to reports to where they are in the site."""
    up = "../" * page.file.src_uri.count("/")
    return filled(TO_REPORTS.sub(f"]({up}results/", markdown))
