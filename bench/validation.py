#!/usr/bin/env python3
"""Predicts one half of each published table of training runs from the other half.

    bench/validation.py [--reference FOLDER] [--program build/bin/pipewright] [--halves 5]

Writes the tables of docs/validation.md to stdout, by default for the tables in tests/data/reference. Each published
table is converted to a table of runs for `pipewright calibrate`, with a model's public shape if the paper only names
it. Zero Bubble's schedules are predicted from the runs of 1F1B. The last two tables are for files that are read as they
are: MLPerf's systems, each with its own cluster's constants and with constants from the others of its kind of GPU, and
the memory that Megatron-LM's tests report. These need --reference, as those files are not copied into tests/data.
"""
import argparse
import collections
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent.parent


def rows_of(file):
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


def renamed(rows, names, **fixed):
    """Returns each row with our column names, and with the values that all rows have in common."""
    return [{**fixed, **{ours: row[theirs] for ours, theirs in names.items()}} for row in rows]


SAME = {name: name for name in ("gpus", "tp", "dp", "pp", "global_batch", "micro_batch", "layers",
                                "hidden", "heads", "seq")}


def vtrain(name):
    return lambda folder: renamed(rows_of(folder / f"papers/vtrain_{name}_node.csv"),
                                  {**SAME, "id": "id", "iter_ms": "iter_ms"})


def korthikanti(folder):
    runs = []
    for row in rows_of(folder / "papers/korthikanti_table3_table5.csv"):
        for recompute, column in (("full", "iter_s_full_recompute"), ("selective", "iter_s_selective_seqpar")):
            runs += renamed([row], {**SAME, "model": "model", "vocab": "vocab", "chunks": "interleave_v",
                                    "iter_s": column},
                            id=f"{row['model']} {recompute}", recompute=recompute,
                            sequence_parallel="no" if recompute == "full" else "yes")
    return runs


def sc21(folder):
    return renamed(rows_of(folder / "papers/megatron_sc21_table1.csv"),
                   {**SAME, "id": "params_b", "vocab": "vocab", "chunks": "chunks_v", "iter_s": "iter_time_s_derived"},
                   model="GPT", recompute="full")


def bloom(folder):
    """Returns rows with a shape, whole stages and a time; BLOOM's stages of unequal layers are left out."""
    def is_usable(row):
        if not (row["layers"] and row["heads"] and row["iter_s"]):
            return False
        devices = int(row["tp"]) * int(row["dp"]) * int(row["pp"])
        samples = int(row["dp"]) * int(row["micro_batch"])
        return (devices == int(row["gpus"]) and int(row["layers"]) % int(row["pp"]) == 0
                and int(row["global_batch"]) % samples == 0 and int(row["heads"]) % int(row["tp"]) == 0
                and int(row["hidden"]) % int(row["heads"]) == 0)
    rows = rows_of(folder / "papers/bloom_176b_tuning.csv")
    runs = []
    for number, row in enumerate(rows):
        if is_usable(row):
            runs += renamed([row], {**SAME, "vocab": "vocab", "iter_s": "iter_s"}, id=f"row {number + 1}",
                            model=row["date_2022"], recompute="full", zero=1)
    return runs


def b200(folder):
    runs = []
    for row in rows_of(folder / "planners/simumax_b200.csv"):
        size = {name: int(row[name]) for name in ("tp", "pp", "dp", "cp", "ep", "mbs", "microbatches")}
        runs.append({
            "id": row["case"], "model": row["model"], "layers": row["layers_used"], "seq": row["seq"],
            "gpus": size["tp"] * size["pp"] * size["dp"] * size["cp"],
            **{name: size[name] for name in ("tp", "pp", "dp", "cp", "ep")},
            "global_batch": size["dp"] * size["mbs"] * size["microbatches"], "micro_batch": size["mbs"],
            "dense_layers": 1 if row["model"].startswith("deepseek") else 0, "zero": 1,
            "sequence_parallel": "yes" if size["tp"] > 1 else "no", "recompute": "none",
            "iter_ms": row["real_iter_ms"], "peak_memory_gib": row["real_peak_alloc_GiB"],
            "reserved_memory_gib": row["real_reserved_GiB"]})
    return runs


