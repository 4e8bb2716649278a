"""Runs gpu-check on a machine with a fake GPU: with programs that answer as on a real one, that answer nonsense,
crash and hang, and with too little time."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


# Runs gpu-check with a fake GPU in the driver's answers.
STARTER = """
import runpy, sys
folder, *sys.argv[1:] = sys.argv[1:]
sys.path.insert(0, folder)
import cases, machine
cases.QUIET_SECONDS = machine.SMI_SECONDS = 4
machine.find_devices = lambda: ([{"name": "Made-up GPU", "memory_bytes": 80e9, "multiprocessors": 132,
                                  "compute_capability": "9.0", "driver_cuda": "13.0"}], "")
runpy.run_path(folder, run_name="__main__")
"""

PIPEWRIGHT = r"""#!/usr/bin/env python3
import json, os, subprocess, sys, time
words = sys.argv[1:]
sets = dict(w.split("=", 1) for w in words if "=" in w)
schedule = sets.get("pipeline.schedule", "1f1b")
def after(option):
    return words[words.index(option) + 1]
if os.environ.get("MADE_UP") == "slow":
    time.sleep(0.3)
if os.environ.get("MADE_UP") == "hangs" and words[0] == "profile":
    print("asking the GPU", file=sys.stderr, flush=True)
    time.sleep(1000)
if words == ["--version"]:
    print("0.0 made up")
elif words[0] == "run":
    if sets.get("pipeline.ranks") != "4" and "--own-multiprocessors" not in words and "cuda" in words \
            and sets.get("model.blocks") != "1":
        sys.exit("two ranks share this GPU")
    if "--out" in words:
        os.makedirs(after("--out"))
        for name in ("program.json", "costs.json", "actions.csv", "measured.trace.json", "predicted.trace.json"):
            open(after("--out") + "/" + name, "w").write("{}")
    both = {"iteration_s": 0.02, "peak_bytes": [1]}
    peaks = {"gpipe": [None], "zbv": None}.get(schedule, [0.5, None, -2.0])
    print(json.dumps({"schedule": schedule, "ranks": 2, "predicted": both, "measured": both,
                      "error_percent": {"iteration_s": 1.5, "peak_bytes": peaks},
                      "machine_drift_percent": 0, "verify": {"bit_identical": True}}))
elif words[0] == "profile" and "--links" in words:
    print(json.dumps({"links": [{"over": "NCCL", "fit": {"latency_s": 1e-5, "bandwidth_per_s": 1e11}}]}))
elif words[0] == "profile":
    if "--kernels" in words:
        open(after("--kernels"), "w").write("[]")
    if keep := os.environ.get("PIPEWRIGHT_KEEP_CUPTI"):
        os.mkdir(keep)
        open(keep + "/cupti.json", "w").write("{}")
        open(keep + "/1.buffer", "wb").write(os.urandom(1000))
        open(keep + "/2.buffer", "wb").write(os.urandom(2000000))
    print(json.dumps({"layers": [], "work": {"overhead": None, "lost": {}, "parts": []}}))
elif sets.get("training.steps") == "1000000":
    other = subprocess.Popen(["sleep", "1000"], env={**os.environ, "RANK": "1"})
    os.makedirs(after("--out"))
    open(after("--out") + "/steps.jsonl", "w").write("{}\n" * 5)
    code = other.wait()
    sys.exit(f"rank 1 was ended by signal {-code}")
elif sets.get("pipeline.communicators") == "rank":
    sys.stderr.write("rank 1 failed: NCCL says no\n"); sys.exit(1)
elif sets.get("training.zero") == "1":
    os.abort()
else:
    if "--kernels" in words:
        open(after("--kernels"), "w").write(json.dumps({"traceEvents": [1] if "--processes" in words else []}))
    if "--checkpoints" in words:
        folder = after("--checkpoints") + "/step_0000000" + sets["training.steps"]
        os.makedirs(folder)
        open(folder + "/layer.safetensors", "w").write("resumed" if "--resume" in words else "straight")
    print(json.dumps({"verify": {"bit_identical": schedule != "zb-h1"}}))
"""

# Answers for the [cuda] cases of a program: Catch2's options and its XML, written case by case.
TESTS = r"""#!/usr/bin/env python3
import os, sys, time
from xml.sax.saxutils import quoteattr
words = sys.argv[1:]
cases = ["good", 'one, with a comma and "quotes"', "skipped here", "wrong", "crashes", "hangs", "last"]
if sys.argv[0].endswith("profiler_tests"):
    if words[1] == "--list-test-names-only":
        sys.exit("Error(s) in input:\n  Unrecognized token: --list-test-names-only")
    cases = ["of version 3"]
