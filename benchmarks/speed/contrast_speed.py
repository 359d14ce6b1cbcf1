"""Speed of answering contrastive items in batches, documents encoded once, beside one candidate after another.

    python -m benchmarks.speed.contrast_speed --items CORPUS/test.phenomena.tsv --data WORK --path CHECKPOINT

All ways force-decode candidates of a corpus by docnmt synth and must give the same scores. They go by turns; the median
ratio of the rounds is reported. In batches the whole set is asked (that is what batches are for), by themselves only
the candidates of every 20th item; times are a candidate's.
Writes benchmarks/results/contrast_speed.md and .json.
"""

import argparse
import statistics
from itertools import accumulate
from pathlib import Path
from typing import Dict, List, Tuple

import numpy as np

from benchmarks.lib.machine import clock, command, machine, table, threads, write, write_figures
from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.evaluation.contrast import synth
from docnmt_fairseq.evaluation.contrast.items import ContrastItem
from docnmt_fairseq.evaluation.contrast.scoring import TIE, build_requests
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder

LEAST = 5.0
WAYS = {
    "batched": "all items in batches",
    "by_item": "item by item, its candidates together",
    "by_candidate": "candidate by candidate",
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--every", type=int, default=20, help="item answered by itself (default: 20)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=4096)
    return parser.parse_args()


class Questions:
    """The same items, ready to be asked in each of the ways; the last two ask only the chosen ones.

    Args:
        items: of the set.
        chosen: some of their numbers.
        decoder: with the model.
        codec: from text to tokens.
    """

    def __init__(self, items: List[ContrastItem], chosen: List[int], decoder: ForcedDecoder, codec: TextCodec):
        self.decoder, self.chosen = decoder, chosen
        source, requests = build_requests(items, decoder, codec)
        self.batched = [(source, [one for of_item in requests for (one,) in of_item])]
        self.firsts = [0, *accumulate(map(len, requests))]  # of each item's candidates
        own = [build_requests([items[number]], decoder, codec) for number in chosen]
        self.by_item = [(text, [one for (one,) in of_item]) for text, (of_item,) in own]
        self.by_candidate = [(text, [one]) for text, requests in self.by_item for one in requests]

    def ask(self, way: str) -> Tuple[float, List[float]]:
        """Returns the seconds a candidate, and the scores of the chosen items' candidates."""
        start, scores = clock(), []
        for text, requests in getattr(self, way):
            scores += [float(of_words.sum()) for of_words in self.decoder.score(text, requests)]
        seconds = (clock() - start) / len(scores)
        if way == "batched":
            ranges = [range(self.firsts[number], self.firsts[number + 1]) for number in self.chosen]
            scores = [scores[place] for of_item in ranges for place in of_item]
        return seconds, scores


def measure(args: argparse.Namespace) -> Dict:
    """Returns seconds a candidate by way and round, and the largest difference between scores.

    Raises:
        RuntimeError: scores differ by more than what is a tie.
    """
    loaded, items = load_ensemble(*args.path.split(":"), data=args.data), synth.read(args.items)
    codec, chosen = TextCodec(args.data), list(range(0, len(items), args.every))
    questions = Questions(items, chosen, ForcedDecoder(loaded, args.max_tokens), codec)
    seconds: Dict[str, List[float]] = {way: [] for way in WAYS}
    difference = 0.0
    for number in range(args.rounds + 1):  # the first one warms up
        scores = {}
        for way in WAYS:
            taken, scores[way] = questions.ask(way)
            seconds[way] += [taken] if number else []
        for way in WAYS:
            apart = np.abs(np.subtract(scores[way], scores["by_candidate"]))
            difference = float(np.maximum(difference, apart.max()))  # keeps what is no number
    if not difference <= TIE:
        raise RuntimeError(f"scores in batches are {difference} from those one by one")
    return {
        "seconds": seconds,
        "difference": difference,
        "items": len(items),
        "candidates": len(questions.batched[0][1]),
        "alone": len(questions.by_candidate),
    }


def main() -> None:
    args = options()
    found = measure(args)
    median = {way: statistics.median(found["seconds"][way]) for way in WAYS}
    rows = []
    for way, label in WAYS.items():
        ratios = [one / batched for one, batched in zip(found["seconds"][way], found["seconds"]["batched"])]
        rows.append([label, f"{1000 * median[way]:.3f}", f"{statistics.median(ratios):.1f}"])
    lines = [
        "# Contrastive items in batches",
        machine(),
        f"`{command()}`; {threads()}; {found['items']:,} items with {found['candidates']:,} candidates, of which "
        f"{found['alone']:,} also by themselves; {args.rounds} rounds, medians.",
        table(["way", "ms a candidate", "÷ in batches"], rows),
        f"Scores differ by {found['difference']:.1e} at most. Aim: one by one ÷ in batches at least {LEAST:g}.",
    ]
    write_figures("contrast_speed.json", found)
    write("contrast_speed.md", "\n\n".join(lines))


if __name__ == "__main__":
    main()
