"""Runs the commands of pages, in order and as pasted, in a copy of the checkout. Run as:

    commands.py BUILD PROJECT [PAGE…]        PAGE is a path in the project, such as docs/planning.md (default: all)

A command is a line of a fenced block that begins with "$ ", with the lines that continue it after a backslash. Each
page has its own copy of the checkout's files, so it cannot use what another page wrote, and BUILD is `build` there.
Only the number of training steps is smaller in the copy's scenarios.

- Each command must exit with 0, or with the number that the page shows after it: "$ echo $?", and below it "2".
- Lines shown below a command must appear in its output, in this order, with equal numbers. Words and spaces may
  differ, and "…" stands for anything. MEASURED lists the commands whose numbers differ from run to run.
- NOT_RUN lists the commands that cannot run here, with the reason. Every command listed must be on its page.
- OWN_FILES are stand-ins for files that the reader of a page brings."""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # the exit code that tests/CMakeLists.txt declares to ctest
TIMEOUT = 300  # seconds for one command
TRAINING_STEPS = 4  # of the copy's scenarios

WINDOW = "opens the window"
BUILDS = "installs packages and compiles for minutes"
NETWORK = "downloads from a package index"
GPU = "needs a GPU"

NOT_RUN = {
    "docs/explain.md": {
        "needs the traces of four ranks; the test torch/explain records and explains such traces": [
            "pipewright explain rank*.json.gz",
        ],
        "needs Nsight Systems and a GPU": [
            "nsys profile -t cuda,nvtx -o rank%q{RANK} torchrun …",
            "nsys export --type sqlite rank0.nsys-rep",
            "pipewright explain rank0.sqlite rank1.sqlite",
        ],
    },
    "docs/from-python.md": {
        "compiles for minutes; the test python/wheel installs a wheel and runs this page": [
            "pip install .",
            "torchrun --standalone --nproc-per-node 2 train.py",
        ],
    },
    "docs/gpu.md": {
        "packs 29 MB and checks a machine for minutes; the test bundle does both": [
            "./dev bundle pipewright.tar.gz       # on a machine that builds: 29 MB",
            "tar -xf pipewright.tar.gz            # on the machine with the GPU",
            "./pipewright-bundle/gpu-check        # at most eight minutes; or --within SECONDS",
        ],
        GPU: [
            "pipewright profile scenarios/gpt-text/scenario.json --device cuda --kernels kernels.json -o costs.json",
            "pipewright train scenarios/gpt-text/scenario.json --device cuda --kernels step.pwt",
            "pipewright train scenarios/gpt-text/scenario.json --device cuda --set training.cuda_graphs=true",
        ],
    },
    "docs/gui.md": {
        BUILDS: ["./dev gui                       # installs Qt 6, builds the window, opens the example"],
        WINDOW: ["./dev gui runs/gpt-text-…       # what `./dev demo` or `pipewright run` left"],
    },
    "docs/megatron-memory.md": {
        "needs the full reference data; models/megatron_words_test reads this table": [
            "pipewright calibrate scenarios/clusters/h100-sxm.json --predict megatron_golden_visible.csv --json",
        ],
    },
    "docs/stragglers.md": {
        "needs the full reference data": ['PIPEWRIGHT_REFERENCE_DIR=… pipewright_trace_tests "what only one half*"'],
    },
    "docs/your-model.md": {
        NETWORK: ["pip install tokenizers"],
        "needs the package tokenizers; the test tokenize_text runs this script": [
            'python3 scenarios/tokenize_text.py $PWD/FOLDER text.txt --split "" -o tokens',
            'python3 scenarios/tokenize_text.py FOLDER text.txt --split "" --evaluation 50 -o tokens',
        ],
        "needs files that the Python code above the command writes; the test torch/imported runs these": [
            "pipewright import model.pt2 -o llama",
            "pipewright train llama/scenario.json --data samples.safetensors --verify",
            "pipewright train llama/scenario.json --data samples.safetensors --checkpoints ckpt",
            "pipewright save llama/scenario.json --checkpoints ckpt -o tuned",
        ],
        "needs a program that the reader compiles; tests/install/check.cmake compiles and runs it": [
            "./trainer profile waves.json -o costs.json",
            "./trainer partition --costs costs.json --parts 2",
            "./trainer simulate waves.json --costs costs.json --svg predicted.svg",
            "./trainer run waves.json --verify",
            "./trainer train waves.json --processes --checkpoints saved",
        ],
    },
}

