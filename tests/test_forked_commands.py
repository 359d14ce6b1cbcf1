"""What tests start in the place of Python does what Python does: status, output, folder, environment, signals."""

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
MODULE = """import os, sys
print(sys.argv[1:], os.getcwd(), os.environ["GIVEN"], "fairseq" in sys.modules, __name__)
sys.exit({status})
"""


def run(*words, folder, **environment):
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(folder), **environment}
    )


@pytest.mark.parametrize(
    ("status", "ended", "errors"), [("None", 0, ""), ("3", 3, ""), ("'a reason'", 1, "a reason\n")]
)
def test_a_module_ends_as_it_does_by_itself(ready_python, tmp_path, monkeypatch, status, ended, errors):
    name = f"ends_{ended}_{bool(errors)}"
    (tmp_path / f"{name}.py").write_text(MODULE.format(status=status), encoding="utf-8")
    forked, own = (
        run(python, "-u", "-m", name, "a word", folder=tmp_path, GIVEN="yes")
        for python in (ready_python, sys.executable)
    )
    for one, imported in ((forked, True), (own, False)):
        assert (one.returncode, one.stderr) == (ended, errors)
        assert one.stdout == f"['a word'] {tmp_path} yes {imported} __main__\n"


def test_what_is_wrong_with_a_command_is_its_status(ready_python, tmp_path):
    done = run(ready_python, "-m", "docnmt_fairseq", "score", "--system", "nothing", folder=tmp_path)
    assert done.returncode == 2 and "--reference" in done.stderr
    assert run(ready_python, "-m", "fairseq_cli.train", "nowhere", folder=tmp_path).returncode != 0


def test_other_calls_are_of_python_itself(ready_python, tmp_path):
    code = "import sys; print('torch' in sys.modules, *sys.argv[1:]); sys.exit(4)"
    done = run(ready_python, "-c", code, "word", folder=tmp_path)
    assert (done.returncode, done.stdout) == (4, "False word\n")


def test_the_signal_to_end_is_handed_on(ready_python, tmp_path):
    (tmp_path / "waits.py").write_text("print('begun', flush=True)\nimport time\ntime.sleep(60)\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = [ready_python, "-m", "waits"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment) as waiting:
        assert waiting.stdout.readline() == "begun\n"
        waiting.send_signal(signal.SIGTERM)
        assert waiting.wait(20) != 0


def test_a_module_may_start_itself_anew(ready_python, tmp_path):
    code = """import os, sys
if "AGAIN" not in os.environ:
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "AGAIN": "1"})
print(sys.argv[1:])
sys.exit(5)
"""
    (tmp_path / "anew.py").write_text(code, encoding="utf-8")
    done = run(ready_python, "-m", "anew", "word", folder=tmp_path)
    assert (done.returncode, done.stdout) == (5, "['word']\n")
