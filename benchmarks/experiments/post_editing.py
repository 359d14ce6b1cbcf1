"""The post-editing grid of [L] Table 1 on artificial text: combination, shared projections, sentinel.

    python -m benchmarks.experiments.post_editing [--seeds 1 2] [--updates 8000] [--results DIR]

Minutes a model on one core (OMP_NUM_THREADS=1); seeds can be run side by side. Run again, it goes on where it was; the
report is written after every model. Writes benchmarks/results/post_editing.md and .json.
"""

import argparse
import json
import random
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from benchmarks.lib.curves import validation_curve
from benchmarks.lib.machine import RESULTS, ROOT, call, machine, table
from benchmarks.lib.progress import steps_told
from benchmarks.lib.store import Store
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import models
from docnmt_fairseq.recipes.processes import alone_in, ending_on_signals
from docnmt_fairseq.recipes.run import UNCHANGED, Options, Recipe
from docnmt_fairseq.recipes.scoring import scores_of_unchanged

PREFIX = "mt-rnn-"
SPLITS = ("train", "dev", "test")
SENTENCES = (12000, 1000, 2000)  # as in the paper
WORDS, SENSES = 100, 20  # source words; those of them that have two translations
LENGTHS = (4, 9)
# Of 100 words of the machine translation; what it does to words of two senses comes on top.
DROPPED, REPEATED, REPLACED, SWAPPED = 4, 3, 4, 4
# Batches of three times the size, twice the rate and dropout taught only to keep, in 1,200 updates on longer sentences.
WIDTH, BATCH_TOKENS = 96, 500
WITHOUT_SOURCE = 0.5  # bits an operation in validation; those that look at the machine translation alone end above
OPTIONS = f"""
    --optimizer adam --lr-scheduler fixed --lr 0.001 --criterion cross_entropy --dropout 0 --clip-norm 1.0
    --encoder-embed-dim {WIDTH} --encoder-hidden-size {WIDTH} --decoder-embed-dim {WIDTH} --decoder-hidden-size {WIDTH}
    --decoder-out-embed-dim {WIDTH} --attention-dim {WIDTH} --context-vector-dim {WIDTH}
""".split()

READING = f"""\
Sentences have {LENGTHS[0]} to {LENGTHS[1]} words. A source word has one translation, or one of two by the word before
it; the machine always takes the same one, drops {DROPPED} words of 100, repeats {REPEATED}, replaces {REPLACED} by any
word and swaps {SWAPPED} with the next. So the source is needed for what was dropped or replaced and for the second
senses; most of the machine translation can be kept as it is. The target is a sequence of edit operations, as in the
recipe `ape`, whose models these are, narrower: {WIDTH} instead of 300 and 500. What was published is of English-German
text: differences between rows can be compared, not rows.

First all learn to keep or drop words of the machine translation, which leaves about 0.55 bits an operation in
validation. Then they find the source, or not within the updates that they have. "Source used from" is the first
validation below {WITHOUT_SOURCE}; –: none was.
"""


