"""Packs the bundle, unpacks it elsewhere and checks it there: with a torch that it has to find, with parts
that fail, and with programs that answer as on a machine with a GPU (made_up.py).

usage: check.py BUILD SOURCE TORCH_DIR"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import made_up
from made_up import expect

build, source, torch_dir = map(Path, sys.argv[1:])
if missing := [name for name in ("pipewright_bench_executor", "pipewright_profiler_tests")
               if not (build / "bin" / name).exists()]:
    print(f"skipped: {missing[0]} is not built")
    sys.exit(77)


def call(words, env=None, cwd=None):
    bare = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run([str(word) for word in words], env={**bare, **(env or {})}, cwd=cwd,
                          capture_output=True, text=True)


def packed_and_unpacked(folder):
    packed = call([source / "bench/bundle/pack.sh", build, folder / "b.tar.gz"])
    expect(packed.returncode == 0, packed.stderr)
    size = (folder / "b.tar.gz").stat().st_size
    expect(size <= 40e6, f"{size} bytes")
    expect(call([source / "bench/bundle/pack.sh", build, folder / "b.zip"]).returncode == 2, "b.zip")
    place = folder / "a place"
    place.mkdir()
    expect(call(["tar", "-xf", folder / "b.tar.gz", "-C", place]).returncode == 0, "tar")
    carried = {file.name for file in (place / "pipewright-bundle/lib").iterdir()}
    expect({"libssl.so.3", "libcrypto.so.3"} <= carried, carried)
    return place / "pipewright-bundle"


def without_a_gpu(bundle, folder):
    here = {"PIPEWRIGHT_TORCH_DIR": str(torch_dir)}
    checked = call([bundle / "gpu-check", folder / "report"], here)
    expect(checked.returncode == 0, checked.stderr + checked.stdout)
    report = json.loads((folder / "report/report.json").read_text())
    expect(report["format"] == "pipewright/gpu-report/2", report)
    status = {part["name"]: part["status"] for part in report["parts"]}
    expect(status == {name: "passed" if name in ("machine", "cpu") else "skipped" for name in status}
           and len(status) == 16, status)
    for part in report["parts"]:
        expect(part["status"] != "skipped" or part["reason"].startswith("no GPU: "), part)
    page = (folder / "report/report.md").read_text()
    expect("skipped in" in page and "A training on the CPU" in page, page)
    with tarfile.open(folder / "report/gpu-report.tar.gz") as archive:
        names = set(archive.getnames())
    expect({"gpu-report/report.md", "gpu-report/report.json", "gpu-report/logs/cpu.log"} <= names, names)
    again = call([bundle / "gpu-check", folder / "report"], here)
    expect(again.returncode == 1 and "not empty" in again.stderr, again)


def torch_is_looked_for(bundle, folder):
    """Checks a machine without torch, with the wrong one, and with one that a Python in PATH has."""
    none = call([bundle / "pipewright", "train", "x.json"], {"PATH": "/bin:/usr/bin"})
    expect(none.returncode == 2 and "pip install torch==" in none.stderr, none)
    wrong = call([bundle / "pipewright", "train", "x.json"], {"PIPEWRIGHT_TORCH_DIR": "/usr"})
    expect(wrong.returncode == 2 and "/usr has no lib/libtorch_cpu.so" in wrong.stderr, wrong)
    old = folder / "old"
    (old / "lib").mkdir(parents=True)
    (old / "lib/libtorch_cpu.so").touch()
    (old / "version.py").write_text("__version__ = '2.4.0+cpu'\n")
    older = call([bundle / "pipewright", "train", "x.json"], {"PIPEWRIGHT_TORCH_DIR": str(old)})
    expect(older.returncode == 2 and "is version 2.4.0+cpu" in older.stderr, older)
    # The missing scenario is reported only by the program that needs LibTorch.
    found = call([bundle / "pipewright", "train", "x.json"], {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin"})
    expect(found.returncode == 2 and "x.json" in found.stderr, found)
    # Commands without LibTorch work without it.
    topology = call([bundle / "pipewright", "topology", "--axes", "pipe,data", "--dims", "2,2"])
    expect(topology.returncode == 0, topology)


def old_c_library(bundle):
    """Checks that a C library that is too old for the programs is rejected with a message; one that is too
    old only for the bundled C++ library is accepted."""
    built_with = (bundle / "built-with").read_text()
    for field, code in (("glibc_wanted", 2), ("glibc_of_cxx", 0)):
        (bundle / "built-with").write_text(built_with + f"{field}=9.9\n")
        asked = call([bundle / "pipewright", "topology", "--axes", "pipe", "--dims", "2"])
        expect(asked.returncode == code and ("need 9.9" in asked.stderr) == (code == 2), asked)
    (bundle / "built-with").write_text(built_with)


def a_part_fails(bundle, folder):
    """Checks that the report contains the end of a failed part's log."""
    program = bundle / "bin/pipewright-torch"
    program.rename(program.with_suffix(".away"))
    checked = call([bundle / "gpu-check", folder / "broken"], {"PIPEWRIGHT_TORCH_DIR": str(torch_dir)})
    program.with_suffix(".away").rename(program)
    report = json.loads((folder / "broken/report.json").read_text())
    cpu = next(part for part in report["parts"] if part["name"] == "cpu")
    expect(checked.returncode == 1 and cpu["status"] == "failed" and "pipewright" in cpu["reason"], cpu)
    expect("pipewright run" in cpu["checks"][0]["log_tail"], cpu)
    expect("### cpu: cpu" in (folder / "broken/report.md").read_text(), "failures are on the page")
    expect(len(report["parts"]) == 16, "the others go on")


