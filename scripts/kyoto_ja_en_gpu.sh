#!/usr/bin/env bash
# Kyoto articles, Japanese-English, on a GPU. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" kyoto_ja_en_gpu "$@"
