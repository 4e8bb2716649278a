"""Computes figures with Python's transformers, for small models of each family, that Pipewright's layers must
reproduce.

    python tests/hugging_face/hf_figures.py [NAME ...]            writes tests/data/hugging_face/NAME
    python tests/hugging_face/hf_figures.py --loads FOLDER [TOKENS.safetensors]   prints the loss of a folder that Pipewright wrote

Each folder gets

    config.json           as transformers writes it
    weights.json          name and shape of each tensor of model.safetensors, and the mean and spread of its numbers
    figures.safetensors   tokens, targets (-100: padding), loss, logits, the same in bf16, gradients (every third number, of
                          large ones every 61st) and their norms, the last logits of a long sequence, those after padding on the
                          left, losses of twenty steps of AdamW

Weights and tokens follow a formula of names and indices (`numbers`), on both sides, and so are not stored.
"""

import argparse
import json
import math
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "hugging_face"
STEPS, BATCH, SEQUENCE, LONG = 20, 2, 23, 1501
LEFT = 5  # padding positions before a text
MANY = 8192  # elements of a gradient


def numbers(name: str, count: int) -> np.ndarray:
    """Returns numbers in [0, 1) of 24 bits, from FNV-1a of the name and splitmix64 of the index."""
    mask = (1 << 64) - 1
    start = 0xCBF29CE484222325
    for byte in name.encode():
        start = ((start ^ byte) * 0x100000001B3) & mask
    with np.errstate(over="ignore"):
        x = np.uint64(start) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(40)).astype(np.float64) / (1 << 24)


def tokens_of(name: str, rows: int, columns: int, vocabulary: int) -> torch.Tensor:
    values = np.floor(numbers(name, rows * columns) * vocabulary).astype(np.int64)
    return torch.from_numpy(values).view(rows, columns)


def weight(name: str, about: dict) -> torch.Tensor:
    count = math.prod(about["shape"])
    values = about["middle"] + about["spread"] * (2 * numbers(name, count) - 1)
    return torch.from_numpy(values.astype(np.float32)).view(about["shape"])


def write_weights(about_all: dict, folder: pathlib.Path) -> None:
    tensors = {name: weight(name, one) for name, one in about_all.items()}
    save_file(tensors, str(folder / "model.safetensors"), {"format": "pt"})


def about(name: str, tensor: torch.Tensor, config) -> dict:
    """Returns the mean of a weight's values: about 1 for a norm's weights, or about 0 if the norm adds 1; about 0 for
    all others."""
    is_norm = name.endswith("weight") and tensor.dim() == 1
    middle = 1.0 if is_norm and not config.model_type.startswith("gemma") else 0.0
    if "e_score_correction_bias" in name:
        spread = 0.2
    elif tensor.dim() == 1:
        spread = 0.125
    else:
        spread = round(2 / math.sqrt(max(tensor.shape)), 4)
    return {"shape": list(tensor.shape), "middle": middle, "spread": spread}


def of_sizes(**more) -> dict:
    return {
        "vocab_size": 61,
        "hidden_size": 32,
        "intermediate_size": 37,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        **more,
    }


def of_deepseek(**more) -> dict:
    return of_sizes(
        **{
            "num_key_value_heads": 4,
            "num_hidden_layers": 2,
            "first_k_dense_replace": 1,
            "moe_intermediate_size": 10,
            "n_routed_experts": 6,
            "n_shared_experts": 2,
            "num_experts_per_tok": 2,
            "kv_lora_rank": 12,
            "qk_nope_head_dim": 6,
            "qk_rope_head_dim": 4,
            "v_head_dim": 7,
            "head_dim": 4,
            **more,
        }
    )


def yarn(**more) -> dict:
    return {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "original_max_position_embeddings": 256,
        "beta_fast": 32,
        "beta_slow": 1,
        **more,
    }


