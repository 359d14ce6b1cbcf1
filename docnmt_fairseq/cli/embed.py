"""Sentence vectors from word vectors: fits a model, writes and evaluates vectors, finds similar sentences.

Text is delimited: one sentence per line, tokens separated by spaces.
"""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

from docnmt_fairseq.cli._options import add_fields, given, positive
from docnmt_fairseq.embedding import Settings
from docnmt_fairseq.errors import InputError

HELP = "sentence vectors (CA-SEM, SIF, average); similar sentences as context"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds one subparser per action."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_fit(actions.add_parser("fit", help="fit a model on a corpus"))

    transform = actions.add_parser("transform", help="write the sentence vectors of a text")
    _add_model(transform)
    transform.add_argument("--input", required=True, type=Path, metavar="FILE", help="delimited text")
    transform.add_argument(
        "--output", required=True, type=Path, metavar="FILE", help="output file, .npy: one row per line, zero for marks"
    )
    transform.set_defaults(act=_transform)

    similarity = actions.add_parser("similarity", help="correlation of cosine similarity with human judgements")
    similarity.add_argument("--model", required=True, nargs="+", type=Path, metavar="FILE", help="models of fit")
    similarity.add_argument("--set", required=True, type=Path, metavar="FILE", help="tab-separated sentence pairs")
    similarity.add_argument(
        "--format", default="sts", choices=("sts", "sts-benchmark", "sick"),
        help="sts: score, sentence, sentence; sts-benchmark: genre, file, year, number, then the same, also scored by "
        "year; sick: a header with relatedness_score, sentence_A, sentence_B",
    )  # fmt: skip
    text = similarity.add_mutually_exclusive_group()
    text.add_argument(
        "--tokenizer", default="none", choices=("none", "moses", "jieba"), help="tokenizer for the sentences"
    )
    text.add_argument(
        "--data", type=Path, metavar="DIR", help="output of docnmt prepare whose source subwords to apply instead"
    )
    similarity.add_argument("--language", default="en", metavar="CODE", help="language of --tokenizer (default: en)")
    similarity.set_defaults(act=_similarity)

    neighbours = actions.add_parser("neighbours", help="find similar sentences, for --context-selection similar")
    _add_model(neighbours)
    neighbours.add_argument(
        "data", nargs="+", type=Path, metavar="DATA-BIN", help="data-bins or docnmt prepare outputs"
    )
    neighbours.add_argument(
        "--sentences", type=positive, default=10, metavar="K", help="similar sentences per sentence (default: 10)"
    )
    neighbours.add_argument("--language", metavar="CODE", help="language of the sentences (default: the source)")
    neighbours.add_argument(
        "--unmarked-corpus", default="document", choices=("document", "line"),
        help="meaning of a file without empty lines, as for document_translation",
    )  # fmt: skip
    neighbours.set_defaults(act=_neighbours)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, type=Path, metavar="FILE", help="model of docnmt embed fit")


def _add_fit(parser: argparse.ArgumentParser) -> None:
    vectors = parser.add_argument_group("word vectors", "one of:")
    vectors.add_argument(
        "--vectors", type=Path, metavar="FILE", help="text file of word2vec, GloVe or fastText, may be gzipped"
    )
    vectors.add_argument("--path", type=Path, metavar="FILE", help="trained model whose source embeddings to use")
    vectors.add_argument("--data", type=Path, metavar="DIR", help="data-bin of --path")
    parser.add_argument("--corpus", required=True, nargs="+", type=Path, metavar="FILE", help="delimited text")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="output file, .npz")
    add_fields(parser, Settings)
    parser.set_defaults(act=_fit)


def run(args: argparse.Namespace) -> None:
    """Runs the action."""
    args.act(args)


def _fit(args: argparse.Namespace) -> None:
    from docnmt_fairseq.embedding.model import fit
    from docnmt_fairseq.embedding.words import read_checkpoint_vectors, read_text_vectors

    if (args.vectors is None) == (args.path is None) or (args.data is None) != (args.path is None):
        raise InputError("give --vectors, or --path with its --data")
    settings = Settings(**given(args, Settings))
    found = read_checkpoint_vectors(args.path, args.data) if args.vectors is None else read_text_vectors(args.vectors)
    fit(found, args.corpus, settings).save(args.output)
    print(args.output)


def _transform(args: argparse.Namespace) -> None:
    from docnmt_fairseq.embedding.model import SentenceEmbedding

    lines = SentenceEmbedding.load(args.model).write_vectors(args.input, args.output)
    print(f"{args.output}: {lines:,} lines")


def _similarity(args: argparse.Namespace) -> None:
    from docnmt_fairseq.corpus.pipeline import TextCodec
    from docnmt_fairseq.corpus.tokenizers import tokenizer
    from docnmt_fairseq.embedding.model import SentenceEmbedding
    from docnmt_fairseq.evaluation.sentence_similarity import compare, read_pairs
    from docnmt_fairseq.evaluation.tables import aligned

    pairs = read_pairs(args.set, args.format)
    models = [(str(path), SentenceEmbedding.load(path)) for path in args.model]
    if args.data is not None:
        rows = compare(models, pairs, partial(TextCodec.of_output(args.data).encode, 0))
    else:
        tokenize = tokenizer(args.tokenizer, args.language)
        rows = compare(models, pairs, lambda sentences: list(map(tokenize, sentences)))
    print(aligned(rows))


def _neighbours(args: argparse.Namespace) -> None:
    from docnmt_fairseq.embedding.model import SentenceEmbedding
    from docnmt_fairseq.embedding.neighbours import write_neighbours

    embedding = SentenceEmbedding.load(args.model)
    embedding = replace(embedding, settings=replace(embedding.settings, neighbours=args.sentences))
    for folder in args.data:
        sentences = write_neighbours(folder, embedding, args.language, args.unmarked_corpus)
        print(f"{folder}: {sentences:,} sentences")
