#!/usr/bin/env bash
# Automatic post-editing, English-German, WMT 2016. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" ape "$@"
