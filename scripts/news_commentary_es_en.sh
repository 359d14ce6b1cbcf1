#!/usr/bin/env bash
# Recipe: News-Commentary 11, Spanish-English.
#
#   bash scripts/news_commentary_es_en.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes N] ...
#
# The same command resumes an interrupted run. Options: docnmt recipe --help; data set: recipes/configs/news_commentary_es_en.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe news_commentary_es_en "$@"
