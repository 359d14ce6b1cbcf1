"""What a document could tell at most: a sentence-level model that is told whose handbook it is, and the register.

    python -m benchmarks.experiments.manuals_small_budget --raw FOLDER [--updates N] [--seeds 1]
    python -m benchmarks.experiments.manuals_told --raw FOLDER [--updates N] [--seed 1]

Before every source sentence stands the name of its project and which register most of its document's reference
sentences have, as no translator is told them: "contao, du: ...". In training either is left out now and then, so that
one model can be asked with each, both or none. It begins as the models of manuals_small_budget do, whose --work is
read, and gets as many updates. Writes benchmarks/results/manuals_told.md.
"""

import argparse
import random
import shutil
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from benchmarks.experiments.manuals_small_budget import NAME, UPDATES, dataset_of, folder_of_seed
from benchmarks.lib.machine import RESULTS, ROOT, call, machine, table, write
from benchmarks.lib.progress import steps_told
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.evaluation.register_rules import RULES, RegisterRule
from docnmt_fairseq.evaluation.texts import References, read_references, read_text
from docnmt_fairseq.recipes.dataset import DatasetConfig, SplitConfig
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.processes import alone_in, ending_on_signals
from docnmt_fairseq.recipes.result_files import ResultFiles
from docnmt_fairseq.recipes.results import read_scores
from docnmt_fairseq.recipes.run import Options, Recipe
from docnmt_fairseq.recipes.scoring import compared
from docnmt_fairseq.recipes.training import BEST

LEFT_OUT = 0.25  # of the training sentences, each fact by itself
LABELS = "test.register.tsv"
Facts = Tuple[Optional[str], Optional[str]]  # project, register
# By test set: whether project and register are told.
TOLD: Dict[str, Tuple[bool, bool]] = {
    "test": (False, False),
    "project": (True, False),
    "register": (False, True),
    "both": (True, True),
}
TITLES = {"test": "nothing", "project": "the project", "register": "the register", "both": "both"}
HEADER = ["told", "BLEU", "beside nothing told", "95 %", "p", "chrF", "register", "of all"]
READING = """\
The project is that of the document; the register the one that most sentences of its reference show which show one for
sure: an oracle, not a translation. *Beside nothing told*: the same model asked without either; p and interval by a
paired bootstrap over whole documents. What is told of a document is true of all of it, so this is what the kind of
knowledge is worth that its topic gives, after so many updates; what single sentences before say, a name's gender or
a word's translation, is not in it."""


def projects_of(raw: Path, split: str) -> Dict[Tuple[str, ...], str]:
    """Returns the project of every document of a split, by its normalised source sentences."""
    lines = (raw / f"{split}.en").read_text(encoding="utf-8").split("\n")
    found = {}
    for row in (raw / f"{split}.documents.tsv").read_text(encoding="utf-8").splitlines():
        first, number, project = row.split("\t")[:3]
        document = tuple(normalise(line) for line in lines[int(first) : int(first) + int(number)])
        found[document] = project
    return found


def register_of_document(sentences: Iterable[str], rule: RegisterRule) -> Optional[str]:
    """Returns the register that most sentences show which show one for sure, None if none does."""
    shown = Counter(filter(None, (rule.register_of(sentence, unambiguous_only=True) for sentence in sentences)))
    return shown.most_common(1)[0][0] if shown else None


def told(sentence: str, facts: Facts) -> str:
    """Returns a source sentence with what is told of its document before it."""
    known = ", ".join(fact for fact in facts if fact is not None)
    return f"{known}: {sentence}" if known else sentence


def with_facts(
    text: References, projects: Dict[Tuple[str, ...], str], rule: RegisterRule, telling: Callable[[], Sequence[bool]]
) -> Iterator[List[str]]:
    """Yields the source sentences of every document with facts before them.

    Args:
        text: source and reference.
        projects: by document; of one that is not among them none is told.
        rule: of register.
        telling: whether project and register are told, asked for every sentence.
    """
    for source, reference in zip(text.source or [], text.streams[0]):
        known = (projects.get(tuple(source)), register_of_document(reference, rule))
        yield [told(sentence, _kept(known, telling())) for sentence in source]


def _kept(known: Facts, keep: Sequence[bool]) -> Facts:
    project, register = (fact if kept else None for fact, kept in zip(known, keep))
    return project, register


