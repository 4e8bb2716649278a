"""Exports a module for `pipewright import`, writes samples to train it on, and loads the trained weights."""

import json
import operator
import struct
from pathlib import Path

import torch
from torch.utils._pytree import tree_leaves, tree_map

__all__ = ["export", "load_weights", "save_samples"]

_TYPES = {torch.float32: "F32", torch.int64: "I64", torch.bool: "BOOL", torch.float16: "F16", torch.bfloat16: "BF16",
          torch.float64: "F64", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32"}


def export(module, example_inputs, file, *, loss=None, targets=(), kwargs=None):
    """Writes ``module`` for ``pipewright import``: its operators and its weights.

    ``example_inputs``: the arguments of ``module`` for one microbatch; training uses their sizes. ``kwargs``: further
    arguments by name. ``loss(output, *targets)``: returns a mean over the samples; it is exported with the module.
    ``targets``: an example of its targets, a tensor or several. Without a loss, training uses the cross entropy of the
    single output tensor. The module is exported in its current mode: call ``module.train()`` before. Raises what
    ``torch.export.export`` raises, and ValueError for targets without a loss."""
    inputs = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    targets = tuple(targets) if isinstance(targets, (tuple, list)) else (targets,)
    if bool(targets) != (loss is not None):
        raise ValueError("pass both a loss and an example of its targets, or neither")
    if loss is not None:
        forward = module.forward

        def with_loss(*given, **named):
            return loss(forward(*given[:len(inputs)], **named), *given[len(inputs):])

        module.forward = with_loss
    try:
        # torch treats one tensor in two places as one input.
        apart = tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, inputs + targets)
        exported = torch.export.export(module, apart, kwargs or {}, strict=False)
    finally:
        if loss is not None:
            del module.forward
    _require_operators(exported)
    own = {"format": "pipewright/export/1", "targets": len(tree_leaves(targets))}
    torch.export.save(exported, file, extra_files={"pipewright.json": json.dumps(own)})


def _require_operators(exported):
    """Raises an error for operators that a file cannot represent, with the user's line, which torch does not name."""
    faults = []
    for node in exported.graph.nodes:
        known = isinstance(node.target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator, str))
        if node.op != "call_function" or known or node.target is operator.getitem:
            continue
        lines = [line.strip() for line in (node.stack_trace or "").splitlines() if line.lstrip().startswith("File")]
        users = [line for line in lines if "-packages" not in line] or lines[-1:] or ["nowhere"]
        faults.append(f"{getattr(node.target, '__name__', node.target)} is not an operator, at {users[-1]}")
    if faults:
        raise ValueError("this module cannot be saved. A common cause is torch.vmap, with which transformers 4 makes its "
                         "masks (transformers 5 does not):\n" + "\n".join(dict.fromkeys(faults)))


def _named(name, tensors):
    if isinstance(tensors, torch.Tensor):
        return {name: tensors}
    return {f"{name}.{number}": tensor for number, tensor in enumerate(tensors)}


def save_samples(file, inputs, targets):
    """Writes samples to train on as a safetensors file: ``inputs`` and ``targets`` are tensors [samples, ...], or lists
    of them if the module takes several."""
    tensors = {**_named("inputs", inputs), **_named("targets", targets)}
    header, at = {}, 0
    for name, tensor in tensors.items():
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            out.write(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
                      if tensor.dim() else bytes(tensor.untyped_storage()))


def load_weights(module, folder):
    """Loads into ``module`` the weights that `pipewright save -o FOLDER` wrote after training it: its parameters, and
    its buffers, such as running means. Raises ValueError, before anything is changed, for a weight that the module does
    not have or that has another shape or type there, and for a parameter that the folder lacks."""
    own = {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}
    found, faults = {}, []
    for name, value in _tensors_of(Path(folder)):
        if name not in own:
            if not name.startswith("lifted_tensor"):  # torch.export's own name for a constant in a forward
                faults.append(f"the module has no weight {name}")
        elif own[name].shape != value.shape or own[name].dtype != value.dtype:
            faults.append(f"{name} is {list(value.shape)} of {value.dtype} in the file, but {list(own[name].shape)} of "
                          f"{own[name].dtype} in the module")
        else:
            found[name] = value
    held = {own[name].data_ptr() for name in found}
    faults += [f"{name} is missing" for name, parameter in module.named_parameters() if parameter.data_ptr() not in held]
    if faults:
        raise ValueError(f"{folder}: " + "; ".join(faults))
    with torch.no_grad():
        for name, value in found.items():
            own[name].copy_(value)


def _tensors_of(folder):
    """Yields names and values of all safetensors files of a folder, one tensor at a time."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError(f"{folder}: there is no .safetensors file")
    types = {word: dtype for dtype, word in _TYPES.items()}
    for file in files:
        with open(file, "rb") as data:
            (size,) = struct.unpack("<Q", data.read(8))
            header = json.loads(data.read(size))
            header.pop("__metadata__", None)
            for name, about in header.items():
                begin, end = about["data_offsets"]
                data.seek(8 + size + begin)
                value = torch.empty(about["shape"], dtype=types[about["dtype"]])
                if end > begin:
                    flat = torch.frombuffer(bytearray(data.read(end - begin)), dtype=torch.uint8)
                    value = flat.view(value.dtype).reshape(about["shape"])
                yield name, value
