#!/usr/bin/env bash
# Multi30k image captions, English-German. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" multi30k "$@"
