# shellcheck shell=bash
# Shared by the scripts: the project's folder, the virtual environment, messages. To be sourced.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PYTHONWARNINGS=${PYTHONWARNINGS:-ignore}
unset PYTHONDONTWRITEBYTECODE # packages are installed without bytecode: the first import writes it
PIP_VERSION=26.3

say() { # bold in a terminal
    if [ -t 2 ]; then printf '\033[1m== %s\033[0m\n' "$*" >&2; else printf '== %s\n' "$*" >&2; fi
}
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
    die "no Python 3.11 or 3.12 with venv found; set PYTHON=/path/to/python"
}

# Files that determine .venv: when one changes, set_up runs again.
set_up_facts() { cat "$ROOT/requirements.lock" "$ROOT/pyproject.toml" "$ROOT/setup.py"; }

# Creates .venv with the versions of requirements.lock; does nothing when it is up to date, or when DOCNMT_INSTALLED
# says that python3 and the commands on the PATH have everything.
set_up() {
    [ -z "${DOCNMT_INSTALLED:-}" ] || return 0
    local venv=$ROOT/.venv stamp python
    stamp=$venv/.set-up
    if [ -f "$stamp" ] && cmp -s "$stamp" <(set_up_facts); then
        export PATH=$venv/bin:$PATH
        return
    fi
    python=$(find_python)
    say "Setting up $venv with $("$python" --version): once, a few minutes"
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    export PATH=$venv/bin:$PATH
    local pip=(python -m pip --disable-pip-version-check) lock=$ROOT/requirements.lock
    # By itself and first, so that everything else is installed by the same pip, whatever the system's is.
    "${pip[@]}" install -q "pip==$PIP_VERSION"
    # Bytecode is compiled at first import instead: most modules are never imported.
    local install=("${pip[@]}" install --no-compile --progress-bar on)
    say "1/4 PyTorch"
    install_torch "${install[@]}" -c "$lock"
    say "2/4 fairseq (built from source)"
    "${install[@]}" -q -c "$lock" setuptools cython numpy
    install_fairseq "${pip[@]}"
    say "3/4 The other libraries"
    "${install[@]}" -q --no-deps --no-build-isolation -r "$lock"
    "${install[@]}" -q --no-deps --no-build-isolation -e "$ROOT"
    say "4/4 Checking"
    docnmt doctor || die "core dependencies do not work; see BROKEN above"
    set_up_facts > "$stamp"
}

# Builds fairseq with the extensions that translation uses (see lib/fairseq_build), once for each Python and lock of
# torch and fairseq; the wheel is kept in the cache folder, not in pip's, where other projects would find it.
install_fairseq() { # PIP-COMMAND...
    local requirement folder
    requirement=$(grep '^fairseq-fixed==' "$ROOT/requirements.lock")
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/docnmt_fairseq/wheels/${requirement/==/-}-$(python -c \
        'import sys, numpy, torch; print("py{}.{}-numpy{}-torch{}".format(*sys.version_info[:2], numpy.__version__, torch.__version__))')
    if ! compgen -G "$folder/*.whl" > /dev/null; then
        PYTHONPATH=$ROOT/scripts/lib/fairseq_build "$@" wheel -q --no-cache-dir --no-deps --no-build-isolation \
            --no-binary fairseq-fixed --wheel-dir "$folder.part" "$requirement"
        rm -rf "$folder" && mv "$folder.part" "$folder"
    fi
    "$@" install -q --no-compile --no-deps --force-reinstall "$folder"/*.whl
}

# Runs a command that is terminated with the script, even if the script is killed.
attended() { # COMMAND...
    local status=0
    "$@" &
    # shellcheck disable=SC2064  # expands now
    trap "kill $! 2> /dev/null || true" EXIT
    wait "$!" || status=$?
    trap - EXIT
    return "$status"
}

# Fails if results were made with other settings.
not_made_otherwise() { # FILE SETTINGS
    [ ! -f "$1" ] || [ "$(cat "$1")" = "$2" ] ||
        die "$1: made with $(cat "$1"), now it is $2; remove that folder or choose another"
}

# Stores the settings next to results; fails if they were made with other settings.
made_with() { # FILE SETTINGS
    not_made_otherwise "$@"
    if [ ! -f "$1" ]; then
        mkdir -p "$(dirname "$1")"
        printf '%s\n' "$2" > "$1"
    fi
}

has_gpu() { [ -e /dev/nvidiactl ] || nvidia-smi -L > /dev/null 2>&1; }

# Installs the CPU build on Linux without a GPU: the default build brings several GB of CUDA libraries.
# DOCNMT_TORCH_INDEX names an index that has another build; its dependencies still come from pip's own index.
install_torch() { # PIP-INSTALL-COMMAND...
    local version index=()
    version=$(sed -n 's/^torch==//p' "$ROOT/requirements.lock")
    python -c "import torch; assert torch.__version__.split('+')[0] == '$version'" 2>/dev/null && return
    if [ -n "${DOCNMT_TORCH_INDEX:-}" ]; then
        index=(--extra-index-url "$DOCNMT_TORCH_INDEX")
    elif [ "$(uname -s)" = Linux ] && ! has_gpu; then
        "$@" "torch==$version+cpu" 2>/dev/null && return
        say "No GPU found, and no CPU build of PyTorch $version in pip's index: installing the default build with several" \
            "GB of CUDA libraries. To avoid that, interrupt and set DOCNMT_TORCH_INDEX to PyTorch's index of CPU builds"
    fi
    "$@" "${index[@]}" "torch==$version"
}
