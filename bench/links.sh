#!/usr/bin/env bash
# Two processes over Gloo on this machine, every schedule that trains, and sums of gradients: what a
# step was predicted to take with measured links, and what it took. The layers are measured just
# before and just after each training, and the mean of both predictions counts: the machine's speed
# drifts by more than links may err. Each round goes through all. The medians of the rounds.
# Usage: bench/links.sh [--rounds N] [--cluster FILE] [--set FIELD=VALUE]… [SCHEDULE…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pipewright=$PWD/build/bin/pipewright
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
  mapfile -t schedules < <(python3 -c 'import json
with open("scenarios/schema/scenario.schema.json") as file:
    schema = json.load(file)
print(*schema["properties"]["pipeline"]["properties"]["schedule"]["enum"], sep="\n")')
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -z $cluster ]]; then
  cluster=$work/cluster.json
  "$pipewright" profile "$scenario" "${settings[@]}" --links --between processes -o "$cluster" >&2
fi

try() {  # LABEL OPTION…: one more run, if it can be trained
  local label=$1 common=("$scenario" --cluster "$cluster" "${settings[@]}" "${@:2}") run=$work/run
  rm -rf "$run"
  # Refused: sizes that the schedule does not take, or what only the simulator does.
  if "$pipewright" profile "${common[@]}" --over 1 -o "$work/costs.json" >"$work/out" 2>&1 &&
    "$pipewright" train "${common[@]}" --processes --costs "$work/costs.json" --out "$run" \
      >"$work/out" 2>&1; then
    local before after
    before=$(build/bin/pipewright_bench_links "$run")
    "$pipewright" profile "${common[@]}" --over 1 -o "$run/costs.json" >"$work/out" 2>&1
    after=$(build/bin/pipewright_bench_links "$run")
    printf '%s\t%s\t%s\n' "$label" "$before" "$after" >>"$work/lines"
  elif ((round == 0)); then
    echo "$label: not trained: $(tail -n 1 "$work/out")" >&2
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

python3 - "$work/lines" <<'END'
import json
import statistics
import sys

runs = {}
with open(sys.argv[1]) as file:
    for line in file:
        label, *both = line.split("\t")
        before, after = map(json.loads, both)
        mean = {key: (before[key] + after[key]) / 2 for key in before if key.endswith("_s")}
        runs.setdefault(label, []).append(mean)


def median(of, key):
    return statistics.median(100 * run[key] / run["measured_s"] for run in of)


print("| schedule | measured, ms | error | of it layers | launch | transfers and waiting |")
print("|---|---|---|---|---|---|")
within = 0
for schedule, of in runs.items():
    for run in of:
        run["error_s"] = run["predicted_s"] - run["measured_s"]
    error = median(of, "error_s")
    within += abs(error) <= 5
    print(f"| `{schedule}` | {1000 * statistics.median(r['measured_s'] for r in of):.1f} "
          f"| {error:+.1f} % | {median(of, 'layers_s'):+.1f} % | {median(of, 'launch_s'):+.1f} % "
          f"| {median(of, 'transfers_s'):+.1f} % |")
print(f"\n{within} of {len(runs)} within 5 %")
END
