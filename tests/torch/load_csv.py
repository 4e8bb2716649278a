"""What pipewright writes, torch's own loader takes, in both dialects, and writes again unchanged.

torch lowers a compute-only file when it loads it: that must be our file with communication, cell by
cell. All schedules that pipewright lists are tried.
"""

import re
import tempfile
from pathlib import Path

from pipewright import DIALECTS, Plan, cells, run

# Ranks, microbatches and stages per rank.
SINGLE = [(2, 4, 1), (4, 3, 1), (8, 20, 1)]
LOOPED = [(2, 6, 3), (4, 8, 2), (4, 16, 4)]
V = [(2, 4, 2), (4, 8, 2), (8, 20, 2)]
# Where it is not one stage per rank, or two in a V.
SIZES = {
    "interleaved-1f1b": LOOPED,
    "megatron-interleaved": LOOPED,
    "group-interleaved-1f1b": LOOPED,
    "looped-bfs": LOOPED,
    "interleaved-zb": LOOPED,
    "hanayo": [(2, 4, 4), (4, 8, 2)],
    # The optimizer steps between its backwards have no cell: torch trains it as 1F1B.
    "pipedream-2bw": [(2, 4, 1), (8, 24, 1)],
}

# What torch cannot take, with its own words: a stage has one rank there, its validator asks for
# every backward, and there is no cell for recomputation.
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
            assert same, f"{plan}: loaded as {dialect} and dumped as {written}, it is another"


def check_refused(plan: Plan, options: tuple[str, ...], reason: str, folder: Path) -> None:
    file = plan.write(folder, *options)
    try:
        plan.runtime()._load_csv(str(file))
    except (AssertionError, RuntimeError) as error:
        assert reason in str(error), f"{plan}: refused, but with {error}"
    else:
        raise AssertionError(f"{plan}: torch takes it now; move it to the others")


def sizes_by_name() -> dict[str, list]:
    """All schedules, by the stages per rank that the table shows them with."""
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
    print(f"loaded by torch: {len(plans)} schedules in both dialects; refused: {len(REFUSED)}")


if __name__ == "__main__":
    main()
