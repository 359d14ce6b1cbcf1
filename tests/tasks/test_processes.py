"""Several processes equal one."""

import subprocess
import sys

import pytest
import torch

from tests.support import toy


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["legacy_ddp", "pytorch_ddp"])
def test_two_processes_equal_one_with_twice_the_batches(data_bin, tmp_path, backend):
    options = ["--context-attention", "conditional", "--context-top-t", "2", "--max-update", "4"]
    one = toy.train(data_bin, tmp_path / "one", *options, "--update-freq", "2")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "-m", "fairseq_cli.train"]
    fixed = ["--optimizer", "adam", "--lr", "0.01", "--save-dir", str(tmp_path / "two"), "--disable-validation"]
    fixed += ["--distributed-backend", "gloo", "--ddp-backend", backend]
    result = subprocess.run([*command, *toy.arguments(data_bin, *fixed, *options)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    a = toy.state(one)
    b = toy.state(tmp_path / "two" / "checkpoint_last.pt")
    for key in a:
        torch.testing.assert_close(a[key], b[key], atol=1e-5, rtol=1e-4, msg=key)
