#!/usr/bin/env bash
# Sets everything up if need be and runs the tests; --slow also the longer ones; other arguments go to pytest.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
set_up
cd "$ROOT"
select=()
if [ "${1:-}" = --slow ]; then
    select=(-m "slow or not slow")
    shift
fi
say "ruff"
ruff check .
ruff format --check .
say "shellcheck"
find scripts benchmarks .ci -type f '(' -name '*.sh' -o -path .ci/run ')' -exec shellcheck -x {} +
say "mypy"
mypy
say "pytest"
# One thread a worker: two test processes that use two threads each are slower than two with one.
export OMP_NUM_THREADS=1
exec pytest -n 2 --dist loadfile --no-loadscope-reorder "${select[@]}" "$@"
