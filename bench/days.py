#!/usr/bin/env python3
"""Compares the percentiles of sampled iterations with recorded steps that were not used for the prediction: a real
job's trace (ByteDance's StragglerAnalysis) is split in two. One half becomes costs and a record, `pipewright simulate
--draws` predicts, and the other half is the reference. The splits are alternating steps, first and second half, and
random halves.

usage: days.py TIMELINE.json.gz [--draws N] [--random N] [--keep FOLDER]; PIPEWRIGHT_BUILD names the build (build)"""

import argparse
import collections
import gzip
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

US = 1e-6
BYTES_PER_S = 1e9  # of every link: one second corresponds to this many bytes
COMPUTES = {"forward-compute": "F", "backward-compute": "B"}
# Operations after the last compute, in this order.
TAIL = ["layernorm-grads-all-reduce", "embedding-grads-all-reduce", "grads-reduce-scatter", "optimizer-clip-main-grad",
        "optimizer"]


def read_steps(path):
    """Returns step → worker (replica, stage) → name → [(begin, seconds)] in the order of sequence ids, in seconds."""
    with gzip.open(path) as file:
        events = json.load(file)
    stage_of = {event["tid"]: int(event["args"]["name"].split("PP rank ")[1].split(",")[0])
                for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    steps = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    for event in events:
        if event["ph"] == "X":
            worker = event["pid"], stage_of[event["tid"]]
            steps[event["args"]["step"]][worker][event["name"]].append(
                (event["args"]["seq_id"], event["ts"] * US, event["dur"] * US))
    return {number: {worker: {name: [(begin, seconds) for _, begin, seconds in sorted(all)] for name, all in names.items()}
                     for worker, names in workers.items()} for number, workers in sorted(steps.items())}


def measured(step):
    """Returns the time from the earliest begin to the latest end."""
    all = [event for names in step.values() for events in names.values() for event in events]
    return max(begin + seconds for begin, seconds in all) - min(begin for begin, _ in all)


def late(begin, ready):
    return max(0.0, begin - ready)


def group_of(name, worker, stages):
    """Returns the group of a worker: workers of the same group begin an operation together."""
    replica, stage = worker
    return {"embedding-grads-all-reduce": f"pipeline {replica}" if stage in (0, stages - 1) else worker,
            "grads-reduce-scatter": f"stage {stage}", "optimizer-clip-main-grad": "all"}.get(name, worker)


def tail_seconds(step, free):
    """Returns worker → name → seconds after the last compute, starting when the last worker of its group could begin.
    """
    stages = 1 + max(stage for _, stage in step)
    took = {worker: {} for worker in step}
    for name in TAIL:
        ready = collections.defaultdict(float)
        for worker in step:
            group = group_of(name, worker, stages)
            ready[group] = max(ready[group], free[worker])
        for worker, names in step.items():
            for begin, seconds in names.get(name, []):
                took[worker][name] = seconds + late(begin, ready[group_of(name, worker, stages)])
                free[worker] = begin + seconds
    return took


def operations(step):
    """Yields (replica, rank, action, seconds) for everything in a step. An operation's launch delay, by which it began
    later than it could have, counts as its own time. The gathering of parameters counts as part of the gradient sum."""
    began = min(begin for names in step.values() for events in names.values() for begin, _ in events)
    free = {}
    for (replica, stage), names in step.items():
        gathers = names.get("params-all-gather", [(began, 0.0)])
        ready_at = gathers[-1][0] + gathers[-1][1]
        computes = sorted((begin, seconds, name, at) for name in COMPUTES for at, (begin, seconds) in enumerate(names[name]))
        for begin, seconds, name, at in computes:
            ready = ready_at
            received = names.get(name.replace("compute", "recv"), [])
            if at < len(received):
                ready = max(ready, sum(received[at]))
            yield replica, stage, f"{stage}{COMPUTES[name]}{at}", seconds + late(begin, ready)
            ready_at = begin + seconds
            sent = names.get(name.replace("compute", "send"), [])
            if at < len(sent):
                yield replica, stage, f"{stage}SEND_{COMPUTES[name]}{at}", sent[at][1]
        free[replica, stage] = ready_at
    for (replica, stage), took in tail_seconds(step, free).items():
        gathers = step[replica, stage].get("params-all-gather", [(began, 0.0)])
        yield (replica, stage, f"{stage}STEP",
               took["optimizer"] + took.get("layernorm-grads-all-reduce", 0) + late(gathers[0][0], began))
        yield (replica, stage, f"{stage}REDUCE_GRAD",
               took.get("grads-reduce-scatter", 0) + sum(seconds for _, seconds in gathers))
        if "embedding-grads-all-reduce" in took:
            yield replica, stage, f"{stage}REDUCE_TIED", took["embedding-grads-all-reduce"]
        yield replica, stage, f"{stage}LOSS", took.get("optimizer-clip-main-grad", 0)


def kind_of(action):
    """Returns the kind of an action: "0F3" is a "0F"."""
    return action.rstrip("0123456789")


class Learned:
    """The result of half of the steps: a scenario, costs and a record."""

    def __init__(self, steps):
        self.rows = [(number, *row) for number, step in steps.items() for row in operations(step)]
        self.replicas = 1 + max(row[1] for row in self.rows)
        self.stages = 1 + max(row[2] for row in self.rows)
        sums = collections.defaultdict(list)
        for _, _, _, action, seconds in self.rows:
            sums[kind_of(action)].append(seconds)
        self.mean = collections.defaultdict(float, {kind: statistics.fmean(all) for kind, all in sums.items()})
        self.microbatches = 1 + max(int(row[3].partition("F")[2]) for row in self.rows if kind_of(row[3]) == "0F")
        # A ring over all workers has this many steps; rings of two workers or of all replicas have
        # fewer.
        self.latency = self.mean["0LOSS"] / max(1, self.stages * self.replicas - 1)

    def sum_bytes(self, kind, devices):
        """Returns the bytes for which a ring of this many devices takes this long."""
        seconds = self.mean[kind] - 2 * (devices - 1) * self.latency
        return round(max(0.0, seconds) * BYTES_PER_S * devices / (2 * (devices - 1))) if devices > 1 else 0

    def layer(self, stage):
        tied = self.sum_bytes(f"{stage}REDUCE_TIED", 2)
        backward = self.mean[f"{stage}B"]
        # Both directions of a stage boundary get their mean time.
        sent = statistics.fmean([self.mean[f"{stage}SEND_F"], self.mean[f"{stage + 1}SEND_B"]])
        parameters = max(tied, self.sum_bytes(f"{stage}REDUCE_GRAD", self.replicas))
        return {"name": f"stage {stage}", "forward_s": self.mean[f"{stage}F"], "input_gradient_s": backward / 2,
                "weight_gradient_s": backward / 2, "optimizer_step_s": self.mean[f"{stage}STEP"],
                "parameter_bytes": parameters, "activation_bytes": 0,
                "output_bytes": round(sent * BYTES_PER_S) if stage + 1 < self.stages else 0, "forward_peak_bytes": 0,
                "backward_peak_bytes": 0, "saves_input": False, "saves_output": False, "output_is_view": False,
                "tied_bytes": tied, "spread": 0}

    def write(self, folder):
        layers = [self.layer(stage) for stage in range(self.stages)]
        loss = {**layers[0], "name": "loss", **{key: 0 for key in layers[0] if key.endswith(("_s", "_bytes"))}}
        costs = {"format": "pipewright/costs/1", "device": "traced", "dtype": "float32", "software": "traced",
                 "microbatch_size": 1, "load_s": 0, "input_bytes": 0, "target_bytes": 0, "layers": layers, "loss": loss}
        link = {"latency_s": 0, "bandwidth_per_s": BYTES_PER_S, "collective_latency_s": self.latency,
                "collective_bandwidth_per_s": BYTES_PER_S}
        scenario = {"format": "pipewright/scenario/1", "name": "traced",
                    "model": {"kind": "measured", "layers": [{"name": layer["name"],
                                                              "parameter_bytes": layer["parameter_bytes"]}
                                                             for layer in layers]},
                    "data": {"kind": "samples", "path": "none"},
                    "cluster": {"name": "traced", "nodes": 1, "devices_per_node": self.stages * self.replicas,
                                "device": {"name": "traced"}, "within_node": link},
                    "pipeline": {"ranks": self.stages, "microbatches": self.microbatches, "schedule": "1f1b",
                                 "partition": list(range(self.stages + 1)), "replicas": self.replicas},
                    "training": {"steps": 1, "microbatch_size": 1}}
        (folder / "costs.json").write_text(json.dumps(costs, indent=1))
        (folder / "scenario.json").write_text(json.dumps(scenario, indent=1))
        with open(folder / "steps.csv", "w") as file:
            print("step,replica,rank,action,seconds", file=file)
            for number, replica, rank, action, seconds in self.rows:
                print(number, replica, rank, action, seconds, sep=",", file=file)


def simulated(folder, draws):
    program = os.path.join(os.environ.get("PIPEWRIGHT_BUILD", "build"), "bin/pipewright")
    told = subprocess.run([program, "simulate", folder / "scenario.json", "--costs", folder / "costs.json", "--draws",
                           str(draws), "--jitter", folder / "steps.csv", "--json"], stdout=subprocess.PIPE, text=True,
                          check=True)
    return json.loads(told.stdout)


def percentile(values, fraction):
    return sorted(values)[max(1, math.ceil(fraction * len(values))) - 1]


def compare(title, steps, learned, draws):
    """Returns the errors of P50, P95 and mean on the steps that were not used, in percent."""
    others = [measured(step) for number, step in steps.items() if number not in learned]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        Learned({number: steps[number] for number in learned}).write(folder)
        answer = simulated(folder, draws)
    drawn = answer["draws"]
    rows = {"p50": (drawn["p50_s"], percentile(others, 0.5)), "p95": (drawn["p95_s"], percentile(others, 0.95)),
            "mean": (drawn["mean_s"], statistics.fmean(others)), "without draws": (answer["iteration_s"], statistics.fmean(others))}
    errors = {name: 100 * (predicted / real - 1) for name, (predicted, real) in rows.items()}
    if title:
        print(f"{title}: " + ", ".join(f"{name} {predicted:.4f} s, really {real:.4f} s ({errors[name]:+.2f} %)"
                                       for name, (predicted, real) in rows.items()))
        print(f"  together: ranks {drawn['ranks_together']:.2f}, pipelines {drawn['pipelines_together']:.2f}")
    return errors


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("timeline")
    parser.add_argument("--draws", type=int, default=10000)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--keep", help="a folder for what all steps say: scenario.json, costs.json, steps.csv")
    options = parser.parse_args()
    steps = read_steps(options.timeline)
    numbers = list(steps)
    half = len(numbers) // 2
    splits = {"even for odd": numbers[::2], "odd for even": numbers[1::2], "first half for second": numbers[:half],
              "second half for first": numbers[half:]}
    for title, learned in splits.items():
        compare(title, steps, set(learned), options.draws)
    if options.keep:
        folder = pathlib.Path(options.keep)
        folder.mkdir(parents=True, exist_ok=True)
        Learned(steps).write(folder)
    chance = random.Random(39)
    errors = collections.defaultdict(list)
    for _ in range(options.random):
        for name, error in compare("", steps, set(chance.sample(numbers, half)), options.draws).items():
            errors[name].append(abs(error))
    for name, all in errors.items():
        print(f"{len(all)} random halves, {name}: error {statistics.median(all):.2f} % in the median, 9 of 10 within "
              f"{percentile(all, 0.9):.2f} %, within 3 %: {sum(e <= 3 for e in all)}")


if __name__ == "__main__":
    main()
