"""Runs all of the packed bundle's gpu-check with stand-ins in place of NVIDIA's libraries.

usage: standin.py BUILD SOURCE TORCH_DIR"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from made_up import archive_of, expect, read

build, source, torch_dir = map(Path, sys.argv[1:])
STANDINS = [build / "standin" / name
            for name in ("libcudart.so.13", "libcuda.so.1", "libnccl.so.2", "libcupti.so.13")]
if missing := [str(file) for file in [*STANDINS, build / "bin/pipewright_bench_executor"] if not file.exists()]:
    print(f"skipped: {missing[0]} is not built")
    sys.exit(77)

# The order of a replay after the send of the data it overwrites depends on another process's
# answer, and the stand-in's order check sees only one process: (part, check), and the report to
# expect.
NOT_SEEN = {("nccl", "CUDA graphs"): "what ncclSend on stream"}

SMI = """#!/bin/sh
case $1 in
  --query-gpu=*) echo "0, Stand-in GPU, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16" ;;
  *) echo "made up" ;;
esac
"""


def unpacked(folder):
    for words in ([source / "bench/bundle/pack.sh", build, folder / "b.tar.gz"],
                  ["tar", "-xf", folder / "b.tar.gz", "-C", folder]):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        expect(done.returncode == 0, done.stderr)
    return folder / "pipewright-bundle"


def is_known(part, check):
    says = NOT_SEEN.get((part, check["name"]))
    return says is not None and "ended with 66" in check["reason"] and says in check["log_tail"]


def check(folder):
    bundle = unpacked(folder)
    (folder / "path").mkdir()
    (folder / "path/nvidia-smi").write_text(SMI)
    (folder / "path/nvidia-smi").chmod(0o755)
    out = folder / "report"
    done = subprocess.run(
        [bundle / "gpu-check", out, "--small", "--within", "270"], capture_output=True, text=True,
        env={"PATH": f"{folder}/path:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent",
             "PIPEWRIGHT_TORCH_DIR": str(torch_dir), "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
             "LD_PRELOAD": ":".join(map(str, STANDINS))})
    expect((out / "report.json").exists(), done.stderr)
    report, page = read(out), (out / "report.md").read_text()
    # Times are not asserted: on a busy machine a CPU in place of a GPU may be too slow.
    late = [one["name"] for part in report["parts"] for one in part["checks"] if "took longer than" in one["reason"]]
    failed = [(part["name"], one) for part in report["parts"] for one in part["checks"]
              if one["status"] == "failed" and one["name"] not in late and not is_known(part["name"], one)]
    for part, one in failed:
        print(f"{part}: {one['name']}: {one['reason']}\n{one['log_tail']}\n")
    expect(not failed, f"{len(failed)} checks have failed")
    for part in report["parts"]:
        expect({"passed"} <= {one["status"] for one in part["checks"]} or late, part)
    skipped = {one["name"]: one["reason"] for part in report["parts"] for one in part["checks"]
               if one["status"] == "skipped"}
    for name, reason in skipped.items():
        print(f"skipped in part: gpu-check where stand-ins are loaded: {name}: {reason}")
    left_out = late + [name for part in report["parts"] for name in part["left_out"]]
    for name in left_out:
        print(f"skipped in part: gpu-check where stand-ins are loaded: {name}: there was no time")
    counts = report["counts"]["checks"]
    expect(sum(counts.values()) >= 40, counts)
    archive = archive_of(out)
    files = {"report.md", "report.json", "kernels.json", "golden/README.md", "golden/cupti-profile/cupti.json",
             "golden/cupti-train/cupti.json", "golden/events/measured.trace.json"}
    # A check writes into a folder with its name, so a check that was left out has none.
    expect({file for file in files if Path(file).parent.name not in left_out} <= set(archive), sorted(archive))
    expect("driver's CUDA 13.0" in page, page)
    print(f"{report['counts']}, {report['seconds']} s")


with tempfile.TemporaryDirectory() as name:
    check(Path(name))
