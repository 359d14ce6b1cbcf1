"""The report of real_text.sh: reads the logs below its output folder, writes report.md, report.json and curves.png."""

import argparse
import json
import re
from pathlib import Path
from typing import Dict, List, Optional

from benchmarks.lib.machine import machine, table
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.evaluation.generate_log import restore_document_order
from docnmt_fairseq.evaluation.plots import COLOURS
from docnmt_fairseq.evaluation.scores import corpus_scores

MODELS = {"sentence": None, "scratch": None, "finetuned": "sentence_stage1"}  # and the training that one went on from
_RECORD = re.compile(r"\| INFO \| (train_inner|train|valid) \| (\{.*\})$")
_WALL = re.compile(r'"(?:train_)?wall": "([\d.]+)"')
_PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")


def records(log: Path, kind: str) -> List[Dict[str, str]]:
    """Returns the JSON records of a kind in a log of fairseq, in their order."""
    matches = (_RECORD.search(line) for line in log.read_text(encoding="utf-8").splitlines())
    return [json.loads(match[2]) for match in matches if match and match[1] == kind]


def curve(log: Path, kind: str, prefix: str) -> Dict[int, float]:
    """Returns {update: nll in bits a token}; of an update that an interrupted training repeated, the last."""
    values = {}
    for record in records(log, kind):
        if f"{prefix}num_updates" in record:
            values[int(record[f"{prefix}num_updates"])] = float(record[f"{prefix}nll_loss"])
    return dict(sorted(values.items()))


def seconds_of(log: Path) -> float:
    """Returns the time of a training with its validations: of all its processes, if it was interrupted."""
    runs = _PARAMETERS.split(log.read_text(encoding="utf-8"))[
        2::2
    ]  # each process logs that line once, then its records
    return sum(max([0.0, *(float(wall) for wall in _WALL.findall(run))]) for run in runs)


def loss_of(log: Path) -> float:
    """Returns the nll in bits a token that fairseq-validate logged."""
    return float(records(log, "valid")[-1]["valid_nll_loss"])


def facts(output: Path, name: str) -> dict:
    """Returns what the logs of one model say."""
    log, before = output / name / "train.log", MODELS[name]
    train, valid = curve(log, "train_inner", ""), curve(log, "valid", "valid_")
    updates = max([*train, *valid])
    seconds = seconds_of(log)
    if before:
        first = output / before / "train.log"
        offset = max(curve(first, "valid", "valid_"))
        train = {update + offset: value for update, value in train.items()}
        valid = {update + offset: value for update, value in valid.items()}
        updates, seconds = updates + offset, seconds + seconds_of(first)
    return {
        "updates": updates,
        "seconds": seconds,
        "parameters": int(_PARAMETERS.findall(log.read_text(encoding="utf-8"))[-1].replace(",", "")),
        "nll_with_context": loss_of(output / name / "valid_document.log"),
        "nll_without_context": loss_of(output / name / "valid_none.log"),
        "best_valid_nll": min(valid.values()),
        "best_valid_update": min(valid, key=valid.get),
        "train_curve": train,
        "valid_curve": valid,
    }


def split_line(reference: List[str], documents: int) -> Optional[int]:
    """Returns the line after the given number of documents, None if there are no more documents than that."""
    ends = [number for number, line in enumerate(reference) if not line]
    if not 0 < documents <= len(ends) or ends[documents - 1] + 1 >= len(reference):
        return None
    return ends[documents - 1] + 1


def scores(args: argparse.Namespace, name: str) -> dict:
    """Returns {part of the test set: BLEU, chrF, signatures}, the whole of it last."""
    text = args.output / "data" / "text"
    reference = list(read_lines(text / f"test.{args.target_lang}"))
    hypotheses = restore_document_order(args.output / name / "generate.log", text / f"test.{args.source_lang}")
    parts, split = {"all": slice(None)}, split_line(reference, args.split_after)
    if split:
        first, second = args.split_names
        parts = {first: slice(0, split), second: slice(split, None), **parts}
    return {part: corpus_scores(hypotheses[lines], reference[lines]).to_json() for part, lines in parts.items()}


