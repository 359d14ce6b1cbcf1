#!/usr/bin/env bash
# TV subtitles, Chinese-English. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" tvsub_zh_en "$@"
