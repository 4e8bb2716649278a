"""Writes small files of torch.save and torch.distributed.checkpoint, with the layouts of DeepSpeed and Megatron-LM.

    python tests/hugging_face/torch_files.py            writes tests/data/torch_files and corpora of tests/fuzz

Numbers follow from names: the i-th tensor of a file (counted from 1) has 100·i + 0, 1, 2, …

    layers/layer_0N-model_00-model_states.pt   a PipelineModule's, of a linear layer (N = 0), one without parameters (1) and
                                               a linear layer in bfloat16 whose weight is a transposed view (2)
    mp_rank_00_model_states.pt                 an engine's, with the contents other than weights
    refused.pt                                 one whose pickle would run a command
    megatron/                                  a decoder of two layers, gated, four heads with two keys, written by four ranks
                                               of a tensor × pipeline grid (TP 2, PP 2): each wrote its own box of each tensor
"""

import argparse
import collections
import io
import os
import pathlib
import pickle
import shutil

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystemWriter, _StorageInfo
from torch.distributed.checkpoint.metadata import (ChunkStorageMetadata, Metadata, MetadataIndex, TensorProperties,
                                                   TensorStorageMetadata)

TESTS = pathlib.Path(__file__).resolve().parent.parent
DATA = TESTS / "data" / "torch_files"
CORPUS = TESTS / "fuzz" / "corpus"


def numbers(index, *sizes, dtype=torch.float32):
    count = torch.Size(sizes).numel()
    return (100 * index + torch.arange(count)).to(dtype).reshape(sizes)


def deepspeed():
    layers = DATA / "layers"
    layers.mkdir(parents=True)
    linear = torch.nn.Linear(3, 2)
    linear.load_state_dict({"weight": numbers(1, 2, 3), "bias": numbers(2, 2)})
    torch.save(linear.state_dict(), layers / "layer_00-model_00-model_states.pt")
    torch.save(collections.OrderedDict(), layers / "layer_01-model_00-model_states.pt")
    last = collections.OrderedDict(weight=numbers(1, 2, 4, dtype=torch.bfloat16).t(), bias=numbers(2, 4, dtype=torch.bfloat16))
    torch.save(last, layers / "layer_02-model_00-model_states.pt")

    module = collections.OrderedDict(
        (("0.weight", torch.nn.Parameter(numbers(1, 2, 3))), ("0.bias", numbers(2, 4)[1:3]), ("steps", torch.tensor(7))))
    torch.save({
        "module": module,
        "buffer_names": ["steps"],
        "optimizer": None,
        "param_shapes": [collections.OrderedDict((("0.weight", torch.Size([2, 3])), ("0.bias", torch.Size([2]))))],
        "global_steps": 300,
        "loss_scale": 65536.0,
        "dtype": torch.bfloat16,
        "args": argparse.Namespace(lr=1e-3, big=1 << 40, negative=-5, flag=True),
        "sparse_tensor_module_names": (),
    }, DATA / "mp_rank_00_model_states.pt")


class Runs:
    def __reduce__(self):
        return (os.system, ("echo a command was run",))


def refused():
    torch.save({"weight": numbers(1, 2), "other": Runs()}, DATA / "refused.pt")


HIDDEN, HEADS, KEYS, CHANNELS, WIDTH, WORDS, PADDED, LAYERS, TP, PP = 8, 4, 2, 2, 6, 11, 12, 2, 2, 2


