"""docnmt doctor finds what is taken away here, with a remedy; only core dependencies can be broken."""

import dataclasses
import importlib.metadata
import json
import sys

import pytest
import torch

from docnmt_fairseq.cli import command_modules, main
from docnmt_fairseq.cli import doctor as installation
from docnmt_fairseq.layers.packed_linear import PRECISIONS, PackedLinear, available
from docnmt_fairseq.native import cpu, library

pytestmark = pytest.mark.cpu


@pytest.fixture
def doctor(capsys):
    """Returns exit status and findings by name."""

    def run():
        status = main(["doctor", "--json"])
        findings = json.loads(capsys.readouterr().out)
        return status, {finding["name"]: finding for finding in findings}

    return run


@pytest.fixture
def hidden_compiler(monkeypatch, tmp_path):
    """Hides the compiler and all libraries built before."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "HERE", tmp_path)
    for cached in (library.library, library.missing):
        cached.cache_clear()
    yield
    for cached in (library.library, library.missing):
        cached.cache_clear()


def test_everything_works_in_the_test_environment(doctor):
    status, findings = doctor()
    assert status == 0
    assert not [finding for finding in findings.values() if finding["state"] == "broken"]
    assert findings["torch"]["detail"] == importlib.metadata.version("torch")
    assert findings["torch on cpu"]["state"] == "ok"
    assert all(finding["remedy"] for finding in findings.values() if finding["state"] != "ok")


def test_every_user_extra_is_checked():
    extras = importlib.metadata.metadata("docnmt_fairseq").get_all("Provides-Extra")
    assert set(installation.EXTRAS) == {*extras} - {"docs", "dev"}


def test_without_a_compiler_attention_is_slower_not_broken(doctor, hidden_compiler):
    status, findings = doctor()
    assert status == 0
    assert findings["compiled on cpu"]["state"] == "off"
    assert "no C++ compiler" in findings["compiled on cpu"]["detail"]
    assert "g++" in findings["compiled on cpu"]["remedy"]
    assert findings["auto on cpu"]["detail"] == "uses torch"


def test_precisions_that_are_slower_than_float32_are_off(doctor, monkeypatch):
    monkeypatch.setattr(cpu, "capabilities", lambda: dataclasses.replace(real, bf16=True, int8_engine="fbgemm"))
    speeds = {"float32": 100e9, "bf16": 50e9, "int8": 250e9}
    monkeypatch.setattr(installation, "operations_per_second", speeds.get)
    status, findings = doctor()
    assert status == 0
    assert findings["float32"]["state"] == "ok"
    assert findings["bf16"]["state"] == "off" and findings["bf16"]["remedy"] == "use float32"
    assert findings["int8"]["state"] == "ok" and "2.5 × float32" in findings["int8"]["detail"]


real = cpu.capabilities()


def test_precisions_without_hardware_support_are_off_and_nothing_is_broken(doctor, monkeypatch):
    older = dataclasses.replace(real, bf16=False, int8_engine=None, int8_dot_products=False)
    monkeypatch.setattr(cpu, "capabilities", lambda: older)
    status, findings = doctor()
    assert status == 0
    assert findings["bf16"]["state"] == "off" and "computed in float32" in findings["bf16"]["detail"]
    assert findings["int8"]["state"] == "off"


def test_measured_products_are_packed_ones(monkeypatch):
    packed, pack = [], PackedLinear.pack
    monkeypatch.setattr(PackedLinear, "pack", lambda self, precision: (packed.append(precision), pack(self, precision)))
    monkeypatch.setattr(installation, "SECONDS", 0.002)
    usable = [precision for precision in PRECISIONS if available(precision)]
    assert all(installation.operations_per_second(precision) > 1e8 for precision in usable)
    assert packed == usable


def test_a_library_that_cannot_be_imported_is_broken(doctor, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    status, findings = doctor()
    assert status == 1
    assert findings["sacremoses"]["state"] == "broken"
    assert findings["sacremoses"]["remedy"].startswith("pip install --force-reinstall 'sacremoses>=")


@pytest.mark.parametrize(("version", "detail"), [("0.0.1", "0.0.1 is not supported"), (None, "not installed")])
def test_a_library_that_is_too_old_or_missing_is_broken(doctor, monkeypatch, version, detail):
    true_version = importlib.metadata.version

    def pretended(name):
        if name != "sacrebleu":
            return true_version(name)
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", pretended)
    status, findings = doctor()
    assert status == 1
    assert (findings["sacrebleu"]["state"], findings["sacrebleu"]["detail"]) == ("broken", detail)
    assert findings["sacrebleu"]["remedy"].startswith("pip install 'sacrebleu>=")


def test_a_missing_extra_is_off(doctor, monkeypatch):
    true_version = importlib.metadata.version

    def pretended(name):
        if name == "jieba":
            raise importlib.metadata.PackageNotFoundError(name)
        return true_version(name)

    monkeypatch.setattr(importlib.metadata, "version", pretended)
    status, findings = doctor()
    assert (status, findings["jieba"]["state"]) == (0, "off")
    assert findings["jieba"]["remedy"] == "pip install 'docnmt_fairseq[jieba]'"


def test_loading_that_executes_code_is_off(doctor, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    _, findings = doctor()
    assert findings["harmful files"]["state"] == "off"
    assert "unset TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD" in findings["harmful files"]["remedy"]


def test_loading_that_refuses_fairseqs_own_checkpoints_is_broken(doctor, monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("Weights only load failed\nmore")

    monkeypatch.setattr(torch, "load", refuse)
    status, findings = doctor()
    assert (status, findings["safe loading"]["state"]) == (1, "broken")
    assert findings["safe loading"]["detail"] == "Weights only load failed"


def test_more_threads_than_processors_is_off(doctor, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: installation.processors() + 1)
    status, findings = doctor()
    assert (status, findings["threads"]["state"]) == (0, "off")
    assert findings["threads"]["remedy"] == f"export OMP_NUM_THREADS={installation.processors()}"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU that works")
def test_a_gpu_that_pytorch_cannot_use_is_off(doctor, monkeypatch):
    assert doctor()[1]["GPU"]["state"] == ("off" if installation.has_nvidia_gpu() else "ok")
    monkeypatch.setattr(installation, "has_nvidia_gpu", lambda: True)
    status, findings = doctor()
    assert (status, findings["GPU"]["state"]) == (0, "off")


@pytest.mark.parametrize(
    ("checks", "part", "status", "state"), [("CORE", "Plugin", 1, "broken"), ("OPTIONAL", "Threads", 0, "off")]
)
def test_a_check_that_raises_is_a_finding(doctor, monkeypatch, checks, part, status, state):
    def fail():
        yield "first", "ok", "still shown"
        raise OSError("libtorch.so: cannot open")

    monkeypatch.setitem(getattr(installation, checks), part, fail)
    found, findings = doctor()
    assert (found, findings["check"]["state"]) == (status, state)
    assert findings["check"]["detail"] == "libtorch.so: cannot open"
    assert "GPU" in findings, "the checks after it ran"


def test_the_text_shows_states_and_remedies(capsys, monkeypatch):
    findings = [
        installation.Finding("A", "torch", "ok", "2.1"),
        installation.Finding("B", "comet", "off", "not installed", "pip install comet"),
        installation.Finding("B", "lxml", "broken", "not installed", "pip install lxml"),
    ]
    monkeypatch.setattr(installation, "examine", lambda: findings)
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert [line.split() for line in text.splitlines()] == [
        ["A"],
        ["ok", "torch", "2.1"],
        ["B"],
        ["off", "comet", "not", "installed"],
        ["→", "pip", "install", "comet"],
        ["BROKEN", "lxml", "not", "installed"],
        ["→", "pip", "install", "lxml"],
        [],
        [
            "Core",
            "dependencies",
            "that",
            "do",
            "not",
            "work:",
            "1.",
            "Optional",
            "features",
            "that",
            "are",
            "off:",
            "1.",
        ],
    ]


def test_module_names_of_the_requirements():
    distributions = importlib.metadata.packages_distributions()
    for requirement in installation.requirements():
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            module = installation.MODULES.get(requirement.name, requirement.name)
            assert requirement.name.lower() in [name.lower() for name in distributions[module]]


def test_every_command_has_help(capsys):
    modules = command_modules()
    assert {"prepare", "doctor", "score"} <= modules.keys()
    assert not [name for name in modules if name.startswith(("_", "-"))]
    for name, module in modules.items():
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        assert name in capsys.readouterr().out and module.HELP


def test_version(capsys):
    import docnmt_fairseq

    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"docnmt_fairseq {docnmt_fairseq.__version__}\n"
