"""Runs the programs of a part: within its time, with all output in a log, one check after the other, so
that a check that fails, crashes or hangs does not end the others."""

import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

TAIL_BYTES = 4000  # of the log, with a failure


class Skipped(Exception):
    """Something that the check needs is missing; the text says what."""


class Failed(Exception):
    """The reason of a failure, in a line."""


class TimeIsUp(Failed):
    """A program was ended because its part's time was over."""


class Check:
    """The state that all parts share: paths, the current part and its results."""

    def __init__(self, bundle, torch_dir, out, devices=(), why_no_gpu="", small=False):
        self.bundle, self.torch_dir, self.out = bundle, torch_dir, out
        self.devices, self.why_no_gpu = list(devices), why_no_gpu
        self.small, self.date = small, datetime.date.today().isoformat()
        # The libraries of gpu-check's caller, for programs outside the bundle.
        self.own_libraries = {"LD_LIBRARY_PATH": os.environ.get("PIPEWRIGHT_LIBRARY_PATH_BEFORE", "")}
        (out / "logs").mkdir(parents=True, exist_ok=True)
        self.begin("", 0)

    def begin(self, part, seconds):
        self.part, self.deadline = part, time.monotonic() + seconds
        self.checks, self.left_out = [], []

    @property
    def log(self):
        return self.out / "logs" / f"{self.part}.log"

    def left(self):
        return max(self.deadline - time.monotonic(), 0.1)

    def need_gpu(self, least=1):
        if not self.devices:
            raise Skipped("no GPU: " + self.why_no_gpu)
        if len(self.devices) < least:
            raise Skipped(f"{least} GPUs are needed, and there is {len(self.devices)}")

    # ---- checks ----------------------------------------------------------------------------------

    def each(self, names, work):
        """Runs `work(name)` for each name as a separate check. Names for which no time is left are
        skipped. Returns the results of those that passed, by name."""
        done, longest, tried = {}, 0.0, False
        for name in names:
            started, had = time.monotonic(), self.left()
            if tried and had < 1.2 * longest:
                self.left_out.append(name)
                continue
            value, status = self.one(name, work, name, may_hang=not tried or had > 3 * longest)
            if status == "passed":
                done[name] = value
            longest, tried = max(longest, time.monotonic() - started), True
        return done

    def one(self, name, work, *arguments, may_hang=True):
        """Returns the result of the work, and its status. With `may_hang` false, running out of time
        says nothing about the work, so it counts as left out and not as failed."""
        started, begin = time.monotonic(), self.log_bytes()
        try:
            value = work(*arguments)
        except TimeIsUp as late:
            if not may_hang:
                self.left_out.append(name)
                return None, "left out"
            return None, self.note(name, "failed", str(late), started, begin)
        except Skipped as skipped:
            return None, self.note(name, "skipped", str(skipped), started, begin)
        except Failed as failed:
            return None, self.note(name, "failed", str(failed), started, begin)
        except Exception as error:  # any exception: the other checks continue
            self.say(traceback.format_exc())
            return None, self.note(name, "failed", f"{type(error).__name__}: {error}", started, begin)
        return value, self.note(name, "passed", "", started, begin)

    def note(self, name, status, reason, started=None, log_begin=None):
        """Counts a check. One that failed keeps the end of its log."""
        seconds = 0.0 if started is None else round(time.monotonic() - started, 2)
        result = {"name": name, "status": status, "reason": reason, "seconds": seconds}
        if status == "failed":
            result["log_tail"] = self.log_tail(log_begin)
        self.checks.append(result)
        return status

    # ---- the log ---------------------------------------------------------------------------------

    def log_bytes(self):
        return self.log.stat().st_size if self.log.exists() else 0

    def log_tail(self, begin=None):
        if not self.log.exists():
            return ""
        with open(self.log, "rb") as log:
            log.seek(max(begin or 0, self.log_bytes() - TAIL_BYTES))
            return log.read().decode(errors="replace").strip()

    def say(self, text):
        with open(self.log, "ab") as log:
            log.write(text.encode() + b"\n")

    # ---- programs --------------------------------------------------------------------------------

    def program(self, name):
        return self.bundle / "bin" / name

    def start(self, words, output, env=None):
        """Starts a program in its own session, with its output in a file and the rest in the log."""
        self.say("$ " + " ".join(map(str, words)))
        with open(self.log, "ab") as log:
            return subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL,
                                    stdout=output, stderr=log, env={**os.environ, **(env or {})},
                                    start_new_session=True)

    def run(self, words, env=None, good=(0,), seconds=None, watched=None, quiet_s=None):
        """Returns what the program prints, if it succeeds within the part's time or `seconds`. A program
        that adds nothing to the file `watched` for `quiet_s` hangs."""
        begin = self.log_bytes()
        with tempfile.TemporaryFile() as output:
            process = self.start(words, output, env)
            try:
                self.wait(process, seconds, watched, quiet_s)
            finally:  # also on an interrupt
                end(process)
                messages = lines_of(self.log_tail(begin))[1:]
                output.seek(0)
                said = output.read().decode(errors="replace")
                self.say(said)
        if good is not None and process.returncode not in good:
            last = (messages or lines_of(said) or ["without a word"])[-1]
            raise Failed(f"{Path(words[0]).name} ended with {in_words(process.returncode)}: {last}")
        return said

    def wait(self, process, seconds=None, watched=None, quiet_s=None):
        """Blocks until the process ends. Throws when its time is up, after logging its threads."""
        name = Path(process.args[0]).name
        had = min(self.left(), seconds or self.left())
        deadline, quiet_since, size = time.monotonic() + had, time.monotonic(), -1
        while process.poll() is None:
            now = time.monotonic()
            if watched and watched.exists() and watched.stat().st_size != size:
                size, quiet_since = watched.stat().st_size, now
            if quiet_s and now - quiet_since > quiet_s:
                self.say(threads_of(process))
                raise Failed(f"{name} has made no progress for {quiet_s:.0f} s")
            if now > deadline:
                self.say(threads_of(process))
                raise TimeIsUp(f"{name} took longer than the available {had:.0f} s")
            time.sleep(0.02)

    def pipewright(self, command, *options, scenario="gpt-text", sets=None, env=None):
        """Returns the JSON document that a command prints."""
        return json.loads(self.run(self.words(command, *options, scenario=scenario, sets=sets), env))

    def torch_script(self, name, *words):
        """Returns the output of a script of the bundle that needs torch's own Python."""
        try:
            self.run([sys.executable, "-W", "ignore", "-c", "import torch"], env=self.own_libraries)
        except TimeIsUp:
            raise
        except Failed as failed:
            raise Skipped(f"torch cannot be imported here: {failed}") from None
        return self.run([sys.executable, "-W", "ignore", self.bundle / "bench" / name, *words],
                        env=self.own_libraries)

    def words(self, command, *options, scenario="gpt-text", sets=None):
        words = [self.program("pipewright"), command,
                 self.bundle / "scenarios" / scenario / "scenario.json", *options, "--json"]
        for field, value in (sets or {}).items():
            words += ["--set", f"{field}={value}"]
        return words

    def folder(self):
        """Returns a new folder for the files of a run."""
        number = sum(1 for _ in self.out.glob("runs/*"))
        return self.out / "runs" / f"{self.part}-{number}"


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def in_words(code):
    if code >= 0:
        return str(code)
    try:
        return f"{signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def end(process):
    """Ends a process with all processes that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def processes_of(session):
    """Returns the process ids of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:  # the name, in parentheses, may contain anything
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            found.append(int(folder.name))
    return sorted(found)


def threads_of(process):
    """Returns what the threads of a hanging program are doing, as far as the kernel reports it."""
    lines = ["threads (process, name, state, waits in):"]
    for number in processes_of(process.pid):
        for task in sorted(Path(f"/proc/{number}/task").glob("*")):
            try:
                name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
                lines.append(f"{number} {name} {rest.split()[0]} {(task / 'wchan').read_text()}")
            except OSError:
                continue
    return "\n".join(lines)