DENSE = {"GPT3-175B": ("gpt3-175b", 96), "LLAMA2-70B": ("llama2-70b", 80), "LLAMA3-70B": ("llama3-70b", 80),
         "LLAMA3_70B": ("llama3-70b", 80), "LLAMA3.1_405B": ("llama3-405b", 126), "LLAMA3_8B": ("llama3-8b", 32), "Nemotron-340B": ("", 96)}
# Models without a built-in name. Nemotron-4 340B Technical Report, arXiv 2406.11704, Table 1;
# squared ReLU.
SHAPES = {"Nemotron-340B": {"hidden": 18432, "heads": 96, "kv_heads": 8, "head_channels": 192, "ffn": 73728,
                            "vocab": 256000, "gated": "no", "attention": "fused"}}
NO_SHAPE = {name: "" for shape in SHAPES.values() for name in shape}


def divides(layers, stages):
    """Returns true if the stages divide the layers, also with the embedding and the head as a layer each."""
    return layers % stages == 0 or (layers + 2) % stages == 0


def nemo(folder):
    """Returns dense models on H100 in 8 bits, with pipelines of whole stages or none."""
    runs = []
    for number, row in enumerate(rows_of(folder / "papers/nvidia_nemo_summaries.csv")):
        if row["model"] not in DENSE or row["system"] != "DGX-H100" or not row["precision"].startswith("FP8"):
            continue
        model, layers = DENSE[row["model"]]
        tp, pp, cp = (int(row[name] or 1) for name in ("tp", "pp", "cp"))
        vp = int(row["vp"]) if row["vp"] not in ("", "n/a") else 1
        gpus, batch, micro, seq = (int(row[name]) for name in ("gpus", "global_batch", "micro_batch", "seq"))
        dp = gpus // (tp * pp * cp)
        if row["fsdp"] not in ("", "0", "n/a") or dp < 1 or not divides(layers, pp * vp) or batch % (dp * micro):
            continue
        if vp > 1 and batch // (dp * micro) % pp:
            continue
        runs.append({"id": f"row {number + 1}", "model": model, "gpus": gpus, "tp": tp, "dp": dp, "pp": pp, "cp": cp,
                     "chunks": vp, "global_batch": batch, "micro_batch": micro, "seq": seq, "layers": layers,
                     "precision": "fp8", "sequence_parallel": "yes", "zero": 1, "recompute": "none",
                     **NO_SHAPE, **SHAPES.get(row["model"], {}),
                     "iter_s": batch * seq / (float(row["tokens_per_s_per_gpu"]) * gpus)})
    return runs


def vocabularies(folder):
    """Returns plain 1F1B runs with growing vocabularies; times follow from the reached share of the peak."""
    runs = []
    for number, row in enumerate(rows_of(folder / "papers/vocab_parallel_table5_1f1b.csv")):
        if row["method"] != "baseline":
            continue
        hidden, layers, seq, vocab = (int(row["hidden"]), int(row["layers"]), int(row["seq"]), int(row["vocab_k"]) * 1024)
        samples = int(row["micro_batch"]) * int(row["microbatches"])
        flops = 72 * samples * seq * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (12 * hidden * layers))
        runs.append({**{name: row[name] for name in ("gpus", "pp", "layers", "heads", "hidden", "seq", "micro_batch")},
                     "id": f"row {number + 1}", "tp": 1, "dp": 1, "global_batch": samples, "vocab": vocab,
                     "recompute": "none", "attention": "fused",
                     "iter_s": flops / (int(row["gpus"]) * 312e12 * float(row["mfu_pct"]) / 100)})
    return runs


