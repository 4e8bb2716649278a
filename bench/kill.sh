#!/usr/bin/env bash
# Kills ranks of trainings of four processes at random instants, one or all of them: before they
# have joined, while they connect and resume, in steps, while a checkpoint is written, and at the
# end. Each time the job must end within five seconds and name the killed rank, no complete
# checkpoint may be lost, and the newest must have the bits of an undisturbed training. Prints
# figures. A later end is a failure unless other programs used most of the machine meanwhile; such
# cases are counted. A failure is reported with the seed and the number of the kill, and its folder
# is kept.
# Usage: bench/kill.sh [--kills N] [--seed N] [--within S]    --within: another limit than five seconds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PIPEWRIGHT=$(realpath "${PIPEWRIGHT_BUILD:-build}")/bin/pipewright
export PYTHONPATH=bench
exec python3 -B - "$@" <<'PYTHON'
import argparse
import os
import random
import shutil
import signal
import statistics
import time
from collections import Counter

from disturbed import (WITHIN, Machine, Work, expect, profiled, reports_in, unfinished, weights, what_they_do,
                       whole_steps, words)

RANKS, STEPS, EVERY = 4, 40, 2
SETTINGS = [f"pipeline.ranks={RANKS}", f"training.steps={STEPS}"]
PHASES = {"before all had met": 0.2, "connecting and resuming": 0.25, "steps": 0.25, "a checkpoint being written": 0.2,
          "the end": 0.1}
BUSY_WITH_OTHERS = 0.4  # share of the cores

options = argparse.ArgumentParser()
options.add_argument("--kills", type=int, default=1000)
options.add_argument("--seed", type=int, default=1)
options.add_argument("--within", type=float, default=WITHIN)
options = options.parse_args()
chance = random.Random(options.seed)


class Run:
    """One start of the training, and the kill in it."""

    def __init__(self, work, command, folder):
        self.folder, self.before_start = folder, unfinished(folder)
        self.machine = Machine()
        self.launch = work.launch([*command, folder])

    def newest(self):
        return max(whole_steps(self.folder), default=0)

    def being_written(self):
        return unfinished(self.folder) - self.before_start

    def have_met(self):
        return self.launch.said().count("all ranks have come") >= RANKS

    def is_at_end(self):
        return STEPS in whole_steps(self.folder) or any(f"{STEPS:08}." in name for name in self.being_written())

    def phase(self):
        if not self.have_met():
            return "before all had met"
        said = self.launch.said()
        if "resumed from" not in said and "starting with step 0" not in said:
            return "connecting and resuming"
        if self.is_at_end():
            return "the end"
        return "a checkpoint being written" if self.being_written() else "steps"

    def rest_until(self, phase, times):
        """A random instant in that phase."""
        if phase == "before all had met":
            return self.launch.rest(chance.random() * times["met"])
        self.launch.until(self.have_met)
        if phase == "connecting and resuming":
            return self.launch.rest(chance.random() * (times["begun"] - times["met"]))
        if phase == "the end":
            self.launch.until(self.is_at_end)
            return self.launch.rest(chance.random() * 0.3)
        self.launch.rest(chance.random() * (times["all"] - times["met"]))
        if phase == "a checkpoint being written":
            self.launch.until(self.being_written)
            self.launch.rest(chance.random() * 0.02)

    def kill(self, ranks):
        """The ranks to be killed; none where they are not all there."""
        self.everybody = chance.random() < 0.25
        chosen = list(range(RANKS)) if self.everybody else [chance.randrange(RANKS)]
        if not self.launch.is_running() or len(ranks) < RANKS:
            return []
        self.machine = Machine([self.launch.pid, *ranks])
        for rank in chosen:
            try:
                os.kill(ranks[rank], signal.SIGKILL)
            except ProcessLookupError:
                pass
        return chosen

    def await_end(self, patience):
        """Exit code, seconds, and what its processes did when it was late."""
        began, late = time.monotonic(), ""
        code = self.launch.ended(options.within)
        if code is None:
            late = what_they_do([self.launch.pid, *self.launch.ranks()])
            code = self.launch.ended(patience)
        if code is None:
            expect(False, f"the training has not ended after {time.monotonic() - began:.0f} s", self.launch.said(), self.launch.where())
        return code, time.monotonic() - began, late


