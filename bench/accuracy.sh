#!/usr/bin/env bash
# How near the prediction is: runs a scenario N times (default 10) and prints the error of each run.
# usage: bench/accuracy.sh [N] [OPTION of pipewright run …]
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-10}
(($# == 0)) || shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for ((i = 1; i <= runs; ++i)); do
  build/bin/pipewright run scenarios/gpt-text/scenario.json --set training.steps=20 "$@" \
    --out "$folder/$i" --json >"$folder/$i.json" 2>/dev/null
done
python3 - "$folder" "$runs" <<'END'
import json, statistics, sys
folder, runs = sys.argv[1], int(sys.argv[2])
reports = [json.load(open(f"{folder}/{i}.json")) for i in range(1, runs + 1)]
print("run  predicted ms  measured ms  iteration error %  peak error % by rank")
for i, r in enumerate(reports, 1):
    print(f"{i:3}  {1e3 * r['predicted']['iteration_s']:12.1f}  {1e3 * r['measured']['iteration_s']:11.1f}"
          f"  {r['error_percent']['iteration_s']:+17.2f}  "
          + "  ".join(f"{e:+.2f}" for e in r["error_percent"]["peak_bytes"]))
errors = [r["error_percent"]["iteration_s"] for r in reports]
measured = [r["measured"]["iteration_s"] for r in reports]
print(f"iteration error: median {statistics.median(errors):+.2f} %, from {min(errors):+.2f} to {max(errors):+.2f} %;"
      f" median of its size {statistics.median(map(abs, errors)):.2f} %")
print(f"measured iteration itself: from {1e3 * min(measured):.1f} to {1e3 * max(measured):.1f} ms,"
      f" {100 * (max(measured) / min(measured) - 1):.1f} % apart")
END
