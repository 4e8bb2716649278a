"""Runs a plan with torch.distributed.pipelining, in the processes of torchrun: its partition, microbatches, placement
and schedule, with FSDP or DDP if it has replicas.

    pipeline = pipewright.torch.pipeline("plan", model, loss_fn)
    optimizer = torch.optim.AdamW(pipeline.parameters())
    losses = pipeline.step(inputs, targets)
"""

import os
import re
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, SplitPoint
from torch.distributed.pipelining import pipeline as traced
from torch.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class

from . import InputError, Scenario, Schedule, schedule as made_schedule
from ._export import export, load_weights, save_samples
from ._pipewright import torch_schedule
from ._profile import profiled
from ._runtime import csv_schedule

__all__ = ["Pipeline", "export", "load_weights", "pipeline", "profile", "save_samples"]


class _Stage(PipelineStage):
    """A stage of torch that opens connections only to neighbors in other processes. Torch 2.11 also opens one between
    the two stages at the turn of a V, but Gloo cannot connect a process to itself."""

    def _get_init_p2p_neighbors_ops(self):
        return [op for op in super()._get_init_p2p_neighbors_ops() if op.group_peer != self.group_rank]


class Pipeline:
    """This process's part of a pipeline. ``schedule`` is torch's, ``modules`` are its stages, ``groups`` the device
    mesh of pipe and data."""

    def __init__(self, schedule, stages, groups):
        self.schedule, self.groups = schedule, groups
        self.stages = stages
        self.modules = [stage.submod for stage in stages]

    def parameters(self):
        """Returns the parameters of this process's stages, for an optimizer."""
        return (parameter for module in self.modules for parameter in module.parameters())

    def step(self, *inputs, target=None, **more):
        """Runs forward and backward of a whole batch of one replica, which may be passed to every process: the first
        stage takes the inputs, the last one the target. Gradients are means over microbatches. Returns the losses by
        microbatch in the process with the last stage, and None elsewhere."""
        losses = []
        is_first = any(stage.is_first for stage in self.stages)
        is_last = any(stage.is_last for stage in self.stages)
        self.schedule.step(*(inputs if is_first else ()), target=target if is_last else None,
                           losses=losses if is_last else None, **more)
        return losses if is_last else None


def pipeline(plan, module, loss_fn=None, *, layers=None, example=None, device=None):
    """Returns the stages of this process and their schedule, as in a plan.

    ``plan``: the folder that ``pipewright plan -o`` writes, a scenario's file, or a Scenario; it must contain the
    boundaries of its stages. ``module``: an nn.Sequential with as many children as the plan has layers; or any module
    that torch's tracer supports, with ``layers``, the qualified names of the submodules at which the plan's layers
    begin, and ``example``, the inputs of a microbatch. ``device``: this process's device; default: the CPU, or the CUDA
    device of LOCAL_RANK. torch.distributed is initialized if it is not yet. Raises ValueError if torch cannot run the
    plan."""
    scenario = _scenario(plan)
    fields = scenario.to_dict()
    cut, zero = fields["pipeline"], fields["training"]["zero"]
    _require_runnable(cut, zero)
    device = _device(device)
    groups = _groups(cut, device)
    order = _schedule(cut)
    words = " ".join(order.ranks[groups["pipe"].get_local_rank()])
    own = sorted({int(stage) for stage in re.findall(r"(\d+)[FBIWR]\d", words)})
    parts = _parts(module, cut["partition"], layers, example)
    stages = [_stage(parts, index, len(cut["partition"]) - 1, device, groups, zero) for index in own]
    return Pipeline(_torch_schedule(cut, order, stages, loss_fn), stages, groups)


def profile(module, example, loss_fn, target, *, layers=None, optimizer=None, seconds=10.0, runtime=True):
    """Measures the costs of each layer of a module for a microbatch in eager PyTorch. Returns LayerCosts, from which
    everything else is predicted. If torch.distributed is initialized, all processes of the job must call this; they
    measure at the same time, as they would train, and get the same result.

    ``module``, ``layers``: as in `pipeline`. ``example``: the inputs of a microbatch, on the device to measure.
    ``loss_fn(output, target)``: as for the schedule. ``optimizer``: makes an optimizer of a list of parameters, to
    measure its step; without it, a step takes no time. ``seconds``: duration of the measurement. ``runtime``: also
    measure the overhead of torch's pipeline runtime, for actions and messages over Gloo; only on CPUs, because a GPU's
    host runs ahead of it."""
    example = example if isinstance(example, tuple) else (example,)
    if layers is None:
        if not isinstance(module, nn.Sequential):
            raise InputError(f"`layers` is missing: the module is a {type(module).__name__}, not an nn.Sequential. Name the "
                             "submodules at which its layers begin.")
        named = list(module.named_children())
    else:
        parts = _traced_parts(module, range(len(layers) + 1), layers, example)
        named = [(name, parts(place)) for place, name in enumerate(layers)]
    return profiled(named, example, loss_fn, target, optimizer, seconds, runtime)


