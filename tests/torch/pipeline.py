"""Tests pipewright.torch.pipeline, which gives torch the stages and the schedule of a plan: several processes over Gloo
train with it, and the losses of two steps equal those of the undivided model.

    pipeline.py PIPEWRIGHT
"""

import os
import socket
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parents[2]
PACKAGE = Path(sys.argv[1]).parents[1] / "python"
if not (PACKAGE / "pipewright").is_dir():
    print(f"skipped: there is no {PACKAGE}: it was built without PIPEWRIGHT_PYTHON")
    sys.exit(77)
sys.path.insert(0, str(PACKAGE))  # before this folder, which has a module of the same name
try:
    import torch.distributed.pipelining  # noqa: F401
except ImportError as missing:
    print(f"skipped: {sys.executable} has no torch.distributed.pipelining ({missing})")
    sys.exit(77)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
from torch import nn  # noqa: E402

LAYERS, WIDTH, ROWS, MICROBATCHES, STEPS = 8, 6, 3, 4, 2
CASES = [
    {"schedule": "gpipe", "partition": [0, 3, 8]},
    {"schedule": "1f1b", "partition": [0, 5, 8]},
    {"schedule": "interleaved-1f1b", "chunks": 2, "partition": [0, 1, 4, 6, 8]},
    {"schedule": "zb-h1", "partition": [0, 5, 8]},  # torch has no class for it, so its CSV is used
    {"schedule": "zbv", "chunks": 2, "partition": [0, 1, 4, 6, 8]},
    {"schedule": "v-half", "chunks": 2, "partition": [0, 2, 4, 6, 8]},
    {"schedule": "1f1b", "partition": [0, 5, 8], "replicas": 2},
    {"schedule": "1f1b", "partition": [0, 5, 8], "replicas": 2, "axes": ["data", "pipe", "context", "tensor"]},
    {"schedule": "1f1b", "partition": [0, 5, 8], "replicas": 2, "zero": 2},
    {"schedule": "interleaved-1f1b", "chunks": 2, "partition": [0, 1, 4, 6, 8], "replicas": 2, "zero": 3},
    {"schedule": "1f1b", "partition": [0, 5, 8], "traced": True},
]


def model():
    torch.manual_seed(5)
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(LAYERS)))


class Whole(nn.Module):
    """The same layers in a module that is not sequential."""

    def __init__(self):
        super().__init__()
        self.blocks = model()

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def batch(step, replica):
    chance = torch.Generator().manual_seed(100 * step + replica)
    return (torch.randn(MICROBATCHES * ROWS, WIDTH, generator=chance) for _ in range(2))


def loss_of(output, target):
    return nn.functional.mse_loss(output, target)


def serial_losses(replicas):
    """Returns the losses by step, replica and microbatch; gradients are averaged over all of them."""
    whole = model()
    optimizer = torch.optim.SGD(whole.parameters(), lr=0.5)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        losses.append([])
        for replica in range(replicas):
            inputs, targets = batch(step, replica)
            losses[-1].append([])
            for x, y in zip(inputs.chunk(MICROBATCHES), targets.chunk(MICROBATCHES)):
                loss = loss_of(whole(x), y)
                (loss / MICROBATCHES / replicas).backward()
                losses[-1][-1].append(loss.item())
        optimizer.step()
    return losses


def scenario_of(case):
    import pipewright as pw

    fields = {f"pipeline.{key}": value for key, value in case.items() if key not in ("zero", "traced")}
    return pw.Scenario.read(str(SOURCE / "scenarios/shared-card/scenario.json")).set({
        "pipeline.ranks": 2, "pipeline.replicas": 1, "pipeline.chunks": 0, "pipeline.microbatches": MICROBATCHES,
        "training.zero": case.get("zero", 0), "pipeline.overlap_reductions": True, **fields})


def train(rank, port, processes, cases, folder):
    """Runs one process, which trains these cases one after the other."""
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(processes), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port))
    for number, case in enumerate(cases):
        train_by(case, f"{folder}/{number}")
    dist.barrier()
    dist.destroy_process_group()


def train_by(case, file):
    import pipewright.torch

    more = {}
    if case.get("traced"):
        more = {"layers": [f"blocks.{layer}" for layer in range(LAYERS)], "example": torch.zeros(ROWS, WIDTH)}
    pipeline = pipewright.torch.pipeline(scenario_of(case), Whole() if more else model(), loss_of, **more)
    optimizer = torch.optim.SGD(pipeline.parameters(), lr=0.5)
    replica = pipeline.groups["data"].get_local_rank()
    for step in range(STEPS):
        optimizer.zero_grad()
        inputs, targets = batch(step, replica)
        losses = pipeline.step(inputs, target=targets)
        optimizer.step()
        if losses is not None:
            torch.save([loss.item() for loss in losses], f"{file}-{step}-{replica}")


def check(replicas, folder):
    cases = [case for case in CASES if case.get("replicas", 1) == replicas]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.start_processes(train, (port, 2 * replicas, cases, folder), nprocs=2 * replicas, start_method="spawn")
    expected = serial_losses(replicas)
    assert expected[0] != expected[1]
    for number, case in enumerate(cases):
        for step in range(STEPS):
            for replica in range(replicas):
                losses, wanted = torch.load(f"{folder}/{number}-{step}-{replica}"), expected[step][replica]
                # The losses of the first step do not depend on the order in which gradients are summed.
                is_right = losses == wanted if step == 0 else torch.allclose(torch.tensor(losses), torch.tensor(wanted),
                                                                             rtol=1e-5)
                assert is_right, f"{case}: step {step}, replica {replica}: {losses}, not {wanted}"
        print(case)


def check_refusals():
    import pipewright.torch

    def refusal(case, *words, **more):
        try:
            pipewright.torch.pipeline(scenario_of(case), *words, **more)
        except ValueError as error:
            return str(error)
        raise AssertionError(f"{case} is not rejected")

    plan = {"schedule": "1f1b", "partition": [0, 5, 8]}
    assert "pipeline.partition=profile" in refusal({**plan, "partition": "profile"}, model())
    assert "training.zero=1" in refusal({**plan, "replicas": 2, "zero": 1}, model())
    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    assert "the job has 1 processes" in refusal(plan, model())
    one = {"schedule": "1f1b", "ranks": 1, "partition": [0, 8]}
    assert "the plan has 8 layers" in refusal(one, model()[:4])
    assert "the plan has 8 layers" in refusal(one, Whole())
    assert "no submodule 'x'" in refusal(one, Whole(), layers=["x"] * 8, example=torch.zeros(1, WIDTH))
    dist.destroy_process_group()


def main():
    torch.set_num_threads(1)
    for replicas in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            check(replicas, folder)
    check_refusals()
    print(f"{len(CASES)} plans train in torch with the losses of the undivided model")


if __name__ == "__main__":
    main()
