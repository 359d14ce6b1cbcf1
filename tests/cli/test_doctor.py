"""docnmt doctor reports missing or slow parts with a remedy; only core dependencies can be broken."""

import dataclasses
import importlib.metadata
import json

import pytest

from docnmt_fairseq.cli import command_modules, doctor, main
from docnmt_fairseq.native import cpu, library

pytestmark = pytest.mark.cpu


@pytest.fixture
def diagnose(capsys):
    """Returns a function that returns exit status and findings by name."""

    def run():
        status = main(["doctor", "--json"])
        return status, {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)}

    return run


def test_everything_works_in_the_test_environment(diagnose, capsys):
    status, findings = diagnose()
    assert status == 0
    assert not [finding for finding in findings.values() if finding["state"] == "broken"]
    assert findings["torch"]["detail"] == importlib.metadata.version("torch")
    assert findings["torch on cpu"]["state"] == "ok"
    assert all(finding["remedy"] for finding in findings.values() if finding["state"] != "ok")
    assert main(["doctor"]) == 0
    assert "All core dependencies work." in capsys.readouterr().out


def test_every_user_extra_is_checked():
    extras = importlib.metadata.metadata("docnmt_fairseq").get_all("Provides-Extra")
    assert set(doctor.EXTRAS) == {*extras} - {"docs", "dev"}


def test_without_a_compiler_attention_is_slower_not_broken(diagnose, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "HERE", tmp_path)
    for cached in (library.library, library.missing):
        cached.cache_clear()
    try:
        status, findings = diagnose()
    finally:
        for cached in (library.library, library.missing):
            cached.cache_clear()
    assert (status, findings["compiled on cpu"]["state"]) == (0, "off")
    assert "g++" in findings["compiled on cpu"]["remedy"]
    assert findings["auto on cpu"]["detail"].startswith("uses torch")


def test_precisions_that_are_slower_than_float32_or_unsupported_are_off(diagnose, monkeypatch):
    real = cpu.capabilities()
    fast = dataclasses.replace(real, bf16=True, int8_engine="fbgemm")
    old = dataclasses.replace(real, bf16=False, int8_engine=None, int8_dot_products=False)
    monkeypatch.setattr(doctor, "operations_per_second", {"float32": 100e9, "bf16": 50e9, "int8": 250e9}.get)
    for capabilities, expected in ((fast, ["ok", "off", "ok"]), (old, ["ok", "off", "off"])):
        monkeypatch.setattr(cpu, "capabilities", lambda capabilities=capabilities: capabilities)
        status, findings = diagnose()
        assert [findings[name]["state"] for name in ("float32", "bf16", "int8")] == expected and status == 0


@pytest.mark.parametrize(
    ("name", "version", "status", "state"),
    [("sacrebleu", "0.0.1", 1, "broken"), ("sacrebleu", None, 1, "broken"), ("jieba", None, 0, "off")],
)
def test_libraries_that_are_too_old_or_missing(diagnose, monkeypatch, name, version, status, state):
    installed = importlib.metadata.version

    def pretended(other):
        if other == name and version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version if other == name else installed(other)

    monkeypatch.setattr(importlib.metadata, "version", pretended)
    found, findings = diagnose()
    assert (found, findings[name]["state"]) == (status, state)
    assert findings[name]["remedy"].startswith("pip install '")


def test_module_names_of_the_requirements():
    distributions = importlib.metadata.packages_distributions()
    for requirement in doctor.requirements():
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            module = doctor.MODULES.get(requirement.name, requirement.name)
            assert requirement.name.lower() in [name.lower() for name in distributions[module]]


def test_every_command_has_help(capsys):
    modules = command_modules()
    assert {"prepare", "doctor", "score"} <= modules.keys()
    assert not [name for name in modules if name.startswith(("_", "-"))]
    for name, module in modules.items():
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        assert name in capsys.readouterr().out and module.HELP
