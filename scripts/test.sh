#!/usr/bin/env bash
# Sets up the environment if necessary, then runs linters, type checks and the quick tests; other arguments go to pytest.
# --slow: all tests, and those that depend on the CPU again with the capabilities of older ones.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
set_up
cd "$ROOT"
select=()
older_cpus=()
if [ "${1:-}" = --slow ]; then
    select=(-m "slow or not slow")
    older_cpus=(avx2 default)
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
# One thread per worker: two test processes with two threads each are slower than two with one.
export OMP_NUM_THREADS=1
pytest -n 2 --dist loadfile --no-loadscope-reorder "${select[@]}" "$@"
for capability in "${older_cpus[@]}"; do
    say "pytest: as a CPU with the instruction set $capability"
    ATEN_CPU_CAPABILITY=$capability ONEDNN_MAX_CPU_ISA=AVX2 pytest -q -n 2 -m "cpu and not slow" tests
done
