"""Tests pipewright.torch.profile, which measures the layer costs of a module, and predictions from these costs.

    profiled.py PIPEWRIGHT
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parents[2]
PACKAGE = Path(sys.argv[1]).parents[1] / "python"
if not (PACKAGE / "pipewright").is_dir():
    print(f"skipped: there is no {PACKAGE}: it was built without PIPEWRIGHT_PYTHON")
    sys.exit(77)
sys.path.insert(0, str(PACKAGE))  # before this folder, which has a module of the same name
try:
    import torch.distributed.pipelining  # noqa: F401
except ImportError as missing:
    print(f"skipped: {sys.executable} has no torch.distributed.pipelining ({missing})")
    sys.exit(77)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
from torch import nn  # noqa: E402

ROWS, WIDTH, FLOAT = 16, 32, 4
TENSOR = ROWS * WIDTH * FLOAT
MATRIX = WIDTH * WIDTH * FLOAT


def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5),
                         nn.Linear(WIDTH, WIDTH, bias=False))


def loss_of(output, target):
    return nn.functional.mse_loss(output, target)


def measured(seconds=0.0, runtime=False, **more):
    import pipewright.torch

    x = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(2))
    module = more.pop("module", None) or model()
    return pipewright.torch.profile(module, x, loss_of, torch.zeros(ROWS, WIDTH), seconds=seconds, runtime=runtime, **more)


def check_figures():
    module = model()
    before, numbers = {name: value.clone() for name, value in module.state_dict().items()}, torch.get_rng_state()
    costs = measured(module=module, optimizer=torch.optim.SGD).to_dict()
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())
    assert torch.equal(torch.get_rng_state(), numbers)
    assert costs["microbatch_size"] == ROWS and costs["input_bytes"] == costs["target_bytes"] == TENSOR
    assert costs["dtype"] == "float32" and "runtime" not in costs
    first, relu, view, dropout, last = costs["layers"]
    assert [layer["name"] for layer in costs["layers"]] == list("01234")
    for layer in (first, last):
        assert layer["parameter_bytes"] == MATRIX and layer["output_bytes"] == TENSOR
        assert layer["activation_bytes"] == 0 and layer["saves_input"] and not layer["saves_output"]
        assert layer["forward_peak_bytes"] == TENSOR
        assert layer["optimizer_step_s"] > 0
    # The first input needs no gradient; the peak has the gradients of the weight and of the output.
    assert first["backward_peak_bytes"] == TENSOR + MATRIX and first["input_gradient_s"] == 0
    assert last["backward_peak_bytes"] == 2 * TENSOR + MATRIX and last["input_gradient_s"] > 0
    assert relu["activation_bytes"] == TENSOR and relu["saves_output"] and not relu["saves_input"]
    assert relu["weight_gradient_s"] == 0 and relu["optimizer_step_s"] == 0 and relu["parameter_bytes"] == 0
    assert view["output_is_view"] and view["activation_bytes"] == 0 and not dropout["output_is_view"]
    assert costs["loss"]["forward_s"] > 0 and costs["loss"]["output_bytes"] == FLOAT


def check_predictions():
    import pipewright as pw

    costs = measured()
    with tempfile.TemporaryDirectory() as folder:
        costs.save(f"{folder}/costs.json")
        assert pw.LayerCosts.read(f"{folder}/costs.json").to_dict() == costs.to_dict()
    scenario = pw.Scenario.of(costs, ranks=2).set({"pipeline.microbatches": 4, "pipeline.schedule": "gpipe"})
    assert scenario.layers == list("01234")
    predicted = pw.simulate(scenario, costs)
    slower = {**costs.to_dict(), "runtime": {"name": "slow", "forward_s": 1.0, "backward_s": 2.0}}
    # With four microbatches and a second rank, five forwards and five backwards run in sequence.
    added = pw.simulate(scenario.set({"pipeline.partition": predicted.boundaries}), pw.LayerCosts(slower))
    assert abs(added.iteration_s - predicted.iteration_s - 15) < 0.1, (added.iteration_s, predicted.iteration_s)


def check_runtime():
    runtime = measured(runtime=True).to_dict()["runtime"]
    assert runtime["name"] == f"torch {torch.__version__.split('+')[0]}" and runtime["whole_first_backward"]
    for field in ("forward_s", "backward_s", "send_s", "receive_s"):
        assert 0 < runtime[field] < 1, (field, runtime)


def in_job(rank, port, folder):
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo")
    torch.save(measured(runtime=True).to_dict(), f"{folder}/{rank}")
    dist.barrier()
    dist.destroy_process_group()


def check_job():
    """Checks that all processes get the same costs, although the third does not take part in measuring the runtime."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        mp.start_processes(in_job, (port, folder), nprocs=3, start_method="spawn")
        found = [torch.load(f"{folder}/{rank}") for rank in range(3)]
    for costs in found:
        costs.pop("measured_over_s")
    assert found[0] == found[1] == found[2]
    assert found[0]["runtime"]["send_s"] > 0


def check_traced():
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            y = self.one(x)
            return self.two(y.relu()) + y

    costs = measured(module=Whole(), layers=["one", "two"]).to_dict()
    one, two = costs["layers"]
    assert one["name"] == "one" and one["parameter_bytes"] == two["parameter_bytes"] == MATRIX + WIDTH * FLOAT
    for words, more in (("a Whole, not an nn.Sequential", {}), ("no submodule 'three'", {"layers": ["one", "three"]})):
        try:
            measured(module=Whole(), **more)
        except ValueError as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)


def check_command():
    """Checks that `profile --runtime torch` measures the runtime with a Python, and names one that cannot."""
    small = ["model.blocks=1", "model.hidden=16", "model.heads=2", "model.sequence=16"]
    words = [sys.argv[1], "profile", str(SOURCE / "scenarios/gpt-text/scenario.json"), "--over", "0", "--runtime", "torch",
             *(word for field in small for word in ("--set", field))]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    with tempfile.TemporaryDirectory() as folder:
        costs = Path(folder) / "costs.json"
        subprocess.run([*words, "--python", sys.executable, "-o", str(costs)], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        runtime = json.loads(costs.read_text())["runtime"]
    assert runtime["name"] == f"torch {torch.__version__.split('+')[0]}" and 0 < runtime["send_s"] < 1, runtime
    done = subprocess.run([*words, "--python", "/bin/false"], capture_output=True, text=True)
    assert done.returncode == 2 and "--python /bin/false: needs a Python" in done.stderr, done


def main():
    torch.set_num_threads(1)
    for check in (check_figures, check_predictions, check_traced, check_runtime, check_job, check_command):
        check()
        print(check.__name__)


if __name__ == "__main__":
    main()
