"""Validates every file that Pipewright writes or ships against its JSON Schema, with Python's jsonschema.

Run as: check.py PIPEWRIGHT PROJECT DOCUMENTS [torch]; exits with 77 if jsonschema is missing. DOCUMENTS is the folder
that plan/schema_test has filled (tests/plan/scenario/schema_test.cpp). Without `torch`, PIPEWRIGHT cannot train, and
the files of `run` and `profile` are left out.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import jsonschema
except ImportError:
    print(f"skipped: {sys.executable} has no jsonschema (./dev test installs it)")
    sys.exit(77)

PROGRAM, PROJECT, DOCUMENTS = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
SCENARIOS = PROJECT / "scenarios"
ANNOTATIONS = {"$schema", "$defs", "title", "description", "default"}
# Keys that a written file may lack: `$schema` is for editors, not every cluster was measured or has
# levels and kinds of nodes, and only `profile` writes the parts of costs.
MAY_LACK = {"$schema", "machine", "work", "identical_layers", "fabric", "mixture"}
# Files of a run without a schema: its report, and its timelines, which are Chrome traces.
WITHOUT_SCHEMA = ("report.json", ".trace.json")

SMALL = [
    "model.blocks=4", "model.hidden=32", "model.heads=2", "model.sequence=16", "training.steps=2",
    "training.microbatch_size=2", "pipeline.microbatches=4", "profile.least_repeats=2", "profile.most_repeats=2",
]  # fmt: skip
# Variants of the small training whose Programs contain the instructions of ZeRO, tied weights, both
# halves of a backward, R, ….
RUNS = [
    [],
    ["pipeline.schedule=zbv", "training.recompute=selective"],
    ["pipeline.schedule=dualpipe"],
    ["pipeline.schedule=pipedream", "training.optimizer=sgd"],
    ["pipeline.schedule=interleaved-1f1b", "pipeline.chunks=2", "training.recompute=full"],
    ["pipeline.replicas=2", "training.zero=1"],
    ["pipeline.replicas=2", "training.zero=2"],
    ["pipeline.replicas=2", "training.zero=3", "training.clip_norm=1"],
]
MEASURED_RUNS = """id,gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms
a,8,1,1,8,8,1,24,2048,16,1024,260
b,8,4,1,2,8,2,24,2048,16,1024,250
c,8,1,8,1,32,2,24,2048,16,1024,310
d,8,2,4,1,32,4,24,2048,16,1024,330
"""


def parts_of(schema):
    """Yields the schema and all schemas below it."""
    yield schema
    for key in ("properties", "$defs"):
        for part in schema.get(key, {}).values():
            yield from parts_of(part)
    for part in [*schema.get("oneOf", []), *([schema["items"]] if "items" in schema else [])]:
        yield from parts_of(part)


class Schema:
    def __init__(self, file):
        self.root = json.loads(file.read_text())
        jsonschema.Draft202012Validator.check_schema(self.root)
        self.validator = jsonschema.Draft202012Validator(self.root)
        for part in parts_of(self.root):
            unknown = set(part) - set(self.validator.VALIDATORS) - ANNOTATIONS
            assert not unknown, f"{file}: keywords that nothing checks: {unknown}"
            closed = "properties" not in part or part.get("additionalProperties") is False
            assert closed, f"{file}: an object accepts unknown keys: {part.get('description')}"

    def errors(self, value):
        return [f"{error.json_path}: {error.message[:300]}" for error in self.validator.iter_errors(value)]

    def walk(self, value, schema=None, path=""):
        """Yields each part of a valid value with its schema and its path."""
        schema = self.root if schema is None else schema
        while "$ref" in schema:
            schema = self.root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        yield schema, value, path
        for branch in schema.get("oneOf", []):
            if self.validator.evolve(schema=branch).is_valid(value):
                yield from self.walk(value, branch, path)
        if isinstance(value, list) and "items" in schema:
            for at, item in enumerate(value):
                yield from self.walk(item, schema["items"], f"{path}/{at}")
        if isinstance(value, dict) and "properties" in schema:
            for key, item in value.items():
                yield from self.walk(item, schema["properties"][key], f"{path}/{key}")

    def keys_not_written(self, value):
        return [
            f"{path}/{key}"
            for schema, part, path in self.walk(value)
            for key in schema.get("properties", {})
            if key not in MAY_LACK and key not in part
        ]

    def other_defaults(self, value):
        return [path for schema, part, path in self.walk(value) if "default" in schema and schema["default"] != part]


SCHEMAS = {file.name.split(".")[0]: Schema(file) for file in sorted((SCENARIOS / "schema").glob("*.schema.json"))}
faults, checked = [], {}


def expect_none(found, what):
    faults.extend(f"{what}: {one}" for one in found)


def check(file, written=False):
    """Validates a file against the schema that its `format` names. `written`: it must have all keys."""
    value = json.loads(file.read_text())
    name = value.get("format", "none").split("/")[1:2]
    if not name or name[0] not in SCHEMAS:
        return faults.append(f"{file}: no schema describes it")
    name = name[0]
    errors = SCHEMAS[name].errors(value)
    expect_none(errors, file)
    if written and not errors:
        expect_none(SCHEMAS[name].keys_not_written(value), f"{file} lacks")
    checked[name] = checked.get(name, 0) + 1


def run(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def settings(*assignments):
    return [word for assignment in [*SMALL, *assignments] for word in ("--set", assignment)]


def check_documents():
    for use in ("written", "default"):
        for file in sorted((DOCUMENTS / use).rglob("*.json")):
            check(file, written=True)
            if use == "default":
                expect_none(SCHEMAS[file.parent.name].other_defaults(json.loads(file.read_text())), f"{file}: default")
    refused = sorted((DOCUMENTS / "refused").rglob("*.json"))
    assert len(refused) >= 25, f"{DOCUMENTS}: {len(refused)} documents that readers refuse"
    for file in refused:
        if not SCHEMAS[file.parent.name].errors(json.loads(file.read_text())):
            faults.append(f"{file}: the reader refuses it, the schema does not")


def check_shipped():
    for pattern in ("*/scenario.json", "*/costs.json", "clusters/*.json"):
        files = sorted(SCENARIOS.glob(pattern))
        assert files, f"{SCENARIOS}: no {pattern}"
        for file in files:
            check(file)


def check_predictions(folder):
    """Validates files of the commands that need no LibTorch."""
    for cluster in ("a100-80gb", "gb200-nvl72"):
        out = folder / cluster
        words = ("--cluster", SCENARIOS / f"clusters/{cluster}.json", "--gpus", 8, "--batch", 32)
        run("plan", "--model", "llama3-8b", *words, "-o", out)
        check(out / "scenario.json", written=True)
        check(out / "costs.json", written=True)
    for name in ("gpt2", "llama-tiny", "qwen3-moe-tiny"):
        out = folder / name
        run("plan", SCENARIOS / name / "scenario.json", "--costs", SCENARIOS / name / "costs.json", "-o", out)
        check(out / "scenario.json", written=True)
        check(out / "costs.json", written=True)
    (folder / "runs.csv").write_text(MEASURED_RUNS)
    calibrated = folder / "calibrated.json"
    run("calibrate", SCENARIOS / "clusters/a100-80gb.json", "--runs", folder / "runs.csv", "-o", calibrated)
    check(calibrated, written=True)
    traces = SCENARIOS / "traces"
    run("explain", traces / "rank0.json.gz", traces / "rank1.json.gz", "-o", folder / "explained")
    check(folder / "explained/scenario.json", written=True)
    check(folder / "explained/costs.json", written=True)
    run("model", SCENARIOS / "gpt2/config.json", "-o", folder / "model.json")
    check(folder / "model.json", written=True)


def check_training(folder):
    """Validates files of the commands that train or measure."""
    text = SCENARIOS / "gpt-text/scenario.json"
    for at, assignments in enumerate(RUNS):
        out = folder / f"run{at}"
        run("run", text, "-o", out, *settings(*assignments))
        for file in out.rglob("*.json"):
            if not file.name.endswith(WITHOUT_SCHEMA):
                check(file, written=True)
    run("profile", text, "--over", 0, "-o", folder / "costs.json", "--kernels", folder / "kernels.json", *settings())
    check(folder / "costs.json", written=True)
    run("profile", text, "--links", "--between", "threads", "--within", 2, "-o", folder / "cluster.json", *settings())
    check(folder / "cluster.json", written=True)


check_documents()
check_shipped()
with tempfile.TemporaryDirectory() as temporary:
    check_predictions(Path(temporary))
    if sys.argv[4:] == ["torch"]:
        check_training(Path(temporary))
missing = set(SCHEMAS) - set(checked)
assert not missing, f"no file was held against the schemas {missing}"
print("valid files by schema:", ", ".join(f"{name} {count}" for name, count in sorted(checked.items())))
sys.exit("\n".join(faults) if faults else 0)
