"""Shared code of kill.sh, faults.sh and soak.sh, which disturb trainings: starts trainings, observes their processes
and the machine, and reads their checkpoints."""

import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM, SCENARIO = os.environ["PIPEWRIGHT"], "scenarios/gpt-text/scenario.json"
WITHIN = 5.0  # seconds, from the fault to the end of the last process
TINY = ["model.blocks=4", "model.hidden=32", "model.heads=2", "model.sequence=16", "training.microbatch_size=2",
        "pipeline.microbatches=4", "training.clip_norm=0.5", "profile.least_repeats=2", "profile.most_repeats=2"]


def words(command, settings, *more):
    return [PROGRAM, command, SCENARIO, *(word for each in TINY + settings for word in ("--set", each)), *map(str, more)]


def profiled(settings, file):
    """Measures costs that all trainings of a script share."""
    done = subprocess.run(words("profile", settings, "--over", "0", "-o", file), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: profile ended with {done.returncode}\n{done.stderr}")
    return file


# Checkpoints

def whole_steps(folder):
    """Returns the complete checkpoints by step number. An unfinished one has another name."""
    names = [path.name for path in folder.glob("step_*") if path.name.count(".") == 0]
    return {int(name.split("_")[1]): folder / name for name in names}


def unfinished(folder):
    return {path.name for path in folder.glob("step_*.tmp")}


def weights(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.safetensors"))}


# Processes

def children_of(process):
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def text_of(*path):
    try:
        return Path("/proc", *map(str, path)).read_text().strip()
    except OSError:
        return "?"


def core_seconds_of(processes):
    """Returns the core-seconds that these processes have used so far."""
    ticks = 0
    for process in processes:
        fields = text_of(process, "stat").rpartition(") ")[2].split()
        ticks += sum(map(int, fields[11:13])) if len(fields) > 13 else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def what_they_do(processes, stacks=False):
    """Returns what each thread waits for, in the kernel and, with `stacks`, in the program."""
    lines = []
    for process in processes:
        lines.append(f"process {process}: {text_of(process, 'cmdline')[:40].replace(chr(0), ' ')}")
        try:
            threads = sorted(os.listdir(f"/proc/{process}/task"), key=int)
        except OSError:
            lines.append("  has ended")
            continue
        for thread in threads:
            at = (process, "task", thread)
            state = text_of(*at, "stat").rpartition(") ")[2][:1]
            lines.append(f"  {text_of(*at, 'comm')} {state} {text_of(*at, 'wchan')} {text_of(*at, 'syscall')[:40]}")
        if stacks and shutil.which("gdb"):
            try:
                lines.append(subprocess.run(["gdb", "-p", str(process), "-batch", "-ex", "thread apply all bt 16"],
                                            capture_output=True, text=True, timeout=60).stdout)
            except subprocess.TimeoutExpired:
                lines.append("  gdb did not finish")
    return "\n".join(lines)


class Machine:
    """The use of the machine since construction, and the part that other programs had."""

    def __init__(self, own=()):
        self.time, self.own = time.monotonic(), list(own)
        self.own_before = core_seconds_of(self.own)
        self.reaped = self.of_reaped()
        self.busy, self.stolen = self.counters()

    @staticmethod
    def of_reaped():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    @staticmethod
    def counters():
        fields = [int(field) / os.sysconf("SC_CLK_TCK") for field in text_of("stat").splitlines()[0].split()[1:9]]
        return sum(fields) - fields[3] - fields[4], fields[7]  # without idle time and disk waits

    def others(self):
        """Returns the share of the cores that other programs and other machines used, and a description. Call it after
        waiting for the processes in `own`."""
        seconds = time.monotonic() - self.time
        busy, stolen = self.counters()
        own = self.of_reaped() - self.reaped - self.own_before
        others = max(0, busy - self.busy - own)
        cores = os.cpu_count()
        share = others / (cores * max(seconds, 0.01))
        return share, (f"of {seconds:.1f} s on {cores} cores the training used {own:.1f} s, others {others:.1f} s, "
                       f"of which {stolen - self.stolen:.1f} s stolen; load {text_of('loadavg')}, "
                       f"waiting for the disk: {text_of('pressure/io').splitlines()[0]}")


class Launch:
    """A running program whose output goes to a file. It ends with this script, however that ends."""

    def __init__(self, command, log, environment=None, **more):
        self.log = open(log, "w+")
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.log, preexec_fn=end_with_parent,
                                        env={**os.environ, **(environment or {})}, **more)
        self.pid = self.process.pid

    def ranks(self):
        """Returns the ranks' processes. The launcher is one of them until it has become the program that starts ranks.
        """
        return children_of(self.pid)

    def is_running(self):
        return self.process.poll() is None

    def said(self):
        return Path(self.log.name).read_text(errors="replace")

    def until(self, condition, seconds=120):
        """Returns false if the program ends before the condition is true. Fails if neither happens."""
        end = time.monotonic() + seconds
        while self.is_running():
            if condition():
                return True
            if time.monotonic() > end:
                raise Failure(f"no progress for {seconds} s\n{self.said()}\n{self.where()}")
            time.sleep(0.002)
        return condition()

    def where(self):
        return what_they_do([self.pid, *self.ranks()], stacks=True)

    def rest(self, seconds):
        end = time.monotonic() + seconds
        while self.is_running() and time.monotonic() < end:
            time.sleep(0.001)

    def ended(self, within):
        """Returns its exit code; None if it is still running."""
        try:
            return self.process.wait(timeout=max(0, within))
        except subprocess.TimeoutExpired:
            return None

    def end(self):
        for process in [*self.ranks(), self.pid]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Failure(Exception):
    """An expectation that did not hold, with the output of the program."""


def expect(holds, what, *said):
    if not holds:
        raise Failure("\n".join([what, *said]))


class Work:
    """A folder for a script, which is kept if something fails."""

    def __init__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.folder = Path(tempfile.mkdtemp(prefix="pipewright-"))
        self.launches = []

    def __enter__(self):
        return self

    def launch(self, command, **more):
        self.launches = [each for each in self.launches if each.is_running()]
        self.launches.append(Launch(command, more.pop("log", self.folder / "log"), **more))
        return self.launches[-1]

    def __exit__(self, kind, error, trace):
        for launch in self.launches:
            if launch.is_running():
                launch.end()
        if kind is None or kind is SystemExit:
            shutil.rmtree(self.folder, ignore_errors=True)
            return False
        print(f"FAILED: {error or kind.__name__}\n{self.folder} is kept", flush=True)
        if kind is Failure:
            sys.exit(1)
        return False


def reports_in(said):
    """Returns what ranks, and not their launcher, have named as the cause of the job's end: a rank's number, or
    "store"."""
    gone = "cannot be reached|has not been heard of|is gone|has left the job|has ended early"
    return [rank or "store" for rank in re.findall(rf"^(?:rank (\d+)|the job's store at \S+) (?:{gone})", said, re.MULTILINE)]


def report_line(said):
    """Returns the first report, up to the text that says who and what."""
    lines = [line for line in said.splitlines() if reports_in(line)]
    return lines[0].split("; ")[0] if lines else "no report"
