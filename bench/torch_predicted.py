#!/usr/bin/env python3
"""Measures the prediction error for torch's runtime: a small GPT in two processes over Gloo, one thread each.
Alternately measures its layers with pipewright.torch.profile, and steps of each schedule with
pipewright.torch.pipeline.

    bench/torch_predicted.py PYTHON_PACKAGE [ROUNDS]

prints predicted over measured iterations: medians over the rounds, and the quartiles.
"""

import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

RANKS, MICROBATCHES, BLOCKS, ROWS, STEPS = 2, 8, 8, 4, 4
SHAPES = [(256, 64), (64, 64)]  # hidden, sequence
SCHEDULES = [{"schedule": "gpipe"}, {"schedule": "1f1b"}, {"schedule": "interleaved-1f1b", "chunks": 2},
             {"schedule": "interleaved-zb", "chunks": 2}, {"schedule": "zb-h1"}]


class Block(nn.Module):
    def __init__(self, hidden, heads=4):
        super().__init__()
        self.before, self.between = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention = nn.MultiheadAttention(hidden, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden))

    def forward(self, x):
        y = self.before(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.between(x))


def model(hidden):
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(256, hidden), *(Block(hidden) for _ in range(BLOCKS)), nn.Linear(hidden, 256))


def loss_of(output, target):
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def step_time(pipeline, optimizer, batch, target):
    times = []
    for _ in range(STEPS):
        dist.barrier()
        begin = time.perf_counter()
        pipeline.step(batch, target=target)
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measure(hidden, sequence, rounds):
    import pipewright as pw
    import pipewright.torch

    module = model(hidden)
    batch = torch.randint(0, 256, (ROWS * MICROBATCHES, sequence))
    target = batch.roll(-1, 1)

    def made_optimizer(parameters):
        return torch.optim.AdamW(parameters, lr=1e-4)

    def costs(runtime):
        return pipewright.torch.profile(module, batch[:ROWS], loss_of, target[:ROWS], optimizer=made_optimizer,
                                        seconds=1.5, runtime=runtime)

    measured = costs(True)
    runtime = measured.to_dict()["runtime"]
    if dist.get_rank() == 0:
        print(f"hidden {hidden}, sequence {sequence}; runtime, us:",
              {field: round(1e6 * value) for field, value in runtime.items() if field.endswith("_s")})
    scenario = pw.Scenario.of(measured, ranks=RANKS)
    plans, ratios = [], [[] for _ in SCHEDULES]
    for case in SCHEDULES:
        fields = {"pipeline.microbatches": MICROBATCHES, **{f"pipeline.{field}": value for field, value in case.items()}}
        planned = scenario.set(fields)
        cut = pw.simulate(planned, measured).boundaries
        planned = planned.set({"pipeline.partition": cut})
        pipeline = pipewright.torch.pipeline(planned, module, loss_of)
        plans.append((planned, pipeline, made_optimizer(pipeline.parameters())))
        step_time(*plans[-1][1:], batch, target)
    seconds = [0.0] * len(plans)
    for _ in range(rounds):
        now = pw.LayerCosts({**costs(False).to_dict(), "runtime": runtime})
        for number, (planned, pipeline, optimizer) in enumerate(plans):
            seconds[number] = step_time(pipeline, optimizer, batch, target)
            ratios[number].append(pw.simulate(planned, now).iteration_s / seconds[number])
    for case, last, found in zip(SCHEDULES, seconds, ratios):
        low, middle, high = statistics.quantiles(found, n=4)
        if dist.get_rank() == 0:
            print(f"{case['schedule']:20}{1e3 * last:10.1f} ms   predicted {middle:.3f} ({low:.3f} to {high:.3f})", flush=True)


def work(rank, port, package, rounds):
    sys.path.insert(0, package)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(RANKS),
                      LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {rank % os.cpu_count()})
    dist.init_process_group("gloo")
    for hidden, sequence in SHAPES:
        measure(hidden, sequence, rounds)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, (port, sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8), RANKS)
