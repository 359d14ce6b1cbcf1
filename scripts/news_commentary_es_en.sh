#!/usr/bin/env bash
# News-Commentary 11, Spanish-English. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" news_commentary_es_en "$@"
