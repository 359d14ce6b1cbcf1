#!/usr/bin/env bash
# TED talks, Spanish-English, IWSLT 2014. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" ted_es_en "$@"