def megatron_tensors():
    """Yields name, sizes, and the dimension that tensor-parallel ranks partition (of the whole, with the layers first),
    or None."""
    rows = (HEADS + 2 * KEYS) * CHANNELS
    return [
        ("embedding.word_embeddings.weight", (PADDED, HIDDEN), 0),
        ("decoder.layers.self_attention.linear_qkv.layer_norm_weight", (LAYERS, HIDDEN), None),
        ("decoder.layers.self_attention.linear_qkv.weight", (LAYERS, rows, HIDDEN), 1),
        ("decoder.layers.self_attention.linear_proj.weight", (LAYERS, HIDDEN, HEADS * CHANNELS), 2),
        ("decoder.layers.pre_mlp_layernorm.weight", (LAYERS, HIDDEN), None),
        ("decoder.layers.mlp.linear_fc1.weight", (LAYERS, 2 * WIDTH, HIDDEN), 1),
        ("decoder.layers.mlp.linear_fc2.weight", (LAYERS, HIDDEN, WIDTH), 2),
        ("decoder.final_layernorm.weight", (HIDDEN,), None),
        ("output_layer.weight", (PADDED, HIDDEN), 0),
    ]


def boxes(name, sizes, cut):
    """Returns (rank, offsets, sizes) of each part; of stacked layers each pipeline rank has one."""
    stacked = name.startswith("decoder.layers.")
    for pipe in range(PP if stacked else 1):
        for tensor in range(TP if cut is not None else 1):
            offsets, own = [0] * len(sizes), list(sizes)
            if stacked:
                own[0] = LAYERS // PP
                offsets[0] = pipe * own[0]
            if cut is not None:
                own[cut] = sizes[cut] // TP
                offsets[cut] = tensor * own[cut]
            yield pipe * TP + tensor, offsets, own


def megatron():
    folder = DATA / "megatron"
    folder.mkdir()
    files = {}
    described, storage = {}, {}
    for index, (name, sizes, cut) in enumerate(megatron_tensors(), 1):
        whole = numbers(index, *sizes, dtype=torch.float32)
        chunks = []
        for at, (rank, offsets, own) in enumerate(boxes(name, sizes, cut)):
            part = whole
            for dimension, (begin, length) in enumerate(zip(offsets, own)):
                part = part.narrow(dimension, begin, length)
            stream = io.BytesIO()
            torch.save(part.clone(), stream)
            file = f"__{rank}_0.distcp"
            begin = len(files.get(file, b""))
            files[file] = files.get(file, b"") + stream.getvalue()
            chunks.append(ChunkStorageMetadata(offsets=torch.Size(offsets), sizes=torch.Size(own)))
            storage[MetadataIndex(name, torch.Size(offsets), at)] = _StorageInfo(file, begin, len(stream.getvalue()))
        described[name] = TensorStorageMetadata(TensorProperties(dtype=torch.float32), torch.Size(sizes), chunks)
    metadata = Metadata(state_dict_metadata=described, planner_data=None, storage_data=storage)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))


def plain():
    """Writes a checkpoint with torch itself, from one process, with a value that is not a tensor."""
    dcp.save({"a": numbers(1, 2, 3), "n": {"b": numbers(2, 2, dtype=torch.bfloat16), "x": 3}, "scalar": torch.tensor(4.0)},
             storage_writer=FileSystemWriter(DATA / "plain", single_file_per_rank=True))


def corpora():
    import zipfile
    torch_file, metadata = CORPUS / "torch_file", CORPUS / "distributed_metadata"
    for folder in (torch_file, metadata):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for name in ("layers/layer_00-model_00-model_states.pt", "layers/layer_02-model_00-model_states.pt", "refused.pt",
                 "mp_rank_00_model_states.pt"):
        with zipfile.ZipFile(DATA / name) as archive:
            pickled = next(entry for entry in archive.namelist() if entry.endswith("/data.pkl"))
            (torch_file / (pathlib.Path(name).name.split("-")[0].removesuffix(".pt") + ".pkl")).write_bytes(archive.read(pickled))
    (torch_file / "whole.pt").write_bytes((DATA / "layers/layer_00-model_00-model_states.pt").read_bytes())
    (metadata / "plain").write_bytes((DATA / "plain" / ".metadata").read_bytes())
    (metadata / "megatron").write_bytes((DATA / "megatron" / ".metadata").read_bytes())


if __name__ == "__main__":
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    deepspeed()
    refused()
    megatron()
    plain()
    corpora()
