#!/usr/bin/env bash
# Handbooks, English-German: du or Sie. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" en_de_manuals "$@"
