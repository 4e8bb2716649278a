"""Starts pipewright with torchrun as 2 and 4 processes, and checks that training is bit-identical to
training without a pipeline; also with a secret, after a restart by torchrun, and when processes
join during the training."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pipewright import PROGRAM, run  # first, because it skips the test if torch is missing

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


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python"]
SECRET = {**os.environ, "PIPEWRIGHT_JOB_SECRET": "known to all ranks of this job"}


def launch(
    processes: int, *words: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TORCHRUN, f"--nproc-per-node={processes}", PROGRAM, *words],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
    )


def weights_in(folder: Path, step: int = 200) -> dict[str, bytes]:
    saved = folder / f"step_{step:08}"
    return {file.name: file.read_bytes() for file in saved.glob("*.safetensors")}


def newest_step(folder: Path) -> int:
    """Returns the step of the newest complete checkpoint; the names of incomplete ones have a suffix."""
    names = [path.name for path in folder.glob("step_*") if "." not in path.name]
    return max((int(name.removeprefix("step_")) for name in names), default=0)


def until(holds, *agents: subprocess.Popen) -> bool:
    end = time.monotonic() + 200
    while not holds() and time.monotonic() < end and all(agent.poll() is None for agent in agents):
        time.sleep(0.05)
    return holds()


def train_while_agents_come(folder: Path, *words: str) -> str:
    """Trains with one agent of two processes, and later with a second one. Returns their output."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    agent = [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nnodes=1:2"]
    agent += ["--nproc-per-node=2", "--max-restarts=3", "--monitor-interval=0.1"]
    agent += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=spares"]
    agent += ["--rdzv-conf=last_call_timeout=1", "--local-addr=127.0.0.1"]
    with open(folder.with_suffix(".log"), "w+") as log:

        # With a store that agents share, an agent that joins later waits for keys that are never written.
        environment = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        environment["PIPEWRIGHT_LOG"] = "job"

        def start() -> subprocess.Popen:
            return subprocess.Popen(
                [*agent, PROGRAM, *words], stdout=log, stderr=log, env=environment
            )

        def said() -> str:
            return folder.with_suffix(".log").read_text()

        agents = [start()]
        assert until(lambda: newest_step(folder) > 0, *agents), said()
        agents.append(start())
        assert until(lambda: "joins 4 ranks" in said(), *agents), said()
        then = newest_step(folder)
        assert until(lambda: newest_step(folder) > then, *agents), said()
        for process in agents:
            process.terminate()
        for process in agents:
            process.wait(timeout=200)
        return said()


def launch_and_kill_one(folder: Path, *words: str) -> str:
    """Kills a rank once there is a checkpoint, so that torchrun restarts all ranks. Returns their output."""
    with open(folder.with_suffix(".log"), "w+") as log:
        job = subprocess.Popen(
            [*TORCHRUN, "--nproc-per-node=2", "--max-restarts=1", PROGRAM, *words],
            stdout=log,
            stderr=log,
            env=SECRET,
        )
        while not (folder / "step_00000020").exists() and job.poll() is None:
            time.sleep(0.01)
        children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
        assert job.wait(timeout=200) == 0
        log.seek(0)
        return log.read()


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

    done = launch(
        2, "train", str(SCENARIO), *settings(), "--costs", costs, "--verify", environment=SECRET
    )
    assert done.returncode == 0, done.stderr
    assert "3 of 3 losses and 54 of 54 parameter tensors" in done.stdout, done.stdout
    print("2 processes by torchrun that share a secret: bit-identical")

    words = ["train", str(SCENARIO), *settings("training.steps=200"), "--costs", costs]
    words += ["--checkpoint-every", "20", "--checkpoints"]
    undisturbed, killed = Path(folder) / "undisturbed", Path(folder) / "killed"
    run(*words, str(undisturbed))
    said = launch_and_kill_one(killed, *words, str(killed), "--supervise")
    assert "resumed from" in said, said
    assert weights_in(killed) == weights_in(undisturbed) != {}
    print("a rank is killed and torchrun restarts all ranks: bit-identical")

    grown = Path(folder) / "grown"
    words = ["train", str(SCENARIO), "--costs", costs, "--checkpoint-every", "20"]
    four = ["pipeline.ranks=4", "training.clip_norm=0.5"]
    forever = [*words, *settings(*four, "training.steps=1000000"), "--checkpoints", str(grown)]
    said = train_while_agents_come(grown, *forever, "--supervise", "--replan")
    assert "joins 2 ranks" in said, said
    last = newest_step(grown)
    alone = Path(folder) / "alone"
    run(*words, *settings(*four, f"training.steps={last}"), "--checkpoints", str(alone))
    assert weights_in(grown, last) == weights_in(alone, last) != {}
    print("a second torchrun agent joins and two ranks become four: bit-identical")

    # A mismatch of ranks is reported. Each process reads its own environment.
    done = launch(2, "train", str(SCENARIO), *settings("pipeline.ranks=3"), "--costs", costs)
    assert done.returncode != 0
    assert "has started 2 processes, but the scenario has 3 ranks" in done.stderr, done.stderr