def write_raw(text: Path, raw: Path, folder: Path, seed: int) -> None:
    """Writes the corpus that is told: training, validation and a test set for each of :data:`TOLD`.

    Args:
        text: of the small budget's data, as prepared, its training documents balanced.
        raw: with the projects of the documents.
        folder: to write to.
        seed: of what is left out in training.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rule, draw = RULES["de"](), random.Random(seed)

    def at_times() -> Sequence[bool]:
        return draw.random() >= LEFT_OUT, draw.random() >= LEFT_OUT

    sets: Dict[str, Tuple[str, Callable[[], Sequence[bool]]]] = {
        "train": ("train", at_times),
        "valid": ("valid", partial(tuple, TOLD["both"])),
        **{name: ("test", partial(tuple, keep)) for name, keep in TOLD.items()},
    }
    for name, (split, telling) in sets.items():
        read = read_references([text / f"{split}.de"], text / f"{split}.en")
        documents = with_facts(read, projects_of(raw, split), rule, telling)
        (folder / f"{name}.en").write_text(delimited(documents), encoding="utf-8")
        (folder / f"{name}.de").write_text(delimited(read.streams[0]), encoding="utf-8")
    shutil.copyfile(raw / LABELS, folder / LABELS)


def delimited(documents: Iterable[List[str]]) -> str:
    """Returns text with a sentence a line and an empty line after each document."""
    return "".join("\n".join([*sentences, "", ""]) for sentences in documents)


def dataset_told(seed: int, updates: int, data: Path, start: Path) -> DatasetConfig:
    """The small budget's recipe with the corpus that is told.

    Args:
        seed: of the start.
        updates: after it.
        data: of the small budget, whose subwords and dictionaries are taken.
        start: the checkpoint that the model begins as.
    """
    usual = dataset_of(seed, updates)
    names = ["train", "valid", *TOLD]
    options = [*usual.training.options, "--finetune-from-model", str(start)]
    labels = {**usual.scores.options, "register_labels": dict.fromkeys(TOLD, LABELS)}
    return replace(
        usual,
        title="English-German handbooks, told",
        splits={name: SplitConfig("delimited", [[f"{name}.en", f"{name}.de"]]) for name in names},
        prepare={"reuse": str(data)},
        training=replace(usual.training, options=options, start=None),
        scores=replace(usual.scores, options=labels),
    )


def rows_of(recipe: Recipe, seed: int) -> List[List[str]]:
    """Returns the rows of the report: a test set each."""
    rows, folder, text = [], recipe.output / "models" / f"sentence-{seed}", recipe.output / "data" / "text"
    references = read_references([text / "test.de"], text / "test.en")
    nothing = read_text(ResultFiles(folder, "test").text, references, "score")
    for name in TOLD:
        files = ResultFiles(folder, name)
        scores = read_scores(files, significance=False)
        further = [scores["metrics"][metric]["score"] for metric in ("register", "register-of-all")]
        beside = ["–", "–", "–"]
        if name != "test":
            found = compared(references, nothing, read_text(files.text, references, "score"), "none")
            low, high = found["difference_interval"]
            beside = [f"{found['difference']:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{found['p_value']:.3f}"]
        shown = ["–" if score is None else f"{score:.1f}" for score in further]
        rows.append([TITLES[name], f"{scores['bleu']:.2f}", *beside, f"{scores['chrf']:.2f}", *shown])
    return rows


@steps_told()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / NAME, help="folder with its models")
    parser.add_argument("--updates", type=int, default=UPDATES, help=f"after the start (default: {UPDATES})")
    parser.add_argument("--seed", type=int, default=1, help="of its models")
    parser.add_argument("--raw", type=Path, required=True, help="the recipe's --raw: labels, projects of documents")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--smoke", action="store_true", help="a few documents, tiny models: figures mean nothing")
    args = parser.parse_args()

    work = folder_of_seed(args.work, args.updates, args.seed)
    start = (work / "models" / "start" / BEST).absolute()
    if not start.exists():
        parser.error(f"{start}: is not there; train it with manuals_small_budget, or give its --work and --updates")
    output = work / "told"
    dataset = dataset_told(args.seed, args.updates, (work / "data").absolute(), start)
    options = Options(output, output / "raw", ("sentence",), (args.seed,), Machine(cpu=True), smoke=args.smoke)
    recipe = Recipe(dataset, options)
    with alone_in(output), ending_on_signals():
        write_raw(work / "data" / "text", args.raw, output / "raw", args.seed)
        recipe.run()
    lines = ["# What a document could tell at most", "", table(HEADER, rows_of(recipe, args.seed)), "", READING, ""]
    lines += [f"`{call(args.raw)}`  ", machine()]
    write("manuals_told.md", "\n".join(lines), args.results)


if __name__ == "__main__":
    main()
