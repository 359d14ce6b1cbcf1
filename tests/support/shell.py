"""Commands of the documentation, run by bash with small settings."""

import subprocess
from pathlib import Path
from typing import Dict, List

from tests.support.imported import Imported

SEARCH = ["--cpu", "--max-len-b", "6"]
WIDTHS = ["encoder-embed-dim", "decoder-embed-dim", "encoder-ffn-embed-dim", "decoder-ffn-embed-dim"]
# Additional arguments by command, or by command and subcommand.
SMALL: Dict[str, List[str]] = {
    "fairseq-train": [
        "--cpu", "--num-workers", "0", "--max-update", "2", "--max-tokens", "400",
        *(part for width in WIDTHS for part in (f"--{width}", "16")),
    ],
    "fairseq-generate": [*SEARCH, "--num-workers", "0"],
    "fairseq-interactive": SEARCH,
    "fairseq-validate": ["--cpu", "--num-workers", "0"],
    "fairseq-hydra-train": [
        "common.cpu=true", "dataset.num_workers=0", "optimization.max_update=2", "dataset.max_tokens=400",
        "model.encoder_embed_dim=16", "model.encoder_ffn_embed_dim=16",
    ],
    "docnmt synth": ["--train-documents", "6", "--valid-documents", "1", "--test-documents", "2"],
    "docnmt prepare": ["--workers", "1"],
    "docnmt translate": SEARCH,
    "docnmt serve": SEARCH,
    "docnmt recipe": ["--smoke", "--workers", "1"],
    "docnmt contrast": ["--cpu"],
    "docnmt cxmi": ["--cpu"],
}  # fmt: skip
# Replaced values that are too large for the corpora of tests.
INSTEAD = {"--vocab-size": "34"}


class Shell:
    """bash with small settings of commands.

    Args:
        folder: folder of the client programs.
        imported: server that runs the commands.
    """

    def __init__(self, folder: Path, imported: Imported):
        self.environment = {**imported.commands(folder, SMALL, INSTEAD), "PYTHONWARNINGS": "ignore"}

    def run(self, script: str, folder: Path) -> subprocess.CompletedProcess:
        """Runs a script; the first failure ends it."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
