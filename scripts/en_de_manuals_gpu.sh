#!/usr/bin/env bash
# The data set of en_de_manuals.sh with models of base width, which one GPU trains in minutes; the same --raw FOLDER.
#
#   bash scripts/en_de_manuals_gpu.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes GPUS] …
#
# Run again, it goes on where it was. All options: docnmt recipe --help; the data set: docnmt_fairseq/recipes/configs/en_de_manuals_gpu.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe en_de_manuals_gpu "$@"