t = transformers
FAMILIES = {
    "llama2": (t.LlamaConfig, of_sizes(rms_norm_eps=1e-5, num_key_value_heads=4)),
    "llama-linear": (
        t.LlamaConfig,
        of_sizes(rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}, head_dim=12),
    ),
    "llama3": (
        t.LlamaConfig,
        of_sizes(
            rms_norm_eps=1e-5,
            attention_bias=True,
            mlp_bias=True,
            rope_parameters={
                "rope_type": "llama3",
                "rope_theta": 500000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 256,
            },
        ),
    ),
    "llama-yarn": (t.LlamaConfig, of_sizes(rope_parameters=yarn())),
    "mistral": (t.MistralConfig, of_sizes(sliding_window=7)),
    "qwen2": (t.Qwen2Config, of_sizes(tie_word_embeddings=True)),
    "qwen2-window": (t.Qwen2Config, of_sizes(use_sliding_window=True, sliding_window=5, max_window_layers=1)),
    "qwen3": (t.Qwen3Config, of_sizes(head_dim=12)),
    "gpt2": (
        t.GPT2Config,
        {
            "vocab_size": 61,
            "n_positions": 1600,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_inner": 37,
            "resid_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "attn_pdrop": 0.0,
        },
    ),
    "phi3": (
        t.Phi3Config,
        of_sizes(
            pad_token_id=0,
            num_attention_heads=2,
            num_key_value_heads=1,
            original_max_position_embeddings=1024,
            rope_parameters={
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "partial_rotary_factor": 0.75,
                "short_factor": [1.0, 1.1, 1.2, 1.5, 1.5, 2.0],
                "long_factor": [1.0, 1.7, 2.5, 4.0, 5.0, 7.0],
                "original_max_position_embeddings": 1024,
            },
        ),
    ),
    "mixtral": (t.MixtralConfig, of_sizes(intermediate_size=12, num_local_experts=4, num_experts_per_tok=2)),
    "qwen3-moe": (
        t.Qwen3MoeConfig,
        of_sizes(
            head_dim=8,
            num_experts=5,
            num_experts_per_tok=2,
            moe_intermediate_size=11,
            norm_topk_prob=False,
            mlp_only_layers=[0],
        ),
    ),
    "gemma2": (
        t.Gemma2Config,
        of_sizes(head_dim=8, sliding_window=6, query_pre_attn_scalar=20, attn_logit_softcapping=2.0, final_logit_softcapping=1.5),
    ),
    "gemma3": (
        t.Gemma3TextConfig,
        of_sizes(
            num_hidden_layers=3,
            head_dim=8,
            sliding_window=6,
            query_pre_attn_scalar=12,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            rope_parameters={
                "full_attention": {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            },
        ),
    ),
    "deepseek-v2": (
        t.DeepseekV2Config,
        of_deepseek(
            q_lora_rank=14,
            topk_method="group_limited_greedy",
            n_group=3,
            topk_group=2,
            routed_scaling_factor=2.0,
            rope_parameters=yarn(mscale=0.707, mscale_all_dim=0.707),
        ),
    ),
    "deepseek-v2-lite": (t.DeepseekV2Config, of_deepseek(rms_norm_eps=1e-3, q_lora_rank=None, topk_method="greedy", n_group=1, topk_group=1)),
    "deepseek-v3": (
        t.DeepseekV3Config,
        of_deepseek(
            q_lora_rank=14,
            n_group=3,
            topk_group=2,
            routed_scaling_factor=2.5,
            rope_parameters=yarn(mscale=1.0, mscale_all_dim=0.8),
        ),
    ),
}


def loaded(folder: pathlib.Path, dtype: torch.dtype):
    # Formulas instead of kernels; in 16 bits, where kernels round differently, transformers' own
    # default.
    attention = {"attn_implementation": "eager"} if dtype == torch.float32 else {}
    return t.AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, experts_implementation="eager", **attention
    ).eval()


