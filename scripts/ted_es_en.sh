#!/usr/bin/env bash
# Recipe: TED talks, Spanish-English, IWSLT 2014.
#
#   bash scripts/ted_es_en.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes N] ...
#
# The same command resumes an interrupted run. Options: docnmt recipe --help; data set: recipes/configs/ted_es_en.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe ted_es_en "$@"
