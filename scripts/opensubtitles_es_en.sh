#!/usr/bin/env bash
# Recipe: OpenSubtitles2018, Spanish-English.
#
#   bash scripts/opensubtitles_es_en.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes N] ...
#
# The same command resumes an interrupted run. Options: docnmt recipe --help; data set: recipes/configs/opensubtitles_es_en.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe opensubtitles_es_en "$@"
