#!/usr/bin/env bash
# What context brings on real text: three models on the same budget of updates, translated, scored, reported.
#
#   bash benchmarks/experiments/real_text.sh FOLDER_WITH_TEXT OUTPUT        e.g. path/to/en-de-small work/real_text
#
# FOLDER_WITH_TEXT holds {train,valid,test}.{en,de}: a sentence a line, an empty line after each document.
#   sentence    a sentence-level model                                       UPDATES updates
#   scratch     conditional attention from the start                         UPDATES updates
#   finetuned   conditional attention added to sentence's model at 60 %      60 % + 40 % of UPDATES
# Run again, it goes on where it was. What is set below can be set from outside, e.g. UPDATES=300 bash ...
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
[ $# = 2 ] || die "usage: bash $0 FOLDER_WITH_TEXT OUTPUT"
SRC=${SRC:-en} TGT=${TGT:-de} VOCAB=${VOCAB:-8000} SEED=${SEED:-1}
UPDATES=${UPDATES:-3000} MAX_TOKENS=${MAX_TOKENS:-4096}
WIDTH=${WIDTH:-256} FFN=${FFN:-1024} LAYERS=${LAYERS:-4} HEADS=${HEADS:-4} DROPOUT=${DROPOUT:-0.2}
LR=${LR:-0.001} WARMUP=${WARMUP:-500}
FINETUNE_LR=${FINETUNE_LR:-0.0005} FINETUNE_WARMUP=${FINETUNE_WARMUP:-250}
VALIDATE_EVERY=${VALIDATE_EVERY:-500} LOG_EVERY=${LOG_EVERY:-50}
CHECKPOINT=${CHECKPOINT:-last} # or best: the lowest validation loss, maybe from before the narrowing
SPLIT_AFTER=${SPLIT_AFTER:-23} # documents of the test set's first part, and the names of the parts
SPLIT_NAMES=${SPLIT_NAMES:-IWSLT2017 NC-2016}
set_up

relative() { python -c 'import os, sys; print(os.path.relpath(sys.argv[1], sys.argv[2]))' "$1" "$ROOT"; }
[ -d "$1" ] || die "no such folder: $1"
mkdir -p "$2"
TEXT=$(relative "$1")
OUT=$(relative "$2")
NAMED="path/to/$(basename "$(cd "$1" && pwd)")"
cd "$ROOT" # so that the commands in the report can be typed there
STAGE1=$((UPDATES * 6 / 10))
STAGE2=$((UPDATES - STAGE1))
PLUGIN=(--user-dir docnmt_fairseq --task document_translation)
DATA=$OUT/data/data-bin

recorded() { # COMMAND...: runs it and keeps it for the report
    local line
    line=$(printf '%q ' "$@")
    line=${line//"$TEXT"/"$NAMED"}
    grep -qxF -- "$line" "$OUT/commands.txt" 2> /dev/null || printf '%s\n' "$line" >> "$OUT/commands.txt"
    "$@"
}

updates_of() { # CHECKPOINT: prints the updates that it has seen, 0 if there is none
    python -c 'import pathlib, sys
from docnmt_fairseq.recipes.training import updates_of
print(updates_of(pathlib.Path(sys.argv[1])))' "$1"
}

train() { # NAME UPDATES OPTION...: trains once; a half-finished training goes on
    local name=$1 updates=$2
    shift 2
    # From its last checkpoint fairseq would train one update more, so that one says whether it is the last.
    if [ "$(updates_of "$OUT/$name/checkpoint_last.pt")" -ge "$updates" ]; then
        say "$name: trained already"
        return
    fi
    say "Training $name (to update $updates; the log is $OUT/$name/train.log)"
    mkdir -p "$OUT/$name"
    recorded fairseq-train "$DATA" "${PLUGIN[@]}" --arch document_transformer --save-dir "$OUT/$name" \
        --seed "$SEED" --num-workers 0 --max-tokens "$MAX_TOKENS" --max-update "$updates" \
        --encoder-layers "$LAYERS" --decoder-layers "$LAYERS" --encoder-embed-dim "$WIDTH" \
        --encoder-ffn-embed-dim "$FFN" --encoder-attention-heads "$HEADS" --decoder-attention-heads "$HEADS" \
        --encoder-normalize-before --decoder-normalize-before --share-all-embeddings --dropout "$DROPOUT" \
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --clip-norm 1.0 \
        --optimizer adam --adam-betas '(0.9, 0.98)' --lr-scheduler inverse_sqrt --no-epoch-checkpoints \
        --validate-interval-updates "$VALIDATE_EVERY" --log-format json --log-interval "$LOG_EVERY" "$@" \
        2>&1 | tee -a "$OUT/$name/train.log" | sed -un -E 's/.*\| (train_inner|valid) \| \{/\1 {/p; /[Ee]rror/p' >&2 \
        || die "training $name failed; see $OUT/$name/train.log"
}

conditional() { # UPDATES: prints the options of a conditional model, narrowing from 50 % to 70 % of its updates
    printf '%s\n' --context document --context-attention conditional --context-top-t 4 \
        --context-narrow-from "$(($1 * 5 / 10))" --context-narrow-updates "$(($1 * 2 / 10))" \
        --sentence-positions learned
}

translate() { # NAME
    [ -s "$OUT/$1/generate.log" ] && { say "$1: translated already"; return; }
    say "Translating the test set with $1"
    recorded fairseq-generate "$DATA" "${PLUGIN[@]}" --path "$OUT/$1/checkpoint_$CHECKPOINT.pt" --gen-subset test \
        --beam 4 --remove-bpe=sentencepiece --max-tokens "$MAX_TOKENS" --num-workers 0 \
        > "$OUT/$1/generate.log.part" 2> "$OUT/$1/generate.err" \
        || die "translating with $1 failed; see $OUT/$1/generate.err"
    mv "$OUT/$1/generate.log.part" "$OUT/$1/generate.log"
}

validate() { # NAME CONTEXT
    local log=$OUT/$1/valid_$2.log
    [ -s "$log" ] && { say "$1: validated already with --context $2"; return; }
    say "Validation loss of $1 with --context $2"
    recorded fairseq-validate "$DATA" "${PLUGIN[@]}" --path "$OUT/$1/checkpoint_$CHECKPOINT.pt" --context "$2" \
        --valid-subset valid --max-tokens "$MAX_TOKENS" --num-workers 0 --log-format json \
        > "$log.part" 2>&1 || die "validating $1 failed; see $log.part"
    mv "$log.part" "$log"
}

say "Preparing the text"
recorded docnmt prepare --source-lang "$SRC" --target-lang "$TGT" --subwords unigram --vocab-size "$VOCAB" \
    --output "$OUT/data" --train "$TEXT/train" --valid "$TEXT/valid" --test "$TEXT/test"

sentence=(--context none --lr "$LR" --warmup-updates "$WARMUP")
train sentence_stage1 "$STAGE1" "${sentence[@]}"
if [ ! -f "$OUT/sentence/train.log" ]; then
    # Nothing depends on the last update before it comes, so the first 60 % of both trainings are the same.
    mkdir -p "$OUT/sentence"
    cp "$OUT"/sentence_stage1/checkpoint_*.pt "$OUT/sentence"
    cp "$OUT/sentence_stage1/train.log" "$OUT/sentence/train.log.part"
    mv "$OUT/sentence/train.log.part" "$OUT/sentence/train.log"
fi
train sentence "$UPDATES" "${sentence[@]}"
mapfile -t options < <(conditional "$UPDATES")
train scratch "$UPDATES" --lr "$LR" --warmup-updates "$WARMUP" "${options[@]}"
mapfile -t options < <(conditional "$STAGE2")
train finetuned "$STAGE2" --finetune-from-model "$OUT/sentence_stage1/checkpoint_last.pt" \
    --lr "$FINETUNE_LR" --warmup-updates "$FINETUNE_WARMUP" "${options[@]}"
for name in sentence scratch finetuned; do
    translate "$name"
    validate "$name" document
    validate "$name" none
done
say "Report"
read -ra names <<< "$SPLIT_NAMES"
python -m benchmarks.experiments.real_text_report "$OUT" --source-lang "$SRC" --target-lang "$TGT" --checkpoint "$CHECKPOINT" \
    --split-after "$SPLIT_AFTER" --split-names "${names[@]}"
