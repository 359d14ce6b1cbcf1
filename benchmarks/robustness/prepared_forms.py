"""What the package itself writes, and what it takes from others beside corpora."""

from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
import torch
import yaml

import docnmt_fairseq
from benchmarks.robustness.commands import PLUGIN, TINY
from benchmarks.robustness.subjects import LINES, Subject, small_text, written
from docnmt_fairseq import cli

SPLITS = ("train", "valid", "test")


def _prepared(folder: Path) -> Path:
    """Text, prepared with a subword model."""
    text, output = folder / "in", folder / "prepared"
    if not (output / "manifest.json").is_file():
        for split in SPLITS:
            for side, change in (("en", str), ("de", str.upper)):
                written(text / f"{split}.{side}", "\n".join(map(change, LINES)) + "\n")
        splits = [word for split in SPLITS for word in (f"--{split}", str(text / split))]
        options = ["--tokenizer", "moses", "--truecase", "--subwords", "unigram", "--vocab-size", "50"]
        if cli.main(["prepare", "-s", "en", "-t", "de", *splits, *options, "--output", str(output), "--workers", "1"]):
            raise RuntimeError("the text of the readers cannot be prepared")
    return output


def _task(folder: Path) -> Any:
    docnmt_fairseq.register()
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    arguments = [str(folder), "--user-dir", PLUGIN, "--task", "document_translation", "--arch", "document_transformer"]
    arguments += [*TINY, "--optimizer", "adam", "--cpu"]
    args = options.parse_args_and_arch(options.get_training_parser(), arguments)
    cfg = convert_namespace_to_omegaconf(args)
    return cfg, tasks.setup_task(cfg.task)


def _data_bin(folder: Path) -> Subject:
    data = _prepared(folder) / "data-bin"

    def read(_: Path) -> None:
        _, task = _task(data)
        task.load_dataset("train")
        dataset = task.dataset("train")
        for number in range(len(dataset)):
            dataset.collater([dataset[number]])

    return Subject([path for ending in ("idx", "bin") for path in sorted(data.glob(f"train.*.{ending}"))], read)


def _index(folder: Path) -> Subject:
    subject = _data_bin(folder)
    files = sorted((_prepared(folder) / "data-bin").glob("train.*.index.npy"))
    return Subject(files, subject.read)


def _dictionary(folder: Path) -> Subject:
    data = _prepared(folder) / "data-bin"
    return Subject([data / "dict.en.txt"], lambda _: _task(data))


def _checkpoint(folder: Path) -> Subject:
    from docnmt_fairseq.checkpoints import load_ensemble

    data, path = _prepared(folder), folder / "checkpoint.pt"
    cfg, task = _task(data / "data-bin")
    torch.manual_seed(1)
    model = task.build_model(cfg.model)
    torch.save({"cfg": cfg, "model": model.state_dict(), "args": None, "extra_state": {}, "optimizer_history": [
        {"criterion_name": "x", "best_loss": None, "optimizer_name": "x", "lr_scheduler_state": {}, "num_updates": 1}
    ], "task_state": {}, "last_optimizer_state": None}, path)  # fmt: skip
    return Subject([path], lambda _: load_ensemble(path, data=data))


def _text_models(names: List[str]) -> Callable[[Path], Subject]:
    """What turns text into symbols, of ``docnmt prepare``'s output."""

    def subject(folder: Path) -> Subject:
        from docnmt_fairseq.corpus.text_codec import TextCodec

        output = _prepared(folder)

        def read(_: Path) -> None:
            codec = TextCodec.of_output(output)
            for side in (0, 1):
                codec.encode(side, LINES)

        return Subject([path for name in names for path in sorted(output.glob(name))], read)

    return subject


def _codes(folder: Path) -> Subject:
    from docnmt_fairseq.corpus.bpe_codes import bpe_encoder

    path = written(folder / "codes", "#version: 0.2\nt h\nth e</w>\nc a\nca t</w>\n")
    return Subject([path], lambda _: bpe_encoder(path)([line for line in LINES if line]))


