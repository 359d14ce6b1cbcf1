#!/usr/bin/env bash
# Recipe: Captions of images, English-German, Multi30k (needs --raw FOLDER).
#
#   bash scripts/multi30k.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes N] ...
#
# The same command resumes an interrupted run. Options: docnmt recipe --help; data set: recipes/configs/multi30k.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe multi30k "$@"
