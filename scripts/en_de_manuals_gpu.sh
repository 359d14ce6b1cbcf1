#!/usr/bin/env bash
# Recipe: Handbooks, English-German, du or Sie, at base width for a GPU (needs --raw FOLDER).
#
#   bash scripts/en_de_manuals_gpu.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes N] ...
#
# The same command resumes an interrupted run. Options: docnmt recipe --help; data set: recipes/configs/en_de_manuals_gpu.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe en_de_manuals_gpu "$@"
