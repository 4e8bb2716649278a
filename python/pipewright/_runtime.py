"""Measures the overhead of torch's pipeline runtime, on this machine's CPUs.

    python -m pipewright._runtime

starts two processes over Gloo and prints a RuntimeCost as JSON.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _batch_p2p, _PipelineScheduleRuntime, _wait_batch_p2p

REPEATS = 30
FEW, MANY = 4, 20  # microbatches of a step
SMALL, LARGE = 1 << 10, 1 << 22  # bytes of a message


class _Product(nn.Module):
    """A layer with one parameter, which takes almost no time."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return x * self.weight


def _loss(output, target):
    return output


def torch_name():
    return f"torch {torch.__version__.split('+')[0]}"


def csv_schedule(stages, microbatches, loss_fn, text):
    """Returns torch's runtime with the actions of a CSV."""
    schedule = _PipelineScheduleRuntime(stages, microbatches, loss_fn=loss_fn)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(text)
        file.flush()
        schedule._load_csv(file.name)
    return schedule


def _seconds(run):
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _step(kinds, microbatches, group):
    """Returns the time of a step of one stage, in which each microbatch has an action of each kind."""
    stage = PipelineStage(_Product(), 0, 1, torch.device("cpu"), group=group)
    actions = ",".join(f"0{kind}{number}" for kind in kinds for number in range(microbatches))
    schedule = csv_schedule([stage], microbatches, _loss, actions + "\n")
    batch = torch.ones(microbatches)

    def step():
        schedule.step(batch, target=batch)

    step()
    return _seconds(step)


def _actions(kinds, group):
    """Returns the overhead of these actions of a microbatch, and the overhead of a step."""
    few, many = (_step(kinds, microbatches, group) for microbatches in (FEW, MANY))
    each = max(0.0, (many - few) / (MANY - FEW))
    layer, x = _Product(), torch.ones(1)
    own = _seconds(lambda: torch.autograd.backward(layer(x)))
    return max(0.0, each - own), max(0.0, few - FEW * each)


def _message(rank, size, pair):
    """Returns how long a message occupies its sender and its receiver, which are two processes."""
    data = torch.zeros(size, dtype=torch.uint8)
    sending, receiving = [], []
    for _ in range(REPEATS):
        dist.barrier(pair)
        if rank == 0:
            begin = time.perf_counter()
            sent = _batch_p2p([dist.P2POp(dist.isend, data, 1)])
            sending.append(time.perf_counter() - begin)
            _wait_batch_p2p(sent)
        else:
            time.sleep(0.002)  # the message has arrived by then
            begin = time.perf_counter()
            _wait_batch_p2p(_batch_p2p([dist.P2POp(dist.irecv, data, 0)]))
            receiving.append(time.perf_counter() - begin)
    own = statistics.median(sending or receiving)
    both = [None, None]
    dist.all_gather_object(both, own, group=pair)
    return both


def measured_runtime():
    """Returns the fields of a RuntimeCost in the first two processes of a job, and None in the others; all must
    call it. The time of a forward and a backward is divided equally between them, and so is that of the two parts
    of a backward."""
    rank = dist.get_rank()
    groups = [dist.new_group(ranks) for ranks in ([0], [1], [0, 1])]
    if rank > 1:
        return None
    own, pair = groups[rank], groups[2]
    (whole, iteration), (parts, _) = _actions("FB", own), _actions("FIW", own)
    forward = whole / 2
    found = {"name": torch_name(), "forward_s": forward, "backward_s": whole - forward,
             "input_gradient_s": max(0.0, parts - forward) / 2, "weight_gradient_s": max(0.0, parts - forward) / 2,
             "iteration_s": iteration, "whole_first_backward": True}
    small, large = _message(rank, SMALL, pair), _message(rank, LARGE, pair)
    for end, short, long in zip(("send", "receive"), small, large):
        found[f"{end}_s"] = short
        found[f"{end}_bandwidth_per_s"] = (LARGE - SMALL) / (long - short) if long > short else 0.0
    return found


def _part(rank, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2)
    found = measured_runtime()
    if rank == 0:
        print(json.dumps(found))
    dist.destroy_process_group()


def runtime_costs():
    """Returns the fields of a RuntimeCost, measured in two new processes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", "-m", "pipewright._runtime", os.path.join(folder, "store")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # to find this package
        parts = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True, env=environment)
                 for rank in range(2)]
        told = [part.communicate()[0] for part in parts]
        if any(part.returncode for part in parts):
            raise RuntimeError("torch's runtime could not be measured: see the lines above")
        return json.loads(told[0])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _part(int(sys.argv[2]), sys.argv[1])
    else:
        print(json.dumps({"format": "pipewright/runtime/1", **runtime_costs()}))
