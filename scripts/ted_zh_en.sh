#!/usr/bin/env bash
# TED talks, Chinese-English, IWSLT 2015. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" ted_zh_en "$@"
