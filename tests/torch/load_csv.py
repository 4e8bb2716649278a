"""Checks that torch's loader reads the files that pipewright writes, in both formats, and writes them unchanged.

torch lowers a compute-only file when it loads it. The result must equal pipewright's file with
communication, cell by cell. All schedules that pipewright lists are tested.
"""

import re
import tempfile
from pathlib import Path

from pipewright import DIALECTS, Plan, cells, run

# Ranks, microbatches and stages per rank.
SINGLE = [(2, 4, 1), (4, 3, 1), (8, 20, 1)]
LOOPED = [(2, 6, 3), (4, 8, 2), (4, 16, 4)]
V = [(2, 4, 2), (4, 8, 2), (8, 20, 2)]
# Schedules with other stages than one per rank, or two in a V.
SIZES = {
    "interleaved-1f1b": LOOPED,
    "megatron-interleaved": LOOPED,
    "group-interleaved-1f1b": LOOPED,
    "looped-bfs": LOOPED,
    "interleaved-zb": LOOPED,
    "hanayo": [(2, 4, 4), (4, 8, 2)],
    # torch has no cells for optimizer steps between backwards, so it trains this as 1F1B.
    "pipedream-2bw": [(2, 4, 1), (8, 24, 1)],
}

# Schedules that torch rejects, with its messages: a stage has one rank in torch, its validator
# requires every backward, and it has no cell for recomputation.
REFUSED = [
    (Plan("dualpipe", 2, 4), (), "Stage 0 is assigned to both rank"),
    (Plan("chimera", 2, 4), (), "Stage 0 is assigned to both rank"),
    (Plan("data-parallel", 2, 4), (), "Stage 0 is assigned to both rank"),
    (Plan("inference", 2, 4), (), "expected 4 total backwards"),
    (Plan("deepspeed-inference", 2, 4), (), "expected 4 total backwards"),
    (Plan("1f1b", 2, 4), ("--recompute",), "Invalid action string: 0R"),
]


def check_loads(plan: Plan, folder: Path) -> None:
    ours = {dialect: plan.write(folder, option) for dialect, option in DIALECTS.items()}
    again = folder / "again.csv"
    for dialect, file in ours.items():
        runtime = plan.runtime()
        runtime._load_csv(str(file), dialect)  # validates too
        for written in DIALECTS if dialect == "compute_only" else ["compute_comms"]:
            runtime._dump_csv(str(again), written)
            same = cells(again) == cells(ours[written])
            assert same, f"{plan}: loaded as {dialect} and dumped as {written}, it differs"


def check_refused(plan: Plan, options: tuple[str, ...], reason: str, folder: Path) -> None:
    file = plan.write(folder, *options)
    try:
        plan.runtime()._load_csv(str(file))
    except (AssertionError, RuntimeError) as error:
        assert reason in str(error), f"{plan}: rejected, but with {error}"
    else:
        raise AssertionError(f"{plan}: torch accepts it now; move it to the others")


def sizes_by_name() -> dict[str, list]:
    """Returns the sizes of all schedules, by the stages per rank that the table lists."""
    rows = re.findall(r"^\| `([\w-]+)` \| (\d) \|", run("schedule", "--list"), re.MULTILINE)
    assert len(rows) > 20, rows
    return {name: SIZES.get(name, V if chunks == "2" else SINGLE) for name, chunks in rows}


def main() -> None:
    refused_always = {plan.name for plan, options, _ in REFUSED if not options}
    plans = [
        Plan(name, *size)
        for name, sizes in sizes_by_name().items()
        if name not in refused_always
        for size in sizes
    ]
    with tempfile.TemporaryDirectory() as folder:
        for plan in plans:
            check_loads(plan, Path(folder))
        for refused in REFUSED:
            check_refused(*refused, Path(folder))
    print(f"loaded by torch: {len(plans)} schedules in both formats; rejected: {len(REFUSED)}")


if __name__ == "__main__":
    main()
