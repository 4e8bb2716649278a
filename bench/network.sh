#!/usr/bin/env bash
# Runs two ranks in two network namespaces that are connected by a cable with a bandwidth limited by
# `tc tbf`. Compares the step time there with the prediction of `run`, with links measured there by
# `profile --links` and layers rehearsed between the steps, and with the predictions of both engines
# for the mean costs of the rehearsed layers. Needs root, ip and tc. Prints one line for each
# bandwidth and schedule, and one for gradient sums. `all`: every schedule that trains, 40 min with
# --quick (eight steps each). Fewer steps show more of a machine's speed variations; 32 average them
# out. With --pipelines N, N pipelines share the cable, and the last two columns are for sampled
# steps and for unshared links. Links are measured within --within seconds.
# Usage: bench/network.sh [--quick | --steps N] [--mbit "N…"] [--within S] [--pipelines N] [--set FIELD=VALUE]…
#                         [all | SCHEDULE…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pipewright=$(realpath "${PIPEWRIGHT_BUILD:-build}")/bin/pipewright
scenario=scenarios/gpt-text/scenario.json
steps=12
bandwidths="400 100"
within=60
pipelines=1
settings=()
schedules=()
while (($#)); do
  case $1 in
    --quick) steps=8; shift ;;
    --steps) steps=$2; shift 2 ;;
    --mbit) bandwidths=$2; shift 2 ;;
    --within) within=$2; shift 2 ;;
    --pipelines) pipelines=$2; shift 2 ;;
    --set) settings+=(--set "$2"); shift 2 ;;
    *) schedules+=("$1"); shift ;;
  esac
done
settings+=(--set "pipeline.replicas=$pipelines")
((${#schedules[@]})) || schedules=(gpipe 1f1b)
[[ ${schedules[0]} != all ]] || mapfile -t schedules < <(bench/schedules.py)

work=$(mktemp -d)
name=pw$$
cleanup() {
  ip netns del "${name}a" 2>/dev/null || true
  ip netns del "${name}b" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
if ! { ip netns add "${name}a" && ip netns exec "${name}a" true; } 2>/dev/null; then
  echo "skipped: no network namespaces for this user" >&2
  exit 0
fi
ip netns add "${name}b"
ip link add x netns "${name}a" type veth peer name y netns "${name}b"
ip -n "${name}a" address add 10.99.0.1/24 dev x
ip -n "${name}b" address add 10.99.0.2/24 dev y
# A sender that models its path (bbr) is as fast as its history of use allows, so the measured links
# and the training would see different speeds.
for end in a b; do
  for control in cubic reno; do
    ip netns exec "$name$end" sysctl -qw net.ipv4.tcp_congestion_control=$control 2>/dev/null && break
  done
done
for end in a:x b:y; do
  ip -n "$name${end%:*}" link set lo up
  # Packets that the shaper need not split. With 1500-byte packets, a timer and the other end's
  # thread would interrupt the computing rank for each, 350 times per transfer, which network cards
  # avoid on real hosts.
  ip -n "$name${end%:*}" link set "${end#*:}" gso_max_size 16000 up
done

slow_down() {  # MBIT
  ip netns exec "${name}a" tc qdisc replace dev x root tbf rate "$1mbit" burst 16kb latency 2s
  ip netns exec "${name}b" tc qdisc replace dev y root tbf rate "$1mbit" burst 16kb latency 2s
}

rank() {  # RANK COMMAND OPTION…
  local end=a
  (($1 < pipelines)) || end=b
  ip netns exec "$name$end" env RANK="$1" LOCAL_RANK=$(($1 % pipelines)) \
    WORLD_SIZE=$((2 * pipelines)) MASTER_ADDR=10.99.0.1 MASTER_PORT=29411 \
    "$pipewright" "$2" "$scenario" "${settings[@]}" "${@:3}"
}

on_both() {  # COMMAND OPTION…: on all ranks of a job, half at each end; only the first writes
  for ((other = 1; other < 2 * pipelines; ++other)); do
    rank $other "$@" >"$work/other$other" 2>&1 &
  done
  rank 0 "$@" >"$work/out" 2>"$work/err" || {
    cat "$work/err" "$work"/other* >&2
    exit 1
  }
  wait
}

nodes=(--set cluster.nodes=2 --set "cluster.devices_per_node=$pipelines" --set
  'cluster.between_nodes={"latency_s": 0, "bandwidth_per_s": 1}')

step() {  # MBIT LABEL OPTION…
  local mbit=$1 label=$2 link=(--cluster "$work/cluster.json" "${@:3}")
  rm -rf "$work/run"
  on_both run --fresh --set "training.steps=$steps" "${link[@]}" --out "$work/run"
  local borders
  borders=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["boundaries"])' \
    "$work/run/report.json")
  simulate() {  # NAME OPTION…
    "$pipewright" simulate "$scenario" --costs "${costs:-$work/run/rehearsed_costs.json}" "${settings[@]}" \
      "${link[@]}" --set pipeline.local_transfer=copy --set "pipeline.partition=$borders" "${@:2}" \
      --json >"$work/$1.json" 2>/dev/null
  }
  simulate native
  # SimGrid cannot model ranks that slow each other down.
  python3 -c 'import json, sys
costs = json.load(sys.stdin)
costs.pop("busy_cores", None)
drop = lambda layer: {name: value for name, value in layer.items() if not name.startswith("contended_")}
costs["layers"] = [drop(layer) for layer in costs["layers"]]
costs["loss"] = drop(costs.get("loss", {}))
json.dump(costs, sys.stdout)' <"$work/run/rehearsed_costs.json" >"$work/alone.json"
  costs="$work/alone.json" simulate simgrid --engine simgrid
  local engines=(native simgrid)
  if ((pipelines > 1)); then
    simulate apart --set cluster.between_nodes.shared=false
    # Samples of what the first pipeline computed in each step; the other has its own durations.
    simulate drawn --draws 1000 --jitter "$work/run"
    engines+=(drawn apart)
  fi
  python3 - "$work" "$mbit" "$label" "${engines[@]}" <<'END'
import json
import sys

work, mbit, label, *engines = sys.argv[1:]
with open(f"{work}/run/report.json") as file:
    report = json.load(file)
measured = report["measured"]["iteration_s"]
predictions = [report["predicted"]["iteration_s"]]
for engine in engines:
    with open(f"{work}/{engine}.json") as file:
        answer = json.load(file)
        predictions.append(answer["draws"]["p50_s"] if "draws" in answer else answer["iteration_s"])
row = f"| {mbit} Mbit/s | {label} | {measured:.3f} |"
for predicted in predictions:
    row += f" {predicted:.3f}, {100 * (predicted / measured - 1):+.1f} % |"
print(row)
END
}

head="| bandwidth | schedule | measured, s | \`run\` | mean costs: native | SimGrid |"
((pipelines == 1)) || head+=" drawn, P50 | links of their own |"
echo "$head"
echo "$head" | sed 's/[^|][^|]*/---/g'
for mbit in $bandwidths; do
  slow_down "$mbit"
  on_both profile "${nodes[@]}" --links --between processes --within "$within" -o "$work/cluster.json"
  sed 's/^/    /' "$work/out" >&2
  for schedule in "${schedules[@]}"; do
    step "$mbit" "\`$schedule\`" --set "pipeline.schedule=$schedule"
  done
  if ((pipelines == 1)); then
    step "$mbit" "\`gpipe\`, 1 rank, 2 replicas" --set pipeline.schedule=gpipe \
      --set pipeline.ranks=1 --set pipeline.replicas=2
  fi
done
