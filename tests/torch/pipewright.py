"""Helpers for the tests with torch: the program under test, and torch; without torch the tests are skipped."""

import csv
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

SKIPPED = 77  # the exit code that tests/CMakeLists.txt declares to ctest

try:
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
except ImportError as missing:
    print(f"skipped: {sys.executable} has no torch.distributed.pipelining ({missing})")
    sys.exit(SKIPPED)

PROGRAM = sys.argv[1]
DIALECTS = {"compute_only": "--csv", "compute_comms": "--torch"}  # torch's name: pipewright's option

Cells = list[list[str]]


class Plan(NamedTuple):
    """The name and the sizes of a schedule."""

    name: str
    ranks: int
    microbatches: int
    chunks: int = 1

    @property
    def stages(self) -> int:
        return self.ranks * self.chunks

    def write(self, folder: Path, *options: str) -> Path:
        """Writes this schedule into a file with pipewright."""
        file = folder / ("-".join(map(str, self)) + "".join(options) + ".csv")
        sizes = f"--ranks {self.ranks} --microbatches {self.microbatches} --chunks {self.chunks}"
        file.write_text(run("schedule", self.name, *sizes.split(), *options))
        return file

    def runtime(self) -> _PipelineScheduleRuntime:
        """Returns torch's runtime with a stage that has only indices, which suffices to load and lower."""
        stage = SimpleNamespace(group_rank=0, group_size=self.ranks, num_stages=self.stages)
        return _PipelineScheduleRuntime([stage], self.microbatches)


def run(*words: str) -> str:
    """Runs pipewright, which must succeed, and returns its output."""
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    line = " ".join([PROGRAM, *words])
    assert done.returncode == 0, f"{line}: exit code {done.returncode}\n{done.stderr}"
    return done.stdout


def cells(file: Path) -> Cells:
    """Returns the cells of a file, without the idle cells that torch writes."""
    with open(file, newline="") as lines:
        return [[cell for cell in row if cell] for row in csv.reader(lines)]
