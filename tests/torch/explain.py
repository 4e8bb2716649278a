"""Trains pipelines with each of torch's schedules in several processes, with torch's profiler on, and
checks what pipewright explains of the traces: the schedule's name is right, the iteration time matches
the processes' own clocks, busy time and idle time by cause add up to it, and the slow stage is found.

    explain.py PIPEWRIGHT [SCHEDULE]
"""

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pipewright import PROGRAM, run  # first, because it skips the test if torch is missing
from trace_pipeline import NAP, Job, trace

NAMES = {
    "ScheduleGPipe": "gpipe",
    "Schedule1F1B": "1f1b",
    "ScheduleInterleaved1F1B": "interleaved-1f1b",
    "ScheduleLoopedBFS": "looped-bfs",
    "ScheduleInterleavedZeroBubble": "interleaved-zb",
    "ScheduleZBVZeroBubble": "zbv",
    "ScheduleDualPipeV": "dualpipev",
}
SINGLE = ("ScheduleGPipe", "Schedule1F1B")
FOUND_BY = {"ScheduleGPipe": "microbatch ranges", "Schedule1F1B": "operators"}
MOST_OFF = 0.06  # share of the iteration before its first action and after its last


def explain(files: list[Path], *options: str) -> dict:
    return json.loads(run("explain", *map(str, files), "--json", *options))


