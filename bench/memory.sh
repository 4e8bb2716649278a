#!/usr/bin/env bash
# Measures the error of the predicted peak memory: trains a few steps under each setup that changes
# it, and prints predicted and measured peaks of the fullest rank and the largest error of any rank
# as a Markdown table. With N, uses only the first N setups.
# usage: bench/memory.sh [N] [OPTION of pipewright run …]
set -euo pipefail
cd "$(dirname "$0")/.."
first=
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  first=$1
  shift
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

setups=(
  ""
  "training.optimizer=sgd"
  "pipeline.replicas=2"
  "pipeline.replicas=2 training.zero=1"
  "pipeline.replicas=2 training.zero=1 training.clip_norm=1"
  "training.precision=mixed"
  "training.recompute=full"
  "training.recompute=selective"
  "training.precision=mixed training.recompute=full"
  "pipeline.replicas=2 training.zero=1 training.precision=mixed training.recompute=selective"
)
schedules=(gpipe 1f1b zb-h1 interleaved-1f1b interleaved-zb zbv v-min)
for schedule in "${schedules[@]:1:2}"; do
  for setup in "${setups[@]}"; do runs+=("pipeline.schedule=$schedule $setup"); done
done
for schedule in gpipe "${schedules[@]:3}"; do
  for setup in "" "training.recompute=full"; do runs+=("pipeline.schedule=$schedule $setup"); done
done
runs=("${runs[@]:0:${first:-${#runs[@]}}}")
for i in "${!runs[@]}"; do
  sets=()
  for assignment in ${runs[i]}; do sets+=(--set "$assignment"); done
  "${PIPEWRIGHT_BUILD:-build}/bin/pipewright" run scenarios/gpt-text/scenario.json --set training.steps=3 --set profile.most_repeats=10 \
    "${sets[@]}" "$@" --out "$folder/$i" --json >/dev/null 2>"$folder/$i.err" || cat "$folder/$i.err" >&2
  printf '%s\n' "${runs[i]}" >"$folder/$i.setup"
done
python3 - "$folder" "${#runs[@]}" <<'END'
import json, sys

folder, runs = sys.argv[1], int(sys.argv[2])
print("| schedule | set-up | predicted, MB | measured, MB | largest error of a rank |")
print("|---|---|---|---|---|")
worst = 0
for i in range(runs):
    schedule, *setup = open(f"{folder}/{i}.setup").read().split()
    r = json.load(open(f"{folder}/{i}/report.json"))
    errors = [e for e in r["error_percent"]["peak_bytes"] if e is not None]
    if not errors:
        sys.exit(f"{schedule}: no rank's memory was counted")
    error = max(errors, key=abs)
    worst = max(worst, abs(error))
    print(f"| `{schedule.split('=')[1]}` | {', '.join(f'`{s}`' for s in setup) or '–'}"
          f" | {max(r['predicted']['peak_bytes']) / 1e6:.2f} | {max(r['measured']['peak_bytes']) / 1e6:.2f} | {error:+.3f} % |")
print(f"\nThe largest error is {worst:.2f} %.")
END
