#!/usr/bin/env bash
# Recipe: Automatic post-editing, English-German, WMT 2016 (needs --raw FOLDER).
#
#   bash scripts/ape.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes N] ...
#
# The same command resumes an interrupted run. Options: docnmt recipe --help; data set: recipes/configs/ape.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe ape "$@"
