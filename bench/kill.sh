#!/usr/bin/env bash
# Kills ranks of a training of four processes at random instants, one or all of them, during start,
# steps, saves and resumes, until there were so many kills. Each time the job has to end within five
# seconds and say who was killed, no checkpoint that was whole may be gone, and the newest has to
# have the bits of a training that nobody disturbed; so have the weights at the end. Prints figures.
# Usage: bench/kill.sh [--kills N] [--seed N]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PIPEWRIGHT=$(realpath "${PIPEWRIGHT_BUILD:-build}")/bin/pipewright
exec python3 -B - "$@" <<'END'
import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

RANKS, STEPS, EVERY, MOST_SECONDS = 4, 120, 3, 5.0
SETTINGS = ["model.blocks=4", "model.hidden=32", "model.heads=2", "model.sequence=16", "training.microbatch_size=2",
            "pipeline.microbatches=4", f"pipeline.ranks={RANKS}", f"training.steps={STEPS}", "training.clip_norm=0.5",
            "profile.least_repeats=2", "profile.most_repeats=2"]

options = argparse.ArgumentParser()
options.add_argument("--kills", type=int, default=1000)
options.add_argument("--seed", type=int, default=1)
options = options.parse_args()
chance = random.Random(options.seed)
program, scenario = os.environ["PIPEWRIGHT"], "scenarios/gpt-text/scenario.json"


def words(command, *more):
    return [program, command, scenario, *(word for each in SETTINGS for word in ("--set", each)), *map(str, more)]


def whole_steps(folder):
    """By number. What is not named so was never completed."""
    names = [path.name for path in folder.glob("step_*") if path.name.count(".") == 0]
    return {int(name.split("_")[1]): folder / name for name in names}


def weights(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.safetensors"))}


def expect(holds, what, said=""):
    if not holds:
        sys.exit(f"FAILED: {what}\n{said}")


def children_of(process):
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except FileNotFoundError:
        return []


work = Path(tempfile.mkdtemp())
try:
    costs, undisturbed = work / "costs.json", work / "undisturbed"
    subprocess.run(words("profile", "--over", "0", "-o", costs), check=True, capture_output=True)
    training = words("train", "--costs", costs, "--checkpoint-every", EVERY, "--processes", "--timeout", "3", "--resume",
                     "--checkpoints")
    begin = time.monotonic()
    subprocess.run([*training, str(undisturbed), "--keep", str(STEPS)], check=True, capture_output=True)
    whole_run = time.monotonic() - begin
    expected = {step: weights(folder) for step, folder in whole_steps(undisturbed).items()}
    expect(len(expected) == STEPS // EVERY, f"{len(expected)} checkpoints of the undisturbed training")
    print(f"undisturbed: {STEPS} steps of {RANKS} processes in {whole_run:.1f} s", flush=True)

    kills, trainings, done_before = 0, 0, 0
    ends, when, victims_of, resumed_at = [], Counter(), Counter(), 0
    while kills < options.kills:
        trainings += 1
        folder = work / f"training{trainings}"
        newest = 0
        while newest < STEPS:
            log = open(work / "log", "w+")
            launcher = subprocess.Popen([*training, str(folder)], stdout=subprocess.DEVNULL, stderr=log)
            # Up to a third longer than all of it takes: some are over before.
            moment = time.monotonic() + chance.random() * whole_run * 4 / 3
            while time.monotonic() < moment and launcher.poll() is None:
                time.sleep(0.001)
            # The launcher is one of them until it has become the program that starts ranks.
            ranks = children_of(launcher.pid)
            before = max(whole_steps(folder), default=0) if folder.exists() else 0
            everybody = chance.random() < 0.25
            chosen = list(range(len(ranks))) if everybody else chance.sample(range(len(ranks)), min(1, len(ranks)))
            if kills == options.kills or launcher.poll() is not None or len(ranks) < RANKS:
                chosen = []
            for rank in chosen:
                try:
                    os.kill(ranks[rank], signal.SIGKILL)
                except ProcessLookupError:
                    pass
            begin = time.monotonic()
            code = launcher.wait(timeout=60 + 10 * whole_run)
            took = time.monotonic() - begin
            log.seek(0)
            said = log.read()
            found = whole_steps(folder) if folder.exists() else {}
            newest = max(found, default=0)
            expect(newest >= before, f"step {before} was whole and is gone", said)
            if newest:
                expect(weights(found[newest]) == expected[newest], f"step {newest} has other bits", said)
            resumed_at += "resumed from" in said
            if not chosen or code == 0:  # none was there, or all was over before the signal came
                expect(code == 0, f"exit code {code} without a kill", said)
                done_before += 1
                continue
            kills += 1
            ends.append(took)
            victims_of["all" if everybody else f"rank {chosen[0]}"] += 1
            when["start" if "step 1/" not in said and "resumed from" not in said else
                 "resume" if f"/{STEPS}  loss" not in said else "steps and saves"] += 1
            expect(code == 1, f"exit code {code} after a kill", said)
            expect(took < MOST_SECONDS, f"{took:.1f} s from the kill to the end", said)
            named = [rank for rank in chosen if f"rank {rank} was ended by signal 9" in said]
            expect(named, f"{chosen} not named", said)
            others = [rank for rank in range(RANKS) if rank not in chosen and f"rank {rank} was ended by" in said]
            expect(not others, f"{others} named beside {chosen}", said)
            if kills % 50 == 0:
                print(f"{kills} kills, step {newest} of training {trainings}", flush=True)
        shutil.rmtree(folder)
    print(f"{kills} kills in {trainings} trainings, {resumed_at} resumes, {done_before} runs to their end: "
          "bits equal, nothing lost, the right names")
    print("killed: " + ", ".join(f"{count} {who}" for who, count in sorted(victims_of.items())))
    print("during: " + ", ".join(f"{count} {what}" for what, count in sorted(when.items())))
    print(f"from the kill to the end: {statistics.median(ends):.2f} s in the middle, {max(ends):.2f} s at most")
finally:
    shutil.rmtree(work, ignore_errors=True)
END