TABLES = [
    ("vTrain, one node of A100", "a100-80gb", vtrain("single"), "vTrain 8.4, Calculon 39"),
    ("vTrain, 64 to 512 A100", "a100-80gb", vtrain("multi"), "vTrain 14.7, Calculon 15.3"),
    ("Korthikanti, Tables 3 and 5 (Calculon's rows)", "a100-80gb", korthikanti, "Calculon 3.65"),
    ("Megatron SC'21, Table 1", "a100-80gb", sc21, "–"),
    ("BLOOM's search for a topology", "a100-80gb", bloom, "–"),
    ("Vocabulary parallelism, Table 5, plain 1F1B", "a100-80gb", vocabularies, "–"),
    ("NVIDIA's summaries, dense models, H100, FP8", "h100-sxm", nemo, "–"),
    ("SimuMax, 8 × B200", "b200", b200, "SimuMax 5.6"),
]


def asked(program, *arguments):
    """Returns the output of `calibrate`, as a value."""
    answer = subprocess.run([program, "calibrate", *map(str, arguments), "--json"], check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)


def write(file, runs):
    with open(file, "w", newline="") as stream:
        writer = csv.DictWriter(stream, list(runs[0]))
        writer.writeheader()
        writer.writerows(runs)


def calibrated(program, cluster, runs, halves):
    """Returns the program's output for a table."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "runs.csv"
        write(file, runs)
        predicted = ["--predict", file] if "reserved_memory_gib" in runs[0] else []
        return asked(program, HERE / f"scenarios/clusters/{cluster}.json", "--runs", file, "--halves", halves, *predicted)


def zero_bubble(folder, name):
    """Returns a table of Zero Bubble's runs with any schedules; the first and the last stage have one layer less."""
    models = {row["model"]: row for row in rows_of(folder / "papers/zb_table3_models.csv")}
    runs = []
    for row in rows_of(folder / f"papers/{name}.csv"):
        # At equal memory, ZB-2p* halves the microbatches of the others.
        micro = row.get("effective_micro_batch") or row.get("micro_batch") or row["b"]
        count = row.get("effective_microbatches") or row.get("m_inferred") or row["m"]
        own, stages = row.get("m", count), row.get("p") or row["gpus"]
        runs.append({"id": f"{row['model']} m {own} {row['schedule']}", "group": (row["model"], own), "schedule": row["schedule"].rstrip("*"),
                     "gpus": stages, "pp": stages, "micro_batch": f"{float(micro):g}", "microbatches": count,
                     **{size: models[row["model"]][size] for size in ("layers", "hidden", "heads", "seq")},
                     "samples_per_gpu_per_s": row["samples_per_gpu_per_s"], "peak_memory_gb": row["memory_gb"]})
    return runs


SCHEDULES = {"zb_table4_throughput_memory": "Zero Bubble, Table 4", "zb_table6_zbv": "… Table 6, equal memory, two nodes",
             "zb_table11_equal_memory": "… Table 11, equal memory", "zb_table12_small_m": "… Table 12, few microbatches"}


def schedules(folder, program):
    """Predicts runs that differ in their schedule: each table from its 1F1B rows, and with the constants of an A100."""
    print("\n| schedules against each other | runs | time, mean % | worst | peak memory, mean % | pairs in order | quickest found |")
    print("|---|---|---|---|---|---|---|")
    for name, called in SCHEDULES.items():
        if not (folder / f"papers/{name}.csv").exists():
            continue
        runs = zero_bubble(folder, name)
        groups = [run.pop("group") for run in runs]
        learnt = [run for run in runs if run["schedule"] == "1F1B"]
        for title, rows in ((f"{called}, from its 1F1B", learnt), ("… by the constants", [])):
            answers = predicted(program, "a100-80gb", runs, rows)["runs"]
            compared = [Compared(group, run not in rows, measured_s(run), answer["predicted_s"],
                                 answer["peak_bytes"] / float(run["peak_memory_gb"]) / 1e9)
                        for group, run, answer in zip(groups, runs, answers)]
            print(schedules_line(title, compared))


