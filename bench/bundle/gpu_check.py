"""Proves on this machine what needs a GPU, each part with a time limit of its own, and writes the
figures as report.json and report.md. A part that fails is named and the others go on. Called by
gpu-check; needs no packages. Exit code: 1 if a part failed."""

import argparse
import ctypes
import datetime
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

FORMAT = "pipewright/gpu-report/1"
SCHEDULES = ["gpipe", "1f1b", "zb-h1"]
TWO_STAGES = ["interleaved-1f1b", "zbv", "dualpipev"]
# Large enough that a GPU computes for milliseconds, small enough that a part takes seconds.
LARGE = {"model.blocks": 8, "model.hidden": 1024, "model.heads": 16, "model.sequence": 512,
         "training.steps": 12, "training.microbatch_size": 4}


class Skipped(Exception):
    """The part needs what is not here; the text says what."""


class Failed(Exception):
    """What went wrong, in a line."""


class Check:
    """What all parts share: where things are, and how a program is run."""

    def __init__(self, bundle, torch_dir, out):
        self.bundle, self.torch_dir, self.out = bundle, torch_dir, out
        self.scenario = bundle / "scenarios/gpt-text/scenario.json"
        self.devices, self.why_no_gpu = find_devices()
        self.part, self.deadline = "", 0.0

    def need_gpu(self, least=1):
        if not self.devices:
            raise Skipped("no GPU: " + self.why_no_gpu)
        if len(self.devices) < least:
            raise Skipped(f"{least} GPUs are needed, and there is {len(self.devices)}")

    def run(self, words, env=None, good=(0,)):
        """What the program prints, if it ends well. All it says is kept in OUT/<part>.log."""
        words = [str(word) for word in words]
        left = self.deadline - time.monotonic()
        with open(self.out / f"{self.part}.log", "ab") as log:
            log.write(("$ " + " ".join(words) + "\n").encode())
            log.flush()
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env={**os.environ, **(env or {})}, start_new_session=True)
            try:
                output, messages = process.communicate(timeout=max(left, 0.1))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, messages = process.communicate()
                log.write(output + messages)
                raise Failed(f"{Path(words[0]).name} took longer than the part's time") from None
            log.write(output + messages + b"\n")
        if process.returncode not in good:
            lines = (messages or output).decode(errors="replace").strip().splitlines()
            raise Failed(f"{Path(words[0]).name} ended with {process.returncode}: "
                         f"{lines[-1] if lines else 'without a word'}")
        return output.decode(errors="replace")

    def program(self, name):
        return self.bundle / "bin" / name

    def pipewright(self, command, *options, sets=None, env=None):
        """The JSON document that a command prints."""
        words = [self.program("pipewright"), command, self.scenario, "--json", *options]
        for field, value in (sets or {}).items():
            words += ["--set", f"{field}={value}"]
        return json.loads(self.run(words, env))

    def loop(self, *options, sets=None, env=None):
        """A whole run: measured, predicted, trained, compared."""
        number = sum(1 for _ in self.out.glob("runs/*"))
        folder = self.out / "runs" / f"{self.part}-{number}"
        return self.pipewright("run", "--out", folder, *options, sets=sets, env=env)


def find_devices():
    """The GPUs as the driver names them, or why there are none."""
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


# ---- parts: each returns figures and, for the page, rows of tables -------------------------------


def part_device(check):
    figures = {"devices": check.devices, "cpu": cpu_name(), "cores": os.cpu_count()}
    rows = [["device", "memory", "multiprocessors", "capability", "driver's CUDA"]]
    rows += [[d["name"], f"{d['memory_bytes'] / 1e9:.1f} GB", d["multiprocessors"],
              d["compute_capability"], d["driver_cuda"]] for d in check.devices]
    rows.append([figures["cpu"], "", f"{figures['cores']} cores", "", ""])
    return figures, rows


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def part_cpu(check):
    """The programs and LibTorch work here at all, without a GPU."""
    report = check.loop("--verify", sets={"model.blocks": 2, "model.hidden": 64, "model.sequence": 32,
                                          "training.steps": 4})
    require_equal_bits(report)
    return comparison(report), None


def require_equal_bits(report):
    if not report["verify"]["bit_identical"]:
        raise Failed("the bits are not those of training without a pipeline")


def comparison(report):
    return {"schedule": report["schedule"], "ranks": report["ranks"],
            "predicted_s": report["predicted"]["iteration_s"],
            "measured_s": report["measured"]["iteration_s"],
            "error_percent": report["error_percent"]["iteration_s"],
            "peak_error_percent": max(report["error_percent"]["peak_bytes"], key=abs),
            "machine_drift_percent": report["machine_drift_percent"]}


