"""Trains a small pipeline in torch, with a process per rank over Gloo and torch's profiler on, for
`pipewright explain`. Run as a program, it writes FOLDER/rank0.json.gz, … and FOLDER/truth.json:

    trace_pipeline.py FOLDER SCHEDULE [RANKS [MICROBATCHES [CHUNKS [REPLICAS]]]]

REPLICAS is the number of data-parallel replicas. SCHEDULE is a class of torch.distributed.pipelining, such as Schedule1F1B.
"""

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, schedules
from torch.profiler import ProfilerActivity, profile, schedule

DEVICE = torch.device("cpu")
WARM_UP, STEPS = 2, 2  # steps before the profiler starts, and steps in the trace
NAP = 0.04  # seconds
V_SHAPED = ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")


class Job(NamedTuple):
    """A training: the name of torch's schedule, and the sizes."""

    schedule: str
    ranks: int = 2
    microbatches: int = 4
    chunks: int = 1
    replicas: int = 1
    width: int = 192
    rows: int = 64  # of a microbatch
    slow_stage: int = -1  # sleeps in its forwards
    slow_replica: int = 0  # the replica in which it sleeps
    stacks: bool = False  # whether the profiler records stacks

    @property
    def processes(self) -> int:
        return self.ranks * self.replicas

    @property
    def stages(self) -> int:
        return self.ranks * self.chunks

    def stages_of(self, rank: int) -> list[int]:
        if self.schedule in V_SHAPED:
            return [rank, self.stages - 1 - rank]
        return list(range(rank, self.stages, self.ranks))


class Stage(PipelineStage):
    """torch's stage, which exchanges its first messages only with neighbors in other processes. At the
    turn of a V torch 2.11 also sends one between two stages of a process, which Gloo does not support.
    """

    def _get_init_p2p_neighbors_ops(self) -> list[dist.P2POp]:
        ops = super()._get_init_p2p_neighbors_ops()
        return [op for op in ops if op.group_peer != self.group_rank]


class Sleep(nn.Module):
    """Sleeps, which takes the same time on a busy machine."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(NAP)
        return x


def make_stage(job: Job, stage: int, replica: int) -> nn.Sequential:
    torch.manual_seed(stage)
    blocks = [nn.Sequential(nn.Linear(job.width, job.width), nn.GELU()) for _ in range(3)]
    if stage == job.slow_stage and replica == job.slow_replica:
        blocks.insert(1, Sleep())
    return nn.Sequential(*blocks)


def make_schedule(job: Job, modules: dict[int, nn.Module], group: dist.ProcessGroup | None):
    stages = [Stage(module, s, job.stages, DEVICE, group=group) for s, module in modules.items()]
    kind = getattr(schedules, job.schedule)
    single = issubclass(kind, schedules.PipelineScheduleSingle)
    return kind(stages[0] if single else stages, job.microbatches, loss_fn=nn.functional.mse_loss)


def train(process: int, job: Job, folder: Path) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = dist.FileStore(str(folder / "store"), job.processes)
    dist.init_process_group(
        "gloo", store=store, rank=process, world_size=job.processes, timeout=timedelta(seconds=60)
    )
    rank, replica = divmod(process, job.replicas)
    pipeline, replicas = None, None  # groups
    if job.replicas > 1:
        mesh = init_device_mesh("cpu", (job.ranks, job.replicas), mesh_dim_names=("pp", "dp"))
        pipeline, replicas = mesh.get_group("pp"), mesh.get_group("dp")
    modules = {s: make_stage(job, s, replica) for s in job.stages_of(rank)}
    runtime = make_schedule(job, modules, pipeline)
    parameters = [p for module in modules.values() for p in module.parameters()]
    optimizer = torch.optim.SGD(parameters, 1e-3)
    x, y = torch.randn(2, job.microbatches * job.rows, job.width).unbind()
    has_last = job.stages - 1 in modules
    times = []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=WARM_UP, active=STEPS, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(str(folder / f"rank{process}.json.gz")),
        with_stack=job.stacks,
        acc_events=True,
    ) as profiler:
        for _ in range(WARM_UP + STEPS):
            dist.barrier()
            began = time.perf_counter()
            inputs = [x] if 0 in modules else []
            runtime.step(*inputs, target=y) if has_last else runtime.step(*inputs)
            for parameter in parameters if replicas else []:
                dist.all_reduce(parameter.grad, group=replicas)
            optimizer.step()
            optimizer.zero_grad()
            times.append(time.perf_counter() - began)
            profiler.step()
    (folder / f"times{process}.json").write_text(json.dumps(times[WARM_UP:]))
    dist.destroy_process_group()


def trace(job: Job, folder: Path) -> list[Path]:
    """Writes the traces of the ranks, and the seconds that each took for its steps."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.iterdir():
        left.unlink()
    mp.start_processes(train, (job, folder), nprocs=job.processes, start_method="fork")
    times = [json.loads((folder / f"times{r}.json").read_text()) for r in range(job.processes)]
    (folder / "truth.json").write_text(json.dumps({**job._asdict(), "step_s": times}))
    return [folder / f"rank{r}.json.gz" for r in range(job.processes)]


if __name__ == "__main__":
    sizes = [int(word) for word in sys.argv[3:]]
    print(*trace(Job(sys.argv[2], *sizes), Path(sys.argv[1])), sep="\n")
