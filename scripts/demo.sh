#!/usr/bin/env bash
# The whole way on a corpus made here, which cannot be translated right without its documents:
# make it, prepare it, train a sentence-level and a conditional model on the same budget, translate, score.
#
#   bash scripts/demo.sh [FOLDER]        (default: demo; about 10 minutes on 2 cores; run again, it goes on where it was)
#
# UPDATES (default below) is the budget of each model; SEED fixes everything.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
set_up
OUT=$(mkdir -p "${1:-$ROOT/demo}" && cd "${1:-$ROOT/demo}" && pwd)
SEED=${SEED:-1}
UPDATES=${UPDATES:-5000}  # with 4,000, what seed 1 has learnt at the end depends on rounding: 93 to 100 %
NARROW_FROM=$((UPDATES * 55 / 100))
NARROW_UPDATES=$((UPDATES * 2 / 10))

train() { # NAME OPTION...: trains once; a half-finished training goes on
    local name=$1
    shift
    [ -f "$OUT/$name/finished" ] && { say "$name: trained already"; return; }
    say "Training $name ($UPDATES updates; the log is $OUT/$name/train.log)"
    mkdir -p "$OUT/$name"
    fairseq-train "$OUT/data/data-bin" --user-dir "$ROOT/docnmt_fairseq" --task document_translation \
        --save-dir "$OUT/$name" --seed "$SEED" --num-workers 0 --max-tokens 1000 --max-update "$UPDATES" \
        --optimizer adam --adam-betas '(0.9, 0.98)' --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 200 \
        --clip-norm 1.0 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --dropout 0.0 \
        --encoder-layers 3 --decoder-layers 1 --encoder-normalize-before --decoder-normalize-before \
        --share-decoder-input-output-embed --no-epoch-checkpoints --log-format simple --log-interval 200 "$@" \
        2>&1 | tee -a "$OUT/$name/train.log" | { grep --line-buffered -E 'train_inner|Error|error' || true; } | sed -u 's/.*| epoch/epoch/' >&2 \
        || die "training $name failed; see $OUT/$name/train.log"
    touch "$OUT/$name/finished"
}

translate() { # NAME
    [ -s "$OUT/$1/generate.log" ] && { say "$1: translated already"; return; }
    say "Translating the test set with $1"
    fairseq-generate "$OUT/data/data-bin" --user-dir "$ROOT/docnmt_fairseq" --task document_translation \
        --path "$OUT/$1/checkpoint_last.pt" --beam 4 --max-tokens 8000 --num-workers 0 \
        > "$OUT/$1/generate.log.part" || die "translating with $1 failed; see $OUT/$1/generate.log.part"
    mv "$OUT/$1/generate.log.part" "$OUT/$1/generate.log"
}

say "Making a corpus that needs its documents"
[ -f "$OUT/corpus/lexicon.json" ] || docnmt synth --output "$OUT/corpus" --seed "$SEED"
say "Preparing it"
docnmt prepare --source-lang src --target-lang tgt --subwords none --workers 2 --output "$OUT/data" \
    --train "$OUT/corpus/train" --valid "$OUT/corpus/valid" --test "$OUT/corpus/test"
train sentence --arch document_transformer_tiny
train conditional --arch document_transformer_conditional_tiny --context-layers 1,2 --context-top-t 4 \
    --context-narrow-from "$NARROW_FROM" --context-narrow-updates "$NARROW_UPDATES" \
    --sentence-positions learned --paragraph-positions sinusoidal
translate sentence
translate conditional
say "Scoring"
docnmt score-synth --corpus "$OUT/corpus" --split test --output "$OUT/report" \
    --system sentence="$OUT/sentence/generate.log" --system conditional="$OUT/conditional/generate.log" \
    --assert-minimum conditional=0.95 --assert-ceiling sentence
