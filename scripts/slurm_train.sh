#!/usr/bin/env bash
# Trains with all tasks of a Slurm job, one process per task; the arguments are those of fairseq-train:
#
#   sbatch --nodes 2 --ntasks-per-node 4 --gpus-per-node 4 --time 12:00:00 scripts/slurm_train.sh work/data-bin …
#
# Two minutes before the time limit the training gets SIGUSR1, saves a checkpoint and exits with status 75; the job is
# then requeued and resumes. The environment variable PORT sets the port of the first node (default: by the job's id).
#SBATCH --job-name=docnmt
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=USR1@120
set -euo pipefail

[ -n "${SLURM_JOB_ID:-}" ] && [ $# -gt 0 ] || { echo "usage: sbatch [OPTION...] $0 DATA [OPTION of fairseq-train...]" >&2; exit 2; }
hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
export MASTER_ADDR=${hosts%%$'\n'*} MASTER_PORT=${PORT:-$((20000 + SLURM_JOB_ID % 10000))}

status=0
# shellcheck disable=SC2016  # expanded by each task
srun bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID exec python -m fairseq_cli.train "$@"' \
    train "$@" || status=$?
if [ "$status" = 75 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
