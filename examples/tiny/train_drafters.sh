#!/usr/bin/env bash
# Makes the bundled drafters with the product's own commands, from a target's directory:
#   examples/tiny/train_drafters.sh TARGET OUT [PART]
# PART (1) divides rows and steps, for a quick look. OUT/drafter is the order model, OUT/sets the set model, OUT/spiffy the calibrated graph of the
# baseline. Run again, it goes on where it stopped.
set -euo pipefail
target=$1 out=$2 part=${3:-1}
bin=${BIN:-.venv/bin}
job=examples/tiny/drafter_job.yaml
shape=(--width 64 --layers 2 --heads 4 --feedforward 192 --batch 384 --learning-rate 0.003)

collect() { # NAME ROWS SETTING...: decode training prompts without drafts, keep every state
  local name=$1 rows=$2
  shift 2
  "$bin/spotbatch" drafter collect "$job" --out "$out/data/$name" \
    --set target.path="$target" --set input.uri="$out/prompts.jsonl" --set input.limit="$((rows / part))" "$@"
}

"$bin/python" -m examples.quickstart.make_prompts --side train --rows 760 --seed 31 --out "$out/prompts.jsonl"
"$bin/python" -m examples.quickstart.make_prompts --side train --rows 50 --seed 32 --out "$out/others.jsonl"

# Blocks behind a stop are decoded only when stops are ignored, so a few samples show them.
collect strict 700
collect strict-on 60 --set decode.ignore_eos=true
"$bin/spotbatch" drafter train --data "$out/data/strict" --data "$out/data/strict-on" \
  --out "$out/drafter" --steps "$((7000 / part))" "${shape[@]}"

data=()
for tau in 0.9 0.95 0.8; do
  threshold=(--set decode.rule=threshold --set decode.tau="$tau")
  collect "tau-$tau" 400 "${threshold[@]}"
  collect "tau-$tau-on" 40 "${threshold[@]}" --set decode.ignore_eos=true
  data+=(--data "$out/data/tau-$tau" --data "$out/data/tau-$tau-on")
done
"$bin/spotbatch" drafter train --kind sets "${data[@]}" --out "$out/sets" --steps "$((3000 / part))" "${shape[@]}"

calibrate() { # METHOD DRAFTER SETTING...: on training prompts that no model has seen
  local method=$1 drafter=$2
  shift 2
  mkdir -p "$out/$drafter"
  "$bin/spotbatch" drafter calibrate "$job" --method "$method" --drafter "$out/$drafter" \
    --set target.path="$target" --set input.uri="$out/others.jsonl" "$@"
}

at_tau=(--set decode.rule=threshold --set decode.tau=0.9)
calibrate survival drafter
calibrate survival sets "${at_tau[@]}"
calibrate sets sets "${at_tau[@]}"
calibrate spiffy spiffy --score own
calibrate gamma drafter --samples "$(((9 + part) / part))" --set cluster.threads=1
