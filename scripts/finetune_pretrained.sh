#!/usr/bin/env bash
# Trains a released sentence-level model with document context: import, prepare, translate, score, train with context,
# translate and score again; evaluate both on contrastive items.
#
#   bash scripts/finetune_pretrained.sh MODEL DATA [OUTPUT]      (default output: work/finetuned)
#   bash scripts/finetune_pretrained.sh --smoke [OUTPUT]         (random MarianMT, artificial corpus, tiny budgets)
#
# MODEL: input of docnmt import: a folder, a checkpoint of fairseq, or a name on the hub (OWNER/MODEL).
# DATA: {train,valid,test}.{en,de}, one sentence per line, an empty line after each document.
# Run again, it resumes.
#
# Environment: SOURCE, TARGET (en, de); SOURCE_CODE, TARGET_CODE: their names in the model; IMPORT_OPTIONS: options of
# docnmt import, e.g. "--revision v1"; MECHANISM (conditional), UPDATES, LR, WARMUP, MAX_TOKENS of the training;
# TRAIN_OPTIONS: options of fairseq-train, e.g. "--bf16"; CONTRAST_SET and CONTRAST_ITEMS: format and file of a contrastive
# set (docnmt contrast).
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

SMOKE=
if [ "${1:-}" = --smoke ]; then
    SMOKE=1
    shift
    set -- - - "${1:-$ROOT/work/finetuned-smoke}"
fi
[ $# -ge 2 ] && [ $# -le 3 ] || die "usage: bash $0 MODEL DATA [OUTPUT], or bash $0 --smoke [OUTPUT]"
[ -n "${DOCNMT_SET_UP:-}" ] || set_up # DOCNMT_SET_UP=1: use the current environment
MODEL=$1 DATA=$2
OUT=${3:-$ROOT/work/finetuned}
OUT=$(mkdir -p "$OUT" && cd "$OUT" && pwd)
SOURCE=${SOURCE:-en} TARGET=${TARGET:-de} MECHANISM=${MECHANISM:-conditional}
UPDATES=${UPDATES:-5000} LR=${LR:-0.0001} WARMUP=${WARMUP:-500} MAX_TOKENS=${MAX_TOKENS:-4096}
BEAM=4

if [ -n "$SMOKE" ]; then
    say "Making an artificial corpus and a random MarianMT"
    SOURCE=src TARGET=tgt UPDATES=20 LR=0.003 WARMUP=5 MAX_TOKENS=1000 BEAM=2
    DATA=$OUT/corpus MODEL=$OUT/released
    [ -f "$DATA/lexicon.json" ] || docnmt synth --output "$DATA" --train-documents 8 --valid-documents 2 \
        --test-documents 2 --sentences-per-document 14 16 --max-distance 4 --introductions 4 --nouns 9 --places 8
    [ -f "$MODEL/README.md" ] ||
        python "$ROOT/scripts/lib/random_marian.py" "$MODEL" "$DATA/train.$SOURCE" "$DATA/train.$TARGET"
    CONTRAST_SET=synth CONTRAST_ITEMS=$DATA/test.phenomena.tsv
fi
for split in train valid test; do
    for side in "$SOURCE" "$TARGET"; do
        [ -f "$DATA/$split.$side" ] || die "$DATA/$split.$side: no such file; DATA holds {train,valid,test}.{$SOURCE,$TARGET}"
    done
done
# Check all settings before the long steps.
for number in UPDATES WARMUP MAX_TOKENS; do
    [[ ${!number} =~ ^[1-9][0-9]*$ ]] || die "$number=${!number}: must be a whole number of at least 1"
done
[ -n "${CONTRAST_SET:-}" ] || [ -z "${CONTRAST_ITEMS:-}" ] || die "CONTRAST_ITEMS=$CONTRAST_ITEMS: needs CONTRAST_SET, its format"
[ -n "${CONTRAST_ITEMS:-}" ] || [ -z "${CONTRAST_SET:-}" ] || die "CONTRAST_SET=$CONTRAST_SET: needs CONTRAST_ITEMS, its file"
[ -z "${CONTRAST_ITEMS:-}" ] || [ -e "$CONTRAST_ITEMS" ] || die "CONTRAST_ITEMS=$CONTRAST_ITEMS: no such file"
mechanisms=$(python -c 'from docnmt_fairseq.context.base import CONTEXT_MECHANISMS; print(*CONTEXT_MECHANISMS.names())')
case " ${mechanisms//-/_} " in
*" ${MECHANISM//-/_} "*) ;;
*) die "MECHANISM=$MECHANISM: must be one of $mechanisms" ;;
esac
settings="DATA=$(cd "$DATA" && pwd) MECHANISM=$MECHANISM UPDATES=$UPDATES LR=$LR WARMUP=$WARMUP MAX_TOKENS=$MAX_TOKENS \
TRAIN_OPTIONS=${TRAIN_OPTIONS:-}"
text=$(cat "$DATA"/{train,valid}."$SOURCE" "$DATA"/{train,valid}."$TARGET" | cksum)
text="training and validation text with the checksum $text"
not_made_otherwise "$OUT/document/settings.txt" "$settings"
not_made_otherwise "$OUT/document/data.txt" "$text"