if "-f" not in words:
    print("\n".join(cases)); sys.exit(len(cases) if "--list-test-names-only" in words else 0)
asked = [line.replace("\\", "") for line in open(words[words.index("-f") + 1]).read().splitlines()]
xml = open(words[words.index("-o") + 1], "w")
def say(text):
    xml.write(text + "\n"); xml.flush()
say('<?xml version="1.0"?>\n<Catch name="x">\n<Group name="x">')
for case in cases:
    if case not in asked:
        continue
    say(f"<TestCase name={quoteattr(case)} filename='/x/tests/a_test.cpp' line='3'>")
    if case == "skipped here":
        print('skipped: "skipped here": there is one GPU')
    if case == "crashes":
        os.abort()
    if case == "hangs":
        sys.stderr.write("hanging\n"); time.sleep(1000)
    if case == "wrong":
        say('<Expression success="false" type="CHECK" filename="/x/tests/exec/a_test.cpp" line="7">'
            '<Original>a == b</Original><Expanded>1 == 2</Expanded></Expression>'
            '<OverallResult success="false" durationInSeconds="0.5"/></TestCase>')
        break
    say('<OverallResult success="true" durationInSeconds="0.25"/></TestCase>')
say("</Group></Catch>")
"""

SMI = r"""#!/usr/bin/env python3
import sys, time
if sys.argv[1] == "-q":
    print("a long answer " * 300000)
elif sys.argv[1] == "topo":
    sys.stderr.write("a sick GPU\n"); time.sleep(1000)
else:
    print(", ".join(["0", "Made-up GPU"] + [str(n) for n in range(16)]))
"""

TORCH = """
import os
if os.environ["MADE_UP"] == "no torch":
    raise ImportError("half of it is missing")
