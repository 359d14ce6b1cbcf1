#!/usr/bin/env bash
# TV subtitles, Chinese-English, an unseen series. Options: bash scripts/recipe.sh --help
exec bash "$(dirname "${BASH_SOURCE[0]}")/recipe.sh" tvsub_zh_en_unseen "$@"