def draw(models: Dict[str, dict], path: Path) -> None:
    """Writes the training curves: nll against updates, on the training set dashed, on the validation set full."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.6), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    for colour, (name, model) in zip(COLOURS, models.items()):
        train, valid = model["train_curve"], model["valid_curve"]
        panel.plot(
            list(train), list(train.values()), "--", color=colour, linewidth=0.9, alpha=0.7, label=f"{name}, train"
        )
        panel.plot(list(valid), list(valid.values()), "-o", color=colour, markersize=3.5, label=f"{name}, valid")
    lowest = min(min([*model["train_curve"].values(), *model["valid_curve"].values()]) for model in models.values())
    highest = max(max(model["valid_curve"].values()) for model in models.values())
    panel.set(xlabel="updates", ylabel="nll, bits a token", title="Training curves", ylim=(lowest - 0.3, highest + 0.6))
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(ncols=len(models), fontsize="small")
    figure.savefig(path)


def score_section(models: Dict[str, dict]) -> str:
    parts = next(iter(models.values()))["scores"]
    header = ["model", *(f"{part}: {metric}" for part in parts for metric in ("BLEU", "chrF"))]
    rows = []
    for name, model in models.items():
        values = [(score["bleu"], score["chrf"]) for score in model["scores"].values()]
        rows.append([name, *(f"{value:.2f}" for pair in values for value in pair)])
    sentences = ", ".join(f"{part} {score['sentences']:,}" for part, score in parts.items())
    signatures = {score[f"{metric}_signature"] for score in parts.values() for metric in ("bleu", "chrf")}
    signed = "; ".join(f"`{signature}`" for signature in sorted(signatures))
    return f"{table(header, rows)}\n\nSentences: {sentences}. Signatures: {signed}."


def training_section(models: Dict[str, dict]) -> str:
    header = [
        "model",
        "nll with context",
        "nll without",
        "best in training (update)",
        "updates",
        "minutes",
        "parameters",
    ]
    rows = []
    for name, model in models.items():
        losses = [f"{model['nll_with_context']:.3f}", f"{model['nll_without_context']:.3f}"]
        best = f"{model['best_valid_nll']:.3f} ({model['best_valid_update']:,})"
        counts = [f"{model['updates']:,}", f"{model['seconds'] / 60:.1f}", f"{model['parameters']:,}"]
        rows.append([name, *losses, best, *counts])
    return table(header, rows)


def report(args: argparse.Namespace, models: Dict[str, dict], commands: List[str]) -> str:
    stage = MODELS["finetuned"]
    return "\n\n".join(
        [
            "# Context on real text",
            machine(),
            f"Translations by checkpoint_{args.checkpoint}.pt, beam 4, scored in plain text:",
            score_section(models),
            "Validation loss (bits a token) of the same checkpoints, documents seen whole and with all context hidden; "
            f"`finetuned` counts the updates and minutes of `{stage}`, which it went on from:",
            training_section(models),
            "![Training curves](curves.png)",
            "Commands, in the project's folder:",
            "\n".join(["```bash", *commands, "```"]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="the output folder of real_text.sh")
    parser.add_argument("--source-lang", default="en")
    parser.add_argument("--target-lang", default="de")
    parser.add_argument("--checkpoint", default="last")
    parser.add_argument(
        "--split-after", type=int, default=23, help="documents of the test set's first part; 0: no parts"
    )
    parser.add_argument("--split-names", nargs=2, default=["first part", "second part"], help="names of the parts")
    args = parser.parse_args()
    models = {name: {**facts(args.output, name), "scores": scores(args, name)} for name in MODELS}
    commands = [line.rstrip() for line in read_lines(args.output / "commands.txt")]
    text = report(args, models, commands)
    draw(models, args.output / "curves.png")
    result = {"machine": machine(), "checkpoint": args.checkpoint, "models": models, "commands": commands}
    (args.output / "report.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (args.output / "report.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
