#!/usr/bin/env bash
# Delimited text, English-German. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" en_de_small "$@"