# Commands of a page whose output has measured times, or depends on them.
MEASURED = {
    "README.md": [
        "pipewright train scenarios/gpt-text/scenario.json --set training.steps=3 --checkpoints ckpt --checkpoint-every 3",
        "pipewright train scenarios/gpt-text/scenario.json --set training.steps=6 --set pipeline.ranks=4 --set pipeline.schedule=zb-h1 --processes --checkpoints ckpt --resume --verify",
    ],
    "docs/architecture.md": ["pipewright compare walk/predicted.trace.json walk/measured.trace.json"],
    "docs/launch.md": [
        "pipewright train scenarios/gpt-text/scenario.json --processes --checkpoints ckpt --checkpoint-every 10 --supervise",
        "head -4 log-1",
    ],
    "docs/planning.md": [
        "pipewright train llama/scenario.json --costs llama/costs.json --data tokens.bin --set training.steps=4 --verify",
        "pipewright plan scenarios/gpt-text/scenario.json --costs costs.json --set pipeline.ranks=4 --top 3",
    ],
}

OWN_FILES = {
    "docs/your-model.md": {"FOLDER": "scenarios/llama-tiny", "tokens.bin": "scenarios/llama-tiny/tokens.bin"},
}

# Not every machine has these programs. A command with a program that is missing is not run.
OPTIONAL_PROGRAMS = ["column", "iconv", "openssl", "pipewright-gui", "torchrun"]

EXIT_CODE = "echo $?"
MEASURED_LINE = re.compile(r"^\d+ candidates in ")  # in outputs that are otherwise the same in each run
ASSIGNMENT = re.compile(r'(?:export )?\w+=(?:"[^"]*"|\$\([^)]*\)|\S*)')
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclasses.dataclass
class Command:
    """A command of a page, with the lines shown below it."""

    line: int
    text: str
    shown: list[str] = dataclasses.field(default_factory=list)
    exit_code: int = 0

    def is_listed_in(self, texts):
        return self.text in texts


def commands_of(text):
    """Returns the commands of a page."""
    commands, fenced, continues = [], False, False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip() if not continues else line
        if line.startswith("```"):
            fenced, continues = not fenced, False
            in_output = False
        elif not fenced:
            continue
        elif continues:
            commands[-1].text += "\n" + line
            continues = line.endswith("\\")
        elif line.startswith("$ "):
            commands.append(Command(number, line[2:]))
            continues, in_output = line.endswith("\\"), True
        elif in_output:
            commands[-1].shown.append(line)

    # "$ echo $?" belongs to the command before it, because each command has its own shell.
    for command, following in zip(commands, commands[1:]):
        if following.text == EXIT_CODE:
            command.exit_code = int(following.shown[0])
    return [command for command in commands if command.text != EXIT_CODE]


def is_equal(shown, printed):
    """Returns true if two numbers are equal, rounded to the decimals of the one that has fewer."""
    decimals = min(len(number.partition(".")[2]) for number in (shown, printed))
    tolerance = 0 if "e" in shown + printed else 0.501 * 10.0**-decimals if "." in shown + printed else 0
    return abs(float(shown) - float(printed)) <= tolerance


def shows(shown, printed):
    """Returns true if a line of a page shows a printed line: with equal numbers, or with those before and after "…"."""
    parts = [NUMBER.findall(part) for part in (shown.partition("…")[0], shown.rpartition("…")[2])]
    numbers = NUMBER.findall(printed)
    if "…" not in shown:
        return len(parts[1]) == len(numbers) and all(map(is_equal, parts[1], numbers))
    first, last = parts
    return (len(first) + len(last) <= len(numbers) and all(map(is_equal, first, numbers)) and
            all(map(is_equal, reversed(last), reversed(numbers))))


def missing_line(shown, printed):
    """Returns the first shown line that is not among the printed lines after those before it, or None."""
    rest = iter(printed.splitlines())
    for line in shown:
        if NUMBER.search(line) and not MEASURED_LINE.match(line) and not any(shows(line, other) for other in rest):
            return line
    return None


