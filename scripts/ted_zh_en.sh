#!/usr/bin/env bash
# Recipe: TED talks, Chinese-English, IWSLT 2015.
#
#   bash scripts/ted_zh_en.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes N] ...
#
# The same command resumes an interrupted run. Options: docnmt recipe --help; data set: recipes/configs/ted_zh_en.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe ted_zh_en "$@"
