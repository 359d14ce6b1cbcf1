#!/usr/bin/env bash
# Writes requirements.lock: the exact version of every package of the environment, for Python 3.11 and 3.12.
#
#   bash scripts/lock.sh             resolves pyproject.toml, keeping the locked versions where they fit
#   bash scripts/lock.sh --upgrade   takes the newest versions
#
# Afterwards: bash scripts/test.sh --slow.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
set_up
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python -m venv "$work/uv"
"$work/uv/bin/pip" install -q uv
# The torch version that the scripts install (a newer one needs new measurements), and its triton.
printf '%s\n' torch==2.13.0 triton==3.7.1 > "$work/constraints.txt"
cp "$ROOT/requirements.lock" "$work/resolved"
"$work/uv/bin/uv" pip compile "$ROOT/pyproject.toml" --extra dev --universal --python-version 3.11 \
    --python "$ROOT/.venv/bin/python" --no-build-isolation-package fairseq-fixed \
    --constraints "$work/constraints.txt" --no-header --no-annotate --quiet --output-file "$work/resolved" "$@" > /dev/null
# Left out: torchaudio, which fairseq requires for speech and which fails to load next to a newer torch; CUDA libraries,
# which each build of torch pins itself; packages for other Pythons.
{
    echo "# Written by scripts/lock.sh; change pyproject.toml instead."
    grep -Ev "^(torchaudio|nvidia-|cuda-)|sys_platform == 'emscripten'" "$work/resolved"
} > "$work/lock"
mv "$work/lock" "$ROOT/requirements.lock"
