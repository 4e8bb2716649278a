"""Measures the costs of each layer of a module in eager PyTorch, in the form of a costs file."""

import platform
import statistics
import time

import torch
import torch.distributed as dist
from torch.distributed.pipelining._backward import stage_backward_input, stage_backward_weight

from . import InputError, LayerCosts
from ._runtime import measured_runtime, runtime_costs, torch_name

LEAST_ROUNDS = 6  # every other round has the backward in two parts


class _Work:
    """A layer or the loss, and its measurements: seconds by part, bytes by field."""

    def __init__(self, name, call, parameters=()):
        self.name, self.call = name, call
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.seconds = {"forward": [], "backward": [], "input_gradient": [], "weight_gradient": [], "optimizer": []}
        self.fields = {}

    def outputs(self, inputs):
        outputs = _tensors(self.call(*inputs))
        if not outputs:
            raise InputError(f"layer {self.name} returns no tensor")
        return outputs

    def mean(self, part):
        """Returns the mean, because a stage takes the sum of its layers; a sum of medians would be too low if some
        rounds are slow."""
        return statistics.fmean(self.seconds[part] or [0.0])


def profiled(layers, example, loss_fn, target, optimizer, seconds, with_runtime):
    """Returns the LayerCosts of `layers`, pairs of name and module, for a microbatch `example`, a tuple."""
    device = example[0].device
    work = [_Work(name, module, module.parameters()) for name, module in layers]
    work.append(_Work("loss", lambda *outputs: loss_fn(outputs[0] if len(outputs) == 1 else outputs, target)))
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        begin = time.perf_counter()
        _find_sizes(work, example, device)
        _round(work, example, device, in_parts=True)  # the first round is slower
        for layer in work:
            for part in layer.seconds.values():
                part.clear()
        rounds = 0
        while _by_first(rounds < LEAST_ROUNDS or time.perf_counter() - begin < seconds):
            _round(work, example, device, in_parts=rounds % 2 == 1)
            rounds += 1
        if optimizer is not None:
            _step_optimizers(work, optimizer, device)
        over = time.perf_counter() - begin
    for _, module in layers:
        module.zero_grad()
    *costs, loss = (_cost(layer) for layer in work)
    dtype = next((parameter.dtype for layer in work for parameter in layer.parameters), torch.float32)
    fields = {"format": "pipewright/costs/1", "dtype": str(dtype).split(".")[-1],
              "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
              "software": torch_name(), "microbatch_size": example[0].shape[0],
              "load_s": 0.0, "input_bytes": _size(example), "target_bytes": _size(_tensors(target)), "layers": costs,
              "loss": loss, "measured_over_s": over}
    if with_runtime and device.type == "cpu":  # a GPU's host runs ahead of it
        fields["runtime"] = _runtime()
    return LayerCosts(fields)


def _is_job():
    return dist.is_initialized() and dist.get_world_size() > 1


def _by_first(value):
    """Returns the value of a job's first process in all processes."""
    told = [value]
    if _is_job():
        dist.broadcast_object_list(told)
    return told[0]


def _runtime():
    """Measures in the first two processes of a job, or outside a job in two new processes."""
    return _by_first(measured_runtime()) if _is_job() else runtime_costs()


def _tensors(values):
    values = values if isinstance(values, (tuple, list)) else (values,)
    return tuple(value for value in values if isinstance(value, torch.Tensor))


