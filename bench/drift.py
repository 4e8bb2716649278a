#!/usr/bin/env python3
"""Simulates pipelines that share one network card: in step, and with independent log-normal durations of several
spreads. Prints a line for each schedule and number of pipelines, in ms: the table of docs/contention.md.

usage: drift.py [--draws N] [SCHEDULE…]; PIPEWRIGHT_BUILD names the build (build)"""

import argparse
import json
import math
import os
import random
import subprocess
import tempfile

SCENARIO = "scenarios/shared-card"
RANKS, MICROBATCHES, STEPS = 4, 16, 64
DEVIATIONS = [0.01, 0.03, 0.05, 0.1]


def write_record(file, deviation):
    chance = random.Random(1)
    spread = math.sqrt(math.log1p(deviation**2))
    print("step,replica,rank,action,seconds", file=file)
    for step in range(STEPS):
        for rank in range(RANKS):
            for microbatch in range(MICROBATCHES):
                for kind in "FB":
                    seconds = 1e-3 * math.exp(chance.gauss(0, spread) - spread**2 / 2)
                    print(f"{step},0,{rank},{rank}{kind}{microbatch},{seconds}", file=file)
    file.flush()


def simulated(schedule, pipelines, shared, record, draws):
    program = os.path.join(os.environ.get("PIPEWRIGHT_BUILD", "build"), "bin/pipewright")
    settings = {"pipeline.schedule": schedule, "pipeline.replicas": pipelines, "cluster.devices_per_node": pipelines,
                "cluster.between_nodes.shared": json.dumps(shared)}
    words = [program, "simulate", f"{SCENARIO}/scenario.json", "--costs", f"{SCENARIO}/costs.json", "--draws", str(draws),
             "--jitter", record, "--json"]
    for field, value in settings.items():
        words += ["--set", f"{field}={value}"]
    answer = json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return 1e3 * answer["iteration_s"], 1e3 * answer["draws"]["mean_s"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("schedules", nargs="*", default=["gpipe", "1f1b"])
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    print("| schedule | pipelines | in step |" + "".join(f" by {100 * d:.0f} % |" for d in DEVIATIONS) +
          " by 5 %, links of their own |")
    for schedule in options.schedules:
        for pipelines in (2, 4):
            row = []
            for deviation in DEVIATIONS:
                with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
                    write_record(file, deviation)
                    in_step, mean = simulated(schedule, pipelines, True, file.name, options.draws)
                    row.append(mean)
                    if deviation == 0.05:
                        apart = simulated(schedule, pipelines, False, file.name, options.draws)[1]
            print(f"| {schedule} | {pipelines} | {in_step:.1f} |" + "".join(f" {mean:.1f} |" for mean in row) + f" {apart:.1f} |")


if __name__ == "__main__":
    main()
