#!/usr/bin/env python3
"""Times torch.distributed.pipelining on a small GPT, compared with one thread that trains the same batch without a
pipeline, and prints one JSON line. The peer of executor.cpp, with the same model, partition and keys.

Runs one process per rank, with one thread each, pinned to a core, over Gloo; or, with --device cuda, over NCCL on GPUs,
which ranks share if there are fewer. Rank 0 also runs the serial steps, while the others wait; both kinds alternate, so
that a drift of the machine affects both. The optimizer is the fused AdamW, as in our executor.
"""

import argparse
import json
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class

VOCABULARY = 256
WARM_UP_STEPS = 2
V_SHAPED = ("ZBVZeroBubble", "DualPipeV")


class Embedding(nn.Module):
    def __init__(self, hidden, sequence):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, hidden)
        self.positions = nn.Embedding(sequence, hidden)

    def forward(self, x):
        return self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))


class Block(nn.Module):
    """Pre-norm transformer block, as in engine/src/models/gpt.cpp."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.project = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, sequence, hidden = x.shape
        query, key, value = (
            part.view(batch, sequence, self.heads, hidden // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, sequence, hidden))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def device_of(options, rank):
    if options.device == "cpu":
        return torch.device("cpu")
    return torch.device("cuda", rank % torch.cuda.device_count())


def build_layers(options, device):
    torch.manual_seed(0)
    head = nn.Sequential(nn.LayerNorm(options.hidden), nn.Linear(options.hidden, VOCABULARY))
    blocks = [Block(options.hidden, options.heads) for _ in range(options.layers)]
    return [layer.to(device) for layer in (Embedding(options.hidden, options.seq), *blocks, head)]


def loss_of(output, target):
    return F.cross_entropy(output.flatten(0, 1), target.flatten())


def optimizer_of(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def batch_of(options, device):
    """Returns random tokens, the same in every step. The target is the next token; the last one's is the first."""
    inputs = torch.randint(VOCABULARY, (options.mbs * options.microbatches, options.seq)).to(device)
    return inputs, inputs.roll(-1, 1)


def serial_step_of(options, device):
    model = nn.Sequential(*build_layers(options, device))
    optimizer = optimizer_of(model)
    inputs, targets = (whole.chunk(options.microbatches) for whole in batch_of(options, device))

    def step():
        for x, target in zip(inputs, targets):
            (loss_of(model(x), target) / options.microbatches).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def stages_of(options, rank):
    """Returns the stages of a rank, and the number of all stages."""
    ranks = options.ranks
    if options.schedule in V_SHAPED:
        return [rank, 2 * ranks - 1 - rank], 2 * ranks
    return [rank + chunk * ranks for chunk in range(options.chunks)], ranks * options.chunks


def pipeline_step_of(options, rank):
    device = device_of(options, rank)
    layers = build_layers(options, device)
    indices, count = stages_of(options, rank)
    cut = [round(i * len(layers) / count) for i in range(count + 1)]
    models = [nn.Sequential(*layers[cut[i] : cut[i + 1]]) for i in indices]
    stages = [
        PipelineStage(model, index, count, device)
        for model, index in zip(models, indices)
    ]
    schedule_class = get_schedule_class(options.schedule)
    takes_several = issubclass(schedule_class, PipelineScheduleMulti)
    schedule = schedule_class(
        stages if takes_several else stages[0], options.microbatches, loss_fn=loss_of
    )
    optimizer = optimizer_of(nn.ModuleList(models))
    inputs, targets = batch_of(options, device)
    first = [inputs] if 0 in indices else []
    is_last = count - 1 in indices

    def step():
        schedule.step(*first, **({"target": targets, "losses": []} if is_last else {}))
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()

    return step


def seconds_of(work):
    begin = time.perf_counter()
    work()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def compute_reproducibly():
    """Makes results have the same bits each time, as our exact mode requires of LibTorch."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.enable_mem_efficient_sdp(False)


def run_rank(rank, options, cores, store, results):
    """Alternates on every rank in the same way; rank 0 measures the times."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    if options.kernels == "exact":
        compute_reproducibly()
    if options.device == "cuda":
        device = device_of(options, rank)
        torch.cuda.set_device(device)
        # NCCL requires a GPU for each process of a host, so processes that share one are presented
        # as other hosts.
        os.environ["NCCL_HOSTID"] = f"rank-{rank}"
    dist.init_process_group(
        "gloo" if options.device == "cpu" else "nccl", init_method=f"file://{store}", rank=rank, world_size=options.ranks
    )
    pipeline_step = pipeline_step_of(options, rank)
    serial_step = serial_step_of(options, device_of(options, rank)) if rank == 0 else lambda: None

    def turn(steps):
        single = [seconds_of(serial_step) for _ in range(steps)]
        iteration = []
        for _ in range(steps):
            dist.barrier()
            iteration.append(seconds_of(pipeline_step))
        return statistics.median(single), statistics.median(iteration)

    turn(WARM_UP_STEPS)
    rounds = [turn(options.steps) for _ in range(options.rounds)]
    if rank == 0:
        results.put(rounds)
    dist.destroy_process_group()


def report(options, rounds):
    """Divides by the ideal within each round, because measurements close in time see the same machine state."""
    bubble_factor = (options.microbatches + options.ranks - 1) / options.microbatches
    ideal = [single / options.ranks * bubble_factor for single, _ in rounds]
    over_ideal = [iteration / best for (_, iteration), best in zip(rounds, ideal)]
    return {
        "program": "torch.distributed.pipelining",
        **vars(options),
        "iteration_s": round(statistics.median(iteration for _, iteration in rounds), 6),
        "single_s": round(statistics.median(single for single, _ in rounds), 6),
        "ideal_s": round(statistics.median(ideal), 6),
        "over_ideal": round(statistics.median(over_ideal), 4),
    }


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--schedule", default="1F1B")
    parser.add_argument("--chunks", type=int, default=1, help="stages per rank")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--layers", type=int, default=8, help="transformer blocks")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--seq", type=int, default=128, help="tokens of a sample")
    parser.add_argument("--mbs", type=int, default=4, help="samples of a microbatch")
    parser.add_argument("--steps", type=int, default=4, help="measured of each kind in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument(
        "--kernels",
        choices=["exact", "default"],
        default="default",
        help="exact: the same bits each time; default: those that torch takes by itself",
    )
    return parser.parse_args()


def main():
    options = parse_options()
    cores = sorted(os.sched_getaffinity(0))
    results = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        mp.spawn(run_rank, (options, cores, store, results), options.ranks)
    print(json.dumps(report(options, results.get())))


if __name__ == "__main__":
    main()
