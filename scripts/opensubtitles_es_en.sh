#!/usr/bin/env bash
# OpenSubtitles2018, Spanish-English. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" opensubtitles_es_en "$@"
