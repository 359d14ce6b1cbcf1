"""What an output of more shards leaves: a plan, data-bins that are links."""

import pytest

from docnmt_fairseq import cli
from tests.support.documents import write_lines


@pytest.fixture
def run(tmp_path):
    for side in ("en", "de"):
        write_lines(tmp_path / f"train.{side}", ["a b", "c", ""] * 3)
    files = ["-s", "en", "-t", "de", "--train", str(tmp_path / "train"), "--output", str(tmp_path / "out")]
    return lambda *more: cli.main(["prepare", *files, "--subwords", "none", "--workers", "1", *more])


def test_a_data_bin_of_more_shards_that_is_a_link_does_not_stay(tmp_path, run):
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "dict.en.txt").touch()
    for number, folder in ((1, "elsewhere"), (3, "nowhere")):
        (tmp_path / "out" / f"data-bin-{number}").symlink_to(tmp_path / folder)
    assert run() == 0
    assert not (tmp_path / "elsewhere").exists()
    assert [path.name for path in (tmp_path / "out").glob("data-bin*")] == ["data-bin"]