def saved(model) -> dict[str, torch.Tensor]:
    """Returns the tensors by the names in files."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(f"{folder}/model.safetensors")


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def gradients(model) -> dict[str, torch.Tensor]:
    """Returns gradients by the names in files. Leaves the model with gradients in place of weights."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
        for buffer in model.buffers():
            if buffer.is_floating_point():
                buffer.zero_()
    return saved(model)


def twenty_steps(model, vocabulary: int) -> torch.Tensor:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    losses = []
    for step in range(STEPS):
        rows = tokens_of(f"step {step}", 2 * BATCH, SEQUENCE + 1, vocabulary)
        optimizer.zero_grad()
        loss = loss_of(model(input_ids=rows[:, :-1]).logits, rows[:, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def figures_of(folder: pathlib.Path, vocabulary: int) -> dict[str, torch.Tensor]:
    rows = tokens_of("tokens", BATCH, SEQUENCE + 1, vocabulary)
    tokens, targets = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    padding = torch.ones_like(tokens)
    padding[1, SEQUENCE - 4 :] = 0
    targets[padding == 0] = -100

    model = loaded(folder, torch.float32)
    with torch.no_grad():
        far = model(input_ids=tokens_of("long", 1, LONG, vocabulary)).logits[0, -3:]
    left = torch.ones_like(tokens[1:])
    left[:, :LEFT] = 0
    with torch.no_grad():
        places = (left.cumsum(-1) - 1).clamp(min=0)
        behind = model(input_ids=tokens[1:], attention_mask=left, position_ids=places).logits[0, LEFT:]
    losses = twenty_steps(loaded(folder, torch.float32), vocabulary)
    logits = model(input_ids=tokens, attention_mask=padding).logits
    loss = loss_of(logits, targets)
    loss.backward()
    half = loaded(folder, torch.bfloat16)
    with torch.no_grad():
        rough = half(input_ids=tokens[:1]).logits.float()
    figures = {
        "tokens": tokens,
        "targets": targets,
        "loss": loss.detach(),
        "logits": logits.detach(),
        "logits.bf16": rough,
        "logits.long": far,
        "logits.left": behind,
        "losses": losses,
    }
    for name, gradient in gradients(model).items():
        if "e_score_correction_bias" in name:  # not trained
            continue
        figures[f"gradient.{name}"] = gradient.flatten()[:: 3 if gradient.numel() <= MANY else 61].clone()
        figures[f"norm.{name}"] = gradient.double().norm()
    return figures


def write(name: str) -> None:
    config_class, sizes = FAMILIES[name]
    torch.manual_seed(0)
    config = config_class(**sizes)
    model = t.AutoModelForCausalLM.from_config(config)
    tensors = {key: about(key, value, config) for key, value in saved(model).items()}
    folder = DATA / name
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        write_weights(tensors, pathlib.Path(temporary))
        figures = figures_of(pathlib.Path(temporary), sizes["vocab_size"])
        (folder / "config.json").write_text((pathlib.Path(temporary) / "config.json").read_text())
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in sorted(tensors.items()))
    (folder / "weights.json").write_text("{\n" + lines + "\n}\n")
    save_file({key: value.contiguous() for key, value in figures.items()}, str(folder / "figures.safetensors"))
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{name}: loss {figures['loss'].item():.6f}, largest logit {figures['logits'].abs().max():.2f}, {size} bytes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--loads", metavar="FOLDER", help="load a folder and print its loss on the figures' tokens")
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    if options.loads:
        model = loaded(pathlib.Path(options.loads), torch.float32)
        rows = tokens_of("tokens", BATCH, SEQUENCE + 1, model.config.vocab_size)
        with torch.no_grad():
            print(f"{loss_of(model(input_ids=rows[:, :-1]).logits, rows[:, 1:]).item():.6f}")
        return 0
    for name in options.names or FAMILIES:
        write(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
