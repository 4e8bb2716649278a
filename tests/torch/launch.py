"""torchrun of the wheel starts pipewright as 2 and 4 processes, and what they train is bit-identical
to training without a pipeline."""

import subprocess
import sys
import tempfile
from pathlib import Path

from pipewright import PROGRAM, run  # first: it skips where torch is missing

SCENARIO = Path(__file__).parents[2] / "scenarios/gpt-text/scenario.json"
SMALL = [
    "model.blocks=4",
    "model.hidden=32",
    "model.heads=2",
    "model.sequence=16",
    "training.steps=3",
    "training.microbatch_size=2",
    "pipeline.microbatches=4",
    "profile.least_repeats=2",
    "profile.most_repeats=2",
]


def settings(*more: str) -> list[str]:
    return [word for assignment in [*SMALL, *more] for word in ("--set", assignment)]


def launch(processes: int, *words: str) -> subprocess.CompletedProcess[str]:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python"]
    return subprocess.run(
        [*torchrun, f"--nproc-per-node={processes}", PROGRAM, *words],
        capture_output=True,
        text=True,
        timeout=200,
    )


with tempfile.TemporaryDirectory() as folder:
    costs = str(Path(folder) / "costs.json")
    run("profile", str(SCENARIO), *settings(), "--over", "0", "-o", costs)
    for processes, plan in [
        (2, ["pipeline.ranks=2"]),
        (2, ["pipeline.ranks=2", "pipeline.schedule=zbv"]),
        (4, ["pipeline.ranks=4", "pipeline.schedule=zb-h1"]),
        (4, ["pipeline.ranks=2", "pipeline.replicas=2"]),
    ]:
        done = launch(
            processes, "train", str(SCENARIO), *settings(*plan), "--costs", costs, "--verify"
        )
        assert done.returncode == 0, f"{plan}: exit code {done.returncode}\n{done.stderr}"
        assert "3 of 3 losses and 54 of 54 parameter tensors" in done.stdout, done.stdout
        print(f"{processes} processes by torchrun, {', '.join(plan)}: bit-identical")

    # A rank that disagrees is named. Each process reads its own environment.
    done = launch(2, "train", str(SCENARIO), *settings("pipeline.ranks=3"), "--costs", costs)
    assert done.returncode != 0
    assert "has started 2 processes, but the scenario has 3 ranks" in done.stderr, done.stderr
