#!/usr/bin/env bash
# English-German handbooks of yours (--raw FOLDER), where documents decide between du and Sie: prepare, train a start and
# all models from it, translate two test sets, score.
#
#   bash scripts/en_de_manuals.sh [--smoke] [--raw FOLDER] [--models "sentence conditional"] [--seeds "1 2"] [--processes GPUS] …
#
# Run again, it goes on where it was. All options: docnmt recipe --help; the data set: docnmt_fairseq/recipes/configs/en_de_manuals.yaml
# shellcheck source=scripts/lib/recipe.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/recipe.sh"
recipe en_de_manuals "$@"
