# shellcheck shell=bash
# Sets everything up if need be and runs the recipe NAME of configs/recipes with docnmt recipe. To be sourced.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

recipe() { # NAME OPTION...
    local name=$1
    shift
    set_up
    exec docnmt recipe "$ROOT/configs/recipes/$name.yaml" "$@"
}
