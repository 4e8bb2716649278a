#!/usr/bin/env bash
# Measures a developer's waiting times: builds from scratch into a separate folder, builds again
# after a change of one source or header, and starts the programs. Run it after `./dev setup`; takes
# about ten minutes. With --start, it only starts the programs of an existing build.
# usage: bench/build.sh [FOLDER | --start BUILD]
set -euo pipefail
cd "$(dirname "$0")/.."

start_programs() {  # BUILD
  local words
  for words in "--version" "schedule 1f1b --ranks 4 --microbatches 8" "partition --parts 2 --weights 3,1,2" \
    "topology --axes pipe,data --dims 2,4" \
    "simulate scenarios/shared-card/scenario.json --costs scenarios/shared-card/costs.json" \
    "sweep scenarios/shared-card/scenario.json --costs scenarios/shared-card/costs.json --set pipeline.microbatches=4,8" \
    "profile --help"; do
    python3 - "$1/bin/pipewright" $words <<'END'
import os, resource, statistics, subprocess, sys, time

seconds = []
for _ in range(20):
    begin = time.perf_counter()
    subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
    seconds.append(time.perf_counter() - begin)
memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"{' '.join(sys.argv[2:])[:58]:58} {1e3 * statistics.median(seconds):7.1f} ms, {memory:.0f} MB")
END
  done
}

if [[ ${1:-} == --start ]]; then
  start_programs "${2:?which build}"
  exit
fi
folder=${1:-$(mktemp -d)}
[[ -n ${1:-} ]] || trap 'rm -rf "$folder"' EXIT

# timed TEXT COMMAND…
timed() {
  local text=$1 begin=$EPOCHREALTIME
  shift
  "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
  awk -v text="$text" -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN {printf "%-58s %7.1f s\n", text, end - begin}'
}

configure() { cmake --preset release -B "$folder/build" "$@"; }
build() { ninja -C "$folder/build" "$@"; }

timed "configure for the demo" configure -D PIPEWRIGHT_TESTS=OFF -D PIPEWRIGHT_BENCH=OFF
timed "build what the demo runs" build pipewright pipewright-torch
timed "configure tests and benchmarks" configure -D PIPEWRIGHT_TESTS=ON -D PIPEWRIGHT_BENCH=ON
timed "build all the rest" build
for source in exec/src/stage/stage.cpp sim/src/causes/idle.cpp loop/torch/src/run.cpp tests/exec/rank/executor_test.cpp \
  exec/src/stage/stage.hpp exec/include/pipewright/exec/training/optimizer.hpp plan/include/pipewright/plan/program/program.hpp; do
  # Only the time changes: the sources stay the same.
  touch "$source"
  timed "build all after a change of $source" build
done
timed "build all when nothing changed" build

echo
start_programs "$folder/build"
