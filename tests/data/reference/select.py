#!/usr/bin/env python3
"""Makes this selection from the whole reference folder: select.py FOLDER

Small tables are copied whole. Of a table of orders, cases are taken from one number of ranks after the other, each time
the next in the order of a hash of what tells them apart, as long as they fit; of other large tables in the order of that
hash. A case is taken with all its rows, unchanged. cases.csv says how many rows and cases were taken, of how many cases."""

import csv
import hashlib
import io
import json
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
MOST_BYTES = 9000  # of a table of orders
SMALL_CASE = 4500
KEYS = ("P", "M", "V", "group_size", "setup", "post_validation")

WHOLE = """
papers/gpipe_table1_memory.csv papers/gpipe_tables2_3.csv papers/pipedream_optimizer_reference.csv
papers/profile_dapple_*.csv papers/profile_pipedream_*.csv papers/vtrain_*_node.csv
papers/bloom_176b_tuning.csv papers/korthikanti_table3_table5.csv papers/megatron_sc21_table1.csv
papers/nvidia_nemo_summaries.csv papers/vocab_parallel_table5_1f1b.csv planners/simumax_b200.csv
papers/zb_table3_models.csv papers/zb_table4_throughput_memory.csv papers/zb_table5_table9_bubble_rates.csv
papers/zb_table8_bubble_rates.csv papers/zb_table12_small_m.csv
partition/partition_uniform.json planners/planner_reference.csv planners/schedule_reference.csv
schedules/dualpipe_rejected.csv schedules/zerobubble_ilp.csv topology/torch_stage_mapping.json
""".split()
ORDERS = """
deepspeed_DataParallelSchedule deepspeed_InferenceSchedule deepspeed_TrainSchedule dualpipe_DualPipe dualpipe_DualPipeV
megatron_1F1B megatron_Interleaved1F1B megatron_Interleaved1F1B_group_size
torch_1F1B torch_DualPipeV torch_ForwardOnly torch_GPipe torch_Interleaved1F1B torch_InterleavedZeroBubble
torch_LoopedBFS torch_ZBVZeroBubble torch_executed_p2p_1F1B torch_executed_p2p_ForwardOnly torch_executed_p2p_GPipe
torch_lowered_DualPipeV torch_lowered_Interleaved1F1B torch_lowered_InterleavedZeroBubble torch_lowered_LoopedBFS
torch_lowered_ZBVZeroBubble torch_merge_bw_InterleavedZeroBubble torch_merge_bw_ZBVZeroBubble
torch_pipeline_order_1F1B torch_pipeline_order_GPipe torch_sendrecv_DualPipeV torch_sendrecv_Interleaved1F1B
torch_sendrecv_InterleavedZeroBubble torch_sendrecv_LoopedBFS torch_sendrecv_ZBVZeroBubble
zerobubble_1F1B zerobubble_1F1B-V zerobubble_GroupInterleaved1F1B zerobubble_Interleaved1F1B zerobubble_V-Half
zerobubble_V-Min zerobubble_V-auto zerobubble_ZB zerobubble_ZB-H1 zerobubble_ZBV zerobubble_comms_1F1B
zerobubble_comms_1F1B-V zerobubble_comms_Interleaved1F1B zerobubble_comms_V-Half zerobubble_comms_V-Min
zerobubble_comms_ZB zerobubble_comms_ZBV
""".split()
ROWS = {"schedules/deepspeed_buffers.csv": 60, "schedules/megatron_rejected.csv": 40,
        "schedules/megatron_warmup.csv": 60, "schedules/torch_rejected.csv": 30}
CASES = {"partition/partition_balanced.json": 40, "partition/torchtitan_layer_split.json": 40,
         "schedules/megatron_schedule_table.json": 12, "topology/pipeline_parallel_grid.json": 8,
         "topology/process_topology.json": 12}

counts = {}  # file: rows, cases, of


def by_hash(keys):
    return sorted(keys, key=lambda key: hashlib.sha256(repr(key).encode()).hexdigest())