def part_tests(check):
    check.need_gpu()
    figures = {}
    for program in ("pipewright_exec_tests", "pipewright_profiler_tests"):
        words = check.run([check.program(program), "[cuda]"], good=(0, 77))  # 77: it skipped all
        lines = words.strip().splitlines()
        figures[program] = lines[-1] if lines else ""
        if skipped := {line for line in lines if line.startswith("skipped")}:
            figures["skipped"] = sorted(skipped)
    return figures, [["program", "says"]] + [[name, said] for name, said in figures.items()]


def part_profile(check):
    check.need_gpu()
    kernels = check.out / "kernels.json"
    costs = check.pipewright("profile", "--device", "cuda", "--over", "0",
                             *(["--kernels", kernels] if knows_kernels(check) else []), sets=LARGE)
    figures = {"costs": costs, "kernels": str(kernels.name) if kernels.exists() else None}
    return figures, work_rows(costs.get("work"))


def work_rows(work):
    """What forward and the halves of the backward of each layer are made of."""
    if not work:
        return None
    overhead = work["overhead"]
    lost = sum(work["lost"][what] for what in ("dropped", "unread_bytes", "without_call",
                                               "without_times"))
    rows = [[part["layer"], part["part"]] +
            [f"{part[time] * 1e6:.1f} us" for time in ("device_s", "launch_s", "waiting_s", "host_s")] +
            ["launch-bound" if part["launch_bound"] else ""]
            for part in work["parts"] if part["layer"] and part["part"] in "FIW"]
    said = "" if overhead is None else f"recording: {overhead * 100:+.1f} %"
    return [["layer", "", "device", "launching", "waiting", "host", ""]] + rows + [
        [f"by {work['source']}", "", said, f"lost: {lost}", "", "", ""]]


def knows_kernels(check):
    return "--kernels" in check.run([check.program("pipewright"), "profile", "--help"])


def part_verify(check):
    check.need_gpu()
    figures = []
    for schedule in SCHEDULES + TWO_STAGES:
        report = check.loop("--device", "cuda", "--verify", sets={
            "pipeline.schedule": schedule, "training.steps": 4, "profile.most_repeats": 10,
            **chunks_of(schedule)})
        require_equal_bits(report)
        figures.append({"schedule": schedule, "bit_identical": True})
    return figures, [["schedule", "bits as without a pipeline"]] + [
        [figure["schedule"], "equal"] for figure in figures]


def chunks_of(schedule):
    return {"pipeline.chunks": 2} if schedule in TWO_STAGES else {}


def part_shared(check):
    check.need_gpu()
    figures = []
    for ranks in (2, 4):
        report = check.loop("--device", "cuda", "--own-multiprocessors", "--verify",
                            sets={**LARGE, "pipeline.ranks": ranks, "training.steps": 6})
        require_equal_bits(report)
        figures.append(comparison(report))
    return figures, table_of(figures)


def table_of(figures):
    return [["schedule", "ranks", "predicted", "measured", "error", "peak's error"]] + [
        [f["schedule"], f["ranks"], f"{f['predicted_s'] * 1e3:.3f} ms",
         f"{f['measured_s'] * 1e3:.3f} ms", f"{f['error_percent']:+.2f} %",
         f"{f['peak_error_percent']:+.3f} %"] for f in figures]


def part_graphs(check):
    """A small model, where launching takes longest, with and without CUDA graphs."""
    check.need_gpu()
    figures = []
    for graphs in (False, True):
        report = check.loop("--device", "cuda", "--verify", sets={
            "training.steps": 12, "training.cuda_graphs": "true" if graphs else "false"})
        require_equal_bits(report)
        figures.append({"cuda_graphs": graphs, **comparison(report)})
    without, with_graphs = (figure["measured_s"] for figure in figures)
    return {"runs": figures, "over_without": with_graphs / without}, table_of(figures) + [
        ["with over without", "", "", f"{with_graphs / without:.3f}", "", ""]]


def part_nccl(check):
    """Two processes, on GPUs of their own where there are two, else on one that they share."""
    check.need_gpu()
    folder = check.out / "nccl"
    # `train` prints words; the bits are compared by --verify, which fails with exit code 1.
    check.run([check.program("pipewright"), "train", check.scenario, "--device", "cuda",
               "--processes", "--verify", "--out", folder, "--set", "training.steps=6"])
    return {"processes": 2, "gpus": len(check.devices), "bit_identical": True}, None


def part_prediction(check):
    check.need_gpu()
    figures = []
    for schedule in SCHEDULES + TWO_STAGES:
        figures.append(comparison(check.loop("--device", "cuda", sets={
            **LARGE, "pipeline.schedule": schedule, **chunks_of(schedule)})))
    errors = [abs(figure["error_percent"]) for figure in figures]
    return {"runs": figures, "mean_abs_error_percent": statistics.mean(errors)}, table_of(figures)