"""

BENCH = '#!/usr/bin/env python3\nprint("no JSON")\n'


def made_up_bundle(folder):
    (folder / "bin").mkdir(parents=True)
    (folder / "bench").mkdir()
    programs = {"bin/pipewright": PIPEWRIGHT, "bin/pipewright_exec_tests": TESTS,
                "bin/pipewright_profiler_tests": TESTS, "bin/pipewright_bench_actions": BENCH,
                "bin/pipewright_bench_executor": '#!/bin/sh\necho \'{"iteration_s": 0.01, "over_ideal": 1.1}\'\n',
                "bench/torch_pipelining.py": 'print("words")\nprint(\'{"iteration_s": 0.02, "over_ideal": 1.2}\')\n',
                "bench/allocator_trace.py": "print('{\"entries\": []}')\n",
                "python/torch.py": TORCH, "path/nvidia-smi": SMI}
    for name, text in programs.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


class SyntheticData:
    """Starts gpu-check, and reads its results."""

    def __init__(self, gpu_check, torch_dir, folder):
        self.folder, self.torch_dir, self.gpu_check = folder, torch_dir, gpu_check
        self.bundle = made_up_bundle(folder / "made-up")

    def start(self, name, *options, mode=""):
        out = self.folder / f"report-{name}"
        environment = {**os.environ, "PATH": f"{self.bundle}/path:{os.environ['PATH']}", "MADE_UP": mode,
                       "PYTHONPATH": str(self.bundle / "python"), "NCCL_DEBUG": "WARN", "SLURM_JWT": "secret"}
        return out, subprocess.Popen(
            [sys.executable, "-B", "-c", STARTER, self.gpu_check, self.bundle, self.torch_dir, out, *options],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, name, *options, mode="", codes=(1,)):
        out, process = self.start(name, *options, mode=mode)
        said, _ = process.communicate(timeout=120)
        expect(process.returncode in codes, f"{name} ended with {process.returncode}: {said}")
        return read(out), (out / "report.md").read_text(), archive_of(out), said


def read(out):
    return json.loads((out / "report.json").read_text())


def archive_of(out):
    file = out / "gpu-report.tar.gz"
    expect(file.stat().st_size <= 15e6, f"{file.stat().st_size} bytes")
    with tarfile.open(file) as archive:
        return {member.name.split("/", 1)[1]: archive.extractfile(member).read()
                for member in archive.getmembers()}


def checks_of(report, part):
    [found] = [found for found in report["parts"] if found["name"] == part]
    return {check["name"]: check["status"] for check in found["checks"]}, found


def everything_that_may_happen(machine):
    report, page, archive, said = machine.run("all", "--within", "300")
    checks, tests = checks_of(report, "tests")
    expect(checks == {"good": "passed", 'one, with a comma and "quotes"': "passed",
                      "skipped here": "skipped", "wrong": "failed", "crashes": "failed",
                      "hangs": "failed", "last": "passed", "of version 3": "passed"}, checks)
    told = {check["name"]: check for check in tests["checks"]}
    expect(told["wrong"]["reason"] == "exec/a_test.cpp:7: 1 == 2", told)
    expect("has made no progress" in told["hangs"]["reason"] and "hanging" in told["hangs"]["log_tail"], told)
    expect("threads (process, name" in told["hangs"]["log_tail"], told)
    expect("ended" in told["crashes"]["reason"] and told["good"]["seconds"] == 0.25, told)
    expect(told["skipped here"]["reason"] == "there is one GPU", told)

    checks, machine_part = checks_of(report, "machine")
    expect(checks == {"this machine": "passed", "clocks": "passed", "nvidia-smi -q": "passed",
                      "nvidia-smi topo -m": "failed"}, checks)
    figures = machine_part["figures"]
    expect(figures["clocks"][0]["clocks.sm"] == "3" and figures["environment"]["NCCL_DEBUG"] == "WARN"
           and figures["environment"]["SLURM_JWT"] == "(not told)" and figures["kernel"], figures)

    checks, nccl = checks_of(report, "nccl")
    expect([name for name, status in checks.items() if status == "failed"]
           == ["communicators rank, gpipe", "ZeRO-1 and clipping: shards, gathers, norms, losses"]
           and len(checks) == 7, checks)
    told = {check["name"]: check["reason"] for check in nccl["checks"]}
    expect(told["communicators rank, gpipe"] == "pipewright ended with 1: rank 1 failed: NCCL says no", told)
    expect("SIGABRT" in told["ZeRO-1 and clipping: shards, gathers, norms, losses"], told)

    # A part that raises while it reads an answer: the exception is reported, with its trace in the
    # log.
    checks, profile = checks_of(report, "profile")
    expect(checks == {"profile": "failed"} and profile["reason"].startswith("KeyError"), profile)
    expect("Traceback" in profile["checks"][0]["log_tail"], profile)

    checks, prediction = checks_of(report, "prediction")
    expect(len(checks) == 6 and set(checks.values()) == {"passed"}, prediction)
    runs = {run["schedule"]: run for run in prediction["figures"]["runs"]}
    expect(prediction["figures"]["mean_abs_error_percent"] == 1.5, prediction)
    expect(runs["gpipe"]["peak_error_percent"] is None and runs["zbv"]["peak_error_percent"] is None
           and runs["1f1b"]["peak_error_percent"] == -2.0, runs)
    expect("| 1f1b, 2 ranks on 1, own multiprocessors | 20.000 ms |" in page, page)

    checks, _ = checks_of(report, "verify")
    expect([name for name, status in checks.items() if status == "failed"] == ["zb-h1"], checks)
    checks, abort = checks_of(report, "abort")
    expect(checks == {"abort": "passed"} and abort["figures"]["seconds"] < 30, abort)
    checks, resume = checks_of(report, "resume")
    expect("differs from the file of an uninterrupted" in resume["reason"], resume)
    checks, _ = checks_of(report, "kernels")
    expect(checks == {"threads": "failed", "processes": "passed"}, checks)
    checks, benches = checks_of(report, "benches")
    expect(checks.pop("actions") == "failed" and len(checks) == 4
           and set(checks.values()) == {"passed"}, benches)
    expect("| torch, deterministic | 20.00 ms |" in page and "| pipewright, exact | 10.00 ms |" in page, page)
    for part in ("cpu", "shared", "graphs", "alexnet", "links"):
        checks, found = checks_of(report, part)
        expect(found["status"] == "passed", found)

    # Checks are counted separately, and the archive contains all of them.
    every = [check["status"] for part in report["parts"] for check in part["checks"]]
    expect(report["counts"]["checks"] == {"passed": every.count("passed"), "failed": every.count("failed"),
                                          "skipped": every.count("skipped"), "left_out": 0}, report["counts"])
    expect(sum(report["counts"]["parts"].values()) == len(report["parts"]) == 16, report["counts"])
    expect(f"{every.count('failed')} failed" in said, said)
    expect("### tests: crashes" in page and "### verify: zb-h1" in page, page)
    expect(archive["report.md"].decode() == page and json.loads(archive["report.json"]) == report, "archive")
    expect(len(archive["logs/nvidia-smi-q.txt"]) < 2_100_000, "a log is cut to size")
    expect({"golden/README.md", "golden/cupti-profile/1.buffer", "golden/events/actions.csv", "kernels.json",
            "logs/tests.log"} <= set(archive), sorted(archive))
    golden = sum(len(data) for name, data in archive.items() if name.startswith("golden/"))
    expect(golden < 1_010_000, f"{golden} bytes of golden data")
    expect("golden/cupti-profile/2.buffer" not in archive, sorted(archive))
    expect("cupti-profile/2.buffer | left out: too large" in page, page)


def without_torch_in_python(machine):
    """Checks LibTorch without Python: there is no torch to compare with, and no failure."""
    report, _, _, _ = machine.run("alone", "--only", "benches", mode="no torch")
    checks, benches = checks_of(report, "benches")
    expect(checks == {"actions": "failed", "pipewright, exact": "passed", "torch, deterministic": "skipped",
                      "pipewright, default kernels": "passed", "torch, default": "skipped"}, checks)
    told = {check["name"]: check["reason"] for check in benches["checks"]}
    expect("torch cannot be imported here" in told["torch, default"]
           and "half of it is missing" in told["torch, default"], told)


def too_little_time(machine):
    """Checks that every part does what it can, and lists what it left out."""
    started = time.monotonic()
    report, page, _, _ = machine.run("short", "--within", "9", "--only", "verify,nccl,prediction", mode="slow",
                                     codes=(0, 1))  # depends on which checks there is time for
    expect(time.monotonic() - started < 60, "it keeps to its time")
    left_out = [name for part in report["parts"] for name in part["left_out"]]
    expect(left_out and report["counts"]["checks"]["left_out"] == len(left_out), report["counts"])
    expect("left out, for there was no time: " in page, page)
    for part in report["parts"]:
        expect(part["checks"], f"{part['name']} tried nothing")


def hangs(machine):
    """Checks a program that hangs until the part's time is up; the other parts continue."""
    report, _, _, _ = machine.run("hangs", "--within", "12", "--only", "profile,links,graphs", mode="hangs")
    _, profile = checks_of(report, "profile")
    expect("took longer than the" in profile["reason"], profile)
    expect("asking the GPU" in profile["checks"][0]["log_tail"], profile)
    checks, _ = checks_of(report, "graphs")
    expect(set(checks.values()) == {"passed"}, checks)


