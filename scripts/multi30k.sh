#!/usr/bin/env bash
# Multi30k, English-German, captions with features of their images (--raw FOLDER): prepare, train, translate, score.
#
#   bash scripts/multi30k.sh [--smoke] [--raw FOLDER] [--models "NAME NAME"] [--seeds "1 2"] [--processes GPUS] …
#
# Run again, it goes on where it was. All options: docnmt recipe --help; the data set: docnmt_fairseq/recipes/configs/multi30k.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe multi30k "$@"