def part_benches(check):
    check.need_gpu()
    figures = {"actions": json.loads(
        check.run([check.program("pipewright_bench_actions"), "--gpu", "--rounds", 3]))}
    size = ["--layers", 8, "--hidden", 1024, "--heads", 16, "--seq", 512, "--microbatches", 8,
            "--steps", 4, "--rounds", 2]
    figures["ours"] = json.loads(
        check.run([check.program("pipewright_bench_executor"), "--gpu", *size]))
    figures["torch"] = json.loads(check.run(
        [sys.executable, "-W", "ignore", check.bundle / "bench/torch_pipelining.py",
         "--device", "cuda", *size]).strip().splitlines()[-1])
    return figures, [["", "iteration", "over ideal"]] + [
        [name, f"{figures[key]['iteration_s'] * 1e3:.2f} ms", f"{figures[key]['over_ideal']:.3f}"]
        for name, key in (("pipewright", "ours"), ("torch.distributed.pipelining", "torch"))]


PARTS = [  # name, what it shows, seconds that it may take
    ("device", part_device, "Devices and driver", 10),
    ("cpu", part_cpu, "A training on the CPU, bits compared", 60),
    ("tests", part_tests, "Tests on the GPU", 110),
    ("profile", part_profile, "Costs of layers, by CUPTI", 50),
    ("verify", part_verify, "Schedules on the GPU, bits compared", 80),
    ("shared", part_shared, "One GPU as several, each with multiprocessors of its own", 60),
    ("graphs", part_graphs, "A small model without and with CUDA graphs, bits compared", 30),
    ("nccl", part_nccl, "Two processes over NCCL, bits compared", 50),
    ("prediction", part_prediction, "Predicted against measured", 80),
    ("benches", part_benches, "Beside torch", 70),
]


def run_part(check, name, work, limit):
    check.part, check.deadline = name, time.monotonic() + limit
    started = time.monotonic()
    result = {"name": name, "status": "passed", "reason": "", "figures": None}
    rows = None
    try:
        result["figures"], rows = work(check)
    except Skipped as skipped:
        result.update(status="skipped", reason=str(skipped))
    except Failed as failed:
        result.update(status="failed", reason=str(failed))
    except (KeyError, ValueError, OSError) as error:
        result.update(status="failed", reason=f"{type(error).__name__}: {error}")
    result["seconds"] = round(time.monotonic() - started, 2)
    return result, rows


def page_of(report, tables):
    lines = [f"# GPU report, {report['date']}", "",
             f"LibTorch {report['torch']}, Pipewright {report['pipewright']}, "
             f"{report['seconds']:.0f} s in all.", ""]
    for result, (_, _, title, limit) in zip(report["parts"], PARTS):
        lines += [f"## {title}", "", f"{result['status']} in {result['seconds']:.1f} s of {limit}"
                  + (f": {result['reason']}" if result["reason"] else ""), ""]
        if rows := tables.get(result["name"]):
            lines += ["| " + " | ".join(str(cell) for cell in rows[0]) + " |",
                      "|" + "---|" * len(rows[0])]
            lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows[1:]]
            lines.append("")
    return "\n".join(lines)


def torch_version(torch_dir):
    for line in (torch_dir / "version.py").read_text().splitlines():
        if line.startswith("__version__"):
            return line.split("'")[1]
    return "unknown"


def main():
    parser = argparse.ArgumentParser(prog="gpu-check", description=__doc__.split(". ")[0] + ".")
    parser.add_argument("bundle", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("torch_dir", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("out", nargs="?", type=Path, default=Path("gpu-report"))
    options = parser.parse_args()
    if options.out.exists() and any(options.out.iterdir()):
        sys.exit(f"gpu-check: {options.out} is there already and not empty: name another folder")
    options.out.mkdir(parents=True, exist_ok=True)

    started = time.monotonic()
    check = Check(options.bundle.resolve(), options.torch_dir, options.out.resolve())
    version = subprocess.run([check.program("pipewright"), "--version"], capture_output=True,
                             text=True, check=True).stdout.strip()
    report = {"format": FORMAT, "date": datetime.date.today().isoformat(), "pipewright": version,
              "torch": torch_version(options.torch_dir), "parts": []}
    tables = {}
    for name, work, title, limit in PARTS:
        print(f"{title} …", file=sys.stderr)
        result, tables[name] = run_part(check, name, work, limit)
        report["parts"].append(result)
        print(f"  {result['status']} ({result['seconds']:.0f} s)"
              + (f": {result['reason']}" if result["reason"] else ""), file=sys.stderr)
        # After each part: whoever is cut off keeps what there is.
        report["seconds"] = round(time.monotonic() - started, 1)
        (options.out / "report.json").write_text(json.dumps(report, indent=2) + "\n")
        (options.out / "report.md").write_text(page_of(report, tables))
    count = {status: sum(part["status"] == status for part in report["parts"])
             for status in ("passed", "failed", "skipped")}
    print(f"{options.out}/report.md: " + ", ".join(f"{n} {word}" for word, n in count.items()))
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
