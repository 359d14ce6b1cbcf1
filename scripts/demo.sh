#!/usr/bin/env bash
# The complete pipeline on a generated corpus that cannot be translated correctly without document context: generate,
# prepare, train a sentence-level and a conditional-attention model in parallel on the same budget, translate, score.
#
#   bash scripts/demo.sh [FOLDER]        (default: demo; less than 4 minutes on 2 cores once set up)
#
# Run again, it resumes.
#
# Environment: UPDATES of each model, TOP_T sentences selected by attention, SEED (determines all results).
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
set_up
OUT=$(mkdir -p "${1:-$ROOT/demo}" && cd "${1:-$ROOT/demo}" && pwd)
SEED=${SEED:-1}
UPDATES=${UPDATES:-2000}
TOP_T=${TOP_T:-4}
made_with "$OUT/settings.txt" "SEED=$SEED UPDATES=$UPDATES TOP_T=$TOP_T"
NARROW_FROM=$((UPDATES * 85 / 100)) # all sentences until then, which teaches the selection what to keep

declare -A training=() # name → process
trap '[ ${#training[@]} = 0 ] || kill "${training[@]}" 2>/dev/null || true' EXIT

start_training() { # NAME OPTION...: in the background, on one thread; resumes an unfinished training
    local name=$1
    shift
    [ -f "$OUT/$name/finished" ] && { say "$name: already trained"; return; }
    say "Training $name ($UPDATES updates; the log is $OUT/$name/train.log)"
    mkdir -p "$OUT/$name"
    OMP_NUM_THREADS=1 fairseq-train "$OUT/data/data-bin" --user-dir "$ROOT/docnmt_fairseq" \
        --task document_translation \
        --save-dir "$OUT/$name" --seed "$SEED" --num-workers 0 --max-tokens 1000 --max-update "$UPDATES" \
        --optimizer adam --adam-betas '(0.9, 0.95)' --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 200 \
        --clip-norm 1.0 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --dropout 0.0 \
        --encoder-layers 3 --decoder-layers 1 --encoder-normalize-before --decoder-normalize-before \
        --share-decoder-input-output-embed --no-epoch-checkpoints --log-format simple --log-interval 100 "$@" \
        >> "$OUT/$name/train.log" 2>&1 &
    training[$name]=$!
}

progress() { # NAME...: prints the progress of each training on one line
    local name facts shown=''
    for name in "$@"; do
        facts=$(sed -n 's/.*train_inner.* ppl=\([^,]*\),.* num_updates=\([0-9]*\),.*/\2 \1/p' "$OUT/$name/train.log" | tail -n 1)
        if [ -f "$OUT/$name/finished" ]; then
            facts='trained'
        elif [ -z "${training[$name]:-}" ]; then
            facts='FAILED'
        elif [ -z "$facts" ]; then
            facts='starting'
        else
            facts="${facts% *} of $UPDATES updates, perplexity ${facts#* }"
        fi
        shown+="${shown:+ | }$name: $facts"
    done
    printf '%s' "$shown"
}

await_training() { # NAME: shows the progress of all trainings until this one has ended
    local name line shown='' failed=()
    while [ -n "${training[$1]:-}" ]; do
        sleep 1
        for name in "${!training[@]}"; do
            kill -0 "${training[$name]}" 2>/dev/null && continue
            if wait "${training[$name]}"; then touch "$OUT/$name/finished"; else failed+=("$name"); fi
            unset "training[$name]"
        done
        line=$(progress sentence conditional)
        if [ "$line" != "$shown" ]; then
            # A terminal updates one line; a file or a pipe gets one line per change.
            if [ -t 2 ]; then printf '\r%s\033[K' "$line" >&2; else printf '%s\n' "$line" >&2; fi
            shown=$line
        fi
    done
    if [ -t 2 ] && [ -n "$shown" ]; then echo >&2; fi
    [ ${#failed[@]} = 0 ] && return
    for name in "${failed[@]}"; do
        say "Training $name failed; last lines of $OUT/$name/train.log:"
        tail -n 5 "$OUT/$name/train.log" >&2
    done
    die "training failed; fix the cause and run the same command again to resume"
}

translate() { # NAME
    [ -s "$OUT/$1/generate.log" ] && { say "$1: already translated"; return; }
    say "Translating the test set with $1"
    fairseq-generate "$OUT/data/data-bin" --user-dir "$ROOT/docnmt_fairseq" --task document_translation \
        --path "$OUT/$1/checkpoint_last.pt" --beam 4 --max-tokens 8000 --num-workers 0 \
        > "$OUT/$1/generate.log.part" 2> "$OUT/$1/generate.messages" || {
        tail -n 5 "$OUT/$1/generate.messages" >&2
        die "translating with $1 failed; see $OUT/$1/generate.messages"
    }
    mv "$OUT/$1/generate.log.part" "$OUT/$1/generate.log"
}

say "Generating a corpus that needs document context"
[ -f "$OUT/corpus/lexicon.json" ] || docnmt synth --output "$OUT/corpus" --seed "$SEED" \
    --words-per-sentence 4 5 --introductions 4 --nouns 9 --places 8 --verbs 6 --fillers 10 --names 4 --ambiguous-words 2
say "Preparing it"
docnmt prepare --source-lang src --target-lang tgt --subwords none --workers 2 --output "$OUT/data" \
    --train "$OUT/corpus/train" --valid "$OUT/corpus/valid" --test "$OUT/corpus/test"
start_training sentence --arch document_transformer_tiny
start_training conditional --arch document_transformer_conditional_tiny --context-layers 1,2 --context-top-t "$TOP_T" \
    --context-top-t-anneal-start "$NARROW_FROM" --context-top-t-anneal-threshold 0.9 --context-init xavier \
    --sentence-positions learned --paragraph-positions learned
await_training sentence
OMP_NUM_THREADS=1 translate sentence # next to the training of the other model
await_training conditional
translate conditional
say "Scoring"
docnmt score --synth "$OUT/corpus" --output "$OUT/report" \
    --log sentence="$OUT/sentence/generate.log" --log conditional="$OUT/conditional/generate.log" \
    --assert-minimum conditional=0.99 --assert-ceiling sentence
say "Done. To see which sentences the model attended to:"
printf '%s\n' "source $ROOT/.venv/bin/activate" \
    "docnmt report --path $OUT/conditional/checkpoint_last.pt --data $OUT/data --document 1 --output $OUT/report.html" >&2
