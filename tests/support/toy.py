"""Tiny models, and fairseq's commands inside the process of the test."""

import contextlib
import io
import json
import logging
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import sacrebleu
import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import docnmt_fairseq
from tests.support.composed import compose_with_cache

docnmt_fairseq.register()
compose_with_cache()
PLUGIN = str(Path(__file__).parents[2] / "docnmt_fairseq")
HERE = ["--cpu", "--num-workers", "0"]
TINY = ["--encoder-embed-dim", "8", "--encoder-ffn-embed-dim", "12", "--encoder-attention-heads", "2"]
TINY += ["--decoder-embed-dim", "8", "--decoder-ffn-embed-dim", "12", "--decoder-attention-heads", "2"]
TINY += ["--encoder-layers", "2", "--decoder-layers", "2", "--dropout", "0"]
TINY_RNN = ["--encoder-embed-dim", "6", "--encoder-hidden-size", "5", "--decoder-embed-dim", "7"]
TINY_RNN += ["--attention-dim", "3", "--decoder-hidden-size", "4", "--dropout", "0"]


def arguments(data_bin, *extra, task="document_translation", arch="document_transformer", tiny=TINY, here=HERE):
    common = [str(data_bin), "--user-dir", PLUGIN, "--task", task, "--arch", arch, "--max-tokens", "60", *here]
    return [*common, *tiny, *extra]


def build(data_bin, *extra, **options_):
    """Returns (config, task, model) of a training command line."""
    parser = options.get_training_parser()
    args = options.parse_args_and_arch(parser, arguments(data_bin, "--optimizer", "adam", *extra, **options_))
    cfg = convert_namespace_to_omegaconf(args)
    torch.manual_seed(1)
    task = tasks.setup_task(cfg.task)
    return cfg, task, task.build_model(cfg.model).eval()


def split_of(task, split):
    """Returns a split."""
    task.load_dataset(split)
    return task.dataset(split)


def batch_of(task, split="test", max_tokens=1000):
    """Returns one batch with the whole split."""
    task.load_dataset(split)
    dataset = task.dataset(split)
    (numbers,) = dataset.batch_by_size(dataset.ordered_indices(), max_tokens=max_tokens)
    return dataset.collater([dataset[int(number)] for number in numbers])


def assert_same_gradients_when_recomputed(build):
    """Asserts that --checkpoint-activations changes no gradient of the model that ``build(*options)`` gives, third."""

    def gradients(*options_):
        _, task, model = build(*options_)
        output, _ = model.train()(**batch_of(task)["net_input"])
        output.sin().sum().backward()
        return {name: parameter.grad for name, parameter in model.named_parameters()}

    plain, recomputed = gradients(), gradients("--checkpoint-activations")
    assert plain.keys() == recomputed.keys()
    for name, gradient in plain.items():
        torch.testing.assert_close(recomputed[name], gradient, atol=1e-5, rtol=1e-5, msg=name)


def with_other_words(data_bin, folder, side="tgt"):
    """Copies a data-bin; of one side's dictionary the first two words change places. Returns the copy."""
    shutil.copytree(data_bin, folder)
    file = folder / f"dict.{side}.txt"
    first, second, *others = file.read_text().splitlines()
    file.write_text("\n".join([second, first, *others]) + "\n")
    return folder


def as_prepared(data_bin, folder):
    """Copies a data-bin to what docnmt prepare would have written around it; returns the folder."""
    shutil.copytree(data_bin, folder / "data-bin")
    options_ = {"source_lang": "src", "target_lang": "tgt", "tokenizer": "none", "truecase": False}
    options_.update(subwords="none", joint=True)
    (folder / "manifest.json").write_text(json.dumps({"options": options_}))
    return folder


def state(checkpoint):
    """Returns the model's state in a checkpoint."""
    saved = torch.load(checkpoint, weights_only=True)["model"]
    return {key: value for key, value in saved.items() if not key.endswith(("_float_tensor", ".version"))}


def assert_same_state(one, other, atol=1e-6, rtol=1e-5):
    """Asserts that two checkpoints hold the same model; returns its state."""
    a, b = state(one), state(other)
    assert a.keys() == b.keys()
    for key in a:
        torch.testing.assert_close(a[key], b[key], atol=atol, rtol=rtol, msg=key)
    return a


