#!/usr/bin/env python3
"""Measures how long Calculon takes for one configuration of a pipeline: one JSON line.

Calculon uses closed forms, from its model of a transformer and a machine; it has no schedule and no
timeline. PIPEWRIGHT_CALCULON names a checkout of github.com/calculon-ai/calculon, which needs
numpy, pandas and psutil; without it, the script prints one line that says so and measures nothing.
"""

import argparse
import json
import logging
import os
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--ranks", type=int, default=16)
parser.add_argument("--microbatches", type=int, default=64)
parser.add_argument("--rounds", type=int, default=200)
options = parser.parse_args()



def skip(reason):
    print(f"skipped: {reason}", file=sys.stderr)
    sys.exit(0)


checkout = os.environ.get("PIPEWRIGHT_CALCULON", "")
if not checkout:
    skip("PIPEWRIGHT_CALCULON must name a checkout of github.com/calculon-ai/calculon")
sys.path.insert(0, checkout)
try:
    from calculon import System
    from calculon.llm import Llm
except ImportError as error:
    skip(f"{checkout} cannot be imported: {error}")


def read(name):
    with open(os.path.join(checkout, name)) as file:
        return json.load(file)


# Calculon's own example, as one pipeline of our sizes over nodes of 8 devices.
tensor_parallel = 8
execution = read("examples/3072_t4_p64_d12_mbs4_full.json") | {
    "num_procs": options.ranks * tensor_parallel, "tensor_par": tensor_parallel,
    "pipeline_par": options.ranks, "data_par": 1, "batch_size": options.microbatches,
    "microbatch_size": 1, "optimizer_sharding": False}
application = Llm.Application(read("models/gpt3-175B.json"))
machine = read("systems/a100_80g.json")
log = logging.getLogger("calculon")


def configure():
    """Does what Calculon's search does: keeps the machine and builds the model again."""
    system = System(machine)
    begin = time.perf_counter()
    model = Llm(application, log)
    model.compile(system, Llm.Execution.from_json(execution))
    model.run(system)
    return time.perf_counter() - begin, model


configure()
seconds = statistics.median(configure()[0] for _ in range(options.rounds))
print(json.dumps({
    "program": "calculon", "ranks": options.ranks, "microbatches": options.microbatches,
    "configuration_s": round(seconds, 7),
    "iteration_time": configure()[1].get_total_time()}))
