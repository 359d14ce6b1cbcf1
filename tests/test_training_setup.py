"""What fairseq would ignore or fail at is refused before a training starts, or set right."""

import logging
import os
import subprocess
import sys

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

from docnmt_fairseq import training_setup
from docnmt_fairseq.errors import InputError
from tests.support import toy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fp16"], "^--fp16: needs a GPU, fairseq scales its losses there only; on a CPU use --bf16$"),
        (["--memory-efficient-fp16"], "^--memory-efficient-fp16: needs a GPU, .*use --memory-efficient-bf16$"),
        (["--amp"], "^--amp: needs a GPU, on a CPU fairseq trains in float32 all the same; use --bf16$"),
        (
            ["--ddp-backend", "fully_sharded"],
            "^--ddp-backend fully_sharded: not supported, .*use pytorch_ddp or",
        ),
        (["--update-freq", "2,0"], "^--update-freq 2,0: must be at least 1$"),
        (["--max-tokens", "0"], "^--max-tokens 0: must be at least 1$"),
        (["--log-interval", "0"], "^--log-interval 0: must be at least 1$"),
        (
            ["--best-checkpoint-metric", "bleu", "--valid-subset", "valid"],
            "^--best-checkpoint-metric bleu: needs --eval-bleu$",
        ),
        (["--encoder-embed-dim", "0"], "^--encoder-embed-dim 0: must be at least 1"),
        (["--decoder-attention-heads", "0"], "^--decoder-attention-heads 0: must be at least 1"),
        (["--batch-size", "-1"], "^--batch-size -1: must be at least 1$"),
        (["--dropout", "1.5"], "^--dropout 1.5: must be at most 1$"),
        (["--dropout", "nan"], "^--dropout nan: must not be negative; --dropout nan: must be at most 1$"),
        (
            ["--lr-scheduler", "inverse_sqrt", "--warmup-updates", "0"],
            "^--warmup-updates 0: must be at least 1 with --lr-scheduler inverse_sqrt$",
        ),
        (["--restore-file", "x.pt"], "^--restore-file x.pt: no such file; name a checkpoint or leave it out to begin"),
        (["--restore-file", "/"], "^--restore-file /: is a folder; name a checkpoint in it or leave it out to begin"),
        (["--finetune-from-model", "x.pt"], "^--finetune-from-model x.pt: no such file; name a checkpoint to begin"),
        (["--finetune-from-model", "/"], "^--finetune-from-model /: is a folder; name a checkpoint in it to begin"),
        (
            ["--finetune-from-model", __file__, "--restore-file", __file__],
            "^--restore-file .*: not with --finetune-from-model .*; give one of them$",
        ),
        (["--optimizer-overrides", "{'lr': "], "^--optimizer-overrides {'lr': : is no dictionary of options by name"),
        (["--save-interval", "0"], "^--save-interval 0: must be at least 1$"),
        (["--validate-interval", "0"], "^--validate-interval 0: must be at least 1$"),
    ],
)
def test_what_does_not_work_is_refused_in_one_line(data_bin, tmp_path, options, message):
    with pytest.raises(InputError, match=message) as refused:
        toy.train(data_bin, tmp_path, "--max-update", "1", *options)
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, True),
        ({"common.cpu": True}, False),
        ({"common.bf16": True}, True),
        ({"common.fp16": True}, False),  # fairseq has all parameters in one vector
        ({"common.fp16": True, "common.fp16_no_flatten_grads": True}, True),
        ({"optimizer": {"_name": "fused_adamw"}}, False),
    ],
    ids=str,
)
def test_an_adam_that_lets_a_gpu_wait_is_said(monkeypatch, caplog, changes, said):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.model, cfg.task, cfg.optimizer = {"_name": "m"}, {"_name": "t"}, {"_name": "adam", "use_old_adam": False}
    for name, value in changes.items():
        OmegaConf.update(cfg, name, value, merge=False)
    with caplog.at_level(logging.INFO):
        training_setup.prepare(cfg)
    assert ("--optimizer fused_adamw makes the same steps" in caplog.text) is said


