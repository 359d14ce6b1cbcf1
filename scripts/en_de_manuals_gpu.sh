#!/usr/bin/env bash
# Handbooks, English-German, base width for a GPU. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" en_de_manuals_gpu "$@"
