"""Writes the parts of the archive here that tests put together: model.json without what nobody reads, and the list of weights.
Run with torch 2.11 as: make.py FOLDER"""

import json
import sys
import zipfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import pipe_split


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)

    def forward(self, x, scale):
        return x + F.relu_(self.norm(self.up(x) * scale))


class Model(nn.Module):
    def __init__(self, width=4, words=6):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        with torch.no_grad():
            scale = torch.full((4,), 0.5).sqrt()
        x = self.embed(tokens)
        x = self.blocks[0](x, scale)
        pipe_split()
        x = self.blocks[1](x, scale)
        return self.head(self.drop(x))


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Model()

    def forward(self, tokens, targets):
        return F.cross_entropy(self.model(tokens), targets)


def without(json_value, *keys):
    if isinstance(json_value, dict):
        return {key: without(value, *keys) for key, value in json_value.items() if key not in keys}
    return [without(each, *keys) for each in json_value] if isinstance(json_value, list) else json_value


folder, archive = Path(sys.argv[1]), Path(sys.argv[1]) / "model.pt2"
tokens = torch.zeros(3, dtype=torch.long)
torch.export.save(torch.export.export(Trained().train(), (tokens, tokens.clone()), strict=False), archive)
with zipfile.ZipFile(archive) as parts:
    for name in ("models/model.json", "data/weights/model_weights_config.json"):
        said = without(json.loads(parts.read(f"model/{name}")), "module_call_graph", "torch_fn", "range_constraints", "verifiers",
                       "guards_code", "treespec_namedtuple_fields", "is_hop_single_tensor_return")
        text = json.dumps(said).replace(str(Path(__file__).parent), "/home/user").replace(
            str(Path(torch.__file__).parents[1]), "/usr/lib/python3/dist-packages")
        (folder / name.rsplit("/")[-1]).write_text(text + "\n")
archive.unlink()