def refusal(*words: object) -> str:
    done = subprocess.run([PROGRAM, "explain", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 2, f"exit code {done.returncode}: {done.stderr}"
    return done.stderr


def check(job: Job, folder: Path) -> None:
    place = folder / (job.schedule if job.ranks == 2 else f"{job.schedule}-{job.ranks}")
    files = trace(job, place)
    truth = json.loads((place / "truth.json").read_text())
    for step, number in enumerate((2, 3)):
        own = explain(files, "--step", str(number))
        name = NAMES[job.schedule]
        assert own["schedule"] == name, f"{job}: recognized as {own['schedule']}: {own}"
        assert own["found_by"] == FOUND_BY.get(job.schedule, "ranges")
        assert own["microbatches"] == job.microbatches
        assert own["slowest_stage"] == job.slow_stage, f"{job}: {own['stages']}"
        wanted = max(times[step] for times in truth["step_s"])
        found = own["iteration_s"]
        assert abs(found - wanted) < MOST_OFF * wanted + 2e-3, f"{job}: {found} s, not {wanted} s"
        for rank in own["ranks"]:
            total = rank["busy_s"] + sum(rank["idle_s"].values())
            assert abs(total - found) < 1e-9, f"{job}: {rank} make {total} s, not {found} s"
            assert rank["busy_s"] > 0, f"{job}: {rank}"
        assert own["alternatives"] == sorted(own["alternatives"], key=lambda a: a["iteration_s"])
    assert own["alternatives"][0]["iteration_s"] < own["simulated_s"], own["alternatives"][:3]
    print(f"{name}, {job.ranks} ranks: {1e3 * found:.1f} ms, {1e3 * wanted:.1f} ms by the processes' own clocks")


def check_stacks(folder: Path) -> None:
    """Checks that the actions of 1F1B are found by Python functions if the trace has stacks."""
    job = Job("Schedule1F1B", 2, 4, width=128, rows=64, slow_stage=1, stacks=True)
    files = trace(job, folder / "stacks")
    own = explain(files)
    assert own["found_by"] == "functions" and own["schedule"] == "1f1b", own
    wanted = max(t[1] for t in json.loads((folder / "stacks/truth.json").read_text())["step_s"])
    assert abs(own["iteration_s"] - wanted) < MOST_OFF * wanted + 2e-3, (own["iteration_s"], wanted)


def check_replicas(folder: Path, schedule: str) -> None:
    """Checks that the slower of two data-parallel replicas is named; the device mesh gives the coordinates of ranks."""
    job = Job(schedule, 2, 4, replicas=2, width=128, rows=64, slow_stage=1, slow_replica=1)
    files = trace(job, folder / f"{schedule}-replicas")
    timeline = folder / "job.pwt"
    own = explain(files, "--timeline", str(timeline))
    assert [p["axes"] for p in own["pipelines"]] == [{"data": 0}, {"data": 1}], own["pipelines"]
    assert [p["ranks"] for p in own["pipelines"]] == [[0, 2], [1, 3]], own["pipelines"]
    assert own["slowest"] == 1 and own["slowest_stage"] == 1, own["pipelines"]
    assert own["schedule"] == NAMES[schedule] and own["iteration_s"] > 4 * NAP, own
    quick, slow = own["pipelines"]
    assert quick["actions_s"] < 4 * NAP < slow["actions_s"], own["pipelines"]
    wanted = max(t[1] for t in json.loads((files[0].parent / "truth.json").read_text())["step_s"])
    for pipeline in own["pipelines"]:  # the replicas wait for each other's gradients
        found = pipeline["iteration_s"]
        assert abs(found - wanted) < MOST_OFF * wanted + 2e-3, f"{pipeline}: not {wanted} s"
    assert explain(files, "--axes", "pipe=2,data=2")["pipelines"] == own["pipelines"]
    assert "would be a pipeline" in refusal(*files, "--axes", "data=2,pipe=2")
    run("convert", str(timeline), str(folder / "job.json"))
    run("compare", str(timeline), str(folder / "job.json"))


def check_files(folder: Path) -> None:
    """Checks that other commands accept the written files and give the same figures."""
    files = sorted((folder / "Schedule1F1B").glob("rank*.json.gz"))
    out = folder / "out"
    own = explain(files, "-o", str(out), "--timeline", str(out) + ".svg")
    costs = ["--costs", str(out / "costs.json")]
    simulated = json.loads(run("simulate", str(out / "scenario.json"), *costs, "--json"))
    assert abs(simulated["iteration_s"] - own["simulated_s"]) < 1e-9 * own["simulated_s"], simulated
    change = next(a for a in own["alternatives"] if "partition=[" in a["change"])
    words = [word for field in change["change"].split() for word in ("--set", field)]
    changed = json.loads(run("simulate", str(out / "scenario.json"), *costs, *words, "--json"))
    assert abs(changed["iteration_s"] - change["iteration_s"]) < 1e-9, (changed, change)
    run("sweep", str(out / "scenario.json"), *costs, "--set", "pipeline.schedule=1f1b,zb-h1")
    run("schedule", "--check", str(out / "schedule.csv"))
    run("compare", str(out / "timeline.pwt"), str(out / "timeline.json"))
    assert "<svg" in Path(str(out) + ".svg").read_text()


def check_refusals(folder: Path) -> None:
    files = sorted((folder / "Schedule1F1B").glob("rank*.json.gz"))
    other = sorted((folder / "ScheduleGPipe").glob("rank*.json.gz"))
    assert "both are of rank 0" in refusal(files[0], files[0])
    assert "it is not the last stage" in refusal(files[0])
    assert "of different runs" in refusal(files[0], other[1])
    cut = folder / "cut.json"
    text = gzip.open(files[1]).read()
    cut.write_bytes(text[: len(text) // 2])
    assert "the file is cut off" in refusal(files[0], cut, "--step", "3")
    assert "no pipeline in it" in refusal(empty_trace(folder))


def empty_trace(folder: Path) -> Path:
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        torch.ones(3, 3) @ torch.ones(3, 3)
    file = folder / "no-pipeline.json"
    profiler.export_chrome_trace(str(file))
    return file


def main() -> None:
    schedules = sys.argv[2:] or list(NAMES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for schedule in schedules:
            chunks = 1 if schedule in SINGLE else 2
            check(Job(schedule, 2, 4, chunks, width=128, rows=64, slow_stage=1), folder)
        if not sys.argv[2:]:
            check(Job("Schedule1F1B", 4, 8, width=128, rows=64, slow_stage=2), folder)
            check_stacks(folder)
            check_replicas(folder, "Schedule1F1B")
            check_replicas(folder, "ScheduleGPipe")
            check_files(folder)
            check_refusals(folder)


if __name__ == "__main__":
    main()
