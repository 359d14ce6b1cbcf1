#!/usr/bin/env bash
# Chinese-English TED talks: get, prepare, train, translate, score.
#
#   bash scripts/ted_zh_en.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes GPUS] …
#
# Run again, it goes on where it was. All options: docnmt recipe --help; the data set: docnmt_fairseq/recipes/configs/ted_zh_en.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe ted_zh_en "$@"
