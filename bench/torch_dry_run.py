#!/usr/bin/env python3
"""Measures how long torch.distributed.pipelining's own dry run of Interleaved1F1B takes: one JSON
line.

The dry run steps through the lowered actions of all ranks, each of which takes one step, and finds
bubbles and deadlocks. It does not model times, links and memory. `actions` are compute actions, as
in ours.
"""

import argparse
import json
import statistics
import time

from torch.distributed.pipelining import schedules

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--ranks", type=int, default=16)
parser.add_argument("--microbatches", type=int, default=128)
parser.add_argument("--chunks", type=int, default=4)
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()

# The generator is called as the schedule's constructor calls it, without stages and process group.
schedule = schedules.ScheduleInterleaved1F1B.__new__(schedules.ScheduleInterleaved1F1B)
schedule.pp_group_size = options.ranks
schedule.n_local_stages = options.chunks
schedule._n_microbatches = options.microbatches
schedule.number_of_rounds = max(1, options.microbatches // options.ranks)
schedule.microbatches_per_round = options.microbatches // schedule.number_of_rounds
stages = options.ranks * options.chunks


def rank_of(stage):
    return stage % options.ranks


compute = {rank: [action for action in schedule._calculate_single_rank_operations(rank) if action]
           for rank in range(options.ranks)}
actions = sum(map(len, compute.values()))
lowered = schedules._add_send_recv(compute, stage_to_rank=rank_of, num_stages=stages)

times = []
for _ in range(options.rounds):
    begin = time.perf_counter()
    schedules._simulate_comms_compute(lowered, rank_of, stages)
    times.append(time.perf_counter() - begin)
seconds = statistics.median(times)
print(json.dumps({
    "program": "torch.distributed.pipelining", "ranks": options.ranks,
    "microbatches": options.microbatches, "chunks": options.chunks, "actions": actions,
    "instructions": sum(map(len, lowered.values())), "dry_run_s": round(seconds, 4),
    "million_actions_per_s": round(actions / seconds / 1e6, 4)}))
