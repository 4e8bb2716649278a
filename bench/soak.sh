#!/usr/bin/env bash
# Trains for a while with four processes and a checkpoint every few steps, and samples each process
# every second: private memory, threads, open files. Fails if the median grows from each third of
# the run to the next: for memory by more than 1 % and 0.5 MB each time. Growth that happens once,
# such as a new heap layout, does not count. The first 300 steps, whose records are kept, are left
# out, and then another tenth, in which caches fill. Runs under two minutes only print. Prints a
# line for each process: the medians of the thirds.
# Usage: bench/soak.sh [--minutes M] [--threads]    --threads: ranks are threads of one process
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PIPEWRIGHT=$(realpath "${PIPEWRIGHT_BUILD:-build}")/bin/pipewright
export PYTHONPATH=bench
exec python3 -B - "$@" <<'PYTHON'
import argparse
import os
import re
import statistics
import time
from dataclasses import dataclass, field

from disturbed import Work, expect, profiled, text_of, whole_steps, words

RANKS, EVERY, SETTLED = 4, 10, 300
MB = 1 << 20

options = argparse.ArgumentParser()
options.add_argument("--minutes", type=float, default=20)
options.add_argument("--threads", action="store_true")
options = options.parse_args()


@dataclass
class Process:
    name: str
    memory: list = field(default_factory=list)  # private bytes
    threads: list = field(default_factory=list)
    files: list = field(default_factory=list)

    def look(self, process):
        pages = text_of(process, "smaps_rollup")
        kilobytes = [int(found) for found in re.findall(r"^Private_(?:Clean|Dirty): +(\d+) kB", pages, re.MULTILINE)]
        threads = re.search(r"^Threads:\s+(\d+)", text_of(process, "status"), re.MULTILINE)
        expect(kilobytes and threads, f"{self.name} has ended early")
        self.memory.append(1024 * sum(kilobytes))
        self.threads.append(int(threads.group(1)))
        self.files.append(len(os.listdir(f"/proc/{process}/fd")))

    def report(self):
        """A line, and what has grown."""
        memory, threads, files = map(thirds, (self.memory, self.threads, self.files))
        line = (f"{self.name}: memory {listed(each / MB for each in memory)} MB; threads {listed(threads)}; "
                f"files {listed(files)}")
        grown = [what for what, values, share, least in (("memory", memory, 0.01, MB / 2), ("threads", threads, 0, 0),
                                                         ("files", files, 0, 0))
                 if all(after > (1 + share) * before + least for before, after in zip(values, values[1:]))]
        return line, grown


def thirds(values):
    """The median of each."""
    values = values[len(values) // 10:]
    third = max(1, len(values) // 3)
    return [statistics.median(part) for part in (values[:third], values[third:2 * third], values[-third:])]


def listed(values):
    return ", ".join(f"{value:.1f}" for value in values)


with Work() as work:
    settings = [f"pipeline.ranks={RANKS}", "training.steps=100000000"]
    costs = profiled(settings, work.folder / "costs.json")
    folder = work.folder / "checkpoints"
    launch = work.launch(words("train", settings, "--costs", costs, "--checkpoints", folder, "--checkpoint-every", EVERY,
                               *([] if options.threads else ["--processes"])))
    settled = SETTLED if options.minutes >= 2 else EVERY
    expect(launch.until(lambda: max(whole_steps(folder), default=0) >= settled, seconds=1800), "it does not train",
           launch.said())
    processes = [launch.pid] if options.threads else [launch.pid, *launch.ranks()]
    names = ["training"] if options.threads else ["launcher", *(f"rank {rank}" for rank in range(RANKS))]
    looked = [Process(name) for name in names]
    began, first = time.monotonic(), max(whole_steps(folder))
    while time.monotonic() - began < 60 * options.minutes:
        for process, each in zip(processes, looked):
            each.look(process)
        time.sleep(min(1, 60 * options.minutes / 100))
    steps = max(whole_steps(folder)) - first
    expect(launch.is_running(), "the training has ended", launch.said())
    launch.end()
    print(f"{(time.monotonic() - began) / 60:.1f} minutes, {steps} steps, {steps // EVERY} checkpoints, "
          f"{len(looked[0].memory)} samples of each process")
    lines = [each.report() for each in looked]
    for line, grown in lines:
        print(line + (f"; grown: {', '.join(grown)}" if grown else ""))
    if options.minutes < 2:
        print("too short to tell growth")
    else:
        expect(not any(grown for _, grown in lines), "memory, threads or files have grown")
        print("no growth of memory, threads or files")
PYTHON
