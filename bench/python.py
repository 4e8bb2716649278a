#!/usr/bin/env python3
"""Compares the time of a prediction from Python with the same one from C++, alternately, with half a million actions.
Run as: python.py BUILD [--rounds N]"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

arguments = argparse.ArgumentParser()
arguments.add_argument("build")
arguments.add_argument("--rounds", type=int, default=7)
arguments.add_argument("--microbatches", type=int, default=2605)
arguments = arguments.parse_args()
sys.path.insert(0, f"{arguments.build}/python")
import pipewright  # noqa: E402

RANKS, AT_ONCE, HIDDEN, LETTERS, TOKENS = 64, 3, 1024, 256, 1024
scenario = {
    "format": "pipewright/scenario/1", "name": "bench",
    "model": {"kind": "gpt", "blocks": 4 * RANKS - 2, "hidden": HIDDEN, "heads": 16, "sequence": TOKENS},
    "data": {"kind": "text", "path": "text.txt"},
    "cluster": {"name": "c", "nodes": 1, "devices_per_node": RANKS, "device": {"name": "d"},
                "within_node": {"latency_s": 1e-5, "bandwidth_per_s": 1e11}},
    "pipeline": {"ranks": RANKS, "microbatches": arguments.microbatches, "schedule": "zb-h1"},
    "training": {"steps": 1, "microbatch_size": 1},
}
names = pipewright.Scenario(scenario).layers
part = {"input_gradient_s": 1e-3, "weight_gradient_s": 1e-3, "optimizer_step_s": 1e-4,
        "activation_bytes": 1 << 20, "output_bytes": 1 << 20, "forward_peak_bytes": 0, "backward_peak_bytes": 0,
        "saves_input": True, "saves_output": False, "output_is_view": False, "forward_s": 1e-3}
parameters = {"embedding": (LETTERS + TOKENS) * HIDDEN, "head": 2 * HIDDEN + LETTERS * HIDDEN + LETTERS}
costs = {"format": "pipewright/costs/1", "device": "d", "dtype": "float32", "software": "bench", "microbatch_size": 1,
         "load_s": 0.0, "input_bytes": 4096, "target_bytes": 4096, "loss": {"name": "loss", "parameter_bytes": 0, **part},
         "layers": [{"name": name, "parameter_bytes": 4 * parameters.get(name, 12 * HIDDEN**2 + 13 * HIDDEN), **part}
                    for name in names]}

with tempfile.TemporaryDirectory() as folder:
    files = [Path(folder, "scenario.json"), Path(folder, "costs.json")]
    for file, value in zip(files, (scenario, costs)):
        file.write_text(json.dumps(value))
    read, measured = pipewright.Scenario.read(str(files[0])), pipewright.LayerCosts.read(str(files[1]))
    in_cpp, in_python, instructions = [], [], 0
    for _ in range(arguments.rounds):
        said = subprocess.run([f"{arguments.build}/bin/pipewright_bench_predict", *map(str, files), "--rounds", str(AT_ONCE)],
                              check=True, capture_output=True, text=True).stdout
        in_cpp.append(json.loads(said)["seconds"])
        instructions = json.loads(said)["instructions"]
        of_round = []
        for _ in range(AT_ONCE):
            start = time.perf_counter()
            predicted = pipewright.simulate(read, measured)
            of_round.append(time.perf_counter() - start)
            del predicted
        in_python.append(statistics.median(of_round))
cpp, python = statistics.median(in_cpp), statistics.median(in_python)
print(json.dumps({"instructions": instructions, "cpp_s": round(cpp, 4), "python_s": round(python, 4),
                  "python_over_cpp": round(python / cpp, 4)}))