def _features(name: str, save: Callable[..., None], **arrays: np.ndarray) -> Callable[[Path], Subject]:
    def subject(folder: Path) -> Subject:
        from docnmt_fairseq.data.features import FeatureFile

        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        if arrays:
            save(path, **arrays)
        else:
            save(path, np.arange(12, dtype=np.float32).reshape(4, 3))

        def read(_: Path) -> None:
            file = FeatureFile(path)
            for line in range(min(file.lines, 1000)):
                file.rows(line)

        return Subject([path], read)

    return subject


RAGGED = {"values": np.arange(12, dtype=np.float32).reshape(4, 3), "offsets": np.array([0, 1, 1, 4])}


def _similar(folder: Path) -> Subject:
    from docnmt_fairseq.data.similar import read_similar, similar_file

    folder.mkdir(parents=True, exist_ok=True)
    path = similar_file(folder / "train.en-de.en")
    np.save(path, np.ones((6, 10), dtype=np.int16))
    return Subject([path], lambda _: np.sum(read_similar(folder, "train", ("en", "de"), range(6), 4)))  # type: ignore[arg-type]


def _embedding(folder: Path) -> Subject:
    from docnmt_fairseq.embedding.model import SentenceEmbedding

    path = folder / "model.npz"
    words = written(folder / "words.vec", "3 2\nthe 0.1 0.2\ncat 0.3 -0.1\n. 0 0.5\n")
    text = small_text(folder)[0]
    if cli.main(["embed", "fit", "--corpus", str(text), "--vectors", str(words), "--output", str(path)]):
        raise RuntimeError("no model of sentence vectors")
    return Subject([path], lambda _: SentenceEmbedding.load(path))


def _recipe(folder: Path) -> Subject:
    from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config

    values = yaml.safe_load(named_recipes()["en_de_manuals"].read_text(encoding="utf-8"))
    path = written(folder / "recipe.yaml", yaml.safe_dump(values))
    return Subject([path], lambda _: read_dataset_config(path))


def _stamp(folder: Path) -> Subject:
    from docnmt_fairseq.corpus.steps import Steps

    made, steps = written(folder / "made", "content"), Steps(folder, folder / "summary")
    steps.run("step", {"option": 1}, [made], lambda: {"tokens": {"train": [3, 4]}})

    def read(_: Path) -> None:
        known = steps.known("step", {"option": 1}, [made])
        if known is not None and known.values != {"tokens": {"train": [3, 4]}}:
            raise RuntimeError(f"values that nobody wrote: {known.values}")

    return Subject([steps.stamp("step")], read)


def _tensors(folder: Path) -> Subject:
    from safetensors.torch import save_file

    from docnmt_fairseq.pretrained.tensors import Tensors

    folder.mkdir(parents=True, exist_ok=True)
    save_file({"a.weight": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4)}, folder / "model.safetensors")

    def read(_: Path) -> None:
        tensors = Tensors.of_folder(folder)
        tensors.take("a.weight", (2, 3))
        tensors.take("b", (4,))

    return Subject([folder / "model.safetensors"], read)


PREPARED: Dict[str, Callable[[Path], Subject]] = {
    "data-bin": _data_bin,
    "index of documents": _index,
    "dictionary": _dictionary,
    "checkpoint": _checkpoint,
    "SentencePiece": _text_models(["models/*.model"]),
    "truecaser": _text_models(["models/*truecas*"]),
    "manifest": _text_models(["manifest.json"]),
    "BPE codes": _codes,
    "features: .npy": _features("f.npy", np.save),
    "features: .npz": _features("f.npz", np.savez, **RAGGED),
    "features: .npz, compressed": _features("f.npz", np.savez_compressed, **RAGGED),
    "similar sentences": _similar,
    "sentence vectors": _embedding,
    "recipe": _recipe,
    "stamp of a step": _stamp,
    "safetensors": _tensors,
}
