#!/usr/bin/env bash
# Compares predicted and measured step times over Gloo between two processes on this machine, for
# every schedule that trains and for gradient sums, with measured links. Layers are rehearsed
# between the steps, so that the machine's drift does not count as an error of the links. Each round
# runs all of them; prints the medians of the rounds.
# Usage: bench/links.sh [--rounds N] [--cluster FILE] [--set FIELD=VALUE]… [SCHEDULE…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pipewright=$(realpath "${PIPEWRIGHT_BUILD:-build}")/bin/pipewright
scenario=scenarios/gpt-text/scenario.json
rounds=3
cluster=
settings=()
schedules=()
while (($#)); do
  case $1 in
    --rounds) rounds=$2; shift 2 ;;
    --cluster) cluster=$2; shift 2 ;;
    --set) settings+=(--set "$2"); shift 2 ;;
    *) schedules+=("$1"); shift ;;
  esac
done
if ((${#schedules[@]} == 0)); then
  mapfile -t schedules < <(bench/schedules.py)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -z $cluster ]]; then
  cluster=$work/cluster.json
  "$pipewright" profile "$scenario" "${settings[@]}" --links --between processes -o "$cluster" >&2
fi

try() {  # LABEL OPTION…: one more run, if it can be trained
  local run=$work/run
  rm -rf "$run"
  # Rejected: the schedule does not support these sizes.
  if "$pipewright" run "$scenario" --fresh --cluster "$cluster" "${settings[@]}" "${@:2}" --processes \
    --out "$run" >"$work/out" 2>&1; then
    mkdir -p "$work/reports/$1"
    mv "$run/report.json" "$work/reports/$1/$round.json"
  elif ((round == 0)); then
    echo "$1: not trained: $(tail -n 1 "$work/out")" >&2
  fi
}

for ((round = 0; round < rounds; ++round)); do
  for schedule in "${schedules[@]}"; do
    try "$schedule" --set "pipeline.schedule=$schedule"
  done
  sums=(--set pipeline.ranks=1 --set pipeline.replicas=2)
  try "gpipe, 1 rank, 2 replicas" "${sums[@]}" --set pipeline.schedule=gpipe
  try "the same, ZeRO-1" "${sums[@]}" --set pipeline.schedule=gpipe --set training.zero=1
done

python3 - "$work/reports" <<'END'
import json
import pathlib
import statistics
import sys

print("| schedule | measured, ms | error | of it layers | launch | transfers and waiting |")
print("|---|---|---|---|---|---|")
within = 0
folders = sorted(pathlib.Path(sys.argv[1]).iterdir(), key=lambda path: path.stat().st_ctime)
for folder in folders:
    runs = [json.loads(file.read_text()) for file in folder.iterdir()]

    def median(of):
        return statistics.median(of(run) for run in runs)

    error = median(lambda run: run["error_percent"]["iteration_s"])
    within += abs(error) <= 5
    parts = [median(lambda run, part=part: run["error_parts_percent"][part])
             for part in ("layers", "launch", "transfers_and_waiting")]
    print(f"| `{folder.name}` | {1000 * median(lambda run: run['measured']['iteration_s']):.1f} "
          f"| {error:+.1f} % | " + " | ".join(f"{part:+.1f} %" for part in parts) + " |")
print(f"\n{within} of {len(folders)} within 5 %")
END
