#!/usr/bin/env python3
"""Prints the actions of LibTorch's CUDA allocator in two steps of a small training, with a second stream
that copies as our transports do. JSON: a row [action, address, bytes, stream] for each entry of its
trace, in order; addresses and streams are numbered from 0. `stats`: the allocator's own counters."""

import json

import torch
from torch import nn


def train():
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    beside = torch.cuda.Stream()
    for _ in range(2):
        outputs = [model(torch.randn(32, 64, device="cuda")) for _ in range(3)]
        for output in outputs:
            beside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(beside):
                copy = torch.empty_like(output)
                copy.copy_(output.detach())
            output.record_stream(beside)
            torch.cuda.current_stream().wait_stream(beside)
            output.backward(copy)
            del copy
        del output, outputs
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


# The counters that tests/models/allocator/allocator_trace_test.cpp compares.
COUNTED = [f"{what}.all.{which}" for what in ("allocated_bytes", "reserved_bytes", "inactive_split_bytes")
           for which in ("peak", "current")] + ["num_alloc_retries"]


def main():
    torch.cuda.memory._record_memory_history(enabled="all", context=None)
    train()
    entries = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
    segments = [entry for entry in entries if entry["action"] == "segment_alloc"]
    base = min((entry["addr"] for entry in segments), default=0)
    streams = {}
    rows = [[entry["action"], max(entry.get("addr", base) - base, 0), entry["size"],
             streams.setdefault(entry["stream"], len(streams))] for entry in entries]
    stats = torch.cuda.memory_stats()
    print(json.dumps({"torch": torch.__version__, "stats": {key: stats[key] for key in COUNTED},
                      "entries": rows}))


if __name__ == "__main__":
    main()