def files_of(project):
    """Returns the paths of the checkout's files: those that git knows or would add, or all but build folders."""
    listed = subprocess.run(["git", "-C", project, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True)
    if listed.returncode == 0:
        paths = [pathlib.Path(os.fsdecode(path)) for path in listed.stdout.split(b"\0") if path]
        return [path for path in paths if (project / path).is_file()]
    ignored = re.compile(r"build.*|\.git|\.venv|\.cache|runs|dist|__pycache__")
    paths = []
    for folder, folders, names in os.walk(project):
        folders[:] = [name for name in folders if not ignored.fullmatch(name)]
        paths += [pathlib.Path(folder, name).relative_to(project) for name in names]
    return paths


def copy_checkout(project, build, page, copy):
    for path in files_of(project):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(project / path, copy / path)
    (copy / "build").symlink_to(build)
    for scenario in (copy / "scenarios").glob("*/scenario.json"):
        scenario.write_text(re.sub(r'"steps": \d+', f'"steps": {TRAINING_STEPS}', scenario.read_text()))
    for name, source in OWN_FILES.get(page, {}).items():
        source = copy / source
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, copy / name)


def missing_program(text, path):
    for program in OPTIONAL_PROGRAMS:
        if re.search(rf"(?<![\w./-]){program}(?![\w./-])", text) and not shutil.which(program, path=path):
            return program
    return None


def fault_of(command, page, done):
    """Returns what is wrong with a command that has run, or None."""
    if done.returncode != command.exit_code:
        return f"exit code {done.returncode}, not {command.exit_code}"
    if command.is_listed_in(MEASURED.get(page, [])):
        return None
    line = missing_line(command.shown, done.stdout)
    return line and f"the page shows a line whose numbers are not printed:\n{line}"


def run_page(page, project, build, reasons):
    """Runs a page's commands. Returns the faults, the number of commands run, and those not run with their reasons."""
    faults, count, left_out, assignments = [], 0, [], []
    with tempfile.TemporaryDirectory(prefix="pages-", ignore_cleanup_errors=True) as folder:
        copy = pathlib.Path(folder) / "checkout"
        copy_checkout(project, build, page, copy)
        path = os.pathsep.join([str(build / "bin"), os.environ["PATH"], str(project / ".venv/bin")])
        environment = {**os.environ, "PATH": path, "QT_QPA_PLATFORM": "offscreen", "LC_ALL": "C.UTF-8"}
        for command in commands_of((project / page).read_text()):
            program = missing_program(command.text, path)
            reason = reasons.get(command.text) or (program and f"{program} is not installed")
            if reason:
                left_out.append((command.text, reason))
                continue
            print(f"{page}:{command.line}: $ {command.text}", flush=True)
            started = time.monotonic()
            try:
                done = subprocess.run(["bash", "-c", "\n".join([*assignments, command.text])], cwd=copy, text=True,
                                      errors="replace", env=environment, timeout=TIMEOUT, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                fault, printed = fault_of(command, page, done), done.stdout
            except subprocess.TimeoutExpired as late:
                fault, printed = f"still running after {TIMEOUT} s", os.fsdecode(late.stdout or b"")
            print(f"    {time.monotonic() - started:.1f} s", flush=True)
            count += 1
            if fault:
                faults.append(f"{page}:{command.line}: $ {command.text}: {fault}")
                print(f"{printed}\nFAILED: {faults[-1]}", flush=True)
            elif ASSIGNMENT.fullmatch(command.text):
                assignments.append(command.text)
    return faults, count, left_out


def check_tables(project):
    """Returns the entries of the tables above that are on no page."""
    faults = []
    tables = [(page, text) for page, reasons in NOT_RUN.items() for texts in reasons.values() for text in texts]
    tables += [(page, text) for page, texts in MEASURED.items() for text in texts]
    for page, text in tables:
        file = project / page
        if not file.exists() or not any(command.text == text for command in commands_of(file.read_text())):
            faults.append(f"tests/pages/commands.py lists a command that is not in {page}: {text}")
    return faults


def main():
    build, project = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    for program in ("pipewright", "pipewright-torch"):
        if not (build / "bin" / program).exists():
            print(f"skipped: there is no {build / 'bin' / program}")
            sys.exit(SKIPPED)
    pages = sys.argv[3:] or ["README.md", *(f"docs/{file.name}" for file in sorted((project / "docs").glob("*.md")))]
    faults, count, left_out = check_tables(project), 0, []
    for page in pages:
        reasons = {text: reason for reason, texts in NOT_RUN.get(page, {}).items() for text in texts}
        found, run, others = run_page(page, project, build, reasons)
        faults, count, left_out = faults + found, count + run, left_out + others

    for text, reason in left_out:
        print(f"not run, {reason}: $ {text}")
    print(f"{count} commands run, {len(left_out)} not run, {len(faults)} faults")
    for fault in faults:
        print(f"FAILED: {fault}")
    sys.exit(1 if faults else 0 if count else SKIPPED)


if __name__ == "__main__":
    main()
