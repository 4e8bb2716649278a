"""Gives every numeric option of every command numbers at the edges. Run as:

    check.py PIPEWRIGHT [COMMAND…]

The options come from the program's own help, so new ones are tried as well. With each number a command must end
within seconds and a few GB of memory: with 0 and an answer of finite numbers, with 2 and a message, or with 1 and an
answer such as "no plan fits". A signal, an exhausted memory or a number that is not finite is an error.

BASES has valid command lines of each command, in which the option is replaced. With one of them it must also accept a
usual number, so that the edges are not refused for another reason alone."""

import concurrent.futures
import itertools
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EDGES = ["0", "-1", str(2**31 - 1), str(2**63 - 1)]
FLOAT_EDGES = ["1e308", "inf", "nan"]
USUAL = ["0.5", "4", "2", "1"]
ENDLESS = {"profile --over", "profile --within"}  # the seconds of a measurement
USUAL_OF = {"explain --steps": "23"}  # a step of the trace
MEMORY = 4_000_000 * 1024  # bytes of addresses
SECONDS = 60  # on a busy machine
UNHANDLED = re.compile(r"std::|vector|basic_string|allocate|Traceback")  # exceptions that no command expects
NUMBERS = itertools.count()
NOT_FINITE = re.compile(r"(?<![\w.])-?(nan|inf|infinity)(?![\w])", re.IGNORECASE)

GPT = "scenarios/gpt-text/scenario.json"
CARD = ["scenarios/shared-card/scenario.json", "--costs", "scenarios/shared-card/costs.json"]
MODEL = ["--model", "llama3-8b", "--cluster", "scenarios/clusters/h100-sxm.json", "--gpus", "8", "--batch", "8",
         "--sequence", "2048", "--tensor", "1", "--schedule", "1f1b", "--microbatch", "1"]
# Short trainings, for the commands that train.
SMALL = [GPT] + [part for field in
                 ["model.blocks=2", "model.hidden=32", "model.heads=2", "model.sequence=16", "training.steps=2",
                  "training.microbatch_size=1", "pipeline.microbatches=2", "profile.least_repeats=2",
                  "profile.most_repeats=2"] for part in ("--set", field)]

BASES = {
    "run": [SMALL + ["-o", "{new}"]],
    "profile": [SMALL + ["--over", "0", "-o", "{new}"], SMALL + ["--links", "-o", "{new}"]],
    "partition": [
        ["--parts", "2", "--weights", "3", "1", "2", "1"],
        ["--parts", "2", "--layers", "8", "--input-weight", "1", "--output-weight", "1"],
        ["--objective", "makespan", "--parts", "2", "--microbatches", "4", "--costs", CARD[2]],
        ["--parts", "2", "--weights", "3", "1", "2", "1", "--memory", "1", "1", "1", "1", "--memory-cap", "3"],
        ["--profile", "tests/data/planners/pipedream-alexnet.csv", "--machines", "2", "--bandwidth", "1e9"],
    ],
    "schedule": [
        ["1f1b", "--ranks", "2", "--microbatches", "4"],
        ["megatron-interleaved", "--ranks", "2", "--microbatches", "4", "--chunks", "2", "--group-size", "2"],
        ["zb-auto", "--ranks", "2", "--microbatches", "4", "--costs", "10,12,8,1", "--memory-units", "2"],
        ["data-parallel", "--microbatches", "4", "--copies", "2"],
    ],
    "topology": [["--axes", "pipe,data", "--dims", "2,4"], ["--ranks", "24", "--rank", "1"]],
    "simulate": [CARD + ["--draws", "4", "--jitter", "{out}/steps.csv"]],
    "sweep": [CARD + ["--set", "pipeline.schedule=gpipe,1f1b"]],
    "train": [SMALL + ["--checkpoints", "{new}", "--checkpoint-every", "auto", "--failure-hours", "1"],
              SMALL + ["--checkpoints", "{new}", "--processes", "--supervise", "--spares", "1"]],
    "save": [],
    "generate": [SMALL + ["--tokens", "5,11,2", "--new-tokens", "4", "--temperature", "0.5"]],
    "compare": [],
    "convert": [],
    "explain": [["scenarios/traces/rank0.json.gz", "scenarios/traces/rank1.json.gz"],
                ["scenarios/traces/timeline-ST.json.gz", "--draws", "4"]],
    "calibrate": [["scenarios/clusters/a100-80gb.json", "--runs", "{out}/runs.csv"]],
    "model": [["tests/data/models/mixtral-8x7b.json"],
              ["--init", "llama3-8b", "-o", "{out}/folder"]],
    "plan": [MODEL, MODEL + ["--failure-hours", "1000", "--write-rate", "10"],
             MODEL + ["--at", "p95", "--jitter", "{out}/steps.csv"],
             CARD, CARD + ["--replan", "--lost", "1"]],
    "export": [],
    "import": [["{out}/exported.pt2", "--layers", "2", "-o", "{new}"]],
    "completion": [],
    "manual": [],
}


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(program, arguments, out, seconds=SECONDS):
    # Few threads and arenas, so that the limit of addresses does not depend on the number of cores.
    environment = dict(os.environ, XDG_CACHE_HOME=str(out / "cache"), MALLOC_ARENA_MAX="2", OMP_NUM_THREADS="2")
    new = out / f"new{next(NUMBERS)}"  # a path that no other command has used
    arguments = [argument.replace("{out}", str(out)).replace("{new}", str(new)) for argument in arguments]
    try:
        done = subprocess.run([program, *arguments], cwd=ROOT, env=environment, preexec_fn=limited, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "timeout", "", ""
    return done.returncode, done.stdout, done.stderr


def commands_of(program, out):
    listed = run(program, ["--help"], out)[1].split("Subcommands:")[1]
    return re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)


