#!/usr/bin/env bash
# Measures our executor and torch.distributed.pipelining, alternately, against the schedule's ideal,
# and the cost of recording; then all other programs of this folder, some next to other tools.
# Called by ./dev bench. --quick uses sizes that give no meaningful figures and only shows that
# everything runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${PIPEWRIGHT_BUILD:-build}/bin

rounds=3 ours_and_torch=(--steps 4 --rounds 2) recording=(--steps 12 --rounds 4)
large=(--layers 8 --hidden 256 --mbs 4 --seq 128 --microbatches 8)
small=(--layers 4 --hidden 128 --mbs 4 --seq 128 --microbatches 16)
paced=() actions=() planners=() schedule=()
simulated=() of_simgrid=(--ranks 16 --microbatches 64 --vectors 10000)
of_dry_run=(--ranks 16 --microbatches 128 --chunks 4)
what_if=() files=() window=()
quick=false
case ${1:-} in
  '') ;;
  --quick)
    quick=true rounds=1 ours_and_torch=(--steps 1 --rounds 1) recording=(--steps 4 --rounds 1)
    large=(--layers 2 --hidden 32 --mbs 1 --seq 16 --microbatches 4)
    small=("${large[@]}")
    paced=(--ranks 2 --microbatches 4 --steps 1 --ms 1) actions=(--rounds 1 --hidden 32)
    planners=(--rounds 1) schedule=(--rounds 1 --ranks 32 --microbatches 256)
    simulated=(--rounds 1 --ranks 4 --microbatches 16)
    of_simgrid=("${simulated[@]}" --vectors 10) of_dry_run=("${simulated[@]}" --chunks 4)
    what_if=(--ranks 16 --microbatches 32 --rounds 2) files=(--events 20000 --trace-mb 1)
    window=(--events 20000 --ranks 8 --stages 8 --microbatches 16 --rounds 2 --trace-mb 1)
    ;;
  *)
    echo "usage: ${BASH_SOURCE[0]} [--quick]" >&2
    exit 2
    ;;
esac

results=$(mktemp)
trap 'rm -f "$results"' EXIT

say() { echo "bench: $*" >&2; }
ours() { "$build/pipewright_bench_executor" --ranks 2 "$@" >>"$results"; }
# Runs as torch does: one process per rank, over Gloo.
rank() {
  local rank=$1
  shift
  RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
    "$build/pipewright_bench_executor" --ranks 2 "$@"
}
ours_as_processes() {
  # A port that was free a moment ago: other benchmarks may run at the same time.
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
  rank 1 "$@" &
  rank 0 "$@" >>"$results"
  wait $!
}
# Shows torch's warnings, such as that NumPy is missing, only if it fails.
torch() {
  local log
  log=$(.venv/bin/python -W ignore bench/torch_pipelining.py --ranks 2 "$@" 2>&1 >>"$results") ||
    { echo "$log" >&2; return 1; }
}
# compare OURS TORCHS SIZE…: one schedule, with our name and torch's.
compare() {
  local schedule=$1 torchs=$2
  shift 2
  ours "${ours_and_torch[@]}" "$@" --schedule "$schedule"
  ours_as_processes "${ours_and_torch[@]}" "$@" --schedule "$schedule"
  torch "${ours_and_torch[@]}" "$@" --schedule "$torchs"
}

echo "$(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg) at the start. This wants 2 cores and" \
  "a quiet machine: whatever else runs shows as distance from the ideal."
for ((round = 1; round <= rounds; ++round)); do
  say "round $round of $rounds"
  compare interleaved-zb InterleavedZeroBubble "${large[@]}" --chunks 2
  ! $quick || continue
  compare 1f1b 1F1B "${large[@]}"
  compare gpipe GPipe "${large[@]}"
  # torch's V-shaped schedules, ZBVZeroBubble and DualPipeV, fail over Gloo: a rank sends to itself.
  compare interleaved-1f1b Interleaved1F1B "${large[@]}" --chunks 2
  compare looped-bfs LoopedBFS "${large[@]}" --chunks 2
  compare 1f1b 1F1B "${small[@]}"
done
say "recording"
ours "${recording[@]}" "${small[@]}" --schedule 1F1B --recording

.venv/bin/python - "$results" <<'END'
import json
import statistics
import sys

with open(sys.argv[1]) as file:
    runs = [json.loads(line) for line in file]
recording = next(run for run in runs if "recording_cost_percent" in run)
runs.remove(recording)


OURS = {"interleavedzerobubble": "interleaved-zb", "loopedbfs": "looped-bfs",
        "interleaved1f1b": "interleaved-1f1b"}


