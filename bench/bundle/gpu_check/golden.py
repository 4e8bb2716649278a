"""Records small samples of a real GPU's output, so that tests can compare machines without a GPU with it: CUPTI's raw
buffers, the event times of actions, the actions of LibTorch's allocator."""

import gzip
import json
import shutil

from running import Failed

MOST_BYTES = 1_000_000  # in total, because tests/data must stay small
TINY = {"model.blocks": 1, "model.hidden": 32, "model.heads": 2, "model.sequence": 16,
        "pipeline.microbatches": 2, "training.microbatch_size": 1, "training.steps": 4,
        "profile.warm_up": 1, "profile.least_repeats": 1, "profile.most_repeats": 1}
README = """# What a GPU said

Kept by `gpu-check` on {gpu}, {date}.

| file | is |
|---|---|
| `cupti-profile/`, `cupti-train/` | CUPTI's raw buffers of a tiny `pipewright profile` and of `train --kernels`, and `cupti.json`, which says how to read them |
| `costs.json` | the costs of that profile |
| `events/` | predicted and measured timelines of a tiny run, its costs and its actions: times by the device's events |
| `allocator.json.gz` | what LibTorch's allocator did in two steps of a small training: its own trace, addresses from 0 |

To keep them: copy this folder to `tests/data/gpu/NAME-OF-THE-GPU`. `PIPEWRIGHT_STANDIN_CUPTI=play=FOLDER` has the stand-in
for CUPTI play a folder of buffers.
"""


def part_golden(check):
    check.need_gpu()
    folder = check.out / "golden"
    folder.mkdir()
    check.each(["cupti-profile", "cupti-train", "events", "allocator"],
               lambda name: KEEPERS[name](check, folder / name))
    (folder / "README.md").write_text(README.format(gpu=check.devices[0]["name"], date=check.date))
    left_out = shrink(folder)
    sizes = {str(file.relative_to(folder)): file.stat().st_size for file in files_in(folder)}
    return {"bytes": sizes, "left_out": left_out}, [["file", "bytes"]] + [
        [name, size] for name, size in sizes.items()] + [[name, "left out: too large"]
                                                         for name in left_out]


def keep_profile(check, folder):
    check.pipewright("profile", "--device", "cuda", "--over", "0", "-o",
                     folder.with_name("costs.json"), sets=TINY,
                     env={"PIPEWRIGHT_KEEP_CUPTI": str(folder)})
    require(folder)


def keep_train(check, folder):
    (check.out / "runs").mkdir(exist_ok=True)
    # Without costs it would measure layers first, and keep that.
    check.pipewright("train", "--device", "cuda", "--kernels", check.out / "runs/golden.json",
                     "--costs", folder.with_name("costs.json"), sets=TINY,
                     env={"PIPEWRIGHT_KEEP_CUPTI": str(folder)})
    require(folder)


def require(folder):
    if not (folder / "cupti.json").exists():
        raise Failed("no buffers of CUPTI were saved, so it was not used")


def keep_events(check, folder):
    run = check.folder()
    check.pipewright("run", "--out", run, "--device", "cuda", sets=TINY)
    folder.mkdir()
    for name in ("program.json", "costs.json", "actions.csv", "measured.trace.json",
                 "predicted.trace.json"):
        shutil.copy(run / name, folder / name)


def keep_allocator(check, file):
    trace = check.torch_script("allocator_trace.py")
    json.loads(trace)
    file.with_name("allocator.json.gz").write_bytes(gzip.compress(trace.encode(), mtime=0))


KEEPERS = {"cupti-profile": keep_profile, "cupti-train": keep_train, "events": keep_events,
           "allocator": keep_allocator}


def files_in(folder):
    return sorted(file for file in folder.rglob("*") if file.is_file())


def shrink(folder):
    """Removes the largest files until the rest is small enough, and returns their names."""
    gone = []
    files = sorted(files_in(folder), key=lambda file: file.stat().st_size)
    while sum(file.stat().st_size for file in files) > MOST_BYTES:
        gone.append(str(files[-1].relative_to(folder)))
        files.pop().unlink()
    return gone
