#!/usr/bin/env bash
# Spanish-English subtitles: get, prepare, train, translate, score.
#
#   bash scripts/opensubtitles_es_en.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes GPUS] …
#
# Run again, it goes on where it was. All options: docnmt recipe --help; the data set: docnmt_fairseq/recipes/configs/opensubtitles_es_en.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe opensubtitles_es_en "$@"
