#!/usr/bin/env python3
"""Runs all commands for a model that is larger than a device: a GPT with 3 GB of parameters and optimizer state on four
processes, each of which is limited by `ulimit -v` to 1.2 GB of address space beyond what a tiny model needs (LibTorch's
libraries and threads). The model is profiled, planned, trained, checkpointed and resumed. Then the script shows that
one process alone cannot hold it.

usage: bench/larger.py [--hidden N] [--blocks N] [--beyond MB] [--over S] [OPTION of pipewright …]"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

options = argparse.ArgumentParser(add_help=False)
options.add_argument("--hidden", type=int, default=768)
options.add_argument("--blocks", type=int, default=36)
options.add_argument("--beyond", type=int, default=1200, metavar="MB")
options.add_argument("--over", type=int, default=20, metavar="S")
given, more = options.parse_known_args()

source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
program = os.path.join(os.environ.get("PIPEWRIGHT_BUILD", "build"), "bin", "pipewright")
scenario = os.path.join(source, "scenarios", "gpt-text", "scenario.json")


def sizes(hidden, blocks, *others):
    assignments = [f"model.hidden={hidden}", f"model.blocks={blocks}", "model.heads=4", "model.sequence=32",
                   "training.microbatch_size=1", "pipeline.ranks=4", "pipeline.microbatches=4", "pipeline.partition=profile",
                   *others]
    return [word for assignment in assignments for word in ("--set", assignment)]


def status_of(pid, keys):
    try:
        with open(f"/proc/{pid}/status") as lines:
            return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.split(":")[0] in keys}
    except (OSError, IndexError, ValueError):
        return {}


def with_children(pid):
    found = [pid]
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as children:
                for child in children.read().split():
                    found += with_children(int(child))
    except OSError:
        pass
    return found


def run(words, limit=None):
    """Returns its output, its time, and the peak memory of one of its processes: mapped, and resident."""
    def with_limit():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    begin, most = time.monotonic(), {"VmPeak": 0, "VmHWM": 0}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([program, *words, *more], stdout=out, stderr=err, stdin=subprocess.DEVNULL, preexec_fn=with_limit)
        while process.poll() is None:
            for pid in with_children(process.pid):
                for key, value in status_of(pid, most).items():
                    most[key] = max(most[key], value)
            time.sleep(0.02)
        out.seek(0)
        err.seek(0)
        return {"code": process.returncode, "out": out.read(), "err": err.read(), "seconds": time.monotonic() - begin, **most}


def demand(done, what):
    if done["code"] != 0:
        sys.exit(f"{what} ended with {done['code']}\n{done['err'][-3000:]}{done['out'][-1000:]}")


base = None


def show(what, done, said=""):
    print(f"| {what} | {done['seconds']:.0f} | {(done['VmPeak'] - base) / 1e6:.0f} | {done['VmHWM'] / 1e6:.0f} | {said} |", flush=True)


with tempfile.TemporaryDirectory() as folder:
    os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
    costs, checkpoints = f"{folder}/costs.json", f"{folder}/checkpoints"
    tiny = run(["train", scenario, *sizes(16, 4, "training.steps=2"), "--processes", "--checkpoints", f"{folder}/tiny"])
    demand(tiny, "the training of a tiny model")
    base = tiny["VmPeak"]
    limit = base + given.beyond * 10**6
    large = sizes(given.hidden, given.blocks)

    profiled = run(["profile", scenario, *large, "--over", str(given.over), "-o", costs], limit)
    demand(profiled, "profile")
    with open(costs) as file:
        numbers = sum(layer["parameter_bytes"] for layer in json.load(file)["layers"]) // 4
    print(f"{numbers / 1e6:.0f} M parameters: {12 * numbers / 1e9:.2f} GB with AdamW's states, {16 * numbers / 1e9:.2f} GB with "
          f"gradients. Each process may map {given.beyond} MB beyond the {base / 1e6:.0f} MB that a tiny training maps.\n")
    print("| step | s | mapped beyond, MB | resident, MB | |\n|---|---|---|---|---|")
    alike = [line for line in profiled["out"].splitlines() if " like " in line]
    show("profiled", profiled, "; ".join(alike))
    again = run(["profile", scenario, *large, "--over", str(given.over)], limit)
    demand(again, "profile from the cache")
    show("profiled again", again, "costs from the cache")
    planned = run(["simulate", scenario, *large, "--costs", costs, "--json"])
    demand(planned, "simulate")
    show("planned", planned, f"an iteration of {json.loads(planned['out'])['iteration_s']:.2f} s")

    def train(steps, *words):
        done = run(["train", scenario, *large, "--set", f"training.steps={steps}", "--processes", "--costs", costs, "--json", *words],
                   limit)
        demand(done, "train")
        return done, json.loads(done["out"])["loss"]

    done, losses = train(3, "--checkpoints", checkpoints, "--checkpoint-every", "2")
    show("trained, two checkpoints", done, "losses " + ", ".join(f"{loss:.4f}" for loss in losses))
    resumed, rest = train(5, "--checkpoints", checkpoints, "--resume")
    show("resumed from step 3", resumed, "losses " + ", ".join(f"{loss:.4f}" for loss in rest))
    whole, expected = train(5)
    show("the same without a stop", whole, "equal losses" if losses + rest == expected else "OTHER LOSSES")
    alone = run(["train", scenario, *large, "--set", "pipeline.ranks=1", "--set", "training.steps=1", "--costs", costs], limit)
    show("one process alone", alone, "trains" if alone["code"] == 0 else "has not enough memory")
