"""Runs a benchmark with tiny sizes, and checks that it succeeds and prints what it should. No time is asserted.

usage: check.py NAME BUILD SOURCE"""

import json
import os
import re
import subprocess
import sys
import tempfile

name, build, source = sys.argv[1:]

# A model that trains in milliseconds.
TINY = [word for field in ("model.blocks=2", "model.hidden=16", "model.heads=2", "model.sequence=8", "training.steps=4",
                           "profile.warm_up=1", "profile.least_repeats=2", "profile.most_repeats=3")
        for word in ("--set", field)]

PATIENT = 60  # seconds for work that takes a few on an idle machine


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def output_of(*words):
    """Returns what a program prints; messages pass through."""
    words = [str(word) for word in words]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, cwd=source, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PIPEWRIGHT_BUILD": build})
    print(done.stdout)
    expect(done.returncode == 0, f"{words[0]} ended with {done.returncode}")
    return done.stdout


def expect_lines(text, *patterns):
    """Checks the number of lines that match each pattern."""
    for pattern, count in patterns:
        found = len(re.findall(pattern, text, re.MULTILINE))
        expect(found == count, f"{found} lines of {pattern!r}, not {count}")


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def run():
    """Checks everything that ./dev bench runs."""
    if not os.access(f"{source}/.venv/bin/python", os.X_OK):
        skip("there is no .venv/bin/python, whose torch is compared with")
    text = output_of("bench/run.sh", "--quick")
    expect_lines(text, (r"^iteration, s +threads +processes +torch", 1), (r"^iteration over ideal", 1),
                 (r"^interleaved-zb 2 layers of 32, M=4, P=2( +\d+\.\d+ \(\d+\.\d+\.\.\d+\.\d+\)){3}", 2),
                 (r"^recording costs ", 1), (r"^(equal|fractions|log-normal|whole, .*?) +\d+\.\d\d ms", 5),
                 (r"^all of ours takes ", 1), (r"times as fast as torch's dry run", 1),
                 (r"^(native|trace|gzipped) ", 3))
    lines = json_lines(text)
    paced = [line for line in lines if "over_predicted" in line]
    expect(len(paced) >= 20, f"{len(paced)} paced schedules")
    for key, count in (("overhead_us_2_ranks", 1), ("generate_s", 2), ("iteration_million_actions_per_s", 3),
                       ("dry_run_s", 1), ("table_ms", 1)):
        found = sum(key in line for line in lines)
        expect(found == count, f"{found} lines with {key}, not {count}")
    if os.access(f"{build}/bin/pipewright_bench_planners", os.X_OK):
        expect_lines(text, (r", theirs .* times$", 19))
    if os.access(f"{build}/bin/pipewright_bench_gui", os.X_OK):
        expect(sum("frame_p99_ms" in line for line in lines) == 1, "the window's line")


def checkpoints():
    lines = json_lines(output_of(f"{build}/bin/pipewright_bench_checkpoints", "--blocks", 1, "--hidden", 32, "--steps", 2,
                                 "--rounds", 1, "--slow", 100))
    expect([line["checkpoints"] for line in lines] == ["local", "slow"], lines)
    for line in lines:
        expect(line["bytes"] > 0 and line["write_s"] >= line["pause_s"] > 0 and "cost_percent" in line, line)


def start():
    expect_lines(output_of("bench/build.sh", "--start", build), (r" +\d+\.\d ms, \d+ MB$", 7))


def schedules():
    names = output_of("bench/schedules.py").split()
    expect({"gpipe", "1f1b", "zbv"} <= set(names) and "inference" not in names and len(names) >= 20, names)


def accuracy():
    text = output_of("bench/accuracy.sh", 2, *TINY)
    expect_lines(text, (r"^ +[12]  gpipe ", 2), (r"^iteration error: median ", 1))


def memory():
    text = output_of("bench/memory.sh", 2, *TINY)
    expect_lines(text, (r"^\| `1f1b` \| .* \| [+-]\d+\.\d{3} % \|$", 2), (r"^The largest error is ", 1))


def larger():
    text = output_of("bench/larger.py", "--hidden", 64, "--blocks", 10, "--beyond", 400, "--over", 1)
    expect_lines(text, (r"^\| (profiled|profiled again|planned|trained, two checkpoints|resumed from step 3) \| \d+ \|", 5),
                 (r"^\| the same without a stop \| .* \| equal losses \|$", 1))


