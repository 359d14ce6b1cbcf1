#!/usr/bin/env bash
# Recipe: Delimited text, English-German (needs --raw FOLDER).
#
#   bash scripts/en_de_small.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes N] ...
#
# The same command resumes an interrupted run. Options: docnmt recipe --help; data set: recipes/configs/en_de_small.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe en_de_small "$@"