def read_rows(folder, name):
    with open(folder / name, newline="") as file:
        return list(csv.DictReader(file))


def text_of(rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write(name, text, rows, cases, of):
    (HERE / name).parent.mkdir(exist_ok=True)
    (HERE / name).write_text(text)
    counts[name] = rows, cases, of


def configuration_of(row):
    return tuple(row[key] for key in KEYS if key in row)


def configurations(rows):
    cases = {}
    for row in rows:
        cases.setdefault(configuration_of(row), []).append(row)
    return cases


def in_turns(keys):
    """By the number of ranks in turns, one rank alone last."""
    queues = {}
    for key in by_hash(keys):
        queues.setdefault(int(key[0]), []).append(key)
    order = sorted(queues, key=lambda ranks: (ranks == 1, ranks))
    longest = max(map(len, queues.values()), default=0)
    return [queues[ranks][turn] for turn in range(longest) for ranks in order if turn < len(queues[ranks])]


def select_orders(folder, name):
    """Returns which configurations were taken."""
    cases = configurations(read_rows(folder, name))
    sizes = {key: len(text_of(rows)) for key, rows in cases.items()}
    taken, room = set(), MOST_BYTES
    for key in in_turns([key for key in cases if sizes[key] <= SMALL_CASE]) or [min(sizes, key=sizes.get)]:
        if sizes[key] <= room or not taken:
            taken.add(key)
            room -= sizes[key]
    rows = [row for key in cases if key in taken for row in cases[key]]
    write(name, text_of(rows), len(rows), len(taken), len(cases))
    return taken


def select_rows(folder, name, is_taken):
    rows = read_rows(folder, name)
    taken = [row for row in rows if is_taken(row)]
    write(name, text_of(taken), len(taken), len(taken), len(rows))


def some_rows(folder, name, most):
    rows = read_rows(folder, name)
    taken = set(by_hash([tuple(row.values()) for row in rows])[:most])
    select_rows(folder, name, lambda row: tuple(row.values()) in taken)


def some_cases(folder, name, most):
    cases = json.loads((folder / name).read_text())
    small = sorted(cases, key=lambda case: len(json.dumps(case)))[:max(most, len(cases) * 2 // 3)]
    texts = set(by_hash([json.dumps(case) for case in small])[:most])
    taken = [case for case in cases if json.dumps(case) in texts]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in taken)
    write(name, f"[\n{lines}\n]\n", len(taken), len(taken), len(cases))


def whole(folder, name):
    text = (folder / name).read_text()
    cases = len(json.loads(text)) if name.endswith(".json") else len(read_rows(folder, name))
    write(name, text, cases, cases, cases)


def main():
    folder = pathlib.Path(sys.argv[1])
    for old in ("papers", "partition", "planners", "schedules", "topology"):
        shutil.rmtree(HERE / old, ignore_errors=True)
    for pattern in WHOLE:
        for file in sorted(folder.glob(pattern)):
            whole(folder, str(file.relative_to(folder)))
    orders = {name: select_orders(folder, f"schedules/{name}.csv") for name in ORDERS}
    for name, most in ROWS.items():
        some_rows(folder, name, most)
    for name, most in CASES.items():
        some_cases(folder, name, most)

    # What is told of orders, for those that were taken.
    def has_order(row):
        taken = orders.get(f"zerobubble_{row['schedule']}", ())
        return (row["P"], row["M"], row["V"], row["setup"]) in taken

    def is_summarized(row):
        if row["schedule"] == "V-Min" and row["P"] == "8" and row["setup"] == "f=1 b=1 w=1 c=0":
            return True
        return row["schedule"] in ("V-Half", "V-Min", "ZB", "ZBV") and has_order(row)

    select_rows(folder, "schedules/zerobubble_comms_check.csv", has_order)
    select_rows(folder, "schedules/zerobubble_summary.csv", is_summarized)
    with open(HERE / "cases.csv", "w") as file:
        file.write("file,rows,cases,of\n")
        for name in sorted(counts):
            file.write(f"{name},{','.join(map(str, counts[name]))}\n")


if __name__ == "__main__":
    main()
