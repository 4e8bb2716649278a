#!/usr/bin/env python3
"""Measures how long torch.distributed.pipelining takes to generate and lower Interleaved1F1B: one
JSON line.

Calls the generator and the lowering pass as the schedule's constructor does, but without stages and
process group, which they do not use.
"""

import argparse
import copy
import json
import statistics
import time

from torch.distributed.pipelining import schedules

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--ranks", type=int, default=64)
parser.add_argument("--microbatches", type=int, default=1024)
parser.add_argument("--chunks", type=int, default=4)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--lower", action="store_true")
options = parser.parse_args()

schedule = schedules.ScheduleInterleaved1F1B.__new__(schedules.ScheduleInterleaved1F1B)
schedule.pp_group_size = options.ranks
schedule.n_local_stages = options.chunks
schedule._n_microbatches = options.microbatches
schedule.number_of_rounds = max(1, options.microbatches // options.ranks)
schedule.microbatches_per_round = options.microbatches // schedule.number_of_rounds


def generate():
    return {rank: schedule._calculate_single_rank_operations(rank) for rank in range(options.ranks)}


def lower(orders):
    return schedules._add_send_recv(
        orders, stage_to_rank=lambda stage: stage % options.ranks,
        num_stages=options.ranks * options.chunks)


def median_time(function, make_argument):
    times = []
    for _ in range(options.rounds):
        argument = make_argument()
        begin = time.perf_counter()
        function(*argument)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


answer = {"program": "torch.distributed.pipelining", "ranks": options.ranks,
          "microbatches": options.microbatches, "chunks": options.chunks,
          "generate_s": round(median_time(generate, tuple), 4)}
if options.lower:
    order = {rank: [a for a in row if a is not None] for rank, row in generate().items()}
    answer["lower_s"] = round(median_time(lower, lambda: (copy.deepcopy(order),)), 4)
print(json.dumps(answer))