def _size(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _timed(run, device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    begin = time.perf_counter()
    made = run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return made, time.perf_counter() - begin


def _leaves(outputs):
    """Returns these values as inputs of the next layer, detached from their graph."""
    return tuple(output.detach().requires_grad_(output.requires_grad) for output in outputs)


def _detachable(outputs):
    """Clones views, because torch's backward in two parts detaches a stage's outputs in place, which is not possible
    for a view."""
    return tuple(output.clone() if output._is_view() else output for output in outputs)


def _with_gradients(outputs, gradients):
    """Returns the outputs that have a gradient, and those gradients."""
    pairs = [pair for pair in zip(outputs, gradients) if pair[0].requires_grad and pair[1] is not None]
    return [output for output, _ in pairs], [gradient for _, gradient in pairs]


def _round(work, example, device, in_parts):
    """Runs forward and backward of all layers, one layer after the other."""
    inputs, calls = example, []
    for layer in work:
        outputs, seconds = _timed(lambda layer=layer, inputs=inputs: layer.outputs(inputs), device)
        layer.seconds["forward"].append(seconds)
        outputs = _detachable(outputs)
        calls.append((layer, inputs, outputs))
        inputs = _leaves(outputs)
    gradients = [torch.ones_like(outputs[0])]
    for layer, inputs, outputs in reversed(calls):
        outputs, gradients = _with_gradients(outputs, gradients)
        if outputs:
            (_backward_in_parts if in_parts else _backward)(layer, inputs, outputs, gradients, device)
        gradients = [value.grad for value in inputs]


def _backward(layer, inputs, outputs, gradients, device):
    layer.seconds["backward"].append(_timed(lambda: torch.autograd.backward(outputs, gradients), device)[1])


def _backward_in_parts(layer, inputs, outputs, gradients, device):
    """Runs the backward in two parts as torch's stages do."""
    wanted = [value for value in inputs if value.requires_grad]
    if not wanted or not layer.parameters:
        seconds = _timed(lambda: torch.autograd.backward(outputs, gradients), device)[1]
        layer.seconds["input_gradient"].append(seconds if wanted else 0.0)
        layer.seconds["weight_gradient"].append(0.0 if wanted else seconds)
        return
    (_, groups), seconds = _timed(
        lambda: stage_backward_input(outputs, gradients, wanted, iter(layer.parameters)), device)
    layer.seconds["input_gradient"].append(seconds)
    layer.seconds["weight_gradient"].append(
        _timed(lambda: stage_backward_weight(iter(layer.parameters), groups), device)[1])


def _step_optimizers(work, optimizer, device):
    for layer in work:
        if layer.parameters:
            own, before = optimizer(layer.parameters), [parameter.detach().clone() for parameter in layer.parameters]
            for _ in range(LEAST_ROUNDS):
                layer.seconds["optimizer"].append(_timed(own.step, device)[1])
            with torch.no_grad():
                for parameter, value in zip(layer.parameters, before):
                    parameter.copy_(value)


def _peak(run, device):
    """Returns the peak bytes that `run` allocates beyond those before it, and its result."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        made = run()
        return torch.cuda.max_memory_allocated(device) - before, made
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as watched:
        made = run()
    held = peak = 0
    for event in sorted(watched.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak, made


def _find_sizes(work, example, device):
    """Finds the bytes of each layer: those saved by its forward, and the peaks of forward and backward."""
    inputs, calls = example, []
    for layer in work:
        saved = {}

        def keep(tensor, saved=saved):
            storage = tensor.untyped_storage()
            saved[storage.data_ptr()] = storage.nbytes()
            return tensor

        def forward(layer=layer, inputs=inputs, keep=keep):
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                return layer.outputs(inputs)

        peak, outputs = _peak(forward, device)
        layer.fields = _kept(layer, inputs, outputs, saved)
        layer.fields["forward_peak_bytes"] = peak
        outputs = _detachable(outputs)
        calls.append((layer, inputs, outputs))
        inputs = _leaves(outputs)
    gradients = [torch.ones_like(outputs[0])]
    for layer, inputs, outputs in reversed(calls):
        outputs, gradients = _with_gradients(outputs, gradients)
        layer.fields["backward_peak_bytes"] = _size(gradients)
        if outputs:
            for parameter in layer.parameters:
                parameter.grad = torch.zeros_like(parameter)  # as from the second microbatch on
            layer.fields["backward_peak_bytes"] += _peak(lambda: torch.autograd.backward(outputs, gradients), device)[0]
        gradients = [value.grad for value in inputs]


def _kept(layer, inputs, outputs, saved):
    of = {"input": inputs, "output": outputs}
    places = {end: {tensor.untyped_storage().data_ptr() for tensor in tensors} for end, tensors in of.items()}
    standing = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters}
    activation = {at: size for at, size in saved.items() if at not in places["input"] | standing}
    is_view = bool(places["input"] & places["output"])
    return {"parameter_bytes": _size(layer.parameters), "activation_bytes": sum(activation.values()),
            "output_bytes": _size(outputs), "saves_input": bool(places["input"] & set(saved)),
            "saves_output": not is_view and bool(places["output"] & set(saved)), "output_is_view": is_view}


def _cost(layer):
    backward, whole = layer.mean("input_gradient") + layer.mean("weight_gradient"), layer.mean("backward")
    times = {"forward_s": layer.mean("forward"), "input_gradient_s": layer.mean("input_gradient"),
             "weight_gradient_s": layer.mean("weight_gradient"), "splitting_s": max(0.0, backward - whole),
             "optimizer_step_s": layer.mean("optimizer")}
    return {"name": layer.name, **_mean_of_job(times), **layer.fields}


def _mean_of_job(times):
    """Returns the mean over the job's processes, which have measured the same at the same time."""
    if not _is_job():
        return times
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, times)
    return {part: statistics.mean(own[part] for own in everybody) for part in times}