Compared = collections.namedtuple("Compared", "group counts measured predicted memory")


def measured_s(run):
    return int(run["microbatches"]) * float(run["micro_batch"]) / int(run["gpus"]) / float(run["samples_per_gpu_per_s"])


def predicted(program, cluster, wanted, learnt):
    file = HERE / f"scenarios/clusters/{cluster}.json"
    with tempfile.TemporaryDirectory() as work:
        asked_for, known = pathlib.Path(work) / "wanted.csv", pathlib.Path(work) / "learnt.csv"
        write(asked_for, wanted)
        if not learnt:
            return asked(program, file, "--predict", asked_for)
        write(known, learnt)
        return asked(program, file, "--predict", asked_for, "--runs", known)


def schedules_line(title, runs):
    errors = [100 * abs(run.predicted / run.measured - 1) for run in runs if run.counts]
    sizes = [100 * abs(run.memory - 1) for run in runs if run.counts]
    pairs = right = found = 0
    groups = {run.group: [other for other in runs if other.group == run.group] for run in runs}
    for members in groups.values():
        for one in members:
            slower = [other for other in members if one.measured < other.measured]
            pairs += len(slower)
            right += sum(one.predicted < other.predicted for other in slower)
        found += min(members, key=lambda run: run.predicted).measured == min(run.measured for run in members)
    return (f"| {title} | {len(errors)} | {sum(errors) / len(errors):.2f} | {max(errors):.1f} | {sum(sizes) / len(sizes):.2f} | "
            f"{right} of {pairs} | {found} of {len(groups)} |")


MLPERF = [("H100", "h100-sxm"), ("(B200", "b200"), ("GB200", "gb200-nvl72"), ("GB300", "gb300-nvl72")]


def mlperf(folder, program):
    """Prints a line for each system: predicted with the constants of its cluster, and with constants from the other
    systems with its GPU and model."""
    print("\n| MLPerf | system | GPUs | measured, s | by the cluster's constants, % | from the others of its kind, % |")
    print("|---|---|---|---|---|---|")
    for model, name in (("405B", "mlperf_405b_visible"), ("8B", "mlperf_8b_visible")):
        rows = rows_of(folder / f"papers/{name}.csv")
        for kind, cluster in MLPERF:
            own = [row for row in rows if kind in row["gpu"]]
            for row in own:
                print(f"| {model} | {row['id']} | {row['gpus']} | {float(row['iter_s']):.3f} | "
                      f"{' | '.join(system_errors(program, cluster, row, [one for one in own if one is not row]))} |")


def system_errors(program, cluster, row, others):
    file = HERE / f"scenarios/clusters/{cluster}.json"
    with tempfile.TemporaryDirectory() as work:
        wanted, learnt = pathlib.Path(work) / "wanted.csv", pathlib.Path(work) / "learnt.csv"
        write(wanted, [row])
        answers = [asked(program, file, "--predict", wanted)]
        if others:
            write(learnt, others)
            answers.append(asked(program, file, "--predict", wanted, "--runs", learnt))
    shown = [f"{answer['time']['worst'][0]['error_percent']:+.2f}" for answer in answers]
    return shown if others else [*shown, "–"]


