import subprocess
import sys

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes import processes

PARENT = """
import subprocess, sys, time
from docnmt_fairseq.lifetime import end_with_parent
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], preexec_fn=end_with_parent)
print("started", flush=True)
time.sleep(60)
"""


def test_a_folder_takes_one_recipe_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "PATIENCE", 0.3)
    refused = pytest.raises(InputError, match=r"process \d+ on .* is at work there; wait for its end, or end it")
    with processes.alone_in(tmp_path), refused, processes.alone_in(tmp_path):
        pass
    with processes.alone_in(tmp_path):
        pass


def test_a_failing_command_shows_the_end_of_its_log(tmp_path):
    log = tmp_path / "x.log"
    command = [sys.executable, "-c", "import sys; print('reason'); sys.exit(3)"]
    with (
        open(log, "w", encoding="utf-8") as stream,
        pytest.raises(InputError, match=r"status 3; .*x\.log ends with\nreason"),
    ):
        processes.run(command, stream, log)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children")
def test_children_end_with_a_killed_parent():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "started\n"
    parent.kill()
    parent.stdout.read()  # the end comes when nobody holds the pipe any more: the child has it, too
    assert parent.wait() < 0
