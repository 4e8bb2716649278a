#!/usr/bin/env bash
# Measures the prediction error: runs a scenario N times (default 24), alternating between 1 and 2
# ranks with gpipe, 1f1b and zb-h1, and prints the error of each run and its components.
# usage: bench/accuracy.sh [N] [OPTION of pipewright run …]
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-24}
(($# == 0)) || shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for ((i = 0; i < runs; ++i)); do
  schedules=(gpipe 1f1b zb-h1)
  "${PIPEWRIGHT_BUILD:-build}/bin/pipewright" run scenarios/gpt-text/scenario.json --fresh --set "pipeline.ranks=$((2 - i % 2))" \
    --set "pipeline.schedule=${schedules[i / 2 % 3]}" "$@" --out "$folder/$i" --json >/dev/null 2>&1
done
python3 - "$folder" "$runs" <<'END'
import json, statistics, sys

folder, runs = sys.argv[1], int(sys.argv[2])
reports = [json.load(open(f"{folder}/{i}/report.json")) for i in range(runs)]

def bubble_errors(report):
    """Of ranks whose bubble is more than a hundredth of the iteration."""
    measured = report["measured"]
    return [error for error, bubble in zip(report["error_percent"]["bubble_s"], measured["bubble_s"])
            if bubble > 0.01 * measured["iteration_s"]]

print("ranks  schedule  predicted ms  measured ms  error %  layers  launch  waiting  planned %  drift %  bubbles %        memory %")
for r in reports:
    parts = r["error_parts_percent"]
    print(f"{r['ranks']:5}  {r['schedule']:8}  {1e3 * r['predicted']['iteration_s']:12.1f}"
          f"  {1e3 * r['measured']['iteration_s']:11.1f}  {r['error_percent']['iteration_s']:+7.2f}"
          f"  {parts['layers']:+6.2f}  {parts['launch']:+6.2f}  {parts['transfers_and_waiting']:+7.2f}"
          f"  {r['planned_error_percent']['iteration_s']:+9.2f}  {r['machine_drift_percent']:7.1f}"
          f"  {'  '.join(f'{e:+6.1f}' for e in bubble_errors(r)):16}"
          f" {'  '.join(f'{e:+.2f}' for e in r['error_percent']['peak_bytes'] if e is not None)}")

def summary(what, errors):
    sizes = [abs(e) for e in errors]
    print(f"{what}: median {statistics.median(errors):+.2f} %, from {min(errors):+.2f} to {max(errors):+.2f} %;"
          f" median of its size {statistics.median(sizes):.2f} %, {sum(s <= 5 for s in sizes)} of {len(sizes)} within 5 %")

summary("iteration error", [r["error_percent"]["iteration_s"] for r in reports])
summary("the same, planned before the training", [r["planned_error_percent"]["iteration_s"] for r in reports])
bubbles = [e for r in reports for e in bubble_errors(r)]
if bubbles:
    sizes = [abs(e) for e in bubbles]
    print(f"bubbles' error: median {statistics.median(bubbles):+.1f} %, median of its size {statistics.median(sizes):.1f} %,"
          f" {sum(s <= 10 for s in sizes)} of {len(sizes)} within 10 %")
END