def links():
    with open(f"{source}/scenarios/gpt-text/scenario.json") as file:
        cluster = json.load(file)["cluster"]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:  # so that no links are measured first
        json.dump({"format": "pipewright/cluster/1", **cluster}, file)
        file.flush()
        text = output_of("bench/links.sh", "--rounds", 1, "--cluster", file.name, *TINY, "1f1b")
    expect_lines(text, (r"^\| `.*` \| \d+\.\d \| [+-]\d+\.\d % \|", 3), (r"of 3 within 5 %$", 1))


def network():
    if os.geteuid() != 0 or not all(map(has, ("ip", "tc"))):
        skip("network namespaces need root, ip and tc")
    text = output_of("bench/network.sh", "--steps", 4, "--mbit", "400", "--within", 3, *TINY, "gpipe")
    if not text:
        skip("no network namespaces for this user")
    expect_lines(text, (r"^\| 400 Mbit/s \| `gpipe`.* \|$", 2))


def has(program):
    return subprocess.run(["which", program], capture_output=True).returncode == 0


def kill():
    text = output_of("bench/kill.sh", "--kills", 3, "--within", PATIENT)
    expect_lines(text, (r"^3 kills in \d+ trainings, \d+ resumes, \d+ runs to their end: bits equal, nothing lost", 1),
                 (r"^from the kill to the end: ", 1))


def faults():
    text = output_of("bench/faults.sh", "--only", "stop,cable", "--within", PATIENT)
    expect_lines(text, (r"^rank 2 is stopped: ended after \d+\.\d s: rank 2 has not been heard of for 3 s$", 1),
                 (r"^rank 3 is stopped while the last checkpoint is written: ended after ", 1))
    if "a cut cable: skipped" not in text:
        expect_lines(text, (r"^the cable between two ranks is cut, .*: rank [01]: ended after ", 4))


def soak():
    text = output_of("bench/soak.sh", "--minutes", 0.05)
    expect_lines(text, (r"^(launcher|rank [0-3]): memory \d+\.\d, \d+\.\d, \d+\.\d MB; threads (\d+\.\d(, |; )){3}files ", 5),
                 (r"^too short to tell growth$", 1))


def validation():
    text = output_of("bench/validation.py", "--halves", 1, "--program", f"{build}/bin/pipewright")
    expect_lines(text, (r"^\| [^`|]*\| \d+ \| \d+\.\d\d \|", 15),
                 (r"^\| (Zero Bubble|…) .* \| (\d+) of \2 \| 6 of 6 \|$", 2))
    constants = re.findall(r"^\| `\w+` \|", text, re.MULTILINE)
    expect(len(constants) >= 20, f"{len(constants)} constants")


def draws():
    lines = json_lines(output_of(f"{build}/bin/pipewright_bench_draws", "--ranks", 4, "--microbatches", 4, "--replicas", 3,
                                 "--steps", 4, "--draws", 110, "--rounds", 1))
    expect(len(lines) == 1 and lines[0]["draws"] == 110 and lines[0]["p95_s"] > 0, lines)


def days():
    timeline = f"{source}/../shared/reference/traces/bytedance-straggler/timeline-ST.json.gz"
    if not os.path.exists(timeline):
        skip(f"{timeline} is not there")
    text = output_of("python3", "bench/days.py", timeline, "--draws", 100, "--random", 2)
    expect_lines(text, (r"^(even for odd|odd for even|first half .*|second half .*): p50 \d\.\d{4} s", 4),
                 (r"^2 random halves, .*: error \d+\.\d\d % in the median", 4))


def drift():
    text = output_of("python3", "bench/drift.py", "--draws", 4, "1f1b")
    expect_lines(text, (r"^\| 1f1b \| [24] \|( \d+\.\d \|){6}$", 2))


def calculon():
    if not os.environ.get("PIPEWRIGHT_CALCULON"):
        skip("PIPEWRIGHT_CALCULON names no checkout of github.com/calculon-ai/calculon")
    expect(len(json_lines(output_of("python3", "bench/calculon.py", "--rounds", 1))) == 1, "a line")


globals()[name]()
