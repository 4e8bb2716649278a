"""Checks with the trainers' own Python packages that they accept what pipewright exports, and that
pipewright reads stages that a configuration does not list as torchtitan cuts them.

Each part is skipped if its package is not installed: torchtitan 0.3 needs datasets and tokenizers, and
DeepSpeed is built at installation, so neither is in requirements.txt. To run it:
    pip install torchtitan==0.3.0 deepspeed==0.19.8
    python tests/torch/trainers.py build/bin/pipewright
"""

import importlib.util
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = sys.argv[1]
SKIPPED = 77  # the exit code that tests/CMakeLists.txt declares to ctest
PACKAGES = {name: importlib.util.find_spec(name) for name in ("torchtitan", "deepspeed")}
if not any(PACKAGES.values()):
    print(f"skipped: {sys.executable} has neither torchtitan nor deepspeed")
    sys.exit(SKIPPED)

from pipewright import run  # noqa: E402  (it needs torch)

SCENARIO = Path(__file__).resolve().parents[2] / "scenarios/shared-card"
COSTS = ["--costs", str(SCENARIO / "costs.json")]
BLOCKS = 6
SETS = [dict(zip(("schedule", "ranks", "replicas", "zero", "recompute"), values))
        for values in itertools.product(("1f1b", "gpipe", "interleaved-1f1b", "zbv"), (1, 2, 4), (1, 2), (0, 2, 3),
                                        ("none", "full"))]


def options(choice: dict) -> list[str]:
    """Returns the options of one plan."""
    chunks = 1 if choice["schedule"] in ("1f1b", "gpipe") else 2
    section = {"ranks": "pipeline", "replicas": "pipeline", "schedule": "pipeline"}
    sets = [f"{section.get(field, 'training')}.{field}={value}" for field, value in choice.items()]
    sets += [f"pipeline.chunks={chunks}", "pipeline.partition=uniform", "pipeline.microbatches=8"]
    return [word for assignment in sets for word in ("--set", assignment)]


