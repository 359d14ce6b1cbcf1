#!/usr/bin/env bash
# Sets up .venv if necessary and runs a recipe; the same command resumes an interrupted run.
#
#   bash scripts/recipe.sh NAME [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes N] ...
#
# Names and options: bash scripts/recipe.sh --help; the data sets are docnmt_fairseq/recipes/configs/NAME.yaml.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
set_up
exec docnmt recipe "$@"
