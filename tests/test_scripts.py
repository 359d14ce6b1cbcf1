"""What the scripts share."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# PyTorch is not there yet; pip prints what it is asked for, and finds a CPU build only where HAS_CPU_BUILD is set.
MACHINE = """
source "$1/scripts/common.sh"
python() { return 1; }
uname() { echo "$SYSTEM"; }
has_gpu() { [ -n "${HAS_GPU:-}" ]; }
pip() { echo "$*"; [[ "$*" != *+cpu* || -n "${HAS_CPU_BUILD:-}" ]]; }
install_torch pip install
"""


def version():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    (pinned,) = (line for line in lines if line.startswith("torch=="))
    return pinned


@pytest.mark.parametrize(
    ("machine", "asked"),
    [
        ({"SYSTEM": "Linux", "HAS_CPU_BUILD": "1"}, ["install {torch}+cpu"]),
        ({"SYSTEM": "Linux"}, ["install {torch}+cpu", "install {torch}"]),
        ({"SYSTEM": "Linux", "HAS_GPU": "1", "HAS_CPU_BUILD": "1"}, ["install {torch}"]),
        ({"SYSTEM": "Darwin"}, ["install {torch}"]),
        ({"SYSTEM": "Linux", "DOCNMT_TORCH_INDEX": "file:///wheels"}, ["install --index-url file:///wheels {torch}"]),
    ],
)
def test_the_build_of_pytorch_suits_the_machine(machine, asked):
    command = ["bash", "-c", MACHINE, "bash", str(ROOT)]
    result = subprocess.run(command, env={"PATH": "/usr/bin:/bin", **machine}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [line.format(torch=version()) for line in asked]
    assert ("DOCNMT_TORCH_INDEX" in result.stderr) == (len(asked) == 2), "what happens is said where it costs"


def test_a_changed_project_is_set_up_anew():
    """What is compared with the stamp of the last set-up holds the versions, the metadata and the build."""
    command = ["bash", "-c", 'source "$1/scripts/common.sh"; set_up_facts', "bash", str(ROOT)]
    facts = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    files = ("constraints.txt", "pyproject.toml", "setup.py")
    assert facts == "".join((ROOT / file).read_text(encoding="utf-8") for file in files)
