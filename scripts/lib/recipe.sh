# shellcheck shell=bash
# Sets up the virtual environment if necessary and runs a recipe with docnmt recipe. To be sourced.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

recipe() { # NAME OPTION...
    set_up
    exec docnmt recipe "$@"
}
