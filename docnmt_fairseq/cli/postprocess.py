"""Restores plain text from the output of fairseq-generate, and scores it.

fairseq-generate joins the subwords (--remove-bpe sentencepiece), except in edit operations (docnmt prepare --edits-of),
which are applied to the machine translation here. Truecasing and tokenisation of docnmt prepare are reversed. The
output has one line per line of the split's text, including boundaries. Scores: sacreBLEU on the plain text, and BLEU on
tokens as computed by multi-bleu.perl.
"""

import argparse
from pathlib import Path

HELP = "plain text and scores from the output of fairseq-generate"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the prepared data, the log, the split and the output."""
    parser.add_argument("--data", required=True, type=Path, metavar="DIR", help="output of docnmt prepare")
    parser.add_argument("--log", required=True, type=Path, metavar="FILE", help="output of fairseq-generate")
    parser.add_argument("--split", default="test", metavar="NAME", help="translated split (default: test)")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="output file")


def run(args: argparse.Namespace) -> None:
    """Writes the text, then prints the scores with their signatures."""
    from docnmt_fairseq.corpus.files import atomic_files
    from docnmt_fairseq.corpus.prepared import prepared_folder
    from docnmt_fairseq.evaluation.postprocess import (
        corpus_scores,
        human_targeted_error_rate,
        read_translation,
        tokenized_bleu,
    )

    translation = read_translation(prepared_folder(args.data), args.split, args.log)
    with atomic_files(args.output) as (stream,):
        stream.writelines(f"{line}\n" for line in translation.text)
    tokenizer = "zh" if translation.tokenizer == "jieba" else None
    plain = corpus_scores(translation.text, translation.reference_text, tokenizer=tokenizer)
    tokens = tokenized_bleu(translation.tokens, translation.reference_tokens)
    print(args.output)
    print(f"BLEU {plain['bleu']:.2f} ({plain['bleu_signature']})")
    print(f"chrF {plain['chrf']:.2f} ({plain['chrf_signature']})")
    print(f"BLEU over tokens, as multi-bleu.perl: {tokens.score:.2f} ({tokens.signature})")
    if translation.post_edited:
        found = human_targeted_error_rate(translation.tokens, translation.reference_tokens)
        print(f"HTER over tokens: {found.score:.2f} ({found.signature})")
    print(f"{tokens.sentences} sentences")