say "Importing $MODEL"
read -r -a import <<< "${IMPORT_OPTIONS:-}"
import=("$MODEL" -s "$SOURCE" -t "$TARGET" "${import[@]}")
[ -z "${SOURCE_CODE:-}" ] || import+=(--source-code "$SOURCE_CODE")
[ -z "${TARGET_CODE:-}" ] || import+=(--target-code "$TARGET_CODE")
if [ -f "$OUT/model/manifest.json" ]; then
    [ "$(cat "$OUT/import.txt" 2> /dev/null)" = "${import[*]}" ] ||
        die "$OUT/model: was imported with other options than ${import[*]} ($OUT/import.txt); use another OUTPUT"
else
    echo "${import[*]}" > "$OUT/import.txt"
    docnmt import "${import[@]}" --output "$OUT/model"
fi
say "Preparing $DATA with its subwords"
docnmt prepare --reuse "$OUT/model" -s "$SOURCE" -t "$TARGET" --output "$OUT/data" \
    --train "$DATA/train" --valid "$DATA/valid" --test "$DATA/test"

translate() { # NAME CHECKPOINT
    local done=$OUT/$1/test.txt
    [ -s "$done" ] && [ "$done" -nt "$2" ] && [ "$done" -nt "$DATA/test.$SOURCE" ] && { say "$1: already translated"; return; }
    say "Translating the test set with the $1 model"
    docnmt translate --path "$2" --data "$OUT/data" --input "$DATA/test.$SOURCE" --output "$done" --force \
        --beam "$BEAM" --max-len-a 2 --max-len-b 20 --empty-lines document
}

contrast() { # NAME CHECKPOINT
    [ -n "${CONTRAST_ITEMS:-}" ] || return 0
    say "Evaluating the $1 model on $CONTRAST_ITEMS"
    docnmt contrast --path "$2" --data "$OUT/data" --set "$CONTRAST_SET" --items "$CONTRAST_ITEMS" \
        --output "$OUT/$1/contrast.txt"
}

translate sentence "$OUT/model/checkpoint.pt"
contrast sentence "$OUT/model/checkpoint.pt"
docnmt score --reference "$DATA/test.$TARGET" --system sentence="$OUT/sentence/test.txt"

# The training needs the numbers of learned positions.
read -r -a positions < <(python -c 'import json, sys
about = json.load(open(sys.argv[1], encoding="utf-8"))["imported"]
print(*("--max-%s-positions %d" % pair for pair in zip(("source", "target"), about["positions"])))' "$OUT/model/manifest.json")
read -r -a more <<< "${TRAIN_OPTIONS:-}"
if [ "$MECHANISM" = conditional ]; then # all sentences first, to train the selection, then the best four
    more=(--context-top-t 4 --context-top-t-anneal-start $((UPDATES * 7 / 10)) --context-top-t-anneal-threshold 0.9 "${more[@]}")
fi
say "Training with context: $MECHANISM, $UPDATES updates; the log is $OUT/document/train.log"
made_with "$OUT/document/settings.txt" "$settings"
made_with "$OUT/document/data.txt" "$text"
# A resumed training continues from its last checkpoint; --finetune-from-model then gives the architecture only.
attended fairseq-train "$OUT/data/data-bin" --user-dir "$ROOT/docnmt_fairseq" --task document_translation \
    --arch "document_transformer_${MECHANISM//-/_}_pretrained" --finetune-from-model "$OUT/model/checkpoint.pt" \
    "${positions[@]}" --sentence-positions learned --context-dropout 0.1 --max-tokens "$MAX_TOKENS" \
    --optimizer adam --adam-betas '(0.9, 0.98)' --lr "$LR" --lr-scheduler inverse_sqrt --warmup-updates "$WARMUP" \
    --clip-norm 1.0 --criterion document_label_smoothed_cross_entropy --label-smoothing 0.1 --max-update "$UPDATES" \
    --num-workers 0 --no-epoch-checkpoints --save-dir "$OUT/document" --log-format simple "${more[@]}" \
    >> "$OUT/document/train.log" 2>&1 || {
    tail -n 5 "$OUT/document/train.log" >&2
    die "training failed; see $OUT/document/train.log"
}
translate document "$OUT/document/checkpoint_best.pt"
contrast document "$OUT/document/checkpoint_best.pt"
say "Scores before and after"
docnmt score --reference "$DATA/test.$TARGET" --system sentence="$OUT/sentence/test.txt" \
    --system document="$OUT/document/test.txt" --output "$OUT/scores.txt"
cat "$OUT/scores.txt"
for name in sentence document; do
    [ ! -f "$OUT/$name/contrast.txt" ] || { say "Contrastive items: $name"; cat "$OUT/$name/contrast.txt"; }
done
