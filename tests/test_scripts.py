"""Functions that the scripts share."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# PyTorch is not installed; pip prints its arguments and finds a CPU build only if HAS_CPU_BUILD is set.
MACHINE = """
source "$1/scripts/common.sh"
python() { return 1; }
uname() { echo "$SYSTEM"; }
has_gpu() { [ -n "${HAS_GPU:-}" ]; }
pip() { echo "$*"; [[ "$*" != *+cpu* || -n "${HAS_CPU_BUILD:-}" ]]; }
install_torch pip install
"""


def version():
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    (pinned,) = (line for line in lines if line.startswith("torch=="))
    return pinned


@pytest.mark.parametrize(
    ("machine", "asked"),
    [
        ({"SYSTEM": "Linux", "HAS_CPU_BUILD": "1"}, ["install {torch}+cpu"]),
        ({"SYSTEM": "Linux"}, ["install {torch}+cpu", "install {torch}"]),
        ({"SYSTEM": "Linux", "HAS_GPU": "1", "HAS_CPU_BUILD": "1"}, ["install {torch}"]),
        ({"SYSTEM": "Darwin"}, ["install {torch}"]),
        (
            {"SYSTEM": "Linux", "DOCNMT_TORCH_INDEX": "file:///wheels"},
            ["install --extra-index-url file:///wheels {torch}"],
        ),
    ],
)
def test_the_pytorch_build_depends_on_the_machine(machine, asked):
    command = ["bash", "-c", MACHINE, "bash", str(ROOT)]
    result = subprocess.run(command, env={"PATH": "/usr/bin:/bin", **machine}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [line.format(torch=version()) for line in asked]
    assert ("DOCNMT_TORCH_INDEX" in result.stderr) == (len(asked) == 2), "what happens is said where it costs"


def test_set_up_depends_on_the_project():
    command = ["bash", "-c", 'source "$1/scripts/common.sh"; set_up_facts', "bash", str(ROOT)]
    facts = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    files = ("requirements.lock", "pyproject.toml", "setup.py")
    assert facts == "".join((ROOT / file).read_text(encoding="utf-8") for file in files)


def shared(script, *arguments, **environment):
    """Runs a script that has sourced common.sh."""
    command = ["bash", "-c", f'source "$1/scripts/common.sh"; shift; {script}', "bash", str(ROOT), *map(str, arguments)]
    return subprocess.run(command, env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, text=True)


def test_python_may_be_in_a_folder_with_spaces(tmp_path):
    python = tmp_path / "my pythons" / "python3"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    assert shared("find_python", PYTHON=str(python)).stdout == f"{python}\n"
    refused = shared("find_python", PYTHON=str(tmp_path / "none"))
    assert refused.returncode == 1 and "no Python 3.11 or 3.12" in refused.stderr


def test_results_of_other_settings_are_kept(tmp_path):
    kept = tmp_path / "demo" / "settings.txt"
    for _ in range(2):
        assert shared('made_with "$@"', kept, "SEED=1 UPDATES=100").returncode == 0
    refused = shared('made_with "$@"', kept, "SEED=1 UPDATES=2000")
    assert refused.returncode == 1 and "made with SEED=1 UPDATES=100, now it is SEED=1 UPDATES=2000" in refused.stderr
    assert kept.read_text() == "SEED=1 UPDATES=100\n"


COMMANDS = {  # fake commands that only write the expected files
    "docnmt": """echo "$1" >> called
        output=$(sed -n 's/.*--output \\([^ ]*\\).*/\\1/p' <<< "$*")
        case $1 in
        import) mkdir -p "$output" && touch "$output/checkpoint.pt" &&
            echo '{"imported": {"positions": [9, 9]}}' > "$output/manifest.json" ;;
        translate) mkdir -p "$(dirname "$output")" && echo x > "$output" ;;
        score) [ -z "$output" ] || touch "$output" ;;
        esac""",
    "fairseq-train": """folder=$(sed -n 's/.*--save-dir \\([^ ]*\\).*/\\1/p' <<< "$*")
        touch "$folder/checkpoint_best.pt" && echo "$*" >> "$folder/../trained" """,
}


def test_fine_tuning_with_other_settings_is_refused(tmp_path):
    (tmp_path / "bin").mkdir()
    real = f'exec "{sys.executable}" "$@"'
    for name, script in {**COMMANDS, "python": real}.items():
        (tmp_path / "bin" / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "data").mkdir()
    for split in ("train", "valid", "test"):
        for side in ("en", "de"):
            (tmp_path / "data" / f"{split}.{side}").touch()

    def run(**settings):
        command = ["bash", str(ROOT / "scripts" / "finetune_pretrained.sh"), "x/y", "data", "out"]
        path = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "DOCNMT_SET_UP": "1", "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=tmp_path, env={**path, **settings}, capture_output=True, text=True)

    assert run(LR="0.001").returncode == 0
    (tmp_path / "called").unlink()
    wrong = {"LR": "0.002"}, {"LR": "0.001", "UPDATES": "many"}, {"LR": "0.001", "MECHANISM": "conditonal"}
    for settings in wrong:
        assert run(**settings).returncode == 1 and not (tmp_path / "called").exists(), "refused before anything is done"
    (tmp_path / "data" / "train.en").write_text("another text in the same place\n")
    refused = run(LR="0.001")
    assert refused.returncode == 1 and "training and validation text" in refused.stderr


def alive(pid):
    """Returns whether a process exists and has not ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_killed_scripts_leave_no_processes():
    script = "source \"$1/scripts/common.sh\"; attended bash -c 'echo $$; exec sleep 600'"
    with subprocess.Popen(["bash", "-c", script, "bash", str(ROOT)], stdout=subprocess.PIPE, text=True) as killed:
        child = int(killed.stdout.readline())
        killed.terminate()
        assert killed.wait() == -signal.SIGTERM
    for _ in range(400):
        if not alive(child):
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the process is still running")


def test_attended_commands_keep_their_status():
    assert shared("attended true").returncode == 0
    assert shared("attended bash -c 'exit 7' || exit $?").returncode == 7


def test_every_recipe_has_a_script():
    for recipe in (ROOT / "docnmt_fairseq" / "recipes" / "configs").glob("*.yaml"):
        assert f'/recipe.sh" {recipe.stem} "$@"' in (ROOT / "scripts" / f"{recipe.stem}.sh").read_text(encoding="utf-8")
