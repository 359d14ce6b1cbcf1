# shellcheck shell=bash
# Sets everything up if need be and runs the recipe NAME with docnmt recipe. To be sourced.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

recipe() { # NAME OPTION...
    set_up
    exec docnmt recipe "$@"
}
