# shellcheck shell=bash
# What the scripts share: the project's folder, the virtual environment, messages. To be sourced.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PYTHONWARNINGS=${PYTHONWARNINGS:-ignore}

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

find_python() {
    local candidate candidates=(python3.11 python3.12 python3)
    [ -z "${PYTHON:-}" ] || candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        if "$candidate" -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    die "no Python 3.11 or 3.12 with venv found; name one with PYTHON=/path/to/python bash $0"
}

# What .venv is made of: when it changes, set_up runs again.
set_up_facts() { cat "$ROOT/constraints.txt" "$ROOT/pyproject.toml" "$ROOT/setup.py"; }

# Creates .venv with the versions of constraints.txt; does nothing when they are there already, or where
# DOCNMT_INSTALLED says that python3 and the commands on the PATH have all that is needed.
set_up() {
    [ -z "${DOCNMT_INSTALLED:-}" ] || return 0
    local venv=$ROOT/.venv stamp python
    stamp=$venv/.set-up
    if [ -f "$stamp" ] && cmp -s "$stamp" <(set_up_facts); then
        export PATH=$venv/bin:$PATH
        return
    fi
    python=$(find_python)
    say "Setting up $venv with $("$python" --version): once, about 8 minutes on 2 cores, most of them for building fairseq"
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    export PATH=$venv/bin:$PATH
    local install=(python -m pip install --disable-pip-version-check --progress-bar on -c "$ROOT/constraints.txt")
    say "1/3 PyTorch and what fairseq is built with"
    install_torch "${install[@]}"
    "${install[@]}" -q setuptools wheel cython numpy
    say "2/3 fairseq (built from source: some minutes without output) and the other libraries"
    # Without build isolation fairseq is built against the PyTorch that is there, not against a second, newer one.
    "${install[@]}" -q --no-build-isolation -e "${ROOT}[dev]"
    say "3/3 Checking"
    docnmt doctor
    set_up_facts > "$stamp"
}

# Runs a command that ends with the script, also where that is killed: a shell leaves what it waits for at work.
attended() { # COMMAND...
    local status=0
    "$@" &
    # shellcheck disable=SC2064  # the process of now
    trap "kill $! 2> /dev/null || true" EXIT
    wait "$!" || status=$?
    trap - EXIT
    return "$status"
}

# Ends where results were made with something else.
not_made_otherwise() { # FILE SETTINGS
    [ ! -f "$1" ] || [ "$(cat "$1")" = "$2" ] ||
        die "$1: made with $(cat "$1"), now it is $2; remove that folder, or give another"
}

# Keeps beside results what they are made with; ends where they were made with something else.
made_with() { # FILE SETTINGS
    not_made_otherwise "$@"
    if [ ! -f "$1" ]; then
        mkdir -p "$(dirname "$1")"
        printf '%s\n' "$2" > "$1"
    fi
}

has_gpu() { [ -e /dev/nvidiactl ] || nvidia-smi -L > /dev/null 2>&1; }

# The CPU build where there is no GPU: on Linux the default build brings several GB of CUDA libraries along.
# DOCNMT_TORCH_INDEX names another index to take PyTorch from, whatever the machine.
install_torch() { # PIP-INSTALL-COMMAND...
    local version index=()
    version=$(sed -n 's/^torch==//p' "$ROOT/constraints.txt")
    python -c "import torch; assert torch.__version__.split('+')[0] == '$version'" 2>/dev/null && return
    if [ -n "${DOCNMT_TORCH_INDEX:-}" ]; then
        index=(--index-url "$DOCNMT_TORCH_INDEX")
    elif [ "$(uname -s)" = Linux ] && ! has_gpu; then
        "$@" "torch==$version+cpu" 2>/dev/null && return
        say "No GPU here, and no CPU build of PyTorch $version in pip's index: taking the default one, with several GB" \
            "of CUDA libraries. To spare them, interrupt and set DOCNMT_TORCH_INDEX to PyTorch's index of CPU builds"
    fi
    "$@" "${index[@]}" "torch==$version"
}
