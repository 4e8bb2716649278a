"""Checks that torch trains the files that pipewright writes: two processes over Gloo run one step of
each file in torch's runtime, and every gradient is bit for bit that of the undivided model.

Gradients are sums over microbatches, and a sum of floats depends on its order. So the undivided model
sums them, for each stage, in the order in which the file has that stage's backwards.
"""

import os
import re
import tempfile
from copy import deepcopy
from datetime import timedelta
from pathlib import Path

from pipewright import DIALECTS, Cells, Plan, cells  # first, because it skips the test if torch is missing

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

Batch = tuple[Tensor, ...]  # inputs and targets

DEVICE = torch.device("cpu")
RANKS = 2
WIDTH, ROWS = 6, 3  # width of the layers, rows of a microbatch
PLANS = [
    Plan("gpipe", RANKS, 4),
    Plan("1f1b", RANKS, 5),
    Plan("zb-h1", RANKS, 4),
    Plan("zb-h2", RANKS, 5),
    Plan("zb-auto", RANKS, 5),
    Plan("interleaved-1f1b", RANKS, 4, 2),
    Plan("megatron-interleaved", RANKS, 6, 3),
    Plan("looped-bfs", RANKS, 4, 2),
    Plan("interleaved-zb", RANKS, 6, 2),
    Plan("zbv", RANKS, 5, 2),
    Plan("dualpipev", RANKS, 5, 2),
    Plan("v-half", RANKS, 5, 2),
    Plan("v-min", RANKS, 5, 2),
    Plan("v-zb", RANKS, 5, 2),
    Plan("hanayo", RANKS, 4, 4),
]


class Stage(PipelineStage):
    """torch's stage, which exchanges its first messages only with neighbors in other processes. At the
    turn of a V torch 2.11 also sends one between two stages of a process, which Gloo does not support.
    """

    def _get_init_p2p_neighbors_ops(self) -> list[dist.P2POp]:
        ops = super()._get_init_p2p_neighbors_ops()
        return [op for op in ops if op.group_peer != self.group_rank]


def make_model(stages: int) -> nn.Sequential:
    """Makes layers of equal width, so that a misdirected tensor is not noticed by its shape."""
    torch.manual_seed(stages)
    layers = (nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(stages))
    return nn.Sequential(*layers).double()


def backwards_of(stage: int, rows: Cells) -> list[int]:
    """Returns the microbatches whose weight gradients the stage sums, in the order of the file."""
    text = " ".join(cell for row in rows for cell in row)
    return [int(m) for m in re.findall(rf"\b{stage}[BW](\d+)", text)]


def gradients_in_one_piece(model: nn.Sequential, batch: Batch, rows: Cells, count: int):
    """Returns the gradients of the mean loss over `count` microbatches, for each stage those of its parameters."""
    parameters = list(model.parameters())
    by_microbatch = []
    for x, y in zip(*(part.chunk(count) for part in batch)):
        loss = nn.functional.mse_loss(model(x), y)
        by_microbatch.append(dict(zip(parameters, torch.autograd.grad(loss, parameters))))
    return [
        [
            sum(by_microbatch[m][p] for m in backwards_of(stage, rows)) / count
            for p in layer.parameters()
        ]
        for stage, layer in enumerate(model)
    ]


def trained(rank: int, plan: Plan, model: nn.Sequential, batch: Batch, file: Path, dialect: str):
    """Trains one step in torch and returns this rank's stages, by index."""
    row = " ".join(cells(file)[rank])
    modules = {int(s): deepcopy(model[int(s)]) for s in set(re.findall(r"\b(\d+)F\d", row))}
    stages = [Stage(modules[s], s, plan.stages, DEVICE) for s in sorted(modules)]
    runtime = _PipelineScheduleRuntime(stages, plan.microbatches, loss_fn=nn.functional.mse_loss)
    runtime._load_csv(str(file), dialect)
    x, y = batch
    runtime.step(*([x] if 0 in modules else []), target=y)
    return modules


def check(rank: int, plan: Plan, files: dict[str, Path]) -> None:
    model = make_model(plan.stages)
    batch = torch.randn(2, plan.microbatches * ROWS, WIDTH, dtype=torch.float64).unbind()
    rows = cells(files["compute_only"])
    wanted = gradients_in_one_piece(model, batch, rows, plan.microbatches)
    for dialect, file in files.items():
        for stage, module in trained(rank, plan, model, batch, file, dialect).items():
            for parameter, gradient in zip(module.parameters(), wanted[stage], strict=True):
                assert torch.equal(parameter.grad, gradient), (
                    f"{plan}, {dialect}: a gradient of stage {stage} is off by "
                    f"{(parameter.grad - gradient).abs().max():.3g}"
                )


def run_rank(rank: int, files: dict[Plan, dict[str, Path]], folder: Path) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(str(folder / "store"), RANKS),
        rank=rank,
        world_size=RANKS,
        timeout=timedelta(seconds=30),
    )
    for plan in PLANS:
        check(rank, plan, files[plan])
    dist.destroy_process_group()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {p: {d: p.write(folder, option) for d, option in DIALECTS.items()} for p in PLANS}
        # Forked, so that torch is imported once.
        mp.start_processes(run_rank, (files, folder), nprocs=RANKS, start_method="fork")
    print(f"trained by torch, gradients equal bit for bit: {len(PLANS)} schedules in both formats")


if __name__ == "__main__":
    main()