def the_newest_cxx_library_wins(folder):
    """Checks the choice of the C++ library with fake libraries that contain only symbol names."""
    place = folder / "cxx"
    bundle = place / "bundle"
    for script in ("libraries.sh", "find-torch.sh"):
        (bundle / "x").parent.mkdir(parents=True, exist_ok=True)
        (bundle / script).write_text((source / "bench/bundle" / script).read_text())
    (bundle / "built-with").write_text("torch_wanted=9\nglibc_wanted=2.0\nglibc_of_cxx=2.0\n")
    (place / "torch/lib").mkdir(parents=True)
    (place / "torch/lib/libtorch_cpu.so").touch()
    (place / "torch/version.py").write_text("__version__ = '9'\n")
    (place / "ldconfig").write_text(f"""#!/bin/sh
echo "  libstdc++.so.6 (libc6) => /elsewhere/libstdc++.so.6"
echo "  libstdc++.so.6 (libc6,x86-64) => {place}/system/libstdc++.so.6"
""")
    (place / "ldconfig").chmod(0o755)
    folders = {"bundled": bundle / "lib-c++", "torch": place / "torch/lib", "caller": place / "caller",
               "system": place / "system"}
    for versions in ({"bundled": 30, "system": 33}, {"bundled": 33, "system": 30}, {"bundled": 30},
                     {"bundled": 30, "torch": 33, "system": 29}, {"bundled": 33, "torch": 30, "system": 29},
                     {"bundled": 30, "caller": 33, "system": 29}, {"bundled": 9, "system": 30},
                     {"bundled": 33, "caller": 30, "system": 30}):
        for name, where in folders.items():
            where.mkdir(exist_ok=True)
            (where / "libstdc++.so.6").unlink(missing_ok=True)
            if name in versions:
                symbols = [f"GLIBCXX_3.4.{n}" for n in range(versions[name] + 1)]
                (where / "libstdc++.so.6").write_bytes(b"\x7fELF\0" + "\0".join(symbols).encode())
        said = call(["sh", "-euc", 'bundle=$0; . "$bundle/libraries.sh"; . "$bundle/find-torch.sh"; '
                     'echo "$LD_LIBRARY_PATH"', bundle],
                    {"PATH": f"{place}:/usr/bin:/bin", "PIPEWRIGHT_TORCH_DIR": str(place / "torch"),
                     "LD_LIBRARY_PATH": str(place / "caller")})
        expect(said.returncode == 0, said)
        searched = said.stdout.strip().split(":") + [str(place / "system")]
        found = next(path for path in searched if (Path(path) / "libstdc++.so.6").exists())
        name = next(name for name, where in folders.items() if str(where) == found)
        expect(versions[name] == max(versions.values()), f"{versions}: {name} is found first")
        expect(searched.index(str(place / "torch/lib")) < searched.index(str(bundle / "lib")), searched)


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    the_newest_cxx_library_wins(folder)
    made_up.check(source / "bench/bundle/gpu_check", torch_dir, folder)
    bundle = packed_and_unpacked(folder)
    torch_is_looked_for(bundle, folder)
    old_c_library(bundle)
    without_a_gpu(bundle, folder)
    a_part_fails(bundle, folder)
print("the bundle packs, unpacks and reports")
