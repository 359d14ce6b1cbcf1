#!/usr/bin/env bash
# WMT 2016, English-German. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" wmt16_en_de "$@"
