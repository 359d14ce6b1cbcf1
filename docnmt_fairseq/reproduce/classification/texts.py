"""Texts as bags of words, and the classifiers of [Z] sec. 4.2: their average or CA-BSFE, and a logistic regression."""

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterable, List, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.ca_layers.embeddings import SparseFeatures
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.tokenizers import tokenizer
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.reproduce.classification.training import Batch

DIM = 5  # of words, and of what χ reads of them
UNSEEN = -1  # a word that no training text has
Labelled = List[Tuple[int, List[str]]]  # a text's label, 0 or 1, and its words


def read_labelled(path: Path) -> Labelled:
    """Reads lines of a label, 0 or 1, a tab and a text, which is lowercased and tokenised.

    Raises:
        InputError: names the line that is none.
    """
    tokenize, found = tokenizer("moses", "en"), []
    for number, line in enumerate(read_lines(path, strip="\r\n"), start=1):
        label, tab, text = line.partition("\t")
        words = tokenize(text.lower()).split()  # of control signs alone there are none
        if label not in ("0", "1") or not tab or not words:
            raise InputError.at(path, number, "expected a label, 0 or 1, a tab and a text")
        found.append((int(label), words))
    if not found:
        raise InputError(f"{path}: no texts")
    return found


def dictionary_of(texts: Labelled) -> Dict[str, int]:
    """A number for every word there is: no dictionary is chosen ([Z] sec. 4, dictionary-free embedding)."""
    return {word: number for number, word in enumerate(sorted({word for _, words in texts for word in words}))}


@dataclass
class Bags:
    """Labelled texts as numbers of words; see ``Examples``."""

    bags: List[np.ndarray]
    labels: Tensor

    @classmethod
    def of(cls, texts: Labelled, dictionary: Dict[str, int]) -> "Bags":
        """The bags of texts."""
        bags = [np.array([dictionary.get(word, UNSEEN) for word in words], dtype=np.int64) for _, words in texts]
        return cls(bags, torch.tensor([label for label, _ in texts]))

    def __len__(self) -> int:
        return len(self.bags)

    def batch(self, numbers: Tensor, device: torch.device) -> Batch:
        """Packed words and their rows."""
        bags = [self.bags[number] for number in numbers.tolist()]
        rows = Ragged(np.array([len(bag) for bag in bags]), device)
        return (torch.from_numpy(np.concatenate(bags)).to(device), rows), self.labels[numbers].to(device)


class AverageOfWords(nn.Module):
    """s = Σ_w w / |s|, the usual way; of an unseen word w = 0."""

    def __init__(self, symbols: int, dim: int):
        super().__init__()
        self.words = nn.Embedding(symbols + 1, dim, padding_idx=symbols)
        self.unseen = symbols

    def forward(self, tokens: Tensor, rows: Ragged) -> Tensor:
        """[R, dim]."""
        return rows.mean(self.words(tokens.masked_fill(tokens.eq(UNSEEN), self.unseen)))


class LogisticRegression(nn.Module):
    """Logits [R, 2] of bags: 0, and z = θ·s + b, so that their softmax is σ(z).

    Args:
        bag: makes s of a bag.
        dim: its width.
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
    """The classifier whose bags are made by ``average`` or ``ca-bsfe``."""
    bag: nn.Module = AverageOfWords(symbols, DIM) if kind == "average" else SparseFeatures(symbols, DIM, DIM)
    model = LogisticRegression(bag, DIM)
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.sparse = True  # an update is of the words of its texts; those of all others do not move anyway
    return model


def write_made_up(path: Path, texts: int, seed: int) -> None:
    """Writes labelled texts in which one of two words decides, among many that say nothing."""
    chance = np.random.default_rng(seed)

    def lines() -> Iterable[str]:
        for number in range(texts):
            words = [f"w{word}" for word in chance.integers(0, 30, chance.integers(3, 8))]
            words.insert(int(chance.integers(0, len(words))), ("bad", "good")[number % 2])
            yield f"{number % 2}\t{' '.join(words)}\n"

    path.write_text("".join(lines()), encoding="utf-8")
