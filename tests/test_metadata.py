"""What is said about the project in several places is the same."""

import re
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import docnmt_fairseq

ROOT = Path(__file__).parents[1]


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == docnmt_fairseq.__version__
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def test_type_checkers_read_the_types_of_the_package():
    """Without the marker (PEP 561) they take what an extension derives from for anything."""
    assert (ROOT / "docnmt_fairseq" / "py.typed").is_file()  # and so in the wheel, see test_distributions


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs tomllib")
def test_every_requirement_has_a_tested_version_that_meets_it():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    # comet needs older versions of what the constraints pin; fairseq 0.12.2 is for Python 3.10
    untested = {"unbabel-comet", "fairseq", project["name"]}
    pinned = dict(
        re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    )
    pinned = {name.lower(): version for name, version in pinned.items()}
    for text in [*project["dependencies"], *(text for extra in extras.values() for text in extra)]:
        requirement = Requirement(text)
        name = requirement.name.lower()
        if name not in untested:
            assert name in pinned, f"constraints.txt lacks {name}"
            assert requirement.specifier.contains(pinned[name]), f"constraints.txt: {name}=={pinned[name]}, not {text}"


def test_hooks_run_what_the_tests_run():
    """The tools of .pre-commit-config.yaml are those of scripts/test.sh."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    script = (ROOT / "scripts" / "test.sh").read_text(encoding="utf-8")
    for hook in hooks:
        assert hook["entry"].replace(" --force-exclude", "") in script
