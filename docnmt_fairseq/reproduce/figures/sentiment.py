"""Figures ``sentiment``: logistic regression on the average of word vectors or on CA-BSFE ([Z] sec. 4.2)."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Dict, Iterable, List, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.ca_layers.embeddings import SparseFeatures
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.tokenizers import tokenizer
from docnmt_fairseq.reproduce.base import FIGURES, Cell
from docnmt_fairseq.reproduce.figures.classification import Accuracies, Batch, Budget, train

UPDATES, UPDATES_PER_SECOND = 6_000_000, 320  # CA-BSFE of 90,000 words, texts of 230, on one CPU core
DIM = 5  # of word vectors, and of the word vectors of χ
UNSEEN = -1  # word that is not in the training set
Labelled = List[Tuple[int, List[str]]]  # label, 0 or 1, and words of each text


@FIGURES.register("sentiment")
class Sentiment(Accuracies):
    """Accuracy of a text representation (``bag``) on a data set: files SET.train.tsv and SET.test.tsv."""

    settings = ("set", "bag", "em_steps", "take", "updates")

    def hours(self) -> float:
        """CPU hours of all trainings."""
        updates = (self.request.updates or cell.settings.get("updates", UPDATES) for cell in self.cells)
        return float(len(self.request.seeds) * sum(updates) / UPDATES_PER_SECOND / 3600)

    def accuracies(self, cell: Cell, seed: int) -> List[float]:
        examples, test, symbols = self._data(cell.settings["set"])
        model = classifier(cell.settings["bag"], symbols)
        return train(model, examples, test, self.budget_of(cell), seed, self.device)

    def budget_of(self, cell: Cell) -> Budget:
        return self.budget(cell, updates=UPDATES, batch=16, lr=0.1)

    @cache  # noqa: B019  (lives as long as the run)
    def _data(self, name: str) -> Tuple["Bags", "Bags", int]:
        texts = []
        for number, part in enumerate(("train", "test")):
            file = f"{name}.{part}.tsv"
            if self.request.smoke:
                path = self.request.output / "made-up" / file
                path.parent.mkdir(parents=True, exist_ok=True)
                write_synthetic_texts(path, 64, seed=number)
            else:
                path = self.file(file)
            texts.append(read_labelled(path))
        dictionary = dictionary_of(texts[0])
        examples, test = (Bags.of(of_part, dictionary) for of_part in texts)
        return examples, test, len(dictionary)


def read_labelled(path: Path) -> Labelled:
    """Reads lines ``LABEL<TAB>TEXT`` with labels 0 and 1; the text is lowercased and tokenised."""
    tokenize = tokenizer("moses", "en")
    pairs = (line.split("\t", 1) for line in read_lines(path, strip="\r\n"))
    return [(int(label), tokenize(text.lower()).split()) for label, text in pairs]


def dictionary_of(texts: Labelled) -> Dict[str, int]:
    """Returns a number for every word: [Z] sec. 4 does not select a dictionary."""
    return {word: number for number, word in enumerate(sorted({word for _, words in texts for word in words}))}


@dataclass
class Bags:
    """Labelled texts as word numbers; see ``Examples``."""

    bags: List[np.ndarray]
    labels: Tensor

    @classmethod
    def of(cls, texts: Labelled, dictionary: Dict[str, int]) -> "Bags":
        """Converts texts."""
        bags = [np.array([dictionary.get(word, UNSEEN) for word in words], dtype=np.int64) for _, words in texts]
        return cls(bags, torch.tensor([label for label, _ in texts]))

    def __len__(self) -> int:
        return len(self.bags)

    def batch(self, numbers: Tensor, device: torch.device) -> Batch:
        """Returns packed words and their rows."""
        bags = [self.bags[number] for number in numbers.tolist()]
        rows = Ragged(np.array([len(bag) for bag in bags]), device)
        return (torch.from_numpy(np.concatenate(bags)).to(device), rows), self.labels[numbers].to(device)


class AverageOfWords(nn.Module):
    """Average of word vectors, s = Σ_w w / |s|; unseen words have w = 0."""

    def __init__(self, symbols: int, dim: int):
        super().__init__()
        self.words = nn.Embedding(symbols + 1, dim, padding_idx=symbols)
        self.unseen = symbols

    def forward(self, tokens: Tensor, rows: Ragged) -> Tensor:
        """[R, dim]."""
        return rows.mean(self.words(tokens.masked_fill(tokens.eq(UNSEEN), self.unseen)))


class LogisticRegression(nn.Module):
    """Logits [R, 2] of texts: 0 and z = θ·s + b, whose softmax is σ(z).

    Args:
        bag: computes s.
        dim: dimension of s.
    """

    def __init__(self, bag: nn.Module, dim: int):
        super().__init__()
        self.bag = bag
        self.output = nn.Linear(dim, 1)

    def forward(self, tokens: Tensor, rows: Ragged) -> Tensor:
        """[R, 2]."""
        z = self.output(self.bag(tokens, rows))
        return torch.cat([torch.zeros_like(z), z], dim=1)


def classifier(kind: str, symbols: int) -> LogisticRegression:
    """Returns the classifier with representation ``average`` or ``ca-bsfe``."""
    bag: nn.Module = AverageOfWords(symbols, DIM) if kind == "average" else SparseFeatures(symbols, DIM, DIM)
    model = LogisticRegression(bag, DIM)
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.sparse = True  # an update changes the words of its texts only
    return model


def write_synthetic_texts(path: Path, texts: int, seed: int) -> None:
    """Writes labelled texts in which one of two words determines the label."""
    rng = np.random.default_rng(seed)

    def lines() -> Iterable[str]:
        for number in range(texts):
            words = [f"w{word}" for word in rng.integers(0, 30, rng.integers(3, 8))]
            words.insert(int(rng.integers(0, len(words))), ("bad", "good")[number % 2])
            yield f"{number % 2}\t{' '.join(words)}\n"

    path.write_text("".join(lines()), encoding="utf-8")