def options_of(program, command, out):
    """Returns the options that take numbers, which refuse a word as no number; true: only whole numbers."""
    text = run(program, [command, "--help"], out)[1]
    no_number = re.compile("Could not convert|a number .* is needed")
    found = {}
    for name in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", text, re.MULTILINE):
        if no_number.search(run(program, [command, name, "word"], out)[2]):
            found[name] = "Could not convert" in run(program, [command, name, "1.5"], out)[2]
    return found


def with_option(base, name, value):
    """Returns the base with the option's value replaced; of a list, its first value."""
    arguments, own, is_own = [], [], False
    for argument in base:
        if re.match("--?[a-z]", argument):
            is_own = argument == name
        if not is_own:
            arguments.append(argument)
        elif argument != name:
            own += argument.split(",")
    return arguments + [f"{name}={','.join([value] + own[1:])}"]


def fault_of(code, out, err):
    if code == "timeout":
        return f"did not end within {SECONDS} s"
    if code not in (0, 1, 2) or UNHANDLED.search(err):
        return f"ended with {code}: {err.strip()[-300:]}"
    if code > 0 and not (err + out).strip():
        return f"ended with {code} without a message"
    if code == 0 and NOT_FINITE.search(out):
        return f"answered with {NOT_FINITE.search(out).group(0)}"
    return ""


def check(program, command, name, is_whole, out):
    faults, accepted, last = [], False, ""
    for base in BASES[command]:
        for value in [USUAL_OF[own]] if (own := f"{command} {name}") in USUAL_OF else USUAL[is_whole:]:
            if not accepted:
                code, _, last = run(program, [command, *with_option(base, name, value)], out)
                accepted = code == 0
        for value in EDGES + ([] if is_whole else FLOAT_EDGES):
            arguments = [command, *with_option(base, name, value)]
            started = time.monotonic()
            is_endless = f"{command} {name}" in ENDLESS
            answer = run(program, arguments, out, 5 if is_endless else SECONDS)
            if answer[0] == "timeout" and is_endless:
                continue
            if fault := fault_of(*answer):
                faults.append(f"pipewright {' '.join(arguments)}\n    {fault}")
            if os.environ.get("VERBOSE"):
                print(f"{time.monotonic() - started:6.2f} s {' '.join(arguments)}", flush=True)
    if not accepted:
        faults.append(f"{command} {name}: no command line of BASES accepts it ({last.strip()[-200:]})")
    return faults


def write_inputs(out):
    exported = ROOT / "tests/data/exported"
    with zipfile.ZipFile(out / "exported.pt2", "w") as archive:
        archive.write(exported / "model.json", "m/models/model.json")
        archive.write(exported / "model_weights_config.json", "m/data/weights/model_weights_config.json")
        archive.writestr("m/extra/pipewright.json", '{"targets": 1}')
        for weight in range(20):
            archive.writestr(f"m/data/weights/weight_{weight}", bytes(128))
    (out / "steps.csv").write_text("step,replica,rank,action,seconds\n0,0,0,0F0,3\n1,0,0,0F0,4\n")
    (out / "runs.csv").write_text("id,gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms\n"
                                  "a,8,8,1,1,8,2,24,2048,16,1024,400\n"
                                  "b,8,4,1,2,8,2,24,2048,16,1024,250\n"
                                  "c,8,1,8,1,32,2,24,2048,16,1024,310\n"
                                  "d,8,2,4,1,32,4,24,2048,16,1024,330\n")


def main():
    program, asked = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        out = pathlib.Path(folder)
        write_inputs(out)
        commands = commands_of(program, out)
        faults = [f"BASES has no entry for {command}" for command in commands if command not in BASES]
        tried = []
        for command in asked or commands:
            for name, is_whole in options_of(program, command, out).items():
                tried.append(pool.submit(check, program, command, name, is_whole, out))
        for one in tried:
            faults += one.result()
        print(f"{len(tried)} options, {len(faults)} faults")
        print("\n".join(faults))
        return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