def undisturbed_times(work, command, folder):
    """Seconds from the start until all ranks have met, the first step is done, and all is over."""
    began, run = time.monotonic(), Run(work, [*command, "--keep", str(STEPS), "--checkpoints"], folder)
    run.launch.until(run.have_met)
    met = time.monotonic() - began
    run.launch.until(run.being_written)
    begun = time.monotonic() - began
    code, _, late = run.await_end(300)
    expect(code == 0, f"exit code {code} of the undisturbed training", run.launch.said(), late)
    return {"met": met, "begun": begun, "all": time.monotonic() - began}


with Work() as work:
    kills, trainings, undisturbed = 0, 0, work.folder / "undisturbed"
    ends, late_ends, when, victims_of, resumed_at, done_before = [], [], Counter(), Counter(), 0, 0

    def holds(condition, what, *said):
        expect(condition, f"seed {options.seed}, kill {kills}, training {trainings}: {what}", *said)

    costs = profiled(SETTINGS, work.folder / "costs.json")
    training = words("train", SETTINGS, "--costs", costs, "--checkpoint-every", EVERY, "--processes", "--timeout", "3",
                     "--resume", "--log", "job")
    times = undisturbed_times(work, training, undisturbed)
    expected = {step: weights(folder) for step, folder in whole_steps(undisturbed).items()}
    expect(len(expected) == STEPS // EVERY, f"{len(expected)} checkpoints of the undisturbed training")
    print(f"undisturbed: {STEPS} steps of {RANKS} processes in {times['all']:.1f} s, of which they meet after "
          f"{times['met']:.1f} s", flush=True)

    while kills < options.kills:
        trainings += 1
        folder = work.folder / f"training{trainings}"
        folder.mkdir()
        newest = 0
        while newest < STEPS:
            run = Run(work, [*training, "--checkpoints"], folder)
            aim = chance.choices(list(PHASES), PHASES.values())[0]
            if kills < options.kills:
                run.rest_until(aim, times)
            ranks, phase, before = run.launch.ranks(), run.phase(), run.newest()
            chosen = run.kill(ranks) if kills < options.kills else []
            code, took, late = run.await_end(60 + 10 * times["all"])
            said = run.launch.said()
            newest = run.newest()
            holds(newest >= before, f"step {before} was complete and is lost", said)
            if newest:
                holds(weights(whole_steps(folder)[newest]) == expected[newest], f"step {newest} has different bits", said)
            resumed_at += "resumed from" in said
            if not chosen or code == 0:  # none existed, or all had ended before the signal came
                holds(code == 0, f"exit code {code} without a kill", said)
                done_before += 1
                continue
            kills += 1
            victims_of["all" if run.everybody else f"rank {chosen[0]}"] += 1
            when[phase] += 1
            holds(code == 1, f"exit code {code} after a kill in {phase}", said)
            named = [rank for rank in chosen if f"rank {rank} was ended by signal 9" in said]
            holds(named, f"{chosen} not named after a kill in {phase}", said)
            others = [rank for rank in range(RANKS) if rank not in chosen and f"rank {rank} was ended by" in said]
            holds(not others, f"{others} named in addition to {chosen} after a kill in {phase}", said)
            blamed = {int(rank) for rank in reports_in(said)} - set(chosen)
            holds(not blamed, f"{blamed} blamed for {chosen} after a kill in {phase}", said)
            if took > options.within:
                share, words_of_machine = run.machine.others()
                late_ends.append(took)
                holds(share > BUSY_WITH_OTHERS, f"{took:.1f} s from the kill of {chosen} in {phase} to the end; "
                      f"{words_of_machine}", said, f"after {options.within} s:", late)
                print(f"kill {kills}: {took:.1f} s to the end, {words_of_machine}", flush=True)
            else:
                ends.append(took)
            if kills % 50 == 0:
                print(f"{kills} kills, step {newest} of training {trainings}", flush=True)
        shutil.rmtree(folder)
    print(f"{kills} kills in {trainings} trainings, {resumed_at} resumes, {done_before} runs to their end: "
          "bits equal, nothing lost, the right names")
    print("killed: " + ", ".join(f"{count} {who}" for who, count in sorted(victims_of.items())))
    print("during: " + ", ".join(f"{when[phase]} {phase}" for phase in PHASES))
    print(f"from the kill to the end: {statistics.median(ends):.2f} s in the median, {max(ends):.2f} s at most; "
          f"{len(late_ends)} later, while others had the machine")
PYTHON