def train(data_bin, save_dir, *extra, **options_):
    from fairseq.distributed import utils as distributed
    from fairseq_cli import train as command

    fixed = ["--optimizer", "adam", "--lr", "0.01", "--save-dir", str(save_dir), "--log-format", "simple"]
    fixed += [] if {"--eval-bleu", "--valid-subset"} & set(extra) else ["--disable-validation"]
    args = options.parse_args_and_arch(options.get_training_parser(), arguments(data_bin, *fixed, *extra, **options_))
    distributed.call_main(convert_namespace_to_omegaconf(args), command.main)
    return Path(save_dir) / "checkpoint_last.pt"


def translating(data_bin, checkpoint, task):
    """Returns what the command lines of generate and interactive have in common."""
    return [str(data_bin), "--path", str(checkpoint), "--user-dir", PLUGIN, "--task", task, *HERE]


def generate_text(data_bin, checkpoint, *extra, task="document_translation"):
    """Returns what fairseq-generate prints."""
    from fairseq_cli import generate as command

    fixed = translating(data_bin, checkpoint, task)
    args = options.parse_args_and_arch(options.get_generation_parser(), [*fixed, *extra])
    output = io.StringIO()
    command._main(convert_namespace_to_omegaconf(args), output)
    return output.getvalue()


def generate(*args, **kwargs):
    """Returns fairseq-generate's output: {id: (tokens, score)} and the raw text."""
    return parse(generate_text(*args, **kwargs))


def validate(data_bin, checkpoint, *extra):
    """Returns the loss that fairseq-validate reports."""
    return validation(data_bin, checkpoint, *extra)["loss"]


def validation(data_bin, checkpoint, *extra, task="document_translation"):
    """Returns all that fairseq-validate reports, by name."""
    from fairseq.logging import progress_bar
    from fairseq_cli import validate as command

    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    progress_bar.logger.addHandler(handler)
    logging.disable(logging.NOTSET)

    fixed = translating(data_bin, checkpoint, task)
    fixed += ["--max-tokens", "60", "--log-format", "simple", *extra]
    args = options.parse_args_and_arch(options.get_validation_parser(), fixed)
    given = options.parse_args_and_arch(options.get_validation_parser(), fixed, suppress_defaults=True)
    command.main(convert_namespace_to_omegaconf(args), override_args=given)
    progress_bar.logger.removeHandler(handler)
    return {name: float(value) for name, value in re.findall(r"\| (\w+) (-?[\d.]+)(?= |$)", messages[-1])}


def interactive(data_bin, checkpoint, input_file, *extra, task="document_translation"):
    from fairseq_cli import interactive as command

    fixed = translating(data_bin, checkpoint, task)
    parser = options.get_interactive_generation_parser()
    args = options.parse_args_and_arch(parser, [*fixed, "--input", str(input_file), *extra])
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        command.main(convert_namespace_to_omegaconf(args))
    return parse(output.getvalue())


def parse(text):
    hypotheses = {}
    for number, score, tokens in re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", text, re.MULTILINE):
        assert int(number) not in hypotheses, f"sentence {number} printed twice"
        hypotheses[int(number)] = (tokens, round(float(score), 3))
    return Namespace(hypotheses=hypotheses, text=text)


def assert_bleu_is_of_translations(log, data_bin, checkpoint, *search, **options_):
    """Asserts that a training's last validation logged BLEU of what fairseq-generate translates with its checkpoint."""
    subset, logged = re.findall(r"valid on '(\w+)' subset .*\| bleu ([\d.]+)", log)[-1]
    text = generate_text(data_bin, checkpoint, "--gen-subset", subset, *search, **options_)
    references = re.findall(r"^T-\d+\t(.*)$", text, re.MULTILINE)
    found = [one.replace("<unk>", "UNKNOWN") for one in re.findall(r"^H-\d+\t\S+\t(.*)$", text, re.MULTILINE)]
    expected = sacrebleu.corpus_bleu(found, [references]).score
    assert expected > 0 and abs(float(logged) - expected) < 0.01, (logged, expected)


def log_of_processes(processes, data_bin, folder, key, *options_):
    """Returns the last validation that names ``key``, of a training by 1 or 2 processes with the same batches."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes)]
    command += ["-m", "fairseq_cli.train", *arguments(data_bin, *options_, "--save-dir", str(folder))]
    command += ["--distributed-backend", "gloo"] if processes == 2 else ["--update-freq", "2"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    lines = (result.stdout + result.stderr).splitlines()
    return json.loads(next(line[line.index("{") :] for line in reversed(lines) if f'"{key}' in line))


def export(path, *options, **settings):
    """Exports a checkpoint; options are output, format and precision."""
    from docnmt_fairseq.hub import exporting, formats  # noqa: F401  (registers them)

    exporting.export(exporting.ExportOptions(str(path), *options, **settings))
