"""Makes two processes of torch hang, and checks that pipewright explains why from the dumps of torch's
FlightRecorder. The backend is Gloo, for which the recorder stores only collectives.

    hang.py PIPEWRIGHT [--keep FOLDER]
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

WORLD = 2


def train(rank: int, fault: str, is_last: threading.Event) -> None:
    """Runs an all-reduce that all ranks join, and one that rank 1 does not reach."""
    import torch
    import torch.distributed as dist

    numbers = torch.ones(4)
    dist.all_reduce(numbers)
    is_last.set()
    if rank == 0:
        dist.all_reduce(numbers)
    elif fault == "collective":
        dist.broadcast(numbers, src=0)
    else:
        time.sleep(600)


def work(rank: int, fault: str, folder: Path) -> None:
    """Runs a process of the job: trains in a thread, and writes its dump as torch's watchdog would."""
    import torch.distributed as dist
    from torch._C._distributed_c10d import _dump_fr_trace

    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=WORLD)
    is_last = threading.Event()
    threading.Thread(target=train, args=(rank, fault, is_last), daemon=True).start()
    is_last.wait()
    time.sleep(1)
    part = folder / f"part_{rank}"
    part.write_bytes(_dump_fr_trace())
    part.rename(folder / "dumps" / f"nccl_trace_rank_{rank}")
    time.sleep(600)  # a process that exits would end the wait of the other


def dumps_of(fault: str, folder: Path) -> Path:
    dumps = folder / "dumps"
    dumps.mkdir()
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "100"}
    workers = [
        subprocess.Popen([sys.executable, __file__, "--rank", str(rank), fault, str(folder)], env=environment)
        for rank in range(WORLD)
    ]
    try:
        end = time.monotonic() + 200
        while len(list(dumps.iterdir())) < WORLD:
            assert all(worker.poll() is None for worker in workers), "a process ended"
            assert time.monotonic() < end, "no dumps"
            time.sleep(0.05)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    return dumps


def explain(program: str, *words: object) -> dict:
    done = subprocess.run([program, "explain", "--hang", "--json", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 1, f"exit code {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def main() -> None:
    from pipewright import PROGRAM  # skips the test if torch is missing

    with tempfile.TemporaryDirectory() as folder:
        for fault in ("collective", "late"):
            place = Path(folder) / fault
            place.mkdir()
            dumps = dumps_of(fault, place)
            if "--keep" in sys.argv and fault == "collective":
                kept = Path(sys.argv[sys.argv.index("--keep") + 1])
                kept.mkdir(parents=True, exist_ok=True)
                for dump in dumps.iterdir():
                    (kept / dump.name).write_bytes(dump.read_bytes())
            own = explain(PROGRAM, dumps)
            assert (own["kind"], own["rank"]) == (fault, 1), own
            alone = explain(PROGRAM, dumps / "nccl_trace_rank_0")
            assert (alone["kind"], alone["rank"]) == ("dead", 1), alone
            print(f"{fault}: {own['what']}")


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        work(int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    else:
        main()