def megatron(folder, program):
    """Predicts the peak memory of Megatron-LM's own tests, from their options alone."""
    file = folder / "papers/megatron_golden_visible.csv"
    rows = {row["id"]: row for row in rows_of(file)}
    answer = asked(program, HERE / "scenarios/clusters/a100-80gb.json", "--predict", file)
    print("\n| Megatron-LM's tests | runs | mean | median | p90 | worst |")
    print("|---|---|---|---|---|---|")
    errors = {"all": [], "dgx, first runs, from June 2025 on": [], "allocated between iterations": []}
    for run in answer["runs"]:
        row = rows[run["id"]]
        if "peak_bytes" not in run or not row["mem_max_allocated_bytes"]:
            continue
        error = 100 * abs(run["peak_bytes"] / float(row["mem_max_allocated_bytes"]) - 1)
        errors["all"].append(error)
        errors["allocated between iterations"].append(100 * abs(run["allocated_bytes"] / float(row["mem_allocated_bytes"]) - 1))
        if row["platform"].startswith("dgx_") and row["run"] == "1" and row["golden_date"] >= "2025-06-01":
            errors["dgx, first runs, from June 2025 on"].append(error)
    for name, sizes in errors.items():
        sizes.sort()
        print(f"| {name} | {len(sizes)} | {sum(sizes) / len(sizes):.2f} | {sizes[len(sizes) // 2]:.2f} | {sizes[len(sizes) * 9 // 10]:.2f} | {sizes[-1]:.1f} |")
    print(f"\n{len(rows) - len(errors['all'])} of {len(rows)} rows are refused")


def line(name, error, peer):
    def shown(key, digits=2):
        return "–" if error[key] is None else f"{error[key]:.{digits}f}"
    return (f"| {name} | {shown('mean_abs_error_percent')} | {shown('median_abs_error_percent')} | "
            f"{shown('p90_abs_error_percent')} | {shown('worst_percent', 1)} | {shown('regret_percent')} | "
            f"{shown('spearman')} | {peer} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reference", type=pathlib.Path, default=HERE / "tests/data/reference")
    parser.add_argument("--program", default=HERE / "build/bin/pipewright")
    parser.add_argument("--halves", type=int, default=5)
    parser.add_argument("--only-systems", action="store_true", help="the tables of MLPerf and Megatron-LM alone")
    parser.add_argument("--only-schedules", action="store_true", help="the table of schedules alone")
    options = parser.parse_args()
    if options.only_systems:
        mlperf(options.reference, options.program)
        return megatron(options.reference, options.program)
    if options.only_schedules:
        return schedules(options.reference, options.program)
    print("| table | runs | mean | median | p90 | worst | regret | Spearman | peers, mean |")
    print("|---|---|---|---|---|---|---|---|---|")
    constants = {}
    for name, cluster, read, peer in TABLES:
        runs = read(options.reference)
        answer = calibrated(options.program, cluster, runs, options.halves)
        constants[name] = answer["constants"]
        error = answer["across_halves"]
        physics = error["physics_only"]
        print(line(f"{name} | {len(runs)}", error, peer))
        if "peak_memory" in error:
            print(line(f"… peak memory | {len(runs)}", error["peak_memory"], "SimuMax 0.46"))
        if "reserved_memory" in answer:
            print(line(f"… reserved by LibTorch's allocator, nothing fitted | {len(runs)}", answer["reserved_memory"], ""))
        if abs(physics["mean_abs_error_percent"] - error["mean_abs_error_percent"]) > 0.005:
            print(line(f"… by the machine's constants alone | {len(runs)}", physics, ""))
    print("\n| constant | " + " | ".join(constants) + " |")
    print("|---|" + "---|" * len(constants))
    for key in next(iter(constants.values())):
        cells = []
        for table in constants.values():
            value = table[key]
            cells.append(f"{value['value']:.3g} ± {value['uncertainty_percent']:.0f} %" if value["fitted"] else "")
        if any(cells):
            print(f"| `{key}` | " + " | ".join(cells) + " |")
    schedules(options.reference, options.program)
    if (options.reference / "papers/mlperf_405b_visible.csv").exists():
        mlperf(options.reference, options.program)
        megatron(options.reference, options.program)
    else:
        print(f"\nskipped: MLPerf's and Megatron-LM's tables, which {options.reference} does not have", file=sys.stderr)


if __name__ == "__main__":
    main()