def name_of(run):
    schedule = run["schedule"].lower()
    size = "{layers} layers of {hidden}, M={microbatches}, P={ranks}".format(**run)
    return f"{OURS.get(schedule, schedule)} {size}"


def who(run):
    return run["program"] + (", processes" if run.get("processes") else "")


def figures(name, program, key):
    return [r[key] for r in runs if name_of(r) == name and who(r) == program]


def range_of(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f}..{max(values):.3f})"


WHO = ["pipewright", "pipewright, processes", "torch.distributed.pipelining"]


def table(title, key):
    print(f"{title:<46} {'threads':<22} {'processes':<22} {'torch':<22}")
    for name in dict.fromkeys(map(name_of, runs)):
        print(f"{name:<46}", *(f"{range_of(figures(name, one, key)):<22}" for one in WHO))


table("iteration, s", "iteration_s")
print()
# The ideal has the bubble of one stage per rank; several stages per rank have a smaller one.
table("iteration over ideal", "over_ideal")

low, high = recording["recording_cost_quartiles"]
print(f"\nrecording costs {recording['recording_cost_percent']:.2f} % of an iteration (quartiles "
      f"{low:.2f} .. {high:.2f} %) over {recording['recording_pairs']} pairs: {name_of(recording)}")
END

echo
echo "Paced layers: F, I and W sleep 5 ms each; measured over predicted time of the executor"
"$build/pipewright_bench_paced" "${paced[@]}"

echo
echo "The executor's cost per action in microseconds, and a split backward relative to a full one"
"$build/pipewright_bench_actions" "${actions[@]}"

"$build/pipewright_bench_partition"

echo
echo "Our searches and other planners', on their inputs and under their rules"
if [[ -x $build/pipewright_bench_planners ]]; then
  "$build/pipewright_bench_planners" "${planners[@]}"
else
  say "pipewright_bench_planners is not built. Run ./dev bench, or build that target."
fi

echo
echo "interleaved-1f1b, 4 chunks, 64 ranks, 1024 microbatches in a full run: from sizes to a proved Program"
"$build/pipewright_bench_schedule" "${schedule[@]}" | tee "$results"
.venv/bin/python -W ignore bench/torch_schedule.py "${schedule[@]}" | tee -a "$results"
.venv/bin/python - "$results" <<'END'
import json
import sys

with open(sys.argv[1]) as file:
    ours, torch = (json.loads(line) for line in file)
print(f"all of ours takes {ours['total_s']:.2f} s; generating alone, "
      f"torch takes {torch['generate_s'] / ours['generate_s']:.0f} times as long as we do")
END

echo
echo "The simulator. One JSON line per Program: seconds, and compute actions per second on one core"
simulator=$build/pipewright_bench_simulator
"$simulator" "${simulated[@]}"
"$simulator" --schedule 1f1b --chunks 1 "${of_simgrid[@]}" --simgrid | tee "$results"
"$simulator" "${of_dry_run[@]}" | tee -a "$results"
.venv/bin/python -W ignore bench/torch_dry_run.py "${of_dry_run[@]}" | tee -a "$results"
# It needs numpy, pandas and psutil, which our .venv lacks, so it runs with the python3 in PATH.
python3 bench/calculon.py --ranks 16 --microbatches 64 | tee -a "$results"
.venv/bin/python - "$results" <<'END'
import json
import sys

with open(sys.argv[1]) as file:
    small, interleaved, torch, *calculon = (json.loads(line) for line in file)
print(f"with timeline, idle causes and memory we are {torch['dry_run_s'] / interleaved['full_s']:.0f}"
      f" times as fast as torch's dry run; for the iteration time alone "
      f"{torch['dry_run_s'] / interleaved['iteration_s']:.0f} times")
if "simgrid_s" in small:
    print(f"with the timeline, the native engine is {small['simgrid_s'] / small['run_s']:.0f} times "
          f"as fast as SimGrid")
for row in calculon:
    took = row["configuration_s"]
    print(f"a configuration from a schedule on takes Calculon {took / small['new_configuration_s']:.1f}"
          f" times as long as us; one with other costs {took / small['iteration_s']:.0f} times")
END

echo
echo "Responses to changes of a plan, and opening large timelines in the library and the window"
"$build/pipewright_bench_what_if" "${what_if[@]}"
"$build/pipewright_bench_timeline_files" "${files[@]}"
if [[ -x $build/pipewright_bench_gui ]]; then
  "$build/pipewright_bench_gui" --json "${window[@]}"
else
  echo "skipped: built without the window" >&2
fi
