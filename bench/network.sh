#!/usr/bin/env bash
# Two ranks in two network namespaces, joined by a cable that `tc tbf` slows down: what a step takes
# there, beside what both engines predict for a link of that bandwidth and latency. Needs root, ip,
# tc and ping. One line a bandwidth and schedule.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pipewright=$PWD/build/bin/pipewright
scenario=scenarios/gpt-text/scenario.json
steps=12
[[ ${1:-} != --quick ]] || steps=4

work=$(mktemp -d)
name=pw$$
cleanup() {
  ip netns del "${name}a" 2>/dev/null || true
  ip netns del "${name}b" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
if ! ip netns add "${name}a" 2>/dev/null; then
  echo "skipped: no network namespaces for this user" >&2
  exit 0
fi
ip netns add "${name}b"
ip link add x netns "${name}a" type veth peer name y netns "${name}b"
ip -n "${name}a" address add 10.99.0.1/24 dev x
ip -n "${name}b" address add 10.99.0.2/24 dev y
for end in a:x b:y; do
  ip -n "$name${end%:*}" link set lo up
  ip -n "$name${end%:*}" link set "${end#*:}" up
done

slow_down() {  # MBIT
  ip netns exec "${name}a" tc qdisc replace dev x root tbf rate "$1mbit" burst 128kb latency 2s
  ip netns exec "${name}b" tc qdisc replace dev y root tbf rate "$1mbit" burst 128kb latency 2s
}

"$pipewright" profile "$scenario" -o "$work/costs.json" >&2

train() {  # NAMESPACE RANK OPTION…
  local namespace=$1 rank=$2
  shift 2
  ip netns exec "$name$namespace" env RANK="$rank" LOCAL_RANK="$rank" WORLD_SIZE=2 \
    MASTER_ADDR=10.99.0.1 MASTER_PORT=29411 \
    "$pipewright" train "$scenario" --costs "$work/costs.json" --set "training.steps=$steps" "$@"
}

echo "bandwidth  schedule  measured s  native s  error %  simgrid s  error %"
for mbit in 400 100; do
  slow_down "$mbit"
  for schedule in gpipe 1f1b; do
    link=(--set "cluster.nodes=2" --set "cluster.devices_per_node=1" --set "pipeline.schedule=$schedule"
      --set "cluster.between_nodes={\"latency_s\": 1e-4, \"bandwidth_per_s\": $((mbit * 125000))}")
    train b 1 "${link[@]}" --trace "$work/unused.json" >"$work/other" 2>&1 &
    train a 0 "${link[@]}" --trace "$work/measured.json" >"$work/out" 2>"$work/err" ||
      { cat "$work/err" "$work/other" >&2; exit 1; }
    wait
    for engine in native simgrid; do
      "$pipewright" simulate "$scenario" --costs "$work/costs.json" "${link[@]}" \
        --set pipeline.hand_over=copy --engine "$engine" --json >"$work/$engine.json" 2>/dev/null
    done
    python3 - "$work" "$mbit" "$schedule" <<'END'
import json
import sys

work, mbit, schedule = sys.argv[1:]
with open(f"{work}/measured.json") as file:
    events = json.load(file)["traceEvents"]
compute = [e["args"] for e in events if e.get("ph") == "X" and "start_s" in e.get("args", {})]
measured = max(a["end_s"] for a in compute) - min(a["start_s"] for a in compute)
row = f"{mbit:>4} Mbit/s  {schedule:<8}  {measured:>10.3f}"
for engine in ("native", "simgrid"):
    with open(f"{work}/{engine}.json") as file:
        predicted = json.load(file)["iteration_s"]
    row += f"  {predicted:>8.3f}  {100 * (predicted / measured - 1):>+7.1f}"
print(row)
END
  done
done
