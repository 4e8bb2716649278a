"""Describes this machine with the output of its driver, its kernel and nvidia-smi."""

import ctypes
import os
import platform
import re
import shutil
from pathlib import Path

from running import Failed, Skipped

# Variables that change how GPUs compute or ranks connect; no possible secrets.
TOLD = re.compile(r"(CUDA|CUBLAS|CUDNN|NCCL|NVIDIA|TORCH|PYTORCH|PIPEWRIGHT|SLURM|OMP|MKL|GLOO)_.*"
                  r"|LD_LIBRARY_PATH|LD_PRELOAD|VIRTUAL_ENV|CONDA_PREFIX")
SECRET = re.compile(r"TOKEN|JWT|SECRET|PASSWORD|KEY|CREDENTIAL")
ASKED = ["index", "name", "driver_version", "vbios_version", "pstate", "clocks.sm", "clocks.mem",
         "clocks.max.sm", "clocks.max.mem", "power.draw", "power.limit", "temperature.gpu",
         "memory.used", "persistence_mode", "compute_mode", "mig.mode.current",
         "pcie.link.gen.current", "pcie.link.width.current"]
SMI_SECONDS = 8


def find_devices():
    """Returns the GPUs as the driver names them, or the reason why there are none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return [], "libcuda.so.1, NVIDIA's driver, is not here"
    if error := driver.cuInit(0):
        return [], f"the driver says error {error}"
    count, version = ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    driver.cuDriverGetVersion(ctypes.byref(version))
    devices = []
    for index in range(count.value):
        device, memory, name = ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(256)
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetName(name, 256, device)
        driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)

        def attribute(number):
            value = ctypes.c_int()
            driver.cuDeviceGetAttribute(ctypes.byref(value), number, device)
            return value.value

        devices.append({"name": name.value.decode(), "memory_bytes": memory.value,
                        "multiprocessors": attribute(16),
                        "compute_capability": f"{attribute(75)}.{attribute(76)}",
                        "driver_cuda": f"{version.value // 1000}.{version.value % 1000 // 10}"})
    return devices, "" if devices else "the driver knows of none"


def part_machine(check):
    figures = {"devices": check.devices, "why_no_gpu": check.why_no_gpu, "cpu": cpu_name(),
               "cores": os.cpu_count(), "cores_allowed": len(os.sched_getaffinity(0)),
               "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
               "kernel": platform.release(), "c_library": " ".join(platform.libc_ver()),
               "system": system_name(), "python": platform.python_version(),
               "kernel_driver": first_line("/proc/driver/nvidia/version"),
               "environment": environment()}
    rows = [["what", "is"]]
    rows += [[f"GPU {index}", f"{d['name']}, {d['memory_bytes'] / 1e9:.1f} GB, "
              f"{d['multiprocessors']} multiprocessors, capability {d['compute_capability']}, "
              f"driver's CUDA {d['driver_cuda']}"] for index, d in enumerate(check.devices)]
    rows += [["CPU", f"{figures['cpu']}, {figures['cores_allowed']} of {figures['cores']} cores, "
                     f"{figures['memory_bytes'] / 1e9:.1f} GB"],
             ["system", f"{figures['system']}, Linux {figures['kernel']}, {figures['c_library']}"],
             ["kernel's driver", figures["kernel_driver"]]]
    rows += [[name, value] for name, value in figures["environment"].items()]
    check.note("this machine", "passed", "")
    asked = check.each(["clocks", "nvidia-smi -q", "nvidia-smi topo -m"],
                       lambda name: say_of(check, name))
    figures["clocks"] = asked.get("clocks")
    for gpu in figures["clocks"] or []:
        rows += [[f"GPU {gpu['index']}, {name}", value] for name, value in gpu.items()
                 if name not in ("index", "name")]
    return figures, rows


def say_of(check, name):
    if name == "clocks":
        return clocks(check)
    words = name.split()[1:]
    (check.out / "logs" / ("nvidia-smi" + "".join(words[:1]) + ".txt")).write_text(smi(check, *words))
    return None


def smi(check, *words):
    """Returns the output of nvidia-smi, which is killed if a broken GPU blocks it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise Skipped("nvidia-smi is not in PATH")
    return check.run([program, *words], env=check.own_libraries,
                     seconds=min(SMI_SECONDS, check.left() / 2))


def clocks(check):
    """Returns the values of ASKED for each GPU, by name."""
    said = smi(check, f"--query-gpu={','.join(ASKED)}", "--format=csv,noheader").strip()
    gpus = [dict(zip(ASKED, (cell.strip() for cell in line.split(",")))) for line in said.splitlines()]
    if not gpus:
        raise Failed("nvidia-smi lists no GPU")
    return gpus


def environment():
    return {name: "(not told)" if SECRET.search(name) else value
            for name, value in sorted(os.environ.items()) if TOLD.fullmatch(name)}


def first_line(file):
    try:
        return Path(file).read_text().splitlines()[0].strip()
    except (OSError, IndexError):
        return "unknown"


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def system_name():
    try:
        for line in Path("/etc/os-release").read_text().splitlines():
            if line.startswith("PRETTY_NAME="):
                return line.split("=", 1)[1].strip('"')
    except OSError:
        pass
    return "unknown system"
