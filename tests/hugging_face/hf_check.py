"""Compares Pipewright with Python's transformers: the stored figures equal those that transformers computes for each
family today, and models that Pipewright has trained and saved have the same loss when transformers loads them.
Run as: hf_check.py PIPEWRIGHT [NAME ...]; exits with 77 if transformers is not installed."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import transformers  # noqa: F401
    from safetensors.torch import load_file
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed for {sys.executable} (pip install transformers)")
    sys.exit(77)

import hf_figures as figures

PROGRAM = sys.argv[1]
STEPS = 3


def expect(holds, what):
    if not holds:
        sys.exit(what)


def folder_of(name, folder):
    """Returns a folder with the family's small model, with weights of the formula."""
    folder.mkdir()
    shutil.copy(figures.DATA / name / "config.json", folder)
    figures.write_weights(json.loads((figures.DATA / name / "weights.json").read_text()), folder)
    return json.loads((folder / "config.json").read_text())["vocab_size"]


def check_figures(name, folder, vocabulary):
    """Compares the stored figures with those of the installed transformers."""
    kept = load_file(figures.DATA / name / "figures.safetensors")
    made = figures.figures_of(folder, vocabulary)
    expect(kept.keys() == made.keys(), f"{name}: other figures are kept than hf_figures.py makes")
    for key, value in made.items():
        bound = 2e-2 if key == "logits.bf16" else 1e-4 if key == "losses" else 1e-5
        off = (value.double() - kept[key].double()).abs().max().item() / max(1.0, kept[key].double().abs().max().item())
        expect(off <= bound, f"{name}: {key} is off by {off:.2e} from what is kept")


def pipewright(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    expect(done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


def losses_of(scenario, model, *words):
    return json.loads(pipewright("train", scenario, "--json", "--set", f"model.path={model}", *words))["loss"]


def check_saved(name, folder, vocabulary, place):
    """Trains with samples that are all the same window of tokens, so that the first loss of a training is that of the
    folder."""
    window = figures.tokens_of("window", 1, figures.SEQUENCE + 1, vocabulary)
    (place / "tokens.bin").write_bytes(window.numpy().astype(np.uint16).tobytes())
    scenario = place / "scenario.json"
    scenario.write_text(json.dumps({
        "format": "pipewright/scenario/1", "name": name,
        "model": {"kind": "hf", "path": "x", "sequence": figures.SEQUENCE},
        "data": {"kind": "tokens", "path": "tokens.bin"},
        "cluster": {"name": "this", "nodes": 1, "devices_per_node": 2, "device": {"name": "cpu"},
                    "within_node": {"latency_s": 2e-5, "bandwidth_per_s": 1e12}},
        "pipeline": {"ranks": 2, "microbatches": 2, "schedule": "1f1b", "partition": "uniform"},
        "training": {"steps": STEPS, "microbatch_size": 1, "learning_rate": 0.002},
        "profile": {"warm_up": 0, "least_repeats": 1, "most_repeats": 1}}))
    before = losses_of(scenario, folder, "--checkpoints", place / "checkpoints")
    saved = place / "saved"
    pipewright("save", scenario, "--set", f"model.path={folder}", "--checkpoints", place / "checkpoints", "-o", saved)
    ours = losses_of(scenario, saved, "--set", "training.steps=1")[0]
    model = figures.loaded(saved, torch.float32)
    with torch.no_grad():
        theirs = figures.loss_of(model(input_ids=window[:, :-1]).logits, window[:, 1:]).item()
    expect(ours < before[0] - 1e-3, f"{name}: {STEPS} steps of training changed nothing: {before} and then {ours}")
    expect(abs(ours - theirs) <= 1e-5, f"{name}: saved by us, a loss of {ours}; by transformers {theirs}")
    return abs(ours - theirs)


def main():
    transformers.utils.logging.disable_progress_bar()
    for name in sys.argv[2:] or figures.FAMILIES:
        with tempfile.TemporaryDirectory() as temporary:
            place = pathlib.Path(temporary)
            folder = place / "folder"
            vocabulary = folder_of(name, folder)
            check_figures(name, folder, vocabulary)
            off = check_saved(name, folder, vocabulary, place)
            print(f"{name}: figures as kept; saved after {STEPS} steps and loaded by transformers: loss off by {off:.1e}", flush=True)


main()