class Language:
    """Words and what the machine makes of them."""

    def __init__(self) -> None:
        chance = random.Random(0)
        self.weights = [1 / (rank + 10) for rank in range(WORDS)]
        self.senses = set(chance.sample(range(WORDS), SENSES))
        self.rarer_after = {word: {chance.randrange(WORDS) for _ in range(WORDS // 3)} for word in sorted(self.senses)}

    def sentence(self, chance: random.Random) -> List[int]:
        """A source sentence."""
        return chance.choices(range(WORDS), self.weights, k=chance.randint(*LENGTHS))

    def translation(self, source: Sequence[int]) -> List[str]:
        """What a post-editor leaves."""
        return [
            f"t{word}b" if word in self.senses and before in self.rarer_after[word] else f"t{word}"
            for before, word in zip([None, *source], source)
        ]

    def machine_translation(self, source: Sequence[int], chance: random.Random) -> List[str]:
        """What the machine says."""
        found: List[str] = []
        for word in source:
            drawn = chance.random() * 100 - DROPPED
            if drawn < 0:
                continue
            replaced = drawn < REPLACED
            found.append(f"t{chance.choices(range(WORDS), self.weights)[0] if replaced else word}")
            if REPLACED <= drawn < REPLACED + REPEATED:
                found.append(found[-1])
        for place in range(len(found) - 1):
            if chance.random() * 100 < SWAPPED:
                found[place : place + 2] = found[place + 1], found[place]
        return found or [f"t{source[0]}"]


def corpus(sentences: int, seed: int) -> Iterator[Tuple[str, str, str]]:
    """Yields source, machine translation and post-edit."""
    language, chance = Language(), random.Random(seed)
    for _ in range(sentences):
        source = language.sentence(chance)
        sides = [f"s{word}" for word in source], language.machine_translation(source, chance)
        yield " ".join(sides[0]), " ".join(sides[1]), " ".join(language.translation(source))


def write_corpus(folder: Path, sizes: Sequence[int]) -> None:
    """Writes the files that the recipe asks for."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, sentences) in enumerate(zip(SPLITS, sizes)):
        for ending, lines in zip(("src", "mt", "pe"), zip(*corpus(sentences, seed))):
            (folder / f"{split}.{ending}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def dataset_of(updates: int) -> DatasetConfig:
    """The recipe ``ape`` on this text, with words for pieces, and a training that a core can pay."""
    paper = read_dataset_config(named_recipes()["ape"])
    training = replace(
        paper.training,
        updates=updates,
        batch_tokens=BATCH_TOKENS,
        validate_every=max(updates // 10, 1),
        options=OPTIONS,
    )
    prepare = {**paper.prepare, "subwords": "none"}
    prepare.pop("vocab_size", None)
    title = "Automatic post-editing of artificial text"
    return replace(paper, title=title, prepare=prepare, training=training, published=None)


def uses_the_source(curve: Sequence[Sequence[float]]) -> str:
    """The update at which a validation says that more than the machine translation is used; never: –."""
    return next((f"{int(update):,}" for update, loss in curve if loss < WITHOUT_SOURCE), "–")


def report(stored: Store, updates: int) -> str:
    """The report of all models trained so far."""
    paper = read_dataset_config(named_recipes()["ape"]).published
    assert paper is not None
    runs: Dict[str, List[Dict[str, Any]]] = {}
    for run in sorted(stored.runs.values(), key=lambda run: run["seed"]):
        runs.setdefault(run["model"], []).append(run)
    rows = [[UNCHANGED, *(f"{stored.facts['unchanged'][score]:.2f}" for score in ("bleu_tokens", "hter")), "", ""]]
    rows[0] += ["", "", f"{paper.hter[UNCHANGED]}"]
    for name in (known for known in models() if known in runs):
        figures = []
        for score, digits in (("bleu_tokens", 2), ("hter", 2)):
            values = [run[score] for run in runs[name]]
            figures.append((" / ".join(f"{value:.{digits}f}" for value in values), f"{mean(values):.{digits}f}"))
        (bleu, mean_bleu), (hter, mean_hter) = figures
        published = [f"{paper.bleu[name]}", f"{paper.hter[name]}"]
        seen = " / ".join(uses_the_source(run["curve"]) for run in runs[name])
        rows.append([name[len(PREFIX) :], bleu, hter, mean_bleu, mean_hter, seen, *published])
    header = ["model", "BLEU", "HTER", "mean BLEU", "mean HTER", "source used from", "published BLEU", "published HTER"]
    sizes = "Sentences: " + ", ".join(f"{split} {n:,}" for split, n in zip(SPLITS, stored.facts["sentences"]))
    calls = "\n".join(f"`{one}`  " for one in stored.facts["calls"])
    return (
        f"# Post-editing: the grid of [L] Table 1 on artificial text\n\n{calls}\n{stored.facts['machine']}\n\n"
        f"{READING}\n{sizes}; {updates:,} updates. Seeds stand beside each other in order.\n\n"
        + table(header, rows)
        + "\n"
    )


@steps_told()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "post_editing", help="folder for data and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--models", nargs="+", help="default: all rows of the table")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--updates", type=int, default=8000)
    parser.add_argument("--sentences", nargs=3, type=int, default=SENTENCES, metavar=("TRAIN", "DEV", "TEST"))
    args = parser.parse_args()

    dataset = dataset_of(args.updates)
    for seed in args.seeds:
        raw, output = args.work / f"corpus-{seed}", args.work / f"recipe-{seed}"
        if not raw.exists():
            write_corpus(raw, args.sentences)
        for name in args.models or [name for name in models() if name.startswith(PREFIX)]:
            recipe = Recipe(dataset, Options(output, raw, (name,), (seed,), Machine(cpu=True)))
            with alone_in(output), ending_on_signals():
                recipe.run()
            stored = Store(args.results / "post_editing.json")  # where another process may have written, too
            stored.called(call(None))
            stored.facts.update(machine=machine(), sentences=list(args.sentences))
            stored.facts["unchanged"] = scores_of_unchanged(output / "data", "test", "mt")
            scores = json.loads((output / "models" / f"{name}-{seed}" / "scores.json").read_text(encoding="utf-8"))
            run = {"model": name, "seed": seed, "bleu_tokens": scores["bleu_tokens"], "hter": scores["hter"]}
            run["curve"] = validation_curve(output / "models" / f"{name}-{seed}" / "train.log")
            stored.add(f"{name}-{seed}", run)
            (args.results / "post_editing.md").write_text(report(stored, args.updates), encoding="utf-8")
            print(f"{name}, seed {seed}: BLEU {run['bleu_tokens']:.2f}, HTER {run['hter']:.2f}", flush=True)


if __name__ == "__main__":
    main()
