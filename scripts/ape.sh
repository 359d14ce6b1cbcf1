#!/usr/bin/env bash
# Automatic post-editing of WMT 2016, English-German (--raw FOLDER): prepare, train, translate, score.
#
#   bash scripts/ape.sh [--smoke] [--words] [--raw FOLDER] [--models "NAME NAME"] [--seeds "1 2"] [--processes GPUS] …
#
# Run again, it goes on where it was. All options: docnmt recipe --help; the data set: docnmt_fairseq/recipes/configs/ape.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe ape "$@"
