"""Choice between context and none for each document, without labels, on the handbooks.

    python -m benchmarks.experiments.context_choice --raw FOLDER [--updates 4000] [--seed 1] [--model conditional]

The models are those of the study small-budget of handbooks.py, trained if they do not exist. A document keeps its
translation with context if a criterion is not among the lowest of the validation documents, which come from projects of
the training set:

    likelihood, no context       mean score of the translation with context minus that without
    likelihood, false context    the same minus that among sentences of other documents
    likelihood, sentence-level   the same minus that of the sentence-level model
    similarity                   cosine with the nearest training document (TF-IDF of words, punctuation, bigrams)
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.experiments.handbooks import SMALL_BUDGET, recipe_for, seed_folder, small_dataset
from benchmarks.lib.recipe_results import BASELINE
from benchmarks.lib.reporting import RESULTS, ROOT, command, machine, progress_logged, table, write
from docnmt_fairseq.corpus.delimited import read_documents
from docnmt_fairseq.evaluation.metrics.base import Metric
from docnmt_fairseq.evaluation.metrics.sacrebleu_metrics import Bleu, BleuOptions
from docnmt_fairseq.evaluation.significance import SEED, TESTS
from docnmt_fairseq.evaluation.texts import read_references
from docnmt_fairseq.files import read_json, write_json
from docnmt_fairseq.recipes.dataset import NO_CONTEXT
from docnmt_fairseq.recipes.recipe import Recipe
from docnmt_fairseq.recipes.results import make_metrics
from docnmt_fairseq.recipes.training import BEST
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.lines import EMPTY_LINES
from docnmt_fairseq.translate.shuffled_context import ShuffledContext
from docnmt_fairseq.translate.translator import DocumentTranslator
from docnmt_fairseq.translate.view import DocumentView

VALID = "valid"
QUANTILES = (0.05, 0.1, 0.2)  # shares of the validation documents that lose their context
SENTENCE, TRUE, FALSE, NONE = "sentence-level", "context", "false context", "no context"
TOKEN = r"\w+|[^\w\s]+"  # words and punctuation

Documents = list[list[str]]  # sentences of each document


class Translations:
    """Translations of a test set by each system, and their scores.

    Args:
        recipe: recipe with trained models.
        folders: folder of the model by system.
        split: split of the prepared data.
    """

    def __init__(self, recipe: Recipe, folders: dict[str, Path], split: str):
        self.source = sentences_of(recipe, split)
        self.text: dict[str, Documents] = {}
        self.scores: dict[str, np.ndarray] = {}  # [documents], mean over sentences
        for system, folder in folders.items():
            path = folder / f"choice.{split}.{system.replace(' ', '-')}.json"
            if not path.exists():
                write_json(path, self._translated(recipe.output / "data", folder / BEST, system))
            found = read_json(path)
            self.text[system] = found["text"]
            self.scores[system] = np.array([np.mean(document) for document in found["scores"]])

    def _translated(self, data: Path, checkpoint: Path, system: str) -> dict[str, Any]:
        view = DocumentView(context=NO_CONTEXT if system == NONE else None, max_document_sentences=0)
        view = DocumentView() if system == SENTENCE else view
        translator = DocumentTranslator.from_checkpoint(
            checkpoint, data=data, view=view, search=SearchOptions(beam=4), max_tokens=4000, cpu=True
        )
        shown = ShuffledContext(translator) if system == FALSE else translator
        lines = shown.translate_lines(self.source, [], EMPTY_LINES[0], lambda sentences: None)
        return {
            "text": [[line.text for line in document] for document in lines],
            "scores": [[line.translations[0].score for line in document] for document in lines],
        }


def sentences_of(recipe: Recipe, split: str) -> Documents:
    """Returns the source sentences of each document of a split."""
    path = recipe.output / "data" / "text" / f"{split}.{recipe.dataset.source_lang}"
    return [[text for (text,) in document.sentences()] for document in read_documents([path])]


def similarity_to(training: Documents) -> Callable[[Documents], np.ndarray]:
    """Returns the function from documents to their cosine with the nearest training document, [documents]."""
    vectorizer = TfidfVectorizer(lowercase=False, token_pattern=TOKEN, ngram_range=(1, 2), sublinear_tf=True)
    known = vectorizer.fit_transform(map("\n".join, training))

    def nearest(documents: Documents) -> np.ndarray:
        vectors = vectorizer.transform(map("\n".join, documents))
        return np.asarray((vectors @ known.T).max(axis=1).todense())[:, 0]

    return nearest


def chosen(keep: np.ndarray, one: Documents, other: Documents) -> Documents:
    """Returns the documents of ``one`` where ``keep`` [documents], otherwise those of ``other``."""
    return [first if kept else second for kept, first, second in zip(keep, one, other)]


def criteria_of(translations: Translations, similarity: Callable[[Documents], np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the criteria of a test set, [documents]; higher values mean that context helps."""
    scores = translations.scores
    found = {f"likelihood, {name}": scores[TRUE] - scores[name] for name in (NONE, FALSE, SENTENCE)}
    return {**found, "similarity": similarity(translations.source)}


