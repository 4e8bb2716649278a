"""Builds a wheel of this build's programs and installs it into a new environment, in which all of docs/from-python.md
runs. The environment uses an existing torch.

usage: wheel.py BUILD SOURCE TORCH (the folder of an installed torch)"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

BUILD, SOURCE, TORCH = map(Path, sys.argv[1:])
FOLDER = BUILD / "python/wheel"
PLACE = FOLDER / "venv"
PYTHON = PLACE / "bin/python"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]

if f"python{sys.version_info.major}.{sys.version_info.minor}" not in TORCH.parts:
    print(f"skipped: {sys.executable} cannot use the torch of {TORCH.parent}")
    sys.exit(77)
for module in ("scikit_build_core", "nanobind", "pip"):
    if importlib.util.find_spec(module) is None:
        print(f"skipped: {sys.executable} has no {module} (./dev test installs it)")
        sys.exit(77)


def make_wheel():
    settings = {"cmake.source-dir": "python/built", "cmake.define.PIPEWRIGHT_BUILD": BUILD, "build-dir": FOLDER / "packed"}
    subprocess.run([*PIP, "wheel", str(SOURCE), "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(FOLDER),
                    *(f"--config-settings={name}={value}" for name, value in settings.items())], check=True)
    [wheel] = FOLDER.glob("*.whl")
    return wheel


def install(wheel):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(PLACE)], check=True)
    subprocess.run([*PIP, "--python", str(PYTHON), "install", "--no-deps", "--no-index", str(wheel)], check=True)
    [packages] = PLACE.glob("lib/python3*/site-packages")
    (packages / "torch.pth").write_text(f"{TORCH.parent}\n")
    launcher = PLACE / "bin/torchrun"
    launcher.write_text(f'#!/bin/sh\nexec "{PYTHON}" -m torch.distributed.run "$@"\n')
    launcher.chmod(0o755)


shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir(parents=True)
install(make_wheel())
work = FOLDER / "work"
work.mkdir()
(work / "scenarios").symlink_to(SOURCE / "scenarios")
environment = {**os.environ, "PATH": f"{PLACE}/bin:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
environment.pop("PYTHONPATH", None)
sys.exit(subprocess.run([str(PYTHON), str(Path(__file__).with_name("page.py")), str(SOURCE / "docs/from-python.md")],
                        cwd=work, env=environment).returncode)
