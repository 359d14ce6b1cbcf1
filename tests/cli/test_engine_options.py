"""Commands that share their work out tell the engine all that the command line says, and its jobs nothing of it."""

from types import SimpleNamespace

import pytest

from docnmt_fairseq.cli import build_parser, main, prepare, translate
from docnmt_fairseq.cli._jobs import arguments_without
from docnmt_fairseq.cli._texts import add_work_arguments
from docnmt_fairseq.jobs.engines.ray import Ray, RayOptions
from docnmt_fairseq.jobs.engines.slurm import Slurm, SlurmOptions
from docnmt_fairseq.translate import generating

SLURM = ["--engine", "slurm", "--tries", "5", "--job-threads", "3", "--job-gpus", "1", "--slurm-time", "1:00",
         "--slurm-partition", "long", "--slurm-memory", "4G", "--slurm-options", "account=nmt", "qos=low",
         "--slurm-setup", "module load cuda", "--dry-run"]  # fmt: skip
TOLD = SlurmOptions(
    job_threads=3, job_gpus=1, slurm_time="1:00", slurm_partition="long", slurm_memory="4G",
    slurm_options=["account=nmt", "qos=low"], slurm_setup="module load cuda", dry_run=True,
)  # fmt: skip


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Runs a command up to its engine; gives the engine and the tries."""
    found = []

    def in_shards(*given, settings, tries, program):
        found.append((*given, tries))

    monkeypatch.setattr(translate, "translate_in_shards", in_shards)
    monkeypatch.setattr(generating, "generate", lambda given, shards, *engine: found.append((given, *engine)))
    monkeypatch.setattr(prepare, "_make", lambda *given: found.append((None, *given[:-1])))
    monkeypatch.setattr(prepare, "_jobs", lambda *_: [])
    monkeypatch.setattr(prepare, "fit", lambda config: (SimpleNamespace(write_plan=lambda: None), {}))
    (tmp_path / "model.pt").touch()
    given = {
        "translate": ([], ["--path", str(tmp_path / "model.pt"), "--input", "x", "--output", "y"]),
        "generate": ([], ["data-bin", "--path", "model.pt"]),
        "prepare": (["-s", "en", "-t", "de", "--train", "x", "--output", str(tmp_path / "out")], []),
    }

    def run(command, *options):
        first, last = given[command]
        assert main([command, "--shards", "2", *first, *options, *last]) == 0
        *_, arguments, engine, tries = found.pop()
        assert command == "prepare" or arguments == last
        return engine, tries

    return run


@pytest.mark.parametrize("command", ["translate", "generate", "prepare"])
def test_all_options_reach_the_engine(asked, command):
    engine, tries = asked(command, *SLURM)
    assert (type(engine), engine.options, tries) == (Slurm, TOLD, 5)
    engine, tries = asked(command, "--engine", "ray", "--ray-address", "node:6379")
    assert (type(engine), engine.options, tries) == (Ray, RayOptions(ray_address="node:6379"), 3)


@pytest.mark.parametrize("command", ["translate", "generate"])
def test_so_many_work_at_once(asked, command):
    assert asked(command, "--engine", "processes", "--workers", "7")[0].workers == 7
    assert asked(command, "--engine", "processes")[0].workers is None


@pytest.mark.parametrize("leading", [[], ["--user-dir", "translate"], ["--user-dir=translate"]])
def test_a_package_may_have_the_name_of_the_command(leading):
    own = ["--path", "translate", "--input", "x", "--output", "y"]
    given = [*leading, "translate", *own, "--engine", "processes", "--shards", "3"]
    args = build_parser().parse_args(given)
    args.arguments = given
    assert arguments_without(args, add_work_arguments) == own
