#!/usr/bin/env bash
# A training on all machines of a job of Slurm. What fairseq-train takes comes behind the script:
#
#   sbatch --nodes 2 --gpus-per-node 4 --time 12:00:00 scripts/slurm_train.sh work/data-bin --user-dir docnmt_fairseq …
#
# Two minutes before the time is up (SIGUSR1) it saves a checkpoint, and the job goes back into the queue, where the training
# goes on; after a machine failed Slurm puts it back, and it goes on from the last checkpoint (--save-interval-updates).
# The environment is that of the shell that submits. From it: PROCESSES of each machine (default: one a GPU, else one), PORT
# at which they meet (default: by the number of the job), REQUEUED_AT_MOST times (100).
#SBATCH --job-name=docnmt
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
set -euo pipefail
ASK_AGAIN=75 # the status of a training that was asked to end

say() { printf '%s\n' "$*" >&2; }
[ -n "${SLURM_JOB_ID:-}" ] || { say "usage: sbatch [OPTION...] $0 DATA [OPTION of fairseq-train...]"; exit 2; }
[ $# -gt 0 ] || { say "$0: what fairseq-train takes comes behind the script, the data-bin first"; exit 2; }
for option in "$@"; do
    case $option in
    --no-save | --restore-file | --restore-file=* | --reset-*)
        say "$0: ${option%%=*}: a job that goes back into the queue would begin anew each time; leave it out" \
            "(what a training is to go on from is checkpoint_last.pt in its --save-dir; --finetune-from-model begins from" \
            "another model's parameters)"
        exit 2
        ;;
    esac
done

nodes=$SLURM_JOB_NUM_NODES
processes=${PROCESSES:-${SLURM_GPUS_ON_NODE:-1}}
hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
meeting=${hosts%%$'\n'*}:${PORT:-$((20000 + SLURM_JOB_ID % 10000))}
together=(--nnodes "$nodes" --nproc_per_node "$processes" --rdzv-backend c10d --rdzv-endpoint "$meeting"
    --rdzv-id "$SLURM_JOB_ID")
say "$(date '+%F %T') start ${SLURM_RESTART_COUNT:-0}: $nodes × $processes processes, which meet at $meeting"

# srun passes the signal on to docnmt_fairseq.torchrun of each machine, and that to its trainings.
asked=
# shellcheck disable=SC2329  # it is called: by traps
ask() {
    asked=${asked:-$1}
    say "$(date '+%F %T') SIG$1: the training is asked to save and end"
    kill -USR1 "$steps" 2> /dev/null || true
}
cores=() # srun does not take them from the job
[ -z "${SLURM_CPUS_PER_TASK:-}" ] || cores=(--cpus-per-task "$SLURM_CPUS_PER_TASK")
srun --nodes "$nodes" --ntasks "$nodes" --ntasks-per-node 1 "${cores[@]}" \
    python -m docnmt_fairseq.torchrun "${together[@]}" -m fairseq_cli.train "$@" &
steps=$!
trap 'ask USR1' USR1
trap 'ask TERM' TERM
while kill -0 "$steps" 2> /dev/null; do
    wait "$steps" || true # which signals interrupt
done
status=0
wait "$steps" || status=$?
trap '' USR1 TERM

# Whoever cancels a job (SIGTERM) does not want it back, and whoever preempts it puts it back.
[ "$asked" != TERM ] || exit "$status"
if [ "$status" = "$ASK_AGAIN" ] || { [ -n "$asked" ] && [ "$status" != 0 ]; }; then
    if [ "${SLURM_RESTART_COUNT:-0}" -ge "${REQUEUED_AT_MOST:-100}" ]; then
        say "requeued ${SLURM_RESTART_COUNT:-0} times already: this is the end; sbatch goes on from the last checkpoint"
        exit "$status"
    fi
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