def somebody_interrupts(machine):
    """Checks that an interrupted run keeps its results."""
    out, process = machine.start("interrupted", "--only", "cpu,profile,graphs", mode="hangs")
    log = out / "logs/profile.log"
    while not (log.exists() and "asking the GPU" in log.read_text()):
        expect(process.poll() is None, "it ended by itself")
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    expect(process.returncode == 130, said)
    report = read(out)
    expect([part["status"] for part in report["parts"]] == ["passed", "failed"], report)
    expect(report["interrupted"] and "It was interrupted" in (out / "report.md").read_text(), report)
    expect("logs/profile.log" in archive_of(out), "archive")


def the_archive_has_a_limit(gpu_check, folder):
    sys.path.insert(0, str(gpu_check))
    import report

    out = folder / "large"
    out.mkdir()
    (out / "report.md").write_text("short")
    for name in ("kernels.json", "kernels-of-threads.json"):
        (out / name).write_bytes(os.urandom(9_000_000))
    _, left_out = report.pack(out)
    archive = archive_of(out)
    expect(left_out == ["kernels.json"] and set(archive) == {"report.md", "kernels-of-threads.json", "left-out.txt"},
           (left_out, sorted(archive)))


def wrong_options(machine):
    for options, says in ((["--only", "tests,tennis"], "there is no part tennis; there are machine, cpu"),
                          (["--within", "0"], "--within: 0 seconds are too few: at least 1")):
        _, process = machine.start("wrong", *options)
        said, _ = process.communicate(timeout=60)
        expect(process.returncode == 2 and says in said, said)


def check(gpu_check, torch_dir, folder):
    machine = SyntheticData(gpu_check, torch_dir, folder)
    everything_that_may_happen(machine)
    without_torch_in_python(machine)
    too_little_time(machine)
    hangs(machine)
    somebody_interrupts(machine)
    wrong_options(machine)
    the_archive_has_a_limit(gpu_check, folder)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        check(Path(sys.argv[1]), Path(sys.argv[2]), Path(name))
