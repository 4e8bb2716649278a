#!/usr/bin/env bash
# Tests trainings under real faults: a full disk, stopped ranks, a store that dies or is stopped, a
# killed torchrun agent, and a cut cable (between network namespaces). If the job must end, every
# process must end within five seconds, with one report that names the culprit. If the job must
# continue, it does, and a resumed training has the bits of an undisturbed one. Prints a line for
# each. The disk and the cable need root; tests that cannot run are listed as skipped.
# Usage: bench/faults.sh [--only NAME,…] [--within S]    NAME: disk, stop, store, cable, torchrun;
# --within: another limit than five seconds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Only this process sees a file system that is mounted here.
if [[ -z ${PIPEWRIGHT_OWN_MOUNTS:-} ]] && unshare -m true 2>/dev/null; then
  export PIPEWRIGHT_OWN_MOUNTS=1
  exec unshare -m "$BASH" "bench/$(basename "${BASH_SOURCE[0]}")" "$@"
fi
export PIPEWRIGHT=$(realpath "${PIPEWRIGHT_BUILD:-build}")/bin/pipewright
export PYTHONPATH=bench
exec python3 -B - "$@" <<'PYTHON'
import argparse
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time

from disturbed import (WITHIN, Work, children_of, expect, profiled, report_line, reports_in, text_of, unfinished,
                       weights, what_they_do, whole_steps, words)

STEPS, EVERY, TIMEOUT = 40, 2, 3
FAULTS = ["disk", "stop", "store", "cable", "torchrun"]

options = argparse.ArgumentParser()
options.add_argument("--only", default=",".join(FAULTS))
options.add_argument("--within", type=float, default=WITHIN)
given = options.parse_args()
only = given.only.split(",")
if not set(only) <= set(FAULTS):
    options.error(f"--only accepts one or more of {', '.join(FAULTS)}")


def training(ranks, steps, *more):
    settings = [f"pipeline.ranks={ranks}", f"training.steps={steps}"]
    if ranks not in costs:
        costs[ranks] = profiled(settings, work.folder / f"costs{ranks}.json")
    return words("train", settings, "--costs", costs[ranks], "--timeout", TIMEOUT, *more)


def saving(folder, *more):
    return "--checkpoints", folder, "--checkpoint-every", EVERY, *more


def is_training(launch):
    return "training: step 1/" in launch.said()


def has_ended(process):
    return text_of(process, "stat").rpartition(") ")[2][:1] in "?Z"


def seconds_to_end(processes):
    """From now until the last one has ended."""
    began = time.monotonic()
    while not all(map(has_ended, processes)):
        time.sleep(0.005)
        if time.monotonic() - began > given.within + 30:
            expect(False, f"not ended after {given.within + 30:g} s", what_they_do(processes, stacks=True))
    return time.monotonic() - began


def check_end(what, took, said, culprit, reports):
    """`reports`: how many processes have to say who it was."""
    named = reports_in(said)
    expect(named == [culprit] * reports, f"{what}: {named or 'nobody'} named, not {culprit} {reports} times", said)
    expect(took < given.within, f"{what}: {took:.1f} s to the end", said)
    print(f"{what}: ended after {took:.1f} s: {report_line(said)}", flush=True)


def mounted(folder, size):
    folder.mkdir()
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True).returncode == 0


def disk():
    """Room for some checkpoints: what is behind them fails, and training goes on."""
    undisturbed, full = work.folder / "undisturbed", work.folder / "full"
    command = training(2, STEPS, "--processes", "--keep", STEPS, "--resume")
    launch = work.launch([*command, *map(str, saving(undisturbed))])
    expect(launch.ended(300) == 0, "the undisturbed training", launch.said())
    expected = {step: weights(folder) for step, folder in whole_steps(undisturbed).items()}
    blocks = sum(file.stat().st_blocks for file in whole_steps(undisturbed)[STEPS].iterdir())
    room = int(3.5 * 512 * blocks)
    if os.environ.get("PIPEWRIGHT_OWN_MOUNTS") is None or not mounted(full, room):
        print("a full disk: skipped: this user may not mount file systems")
        return
    launch = work.launch([*command, *map(str, saving(full))])
    expect(launch.ended(300) == 0, "the training did not continue", launch.said())
    said = launch.said()
    expect(": cannot be written: No space left on device" in said or ": cannot be made: No space left on device" in said,
           "the file is not named", said)
    expect(f"training: step {STEPS}/{STEPS}" in said, "the training did not continue to its end", said)
    kept = whole_steps(full)
    expect(2 <= len(kept) < len(expected), f"{len(kept)} checkpoints on the full disk", said)
    expect(all(weights(folder) == expected[step] for step, folder in kept.items()), "a checkpoint has different bits", said)
    failed = said.count("was not written")
    subprocess.run(["mount", "-o", f"remount,size={64 * room}", full], check=True)
    launch = work.launch([*command, *map(str, saving(full))])
    expect(launch.ended(300) == 0, "the resumed training", launch.said())
    expect(f"resumed from {kept[max(kept)]}" in launch.said(), "the wrong checkpoint was resumed", launch.said())
    expect(weights(whole_steps(full)[STEPS]) == expected[STEPS], "the resumed training has different bits", launch.said())
    subprocess.run(["umount", full], check=True)
    print(f"a full disk: {len(kept)} checkpoints are whole, {failed} times it was told what was not written, the training "
          f"went on, and from step {max(kept)} on with equal bits once there was room", flush=True)


