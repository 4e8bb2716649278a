"""What pipewright writes, torch's own loader takes, in both dialects, and writes again unchanged.

torch lowers a compute-only file when it loads it: that must be our file with communication, cell by
cell. Every schedule that pipewright knows stands in one of the two lists below.
"""

import re
import tempfile
from pathlib import Path

from pipewright import DIALECTS, Plan, cells, run

# Ranks, microbatches and stages a rank.
SINGLE = [(2, 4, 1), (4, 3, 1), (8, 20, 1)]
LOOPED = [(2, 6, 3), (4, 8, 2), (4, 16, 4)]
V = [(2, 4, 2), (4, 8, 2), (8, 20, 2)]
TAKEN = {
    "gpipe": SINGLE,
    "1f1b": SINGLE,
    "interleaved-1f1b": LOOPED,
    "megatron-interleaved": LOOPED,
    "looped-bfs": LOOPED,
    "interleaved-zb": LOOPED,
    "zb-h1": SINGLE,
    "zb-h2": SINGLE,
    "zb-auto": SINGLE,
    "zbv": V,
    "dualpipev": V,
    "v-half": V,
    "v-min": V,
    "v-zb": V,
    "hanayo": [(2, 4, 4), (4, 8, 2)],
    "deepspeed-train": SINGLE,
    # Their optimizer steps between the backwards have no cell: torch trains them as 1F1B.
    "pipedream": SINGLE,
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


def names_in_help() -> set[str]:
    listed = re.search(r"name NAME\s+(.*)", run("schedule", "--help"))[1]
    return set(re.split(", | or ", listed))


def main() -> None:
    listed = TAKEN.keys() | {plan.name for plan, _, _ in REFUSED}
    assert listed == names_in_help(), f"in one place only: {listed ^ names_in_help()}"
    plans = [Plan(name, *size) for name, sizes in TAKEN.items() for size in sizes]
    with tempfile.TemporaryDirectory() as folder:
        for plan in plans:
            check_loads(plan, Path(folder))
        for refused in REFUSED:
            check_refused(*refused, Path(folder))
    print(f"loaded by torch: {len(plans)} schedules in both dialects; refused: {len(REFUSED)}")


if __name__ == "__main__":
    main()
