#!/usr/bin/env bash
# Spanish-English News-Commentary: get, prepare, train, translate, score.
#
#   bash scripts/news_commentary_es_en.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes GPUS] …
#
# Run again, it goes on where it was. All options: docnmt recipe --help; the data set: docnmt_fairseq/recipes/configs/news_commentary_es_en.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe news_commentary_es_en "$@"
