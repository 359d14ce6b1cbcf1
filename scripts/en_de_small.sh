#!/usr/bin/env bash
# A small English-German corpus of yours (--raw FOLDER): prepare, train, translate, score.
#
#   bash scripts/en_de_small.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes GPUS] …
#
# Run again, it goes on where it was. All options: docnmt recipe --help; the data set: docnmt_fairseq/recipes/configs/en_de_small.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe en_de_small "$@"
