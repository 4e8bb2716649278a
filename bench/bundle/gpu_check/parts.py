"""The parts of the check on a GPU. Each checks one subject, and returns figures and a table of them."""

import json
import os
import shutil
import signal
import statistics
import time

from cases import part_tests
from golden import part_golden
from machine import part_machine
from running import Failed, end, processes_of

SCHEDULES = ["gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "zbv", "dualpipev"]
TWO_STAGES = ("interleaved-1f1b", "zbv", "dualpipev")
# Large enough that a GPU computes for milliseconds, small enough that a part takes seconds.
LARGE = {"model.blocks": 8, "model.hidden": 1024, "model.heads": 16, "model.sequence": 512,
         "training.steps": 12, "training.microbatch_size": 4}
# Small enough that a CPU in place of a GPU takes seconds.
SMALL = {"model.blocks": 2, "model.hidden": 32, "model.heads": 2, "model.sequence": 16}
QUICK = {"profile.warm_up": 1, "profile.least_repeats": 2, "profile.most_repeats": 4}
# Seconds after which a stalled job ends and reports which ranks wait for which.
PATIENCE = ["--timeout", 5, "--stall", 20]


# ---- helpers of the parts ---------------------------------------------------------------


def large(check, **more):
    return {**LARGE, **(SMALL if check.small else {}), **more}


def usual(check, **more):
    return {**(SMALL if check.small else {}), **more}


def chunks_of(schedule):
    return {"pipeline.chunks": 2} if schedule in TWO_STAGES else {}


def loop(check, *options, sets):
    """Runs a whole cycle: profile, predict, train, compare."""
    return check.pipewright("run", "--out", check.folder(), *PATIENCE, *options,
                            sets={"profile.most_repeats": 10, **sets})


def costs(check, sets, scenario="gpt-text", data=()):
    """Returns options that name costs of these layers, which are measured on first use. They only serve to
    partition the layers, so they need not be precise or measured each time."""
    measured = {name: value for name, value in sets.items()
                if name.startswith("model.") or name == "training.optimizer"}
    file = check.out / "runs" / ("-".join([scenario, *map(str, measured.values())]) + ".json")
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        check.pipewright("profile", "--device", "cuda", "--over", "0", "-o", file, *data, scenario=scenario,
                         sets={**measured, **QUICK})
    return ["--costs", file]


def train(check, *options, sets, scenario="gpt-text", data=()):
    """Trains, and requires the bits of serial training."""
    require_equal_bits(check.pipewright("train", "--device", "cuda", "--verify", *PATIENCE, *data,
                                        *costs(check, sets, scenario, data), *options,
                                        scenario=scenario, sets=sets))
    return {"bit_identical": True}


def require_equal_bits(report):
    if not report["verify"]["bit_identical"]:
        raise Failed("the bits differ from those of serial training")


def sharing(check, ranks):
    """Returns the option with which ranks that share a GPU get their own multiprocessors, because
    predictions do not hold while others compute on the same ones, and a label."""
    gpus = min(ranks, len(check.devices))
    if gpus < ranks:
        return ["--own-multiprocessors"], f"{ranks} ranks on {gpus}, own multiprocessors"
    return [], f"{ranks} ranks on {gpus}"


def comparison(report):
    """Compares prediction and measurement. A figure that was not measured has no error."""
    errors = report["error_percent"]
    peaks = [error for error in errors["peak_bytes"] or [] if error is not None]
    return {"schedule": report["schedule"], "ranks": report["ranks"],
            "predicted_s": report["predicted"]["iteration_s"],
            "measured_s": report["measured"]["iteration_s"],
            "error_percent": errors["iteration_s"],
            "peak_error_percent": max(peaks, key=abs, default=None),
            "machine_drift_percent": report.get("machine_drift_percent")}


def say(value, form="{:+.2f} %", scale=1.0):
    return "-" if value is None else form.format(value * scale)


def table_of(figures):
    """Returns a table of figures by name."""
    return [["", "predicted", "measured", "error", "peak's error"]] + [
        [f"{name}, {f['gpus']}" if "gpus" in f else name, say(f["predicted_s"], "{:.3f} ms", 1e3),
         say(f["measured_s"], "{:.3f} ms", 1e3), say(f["error_percent"]),
         say(f["peak_error_percent"], "{:+.3f} %")] for name, f in figures.items()]


def passed_table(check):
    return [["", "", "s"]] + [[c["name"], c["status"], f"{c['seconds']:.1f}"] for c in check.checks]


# ---- the parts -------------------------------------------------------------------------------


def part_cpu(check):
    """Checks that the programs and LibTorch work here at all, without a GPU."""
    report = loop(check, "--verify", sets={**SMALL, "training.steps": 4})
    require_equal_bits(report)
    return comparison(report), None


def part_profile(check):
    check.need_gpu()
    kernels = check.out / "kernels.json"
    costs = check.pipewright("profile", "--device", "cuda", "--over", "0", "--kernels", kernels,
                             sets=large(check))
    figures = {"costs": costs, "kernels": kernels.name if kernels.exists() else None}
    return figures, work_rows(costs.get("work"))


def work_rows(work):
    """Returns the kernels of forward and of both halves of the backward of each layer."""
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


def part_links(check):
    """Measures transfers between ranks: threads pass or copy tensors from GPU to GPU, processes use NCCL.
    """
    check.need_gpu()

    def measured(between):
        within = max(min(8.0, 0.4 * check.left()), 1.0)
        return check.pipewright("profile", "--links", "--between", between, "--device", "cuda",
                                "--within", f"{within:.1f}")["links"]

    found = check.each(["threads", "processes"], measured)
    rows = [["between", "over", "latency", "bandwidth"]]
    rows += [[between, link["over"], say(link["fit"]["latency_s"], "{:.2f} us", 1e6),
              say(link["fit"]["bandwidth_per_s"], "{:.2f} GB/s", 1e-9)]
             for between, links in found.items() for link in links]
    return found, rows


def part_verify(check):
    check.need_gpu()
    figures = check.each(SCHEDULES, lambda schedule: train(check, sets=usual(check, **{
        "pipeline.schedule": schedule, "training.steps": 4, **chunks_of(schedule)})))
    return figures, passed_table(check)


def part_shared(check):
    """Uses one GPU as two and as four."""
    check.need_gpu()

    def shared(name):
        report = loop(check, "--device", "cuda", "--own-multiprocessors", "--verify",
                      sets=large(check, **{"pipeline.ranks": name.split()[0], "training.steps": 6,
                                           "model.blocks": 4 if check.small else 8}))
        require_equal_bits(report)
        return comparison(report)

    figures = check.each(["2 ranks", "4 ranks"], shared)
    return figures, table_of(figures)


def part_graphs(check):
    """Trains a small model, for which launches take longest."""
    check.need_gpu()

    def run(name):
        options, gpus = sharing(check, 2)
        report = loop(check, "--device", "cuda", "--verify", *options, sets=usual(check, **{
            "training.steps": 12, "training.cuda_graphs": "true" if name == "with" else "false"}))
        require_equal_bits(report)
        return {**comparison(report), "gpus": gpus}

    figures = check.each(["without", "with"], run)
    table = table_of(figures)
    if len(figures) == 2:
        over = figures["with"]["measured_s"] / figures["without"]["measured_s"]
        figures["over_without"] = over
        table.append(["with over without", "", f"{over:.3f}", "", ""])
    return figures, table


# A process for each rank, each with its own GPU if there are enough.
OVER_NCCL = {
    "communicators edge, 1f1b": {"pipeline.communicators": "edge"},
    "communicators pair, gpipe": {"pipeline.communicators": "pair", "pipeline.schedule": "gpipe"},
    "communicators rank, gpipe": {"pipeline.communicators": "rank", "pipeline.schedule": "gpipe"},
    "replicas: sums of gradients": {"pipeline.replicas": 2},
    "ZeRO-1 and clipping: shards, gathers, norms, losses": {
        "pipeline.replicas": 2, "training.zero": 1, "training.clip_norm": 0.5},
    "CUDA graphs": {"training.cuda_graphs": "true"},
    "four ranks, zbv": {"pipeline.ranks": 4, "pipeline.schedule": "zbv", "pipeline.chunks": 2,
                        "model.blocks": 6},
}


def part_nccl(check):
    check.need_gpu()
    figures = check.each(OVER_NCCL, lambda name: train(check, "--processes", sets=usual(check, **{
        "training.steps": 4, **OVER_NCCL[name]})))
    return {"gpus": len(check.devices), **figures}, passed_table(check)


def part_abort(check):
    """Kills a rank in the middle of a training over NCCL: the other must end, and the report must name the
    killed rank."""
    check.need_gpu()
    sets = usual(check, **{"training.steps": 1000000})
    measured, folder = costs(check, sets), check.folder()
    words = check.words("train", "--device", "cuda", "--processes", "--out", folder, *PATIENCE,
                        *measured, sets=sets)
    begin = check.log_bytes()
    process = check.start(words, open(os.devnull, "wb"))
    try:
        until(check, process, lambda: lines_in(folder / "steps.jsonl") > 2, "took its third step")
        for number in processes_of(process.pid):
            if "RANK=1" in environment_of(number):
                os.kill(number, signal.SIGKILL)
        killed = time.monotonic()
        check.wait(process)
    finally:
        end(process)
    seconds, said = time.monotonic() - killed, check.log_tail(begin)
    if process.returncode == 0 or "rank 1 " not in said:
        raise Failed("the last message does not name rank 1")
    return {"seconds": round(seconds, 2)}, [["a rank was killed", "s"],
                                            ["until the job ended", f"{seconds:.2f}"]]


def until(check, process, happened, what):
    while not happened():
        if process.poll() is not None or check.left() < 1:
            raise Failed(f"the training never {what}")
        time.sleep(0.02)


def lines_in(file):
    return len(file.read_text().splitlines()) if file.exists() else 0


def environment_of(number):
    try:
        with open(f"/proc/{number}/environ", "rb") as file:
            return file.read().decode(errors="replace").split("\0")
    except OSError:
        return []


def part_kernels(check):
    """Records the kernels of a training, with threads and with processes."""
    check.need_gpu()

    def recorded(name):
        file = check.out / f"kernels-of-{name}.json"
        options = ["--processes"] if name == "processes" else []
        sets = usual(check, **{"training.steps": 8})
        check.pipewright("train", "--device", "cuda", "--kernels", file, *PATIENCE,
                         *costs(check, sets), *options, sets=sets)
        events = len(json.loads(file.read_text())["traceEvents"])
        if events == 0:
            raise Failed("nothing was recorded")
        return {"events": events, "bytes": file.stat().st_size}

    figures = check.each(["threads", "processes"], recorded)
    return figures, [["", "events", "bytes"]] + [
        [name, f["events"], f["bytes"]] for name, f in figures.items()]


def part_resume(check):
    """Trains four steps, saves, and trains four more: the checkpoint must equal that of eight steps at
    once."""
    check.need_gpu()
    straight, resumed = check.folder(), check.folder().with_name("resumed")

    def go(folder, steps, *options):
        train(check, "--checkpoints", folder, *options,
              sets=usual(check, **{"training.steps": steps}))

    go(straight, 8)
    go(resumed, 4)
    go(resumed, 8, "--resume")
    files = sorted((straight / "step_00000008").glob("*.safetensors"))
    if not files:
        raise Failed("no checkpoint was written")
    for file in files:
        if file.read_bytes() != (resumed / "step_00000008" / file.name).read_bytes():
            raise Failed(f"{file.name} differs from the file of an uninterrupted training")
    shutil.rmtree(straight)
    shutil.rmtree(resumed)
    return {"bit_identical": True, "files": len(files)}, None


def part_alexnet(check):
    """Trains convolutions, pooling and dropout, without and with CUDA graphs, on synthetic images."""
    check.need_gpu()
    images = check.out / "runs/made-up-cifar10"
    images.mkdir(parents=True, exist_ok=True)
    for number in range(1, 6):
        (images / f"data_batch_{number}.bin").write_bytes(b"".join(
            bytes([record % 10]) + bytes((record * 31 + pixel * 7 + pixel // 32) % 256
                                         for pixel in range(3072)) for record in range(16)))
    steps = {"model.image_size": 64, "training.steps": 2,
             "training.optimizer": "sgd"} if check.small else {"training.steps": 4}
    figures = check.each(["without graphs", "with graphs"], lambda name: train(
        check, scenario="alexnet-cifar10", data=["--data", images], sets={
            **steps, "training.cuda_graphs": "true" if name == "with graphs" else "false"}))
    shutil.rmtree(images)
    return figures, passed_table(check)


def part_prediction(check):
    check.need_gpu()

    def run(schedule):
        options, gpus = sharing(check, 2)
        report = loop(check, "--device", "cuda", *options,
                      sets=large(check, **{"pipeline.schedule": schedule, **chunks_of(schedule)}))
        return {**comparison(report), "gpus": gpus}

    figures = check.each(SCHEDULES, run)
    errors = [abs(f["error_percent"]) for f in figures.values() if f["error_percent"] is not None]
    return {"runs": list(figures.values()),
            "mean_abs_error_percent": statistics.mean(errors) if errors else None}, table_of(figures)


# With the same bits each time, which costs time, and with the kernels that LibTorch chooses by
# default.
BESIDE_TORCH = {"pipewright, exact": ("ours", "exact"), "torch, deterministic": ("torch", "exact"),
                "pipewright, default kernels": ("ours", "default"), "torch, default": ("torch", "default")}


def part_benches(check):
    check.need_gpu()
    size = ["--layers", 8, "--hidden", 1024, "--heads", 16, "--seq", 512, "--microbatches", 8,
            "--steps", 4, "--rounds", 2]
    if check.small:
        size = ["--layers", 2, "--hidden", 32, "--heads", 2, "--seq", 16, "--microbatches", 2,
                "--steps", 1, "--rounds", 1]

    def bench(name):
        if name == "actions":
            small = ["--hidden", 32] if check.small else []
            return json.loads(check.run([check.program("pipewright_bench_actions"), "--gpu",
                                         "--rounds", 1 if check.small else 3, *small]))
        whose, kernels = BESIDE_TORCH[name]
        if whose == "ours":
            return json.loads(check.run([check.program("pipewright_bench_executor"), "--gpu",
                                         "--kernels", kernels, *size]))
        said = check.torch_script("torch_pipelining.py", "--device", "cuda", "--kernels", kernels, *size)
        return json.loads(said.strip().splitlines()[-1])

    figures = check.each(["actions", *BESIDE_TORCH], bench)
    return figures, [["", "iteration", "over ideal"]] + [
        [name, say(f["iteration_s"], "{:.2f} ms", 1e3), f"{f['over_ideal']:.3f}"]
        for name, f in figures.items() if name != "actions"]


class Part:
    def __init__(self, name, work, share, title):
        self.name, self.work, self.share, self.title = name, work, share, title


# The most informative parts come first, in case the run is cut off. Shares of the time, in seconds
# of eight minutes; later parts get the time that a part does not need.
PARTS = [
    Part("machine", part_machine, 15, "The machine"),
    Part("cpu", part_cpu, 20, "A training on the CPU, bits compared"),
    Part("tests", part_tests, 80, "Tests on the GPU"),
    Part("golden", part_golden, 15, "Recordings of a GPU, for tests without one"),
    Part("profile", part_profile, 25, "Costs of layers, by CUPTI"),
    Part("verify", part_verify, 35, "Schedules on the GPU, bits compared"),
    Part("nccl", part_nccl, 70, "Processes over NCCL, bits compared"),
    Part("abort", part_abort, 25, "A killed rank"),
    Part("prediction", part_prediction, 45, "Predictions and measurements"),
    Part("shared", part_shared, 20, "One GPU as several, each with its own multiprocessors"),
    Part("graphs", part_graphs, 20, "A small model without and with CUDA graphs, bits compared"),
    Part("resume", part_resume, 15, "A training resumed from a checkpoint"),
    Part("kernels", part_kernels, 15, "A training, kernel by kernel"),
    Part("links", part_links, 40, "Links"),
    Part("alexnet", part_alexnet, 15, "AlexNet, bits compared"),
    Part("benches", part_benches, 30, "Comparison with torch under equal conditions"),
]