def exported(trainer: str, choice: dict):
    """Returns the text of a plan's export, or None if the trainer cannot run the plan."""
    done = subprocess.run([PROGRAM, "export", str(SCENARIO / "scenario.json"), *COSTS, "--for", trainer, *options(choice)],
                          capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout if done.returncode == 0 else None


def torchtitan_config(text: str, folder: str):
    """Parses an exported file as torchtitan does: its manager, with the module's name."""
    from torchtitan.config.manager import ConfigManager

    Path(folder, "torchtitan_plan.py").write_text(text)
    sys.path.insert(0, folder)
    sys.modules.pop("torchtitan_plan", None)
    try:
        return ConfigManager().parse_args(["--module", "torchtitan_plan", "--config", "plan"])
    finally:
        sys.path.remove(folder)


def check_torchtitan_exports() -> None:
    accepted = 0
    for choice in SETS:
        text = exported("torchtitan", choice)
        if text is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            config = torchtitan_config(text, folder)
        parallelism = config.parallelism
        assert parallelism.pipeline_parallel_degree == choice["ranks"]
        assert (config.activation_checkpoint is None) == (choice["recompute"] == "none")
        parts = parallelism.module_fqns_per_model_part
        if parts is not None:  # they are all modules of the model, in its order
            blocks = [f"layers.{block}" for block in range(BLOCKS)]
            assert sum(parts, []) == ["tok_embeddings", *blocks, "norm", "lm_head"], parts
        accepted += 1
    assert accepted >= 30, accepted
    print(f"torchtitan {version('torchtitan')} accepts {accepted} exported plans")


def torchtitans_cut(text: str):
    """Returns the boundaries of the stages that torchtitan makes, or None if it rejects the sizes."""
    from types import SimpleNamespace

    from torchtitan.config import ParallelismConfig
    from torchtitan.distributed import pipeline_parallel as theirs

    parallelism = eval(text, {"ParallelismConfig": ParallelismConfig})
    try:
        sizes = theirs._get_pipeline_metadata(SimpleNamespace(pp=parallelism.pipeline_parallel_degree), parallelism,
                                              SimpleNamespace(layers=[None] * BLOCKS))
        parts = theirs._generate_llm_fqn_per_model_part(*sizes)
    except ValueError:
        return None
    ends = itertools.accumulate(sum(module != "norm" for module in part) for part in parts)
    return [0, *ends]


def check_torchtitan_cuts() -> None:
    cut, rejected = 0, 0
    grid = itertools.product(("1F1B", "Interleaved1F1B", "ZBVZeroBubble"), (2, 3, 4), (None, 1, 2, 3, 4), (0, 1, 2), (0, 1, 2))
    for schedule, ranks, layers, first, last in grid:
        section = (f"ParallelismConfig(pipeline_parallel_degree={ranks}, pipeline_parallel_schedule={schedule!r}, "
                   f"pipeline_parallel_layers_per_stage={layers}, pipeline_parallel_first_stage_less_layers={first}, "
                   f"pipeline_parallel_last_stage_less_layers={last}, data_parallel_shard_degree=1)")
        theirs = torchtitans_cut(section)
        ours = pipewrights_cut(section)
        if theirs is not None and min(b - a for a, b in zip(theirs, theirs[1:])) == 0:
            continue  # torchtitan makes a stage without a layer
        if schedule == "ZBVZeroBubble" and theirs is not None and len(theirs) - 1 != 2 * ranks:
            assert ours is None  # torch itself rejects such stages when it makes the schedule
            continue
        assert ours == theirs, f"{section}: {ours}, but torchtitan makes {theirs}"
        cut, rejected = cut + (theirs is not None), rejected + (theirs is None)
    assert cut > 20 and rejected > 20, (cut, rejected)
    print(f"torchtitan's own cuts: {cut} equal, {rejected} rejected by both")


def pipewrights_cut(section: str):
    """Returns the boundaries that pipewright reads, or None if it rejects the configuration."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cut.py")
        file.write_text("def plan():\n    return Trainer.Config(\n        training=TrainingConfig(local_batch_size=12, "
                        f"disable_cuda_graphs=True),\n        activation_checkpoint=None,\n        parallelism={section})\n")
        done = subprocess.run([PROGRAM, "export", str(SCENARIO / "scenario.json"), *COSTS, "--for", "torchtitan", "--cut",
                               str(file)], capture_output=True, text=True)
    if done.returncode == 2:
        return None
    assert done.returncode == 0, done.stderr
    scope: dict = {}
    listed = done.stdout[done.stdout.index("module_fqns_per_model_part="):]
    end = "],\n        ]"
    exec(listed[:listed.index(end) + len(end)], scope)
    ends = itertools.accumulate(sum(module != "norm" for module in part) for part in scope["module_fqns_per_model_part"])
    return [0, *ends]


def check_deepspeed_exports() -> None:
    from deepspeed.runtime.config import DeepSpeedConfig

    accepted = 0
    for choice in SETS + [dict(choice, zero=1) for choice in SETS[::3]]:
        text = exported("deepspeed", choice)
        if text is None:
            continue
        ours = json.loads(text)
        ours["train_batch_size"] //= choice["replicas"]  # DeepSpeed divides by its processes, here one
        theirs = DeepSpeedConfig(ours)
        assert theirs.gradient_accumulation_steps == 8
        assert theirs.zero_optimization_stage == choice["zero"]
        assert theirs.pipeline["partition"] == ours["pipeline"]["partition"]
        accepted += 1
    assert accepted >= 8, accepted
    print(f"DeepSpeed {version('deepspeed')} accepts {accepted} exported plans")


def version(package: str) -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # used from its source folder
        return "(from source)"


if PACKAGES["torchtitan"]:
    check_torchtitan_exports()
    check_torchtitan_cuts()
if PACKAGES["deepspeed"]:
    check_deepspeed_exports()
for name, found in PACKAGES.items():
    if not found:
        print(f"not checked: {sys.executable} has no {name}")