def right_of(metric: Metric, text: Documents) -> np.ndarray:
    """Returns right and wrong registers of each document, [documents, 2]."""
    starts = np.cumsum([0, *map(len, text[:-1])])
    right, shown, _ = np.add.reduceat(np.array(metric.statistics(text)), starts, axis=0).T
    return np.stack([right, shown - right], axis=1)


def scores_of(
    systems: dict[str, Documents], shares: dict[str, float], register: Metric, bleu: Metric
) -> dict[str, list[str]]:
    """Returns register, its p-value against the first system, BLEU, and share with context of each system."""
    test, compared = TESTS["documents"](), []
    for metric in (register, bleu):
        statistics = {name: metric.statistics(text) for name, text in systems.items()}
        compared.append(test.compare(metric, statistics, test.samples, SEED).outcomes)
    rows = {}
    for name in systems:
        right, words = (outcomes[name] for outcomes in compared)
        p_value = "–" if right.p_value is None else f"{right.p_value:.3f}"
        rows[name] = [f"{right.score:.1f}", p_value, f"{words.score:.2f}", f"{shares.get(name, 0.0):.0%}"]
    return rows


@progress_logged()
def main(argv: Sequence[str] | None = None) -> None:
    """Trains, translates, chooses, writes the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raw", type=Path, help="--raw of the recipe en_de_manuals")
    parser.add_argument("--work", type=Path, default=ROOT / "work" / SMALL_BUDGET, help="folder with data and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="output folder")
    parser.add_argument("--model", default="conditional", help="model with context (default: conditional)")
    parser.add_argument("--updates", type=int, default=4000, help="updates after the start (default: 4000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="artificial text and tiny models, to test the study")
    args = parser.parse_args(argv)

    dataset, output = small_dataset(args.seed, args.updates), seed_folder(args.work, args.updates, args.seed)
    recipe = recipe_for(dataset, output, (BASELINE, args.model), args.seed, args, stop_after="train")
    recipe.run()
    folders = {SENTENCE: recipe.folder(BASELINE, args.seed)}
    folders |= dict.fromkeys((TRUE, FALSE, NONE), recipe.folder(args.model, args.seed))
    similarity = similarity_to(sentences_of(recipe, "train"))
    known = criteria_of(Translations(recipe, folders, VALID), similarity)

    parts: dict[str, dict[str, list[str]]] = {}
    for test_set, split in recipe.dataset.test_sets.items():
        translations = Translations(recipe, folders, split)
        text = recipe.output / "data" / "text"
        references = read_references([text / f"{split}.{dataset.target_lang}"], text / f"{split}.{dataset.source_lang}")
        register = make_metrics(recipe.dataset.scores, test_set, references, recipe.fetch(), args.smoke)["register"]
        assert register is not None
        choices = {}  # documents with context, and the system that translates the others
        for name, values in criteria_of(translations, similarity).items():
            for share, other in [*((share, SENTENCE) for share in QUANTILES), (QUANTILES[1], NONE)]:
                choices[f"{name}, {share:.0%}, otherwise {other}"] = values >= np.quantile(known[name], share), other
        gains = [right_of(register, translations.text[system]) @ [1, -1] for system in (TRUE, SENTENCE)]
        choices[f"best by the labels, otherwise {SENTENCE}"] = gains[0] > gains[1], SENTENCE
        systems, shares = dict(translations.text), {TRUE: 1.0, FALSE: 1.0}
        for name, (keep, other) in choices.items():
            systems[name], shares[name] = chosen(keep, translations.text[TRUE], translations.text[other]), keep.mean()
        parts[test_set] = scores_of(systems, shares, register, Bleu(references, BleuOptions()))
    columns = ("register", "p", "BLEU", "with context")
    header = ["translation", *(f"{test_set}: {column}" for test_set in parts for column in columns)]
    rows = [[name, *(cell for part in parts.values() for cell in part[name])] for name in parts["test"]]
    write(
        "context_choice",
        [
            "# Context or none for each document, chosen without labels",
            f"`{command(args.raw)}`  \n{machine()}",
            f"{args.model} with {args.updates:,} updates after a sentence-level start of 5,000, seed {args.seed}. p: "
            f"register against {SENTENCE}, paired bootstrap over whole documents. With context: share of documents.",
            table(header, rows),
            "Criterion, share of validation documents below the threshold, translation of documents without context.",
        ],
        args.results,
    )


if __name__ == "__main__":
    main()
