"""Random test sets and translations for tests of scores."""

import random

from hypothesis import strategies as st

from docnmt_fairseq.evaluation.texts import References

WORDS = ("ba", "do", "gi", "ke", "lo", "mo,", "nu", "pa.")
_sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
documents = st.lists(st.lists(_sentence, min_size=1, max_size=4), min_size=2, max_size=5)


def made(seed=1, documents=6, sentences=(2, 6)):
    """Returns documents of random sentences."""
    rng = random.Random(seed)
    return [
        [" ".join(rng.choices(WORDS, k=rng.randint(4, 12))) for _ in range(rng.randint(*sentences))]
        for _ in range(documents)
    ]


def worse(stream, seed, share=0.2):
    """Returns a stream with about this share of the words replaced."""
    rng = random.Random(seed)
    return [
        [" ".join(rng.choice(WORDS) if rng.random() < share else word for word in s.split()) for s in sentences]
        for sentences in stream
    ]


def addressed(stream, seed=0, wrong=0.0, words=("ob du", "ob Sie")):
    """Returns documents whose sentences begin with one of two words in turn, except for about this share of them."""
    rng = random.Random(seed)
    return [
        [f"{words[(i + (rng.random() < wrong)) % 2]} {sentence}" for sentence in sentences]
        for i, sentences in enumerate(stream)
    ]


def with_own_words(stream):
    """Returns documents without common words; words have at least five letters."""
    return [
        [" ".join(word.strip(".,") + 3 * "qrsuvwxyz"[i] for word in sentence.split()) for sentence in sentences]
        for i, sentences in enumerate(stream)
    ]


def reference_set(*streams):
    """Returns references without files and boundaries."""
    lines, number = [], 0
    for sentences in streams[0]:
        lines.append(list(range(number + 1, number + 1 + len(sentences))))
        number += len(sentences)
    return References(tuple(f"ref{i}" for i in range(len(streams))), list(streams), None, lines)


def delimited(stream):
    """Returns delimited text; documents of three or more sentences have two paragraphs."""
    lines = []
    for sentences in stream:
        lines += [*sentences[:1], "<p>", *sentences[1:]] if len(sentences) > 2 else sentences
        lines.append("")
    return lines


def generate_log(lines, seed=0, nbest=1):
    """Returns output of fairseq-generate for the sentences among these lines, in random order."""
    blocks = []
    for i, line in enumerate(lines):
        if line not in ("", "<p>"):
            hypotheses = [
                f"{letter}-{i}\t-0.{n}\t{line if n == 0 else 'other'}" for n in range(nbest) for letter in "HD"
            ]
            blocks.append([f"S-{i}\tsource", f"T-{i}\treference", *hypotheses])
    random.Random(seed).shuffle(blocks)
    return [line for block in blocks for line in block]


def write(path, lines):
    """Writes lines and returns the path."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