@pytest.mark.parametrize(
    ("backend", "world", "gpu", "cpu", "refused"),
    [
        ("nccl", "2", False, False, True),
        ("nccl", "2", True, True, True),
        ("nccl", "2", True, False, False),
        ("nccl", "1", False, True, False),
        ("gloo", "2", False, True, False),
    ],
)
def test_processes_that_cannot_talk_to_each_other_are_refused(monkeypatch, backend, world, gpu, cpu, refused):
    """Before they meet, which PyTorch fails at with a traceback about how it was built."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    environment = {"MASTER_ADDR": "here", "MASTER_PORT": "1", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": world}
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.common.cpu, cfg.distributed_training.distributed_backend = cpu, backend
    problems = list(training_setup.problems_of_backend(cfg, environment))
    assert bool(problems) is refused and all("give --cpu --distributed-backend gloo" in one for one in problems)


def test_the_processes_are_asked_before_they_meet(data_bin, tmp_path, monkeypatch):
    environment = {"MASTER_ADDR": "here", "MASTER_PORT": "1", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=r"^--distributed-backend nccl: needs a GPU for each process"):
        toy.train(data_bin, tmp_path, "--max-update", "1")


def test_the_checkpoint_to_go_on_from_need_not_be_there_yet_nor_the_start_any_more(data_bin, tmp_path):
    """Under its own name; and a training that goes on no longer needs the model that it began from."""
    last = str(tmp_path / "model" / "checkpoint_last.pt")
    for updates in ("1", "2"):
        toy.train(data_bin, tmp_path / "model", "--max-update", updates, "--restore-file", last)
    toy.train(data_bin, tmp_path / "model", "--max-update", "3", "--finetune-from-model", str(tmp_path / "gone.pt"))


def test_offloading_is_no_option_of_these_models(data_bin, capsys):
    with pytest.raises(SystemExit):
        toy.build(data_bin, "--offload-activations")
    assert "unrecognized arguments: --offload-activations" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("backend", "layerdrop", "found"),
    [("pytorch_ddp", 0.1, True), ("pytorch_ddp", 0.0, False), ("legacy_ddp", 0.1, False)],
)
def test_dropped_layers_leave_parameters_unused(backend, layerdrop, found):
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.common.cpu, cfg.distributed_training.ddp_backend = True, backend
    cfg.model, cfg.task = {"_name": "m", "decoder_layerdrop": layerdrop}, {"_name": "t"}
    training_setup.prepare(cfg)
    assert cfg.distributed_training.find_unused_parameters is found


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_takes_all_types():
    for name in ("fp16", "amp"):
        cfg = OmegaConf.structured(FairseqConfig())
        cfg.model, cfg.task = {"_name": "m"}, {"_name": "t"}
        setattr(cfg.common, name, True)
        training_setup.prepare(cfg)


@pytest.mark.parametrize(
    ("changed", "warned"),
    [
        ({}, True),
        ({"TORCHELASTIC_USE_AGENT_STORE": "False"}, False),
        ({"TORCHELASTIC_MAX_RESTARTS": "0"}, False),
        ({"RANK": "1"}, False),
    ],
)
def test_restarts_that_may_find_the_processes_before_are_warned_of(changed, warned, caplog, monkeypatch):
    from fairseq.distributed import utils as distributed

    environment = {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_MAX_RESTARTS": "3", "RANK": "0"}
    environment |= {"MASTER_ADDR": "here", "MASTER_PORT": "1", "LOCAL_RANK": "0", "WORLD_SIZE": "2", **changed}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING, "docnmt_fairseq"):
        distributed.infer_init_method(OmegaConf.structured(FairseqConfig()).distributed_training)
    assert ("python -m docnmt_fairseq.torchrun" in caplog.text) is warned


@pytest.mark.parametrize("task", training_setup.TASKS)
def test_sentences_of_the_validation_that_are_too_long_are_found_before_an_epoch_is_trained(
    data_bin, tmp_path, monkeypatch, task
):
    monkeypatch.setattr(Trainer, "train_step", lambda *_: pytest.fail("trained before it was found"))
    options = ["--valid-subset", "test", "--max-source-positions", "3", "--max-target-positions", "3"]
    arch = {"arch": "transformer"} if task == "concatenated_translation" else {}
    with pytest.raises(Exception, match="--skip-invalid-size-inputs-valid-test"):
        toy.train(data_bin, tmp_path, *options, "--max-update", "1", task=task, **arch)


@pytest.mark.parametrize(
    ("metric", "found"),
    [("nll_loss", True), ("ppl", True), ("context_loss", False), ("nlloss", False)],
)
def test_a_measure_of_the_best_checkpoint_that_validation_lacks_is_found_before_an_epoch_is_trained(
    data_bin, tmp_path, monkeypatch, metric, found
):
    options = ["--valid-subset", "valid", "--max-update", "1", "--criterion", "label_smoothed_cross_entropy"]
    options += ["--best-checkpoint-metric", metric]
    if found:
        toy.train(data_bin, tmp_path, *options)
        assert (tmp_path / "checkpoint_best.pt").exists()
        return
    monkeypatch.setattr(Trainer, "train_step", lambda *_: pytest.fail("trained before it was found"))
    with pytest.raises(
        InputError, match=rf"^--best-checkpoint-metric {metric}: .* no such figure; .*loss, nll_loss.*ppl"
    ):
        toy.train(data_bin, tmp_path, *options)


@pytest.mark.parametrize(("options", "said"), [([], True), (["--maximize-best-checkpoint-metric"], False)])
def test_the_lowest_bleu_as_the_best_is_warned_of(data_bin, tmp_path, caplog, options, said):
    best = ["--eval-bleu", "--best-checkpoint-metric", "bleu", *options]
    with caplog.at_level(logging.WARNING, "docnmt_fairseq"):
        toy.train(data_bin, tmp_path, "--valid-subset", "valid", "--max-update", "1", *best)
    assert ("--maximize-best-checkpoint-metric" in caplog.text) is said


@pytest.mark.parametrize("relative", [False, True])
def test_the_folder_of_checkpoints_is_let_go_where_no_command_of_ours_ends(tmp_path, relative):
    """As of fairseq-hydra-train, which imports the plugin when it has begun, and changes the working directory."""
    program = f"""if True:
        import os
        from types import SimpleNamespace as Some
        from docnmt_fairseq import training_setup
        checkpoint = Some(save_dir={"model" if relative else str(tmp_path / "model")!r}, no_save=False)
        training_setup._hold(Some(checkpoint=checkpoint, distributed_training=Some(distributed_rank=0)))
        print(*training_setup.Path(checkpoint.save_dir).absolute().iterdir())
        os.chdir("/")
    """
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=found)
    assert (ended.returncode, ended.stdout) == (0, f"{tmp_path / 'model' / '.lock'}\n")
    assert "Exception" not in ended.stderr and not list((tmp_path / "model").glob(".lock"))


def test_a_training_has_a_best_checkpoint_whatever_another_of_the_process_had(data_bin, tmp_path, monkeypatch):
    """As those of fairseq-hydra-train -m are."""
    monkeypatch.setattr(checkpoint_utils.save_checkpoint, "best", 0.0, raising=False)
    toy.train(data_bin, tmp_path, "--max-update", "1", "--valid-subset", "valid")
    assert (tmp_path / "checkpoint_best.pt").exists()