def _scenario(plan):
    if isinstance(plan, Scenario):
        return plan
    path = Path(plan)
    return Scenario.read(str(path / "scenario.json" if path.is_dir() else path))


def _require_runnable(cut, zero):
    if isinstance(cut["partition"], str):
        raise InputError(f"pipeline.partition={cut['partition']}: the plan must contain the boundaries of its stages, as "
                         "`pipewright plan -o` writes them")
    for axis in ("tensor", "context", "expert"):
        if cut[axis] > 1:
            raise InputError(f"pipeline.{axis}={cut[axis]} is not supported here. Parallelize the modules themselves with "
                             "DTensor.")
    if zero == 1 and cut["replicas"] > 1:
        raise InputError("training.zero=1 is not supported: FSDP also shards gradients and parameters. Use 2 or 3.")


def _device(device):
    if device is not None:
        return torch.device(device)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def _groups(cut, device):
    """Returns the device mesh along the plan's axes."""
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    sizes = {"pipe": cut["ranks"], "data": cut["replicas"]}
    names = [axis for axis in cut["axes"] if axis in sizes]
    wanted = cut["ranks"] * cut["replicas"]
    if dist.get_world_size() != wanted:
        raise InputError(f"the job has {dist.get_world_size()} processes, but the plan needs {wanted}: "
                         f"{cut['ranks']} ranks times {cut['replicas']} replicas")
    return init_device_mesh(device.type, [sizes[name] for name in names], mesh_dim_names=names)


def _schedule(cut):
    if Path(cut["schedule"]).suffix:
        return Schedule.from_csv(Path(cut["schedule"]).read_text(), cut["schedule"])
    return made_schedule(cut["schedule"], ranks=cut["ranks"], microbatches=cut["microbatches"], chunks=cut["chunks"],
                         group=cut["group"])


def _parts(module, borders, layers, example):
    """Returns a function from a stage's index to its module."""
    count = borders[-1]
    if layers is None:
        if not isinstance(module, nn.Sequential) or len(module) != count:
            have = f"an nn.Sequential of {len(module)}" if isinstance(module, nn.Sequential) else type(module).__name__
            raise InputError(f"the plan has {count} layers: pass an nn.Sequential of {count} modules, not {have}; or name "
                             "the submodules at which the layers begin as `layers`, and pass an `example`")
        return lambda stage: module[borders[stage]:borders[stage + 1]]
    if len(layers) != count:
        raise InputError(f"`layers` names {len(layers)} layers, but the plan has {count}")
    if example is None:
        raise InputError("`example` is missing: the inputs of a microbatch, with which the module is traced")
    return _traced_parts(module, borders, layers, example)


def _traced_parts(module, borders, layers, example):
    """Does the same for any module that torch's tracer supports, split before the layers at `borders`."""
    names = {name for name, _ in module.named_modules()}
    for name in layers:
        if name not in names:
            raise InputError(f"the module has no submodule {name!r}")
    example = example if isinstance(example, tuple) else (example,)
    pipe = traced(module, mb_args=example, split_spec={layers[border]: SplitPoint.BEGINNING for border in borders[1:-1]})
    return pipe.get_stage_module


def _stage(parts, index, count, device, groups, zero):
    module = parts(index).to(device)
    if groups["data"].size() > 1:
        if zero >= 2:
            from torch.distributed.fsdp import fully_shard

            fully_shard(module, mesh=groups["data"], reshard_after_forward=zero == 3)
        else:
            module = nn.parallel.DistributedDataParallel(module, process_group=groups.get_group("data"))
    return _Stage(module, index, count, device, group=groups.get_group("pipe"))


def _torch_schedule(cut, order, stages, loss_fn):
    """Returns torch's class for this order, or its runtime with the order's CSV if there is none."""
    name = torch_schedule(cut["schedule"])
    if not name:
        return csv_schedule(stages, cut["microbatches"], loss_fn, order.to_csv())
    made = get_schedule_class(name)
    return made(stages[0] if issubclass(made, PipelineScheduleSingle) else stages, cut["microbatches"], loss_fn=loss_fn)
