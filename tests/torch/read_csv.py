"""Checks that pipewright reads what torch writes: torch's own schedules, dumped in both formats, are
valid, recognized by name, and read completely.

Only schedules with several stages per rank can be dumped: torch's GPipe and 1F1B have no such method.
"""

import json
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace

from pipewright import DIALECTS, Cells, Plan, cells, run
from torch.distributed.pipelining.schedules import get_schedule_class

# Ranks, microbatches and stages per rank.
LOOPED = [(2, 6, 2), (4, 8, 2), (4, 16, 4)]
V = [(2, 4, 2), (4, 8, 2), (8, 20, 2)]
SCHEDULES = {  # torch's name: pipewright's name
    "Interleaved1F1B": ("interleaved-1f1b", LOOPED),
    "InterleavedZeroBubble": ("interleaved-zb", LOOPED),
    "LoopedBFS": ("looped-bfs", LOOPED),
    "ZBVZeroBubble": ("zbv", V),
    "DualPipeV": ("dualpipev", V),
}


def make_torchs(name: str, plan: Plan):
    """Returns torch's own schedule, with stages that have only indices."""
    stage = SimpleNamespace(
        group_rank=0, group_size=plan.ranks, num_stages=plan.stages, submod=None
    )
    return get_schedule_class(name)([stage] * plan.chunks, plan.microbatches)


def in_torchs_words(row: list[str]) -> list[str]:
    """Removes what pipewright adds: buffer slots, loads and optimizer steps."""
    bare = (re.sub(r"#\d+", "", cell) for cell in row)
    return [cell for cell in bare if not re.search("LOAD|STEP", cell)]


def read(file: Path, dialect: str) -> tuple[str, Cells]:
    """Returns the schedule's name and cells as pipewright reads the file, which must be valid."""
    detail = ["--lower"] if dialect == "compute_comms" else []
    answer = json.loads(run("schedule", "--check", str(file), "--json", *detail))
    return answer["name"] or "none", [in_torchs_words(row) for row in answer["ranks"]]


def check_reads(name: str, plan: Plan, dialect: str, folder: Path) -> None:
    file = folder / f"{name}.{dialect}.csv"
    make_torchs(name, plan)._dump_csv(str(file), dialect)
    known, seen = read(file, dialect)
    assert known.startswith(plan.name), f"{name} as {plan}: read as {known}"
    assert seen == cells(file), f"{name} as {plan}: {dialect} is read as a different schedule"


def main() -> None:
    plans = [(name, Plan(ours, *s)) for name, (ours, sizes) in SCHEDULES.items() for s in sizes]
    with tempfile.TemporaryDirectory() as folder:
        for name, plan in plans:
            for dialect in DIALECTS:
                check_reads(name, plan, dialect, Path(folder))
    print(f"read from torch: {len(plans)} schedules in both formats")


if __name__ == "__main__":
    main()