def signal_rank(what, number, rank, reports, saves=False):
    """Of four processes in the middle of a training, or while the last checkpoint is written."""
    folder = work.folder / f"{what.replace(' ', '-')}"
    launch = work.launch(training(4, STEPS if saves else 100000, "--processes", *map(str, saving(folder) if saves else ())))
    ready = (lambda: any(f"{STEPS:08}." in name for name in unfinished(folder))) if saves else (lambda: is_training(launch))
    expect(launch.until(ready), f"{what}: it does not train", launch.said())
    processes = [launch.pid, *launch.ranks()]
    os.kill(launch.ranks()[rank], number)
    took = seconds_to_end(processes)
    code = launch.ended(1)
    expect(code == 1, f"{what}: exit code {code}", launch.said())
    expect(f"rank {rank} was ended by signal 9" in launch.said(), f"{what}: its launcher does not name it", launch.said())
    if reports is None:
        reports = len(reports_in(launch.said()))
    check_end(what, took, launch.said(), str(rank), reports)


def stop():
    signal_rank("rank 2 is stopped", signal.SIGSTOP, 2, 1)
    signal_rank("rank 3 is stopped while the last checkpoint is written", signal.SIGSTOP, 3, None, saves=True)


def store():
    # Without the store ranks cannot agree which of them reports.
    signal_rank("rank 0, which has the store, is killed", signal.SIGKILL, 0, 3)
    signal_rank("rank 0, which has the store, is stopped", signal.SIGSTOP, 0, 3)


class Cable:
    """Between two network namespaces."""

    def __init__(self):
        self.name = f"pw{os.getpid()}"
        self.works = self.ip("netns add {0}a") and self.ip("netns add {0}b") and all(map(self.ip, (
            "link add x netns {0}a type veth peer name y netns {0}b", "-n {0}a address add 10.98.0.1/24 dev x",
            "-n {0}b address add 10.98.0.2/24 dev y", "-n {0}a link set x up", "-n {0}b link set y up",
            "-n {0}a link set lo up", "-n {0}b link set lo up")))

    def ip(self, text):
        return bool(shutil.which("ip")) and subprocess.run(["ip", *text.format(self.name).split()], capture_output=True).returncode == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ip("netns del {0}a")
        self.ip("netns del {0}b")

    def rank(self, rank, secret):
        place = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "10.98.0.1", "MASTER_PORT": "29412"}
        return work.launch(["ip", "netns", "exec", f"{self.name}{'ab'[rank]}", *training(2, 100000)],
                           log=work.folder / f"log{rank}", environment=place | secret)


def cable():
    for words_of_store, secret in (("with a secret", {"PIPEWRIGHT_JOB_SECRET": secrets.token_hex(32)}), ("without one", {})):
        what = f"the cable between two ranks is cut, {words_of_store}"
        with Cable() as between:
            if not between.works:
                print("a cut cable: skipped: no network namespaces for this user")
                return
            ranks = [between.rank(rank, secret) for rank in range(2)]
            expect(ranks[0].until(lambda: is_training(ranks[0])), f"{what}: it does not train", ranks[0].said())
            expect(between.ip("-n {0}a link set x down"), what)
            took = seconds_to_end([rank.pid for rank in ranks])
            for rank, launch in enumerate(ranks):
                expect(launch.ended(1) == 1, f"{what}: exit code of rank {rank}", launch.said())
                check_end(f"{what}: rank {rank}", took, launch.said(), str(1 - rank), 1)


def torchrun():
    program = ".venv/bin/torchrun"
    if not os.access(program, os.X_OK):
        print(f"torchrun's agent: skipped: there is no {program}")
        return
    for what, number, in (("torchrun's agent, which has the store, is killed", signal.SIGKILL),
                          ("torchrun's agent, which has the store, is stopped", signal.SIGSTOP)):
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        launch = work.launch([program, "--nnodes", "1", "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint",
                              f"127.0.0.1:{port}", "--no-python", *training(2, 100000)])
        expect(launch.until(lambda: is_training(launch)), f"{what}: it does not train", launch.said())
        ranks = children_of(launch.pid)
        os.kill(launch.pid, number)
        took = seconds_to_end(ranks)
        launch.end()
        check_end(what, took, launch.said(), "store", 2)


costs = {}
with Work() as work:
    for fault in only:
        globals()[fault]()
PYTHON
