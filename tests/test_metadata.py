"""Metadata, lock file, hooks and citation agree with each other."""

import importlib.metadata
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import docnmt_fairseq

ROOT = Path(__file__).parents[1]


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == docnmt_fairseq.__version__
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def test_type_checkers_read_the_types_of_the_package():
    """Without the marker (PEP 561) they take what an extension derives from for anything."""
    assert (ROOT / "docnmt_fairseq" / "py.typed").is_file()  # and so in the wheel, see test_distributions
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "Typing :: Typed" in project["project"]["classifiers"]
    assert project["tool"]["setuptools"]["package-dir"] == {"": "."}  # else an editable install is an import hook


def locked():
    """Returns the requirements of the lock file that apply to this Python and platform, by normalised name."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(one.name): one for one in found if one.marker is None or one.marker.evaluate()}


def test_lock_satisfies_every_requirement():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    development = {extra for text in project["optional-dependencies"]["dev"] for extra in Requirement(text).extras}
    extras = [project["optional-dependencies"][extra] for extra in ("dev", *development)]
    pinned = locked()
    for text in [*project["dependencies"], *(text for extra in extras for text in extra)]:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name != canonicalize_name(project["name"]) and (requirement.marker is None or requirement.marker.evaluate()):
            (pin,) = pinned[name].specifier
            assert requirement.specifier.contains(pin.version), f"requirements.lock: {pinned[name]}, not {text}"


@pytest.mark.skipif(not (Path(sys.prefix) / ".set-up").is_file(), reason="not the environment of the scripts")
def test_lock_is_complete():
    """Everything that the scripts installed has the locked version."""
    found = importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])
    installed = {canonicalize_name(one.name): one.version.split("+")[0] for one in found}
    unlocked = {"pip", "docnmt-fairseq", "torchaudio"}
    libraries = {name for name in installed if name not in unlocked and not name.startswith(("nvidia-", "cuda-"))}
    pinned = locked()
    assert libraries <= pinned.keys()
    assert {name: installed[name] for name in libraries} == {
        name: next(iter(pinned[name].specifier)).version for name in libraries
    }


def test_hooks_run_what_the_tests_run():
    """The tools of .pre-commit-config.yaml are those of scripts/test.sh."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    script = (ROOT / "scripts" / "test.sh").read_text(encoding="utf-8")
    for hook in hooks:
        assert hook["entry"].replace(" --force-exclude", "") in script
