"""Tests exported and imported PyTorch modules: serial training has the losses of a PyTorch training loop bit for bit, and every
pipeline has those of serial training. Models of transformers and torchvision are tested if these packages are installed.
Run as: imported.py PIPEWRIGHT [NAME ...]"""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import pipe_split

from pipewright import PROGRAM, SKIPPED

sys.path.remove(str(Path(__file__).parent))
del sys.modules["pipewright"]
sys.path.insert(0, str(Path(PROGRAM).parent.parent / "python"))
try:
    from pipewright.torch import export, load_weights, save_samples  # noqa: E402
except ImportError as missing:
    print(f"skipped: the module pipewright was not built ({missing})")
    sys.exit(SKIPPED)

MICROBATCHES, BATCH, STEPS, SAMPLES, RATE = 4, 2, 3, 50, 0.05
WORDS = 2**64 - 1


def hash_of(*words):
    """exec/include/pipewright/exec/hash.hpp"""
    state = 0
    for word in words:
        state = ((state ^ (word & WORDS)) + 0x9E3779B97F4A7C15) & WORDS
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & WORDS
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & WORDS
        state ^= state >> 31
    return state


def sample_at(number, seed):
    """exec/src/data/sample_order.cpp"""
    key, half = hash_of(seed, number // SAMPLES), ((SAMPLES - 1).bit_length() + 1) // 2
    at, mask = number % SAMPLES, (1 << half) - 1
    while True:
        left, right = at >> half, at & mask
        for turn in range(4):
            left, right = right, left ^ (hash_of(key, turn, right) & mask)
        at = left << half | right
        if at < SAMPLES:
            return at


# ---- modules ----------------------------------------------------------------------------------------------------


def rotated(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class RootNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class DecoderBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, RootNorm(width), RootNorm(width)
        self.q, self.kv = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x, cos, sin):
        batch, tokens, width = x.shape
        h = self.norm1(x)
        q = self.q(h).view(batch, tokens, self.heads, -1).transpose(1, 2)
        k, v = self.kv(h).view(batch, tokens, 2, self.heads // 2, -1).permute(2, 0, 3, 1, 4)
        k, v = (each.repeat_interleave(2, 1) for each in (k, v))
        y = F.scaled_dot_product_attention(rotated(q, cos, sin), rotated(k, cos, sin), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, tokens, width))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    """A small Llama, whose rotary embeddings have no gradient and are passed from block to block."""

    def __init__(self, tied, marks=False, width=16, heads=4, words=32, blocks=4):
        super().__init__()
        self.embed, self.marks = nn.Embedding(words, width), marks
        self.blocks = nn.ModuleList(DecoderBlock(width, heads) for _ in range(blocks))
        self.norm, self.head = RootNorm(width), nn.Linear(width, words, bias=False)
        self.register_buffer("rates", 1 / 10000 ** (torch.arange(0, width // heads, 2) / (width // heads)), False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens):
        with torch.no_grad():
            angles = torch.arange(tokens.shape[1])[:, None] * self.rates[None]
            cos, sin = (f(torch.cat((angles, angles), -1)) for f in (torch.cos, torch.sin))
        x = self.embed(tokens)
        for number, block in enumerate(self.blocks):
            x = block(x, cos, sin)
            if self.marks and number < 3:
                pipe_split()
        return self.head(self.norm(x))


class ResidualBlock(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(into, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.down = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += self.down(x)
        return self.relu(y)


class ResidualNet(nn.Module):
    """A small ResNet with batch norms and in-place operations."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.pool = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(ResidualBlock(8, 8, 1), ResidualBlock(8, 16, 2), ResidualBlock(16, 16, 1))
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.bn(self.conv(x)), inplace=True))
        return self.fc(F.adaptive_avg_pool2d(self.blocks(x), 1).flatten(1))


class UNet(nn.Module):
    """A small U-Net, with skip connections over most of the layers."""

    def __init__(self):
        super().__init__()
        self.down_1, self.down_2 = nn.Conv2d(1, 4, 3, 1, 1), nn.Conv2d(4, 8, 3, 2, 1)
        self.middle_1 = nn.Conv2d(8, 8, 3, 2, 1)
        self.up_1, self.up_2 = nn.ConvTranspose2d(8, 8, 2, 2), nn.ConvTranspose2d(16, 4, 2, 2)
        self.out_1 = nn.Conv2d(8, 1, 3, 1, 1)

    def forward(self, x):
        first = F.gelu(self.down_1(x))
        second = F.gelu(self.down_2(first))
        up = F.gelu(self.up_1(F.gelu(self.middle_1(second))))
        up = F.gelu(self.up_2(torch.cat((up, second), 1)))
        return self.out_1(torch.cat((up, first), 1))


class EncoderBlock(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.qkv, self.o = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2, self.drop = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(dropout)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, bias):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = ((q @ k.transpose(-1, -2)) / (width / self.heads) ** 0.5 + bias).softmax(-1)
        y = (self.drop(weights) @ v).transpose(1, 2).reshape(batch, tokens, width)
        x = self.norm1(x + self.drop(self.o(y)))
        return self.norm2(x + self.drop(self.down(F.gelu(self.up(x)))))


class Encoder(nn.Module):
    """A small BERT, whose mask is computed from the tokens and passed through all blocks."""

    def __init__(self, dropout=0.0, width=16, words=32, tokens=8):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(EncoderBlock(width, 2, dropout) for _ in range(4))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, 5)

    def forward(self, tokens):
        bias = (tokens == 0)[:, None, None, :] * -1e9
        x = self.norm(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))
        for block in self.blocks:
            x = block(x, bias)
        return self.head(torch.tanh(self.pool(x[:, 0])))


class Translator(nn.Module):
    """A small T5 with two inputs, an embedding that three layers share, and a bias that the first block learns and all use."""

    def __init__(self, width=16, words=32, tokens=8):
        super().__init__()
        self.shared = nn.Embedding(words, width)
        self.bias = nn.Embedding(2 * tokens, 2)
        self.encoder = nn.ModuleList(EncoderBlock(width, 2, 0.0) for _ in range(2))
        self.cross = nn.ModuleList(nn.MultiheadAttention(width, 2, batch_first=True) for _ in range(2))
        self.decoder = nn.ModuleList(EncoderBlock(width, 2, 0.0) for _ in range(2))

    def forward(self, source, target):
        places = torch.arange(source.shape[1])
        bias = self.bias(places[:, None] - places[None] + source.shape[1]).permute(2, 0, 1)[None]
        x = self.shared(source)
        for block in self.encoder:
            x = block(x, bias)
        y = self.shared(target)
        for cross, block in zip(self.cross, self.decoder):
            y = block(y + cross(y, x, x, need_weights=False)[0], bias)
        return F.linear(y, self.shared.weight)


# ---- cases ------------------------------------------------------------------------------------------------------


def tokens(*more, words=32):
    return torch.randint(0, words, (SAMPLES, 8, *more))


def words_loss(output, target):
    return F.cross_entropy(getattr(output, "logits", output).flatten(0, -2), target.flatten())


class Case:
    """A module with its data and settings. ``microbatches`` is 1 if a weight is tied, because PyTorch sums its gradients by
    microbatch and Pipewright by layer. ``uses`` is the largest number of uses of a weight; the order in which three or more
    gradients are summed changes their last bits."""

    def __init__(self, build, inputs, targets, loss, microbatches=MICROBATCHES, exact=True, options=(), training=True, uses=2):
        self.build, self.inputs, self.targets, self.loss, self.uses = build, inputs, targets, loss, uses
        self.microbatches, self.exact, self.options, self.training = microbatches, exact, options, training


CASES = {
    "decoder": Case(lambda: Decoder(tied=False), lambda: (tokens(),), tokens, words_loss),
    "tied": Case(lambda: Decoder(tied=True), lambda: (tokens(),), tokens, words_loss, microbatches=1),
    "marks": Case(lambda: Decoder(tied=False, marks=True), lambda: (tokens(),), tokens, words_loss,
                  options=("--by", "marks")),
    "bytes": Case(lambda: Decoder(tied=False), lambda: (tokens(),), tokens, words_loss, options=("--layers", "5")),
    "resnet": Case(ResidualNet, lambda: (torch.randn(SAMPLES, 3, 16, 16),),
                   lambda: torch.randint(0, 10, (SAMPLES,)), F.cross_entropy),
    "unet": Case(UNet, lambda: (torch.randn(SAMPLES, 1, 8, 8),), lambda: torch.randn(SAMPLES, 1, 8, 8), F.mse_loss),
    "bert": Case(Encoder, lambda: (tokens(),), lambda: torch.randint(0, 5, (SAMPLES,)), F.cross_entropy),
    "dropout": Case(lambda: Encoder(0.1), lambda: (tokens(),), lambda: torch.randint(0, 5, (SAMPLES,)),
                    F.cross_entropy, exact=False),
    "translator": Case(Translator, lambda: (tokens(), tokens()), tokens, words_loss, microbatches=1, uses=3),
}


def add_libraries():
    """Adds small models of transformers and torchvision."""
    try:
        import torchvision
        import transformers as hf
    except ImportError as missing:
        print(f"skipping models of transformers and torchvision: {missing.name} is not installed")
        return
    # By default transformers omits the mask unless it is traced, and then another kernel with other bits runs.
    sizes = {"vocab_size": 64, "attn_implementation": "eager"}
    llama = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
             "num_key_value_heads": 2, "use_cache": False, **sizes}
    few = {"vocab_size": 64, "use_cache": False}

    def words():
        return tokens(words=64)

    def images(side):
        return lambda: (torch.randn(SAMPLES, 3, side, side),)

    def labels():
        return torch.randint(0, 10, (SAMPLES,))

    CASES.update({
        "GPT-2": Case(lambda: hf.GPT2LMHeadModel(hf.GPT2Config(
            n_positions=16, n_embd=32, n_layer=4, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False,
            **sizes)), lambda: (words(),), words, words_loss, microbatches=1),
        "Llama": Case(lambda: hf.LlamaForCausalLM(hf.LlamaConfig(tie_word_embeddings=False, **llama)),
                      lambda: (words(),), words, words_loss),
        "BERT": Case(lambda: hf.BertForSequenceClassification(hf.BertConfig(
            hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=64, num_labels=10,
            hidden_dropout_prob=0, attention_probs_dropout_prob=0, **sizes)), lambda: (words(),), labels, words_loss),
        "ResNet-50": Case(lambda: torchvision.models.resnet50(num_classes=10), images(32), labels, F.cross_entropy),
        "ViT": Case(lambda: torchvision.models.VisionTransformer(32, 8, 4, 4, 32, 64, num_classes=10), images(32), labels,
                    F.cross_entropy),
        "T5": Case(lambda: hf.T5ForConditionalGeneration(hf.T5Config(
            d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0, decoder_start_token_id=0, **few)),
            lambda: (words(), torch.ones(SAMPLES, 8, dtype=torch.long), words()), words, words_loss, microbatches=1, uses=3),
        "Whisper": Case(lambda: hf.WhisperForConditionalGeneration(hf.WhisperConfig(
            d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8, max_source_positions=8, max_target_positions=16,
            dropout=0, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, **few)),
            lambda: (torch.randn(SAMPLES, 8, 16), torch.ones(SAMPLES, 16, dtype=torch.long), words()), words, words_loss,
            microbatches=1, training=False),  # in training it drops random layers
    })


# ---- comparison -------------------------------------------------------------------------------------------------


def losses_of_torch(module, case, inputs, targets, seed):
    """Trains with SGD on the samples in Pipewright's order, one microbatch at a time."""
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    losses, number = [], 0
    for _ in range(STEPS):
        optimizer.zero_grad()
        of_step = []
        for _ in range(case.microbatches):
            samples = torch.tensor([sample_at(number + at, seed) for at in range(BATCH)])
            number += BATCH
            loss = case.loss(module(*(each[samples] for each in inputs)), targets[samples])
            (loss / case.microbatches).backward()
            of_step.append(loss.item())
        optimizer.step()
        losses.append(of_step)
    return losses


def pipewright(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def trained(folder, case, ranks, schedule, costs, *more):
    """Trains with Pipewright and returns the losses of each step, by microbatch."""
    settings = {"pipeline.ranks": ranks, "pipeline.schedule": schedule, "pipeline.microbatches": case.microbatches,
                "pipeline.partition": "profile", "cluster.devices_per_node": ranks,
                "training.steps": STEPS, "training.learning_rate": RATE, "training.optimizer": "sgd",
                "training.weight_decay": 0, "training.warm_up_steps": 0, "training.clip_norm": 0}
    out = folder / f"{schedule}-{ranks}"
    pipewright("train", folder / "scenario.json", "--costs" if costs.exists() else "--fresh",
               *([costs] if costs.exists() else []), "--out", out,
               *(word for field, value in settings.items() for word in ("--set", f"{field}={value}")), *more)
    if not costs.exists():
        costs.write_bytes((out / "costs.json").read_bytes())
    with open(out / "steps.jsonl") as lines:
        return [step for step in map(json.loads, lines) if "loss" in step]


def check(name, case, folder):
    torch.manual_seed(7)
    module = case.build().train(case.training)
    inputs, targets = case.inputs(), case.targets()
    export(module, tuple(each[:BATCH] for each in inputs), folder / "exported.pt2", loss=case.loss,
           targets=targets[:BATCH])
    pipewright("import", folder / "exported.pt2", "-o", folder, *case.options)
    save_samples(folder / "samples.safetensors", inputs[0] if len(inputs) == 1 else inputs, targets)
    seed = json.loads((folder / "scenario.json").read_text())["training"]["seed"]
    costs = folder / "measured.json"
    serial = [step["loss"] for step in trained(folder, case, 1, "1f1b", costs)]
    if case.exact:
        wanted = losses_of_torch(module, case, inputs, targets, seed)
        # Pipewright reports the mean of the microbatches' losses for a step.
        means = [sum(step) / len(step) for step in wanted]
        assert serial == means, f"{name}: PyTorch's losses {means}, Pipewright's {serial}"
    layers = len(json.loads((folder / "layers.json").read_text())["layers"])
    ran = []
    for ranks, schedule, stages in ((2, "1f1b", 2), (4, "1f1b", 4), (2, "zbv", 4)):
        if stages > layers:
            continue
        more = [] if ran else ["--checkpoints", folder / "saved", "--processes"]
        losses = [step["loss"] for step in trained(folder, case, ranks, schedule, costs, "--verify", *more)]
        assert losses == serial, f"{name}: {schedule} on {ranks} ranks: {losses}, serial {serial}"
        ran.append(f"{schedule} {ranks}")
    assert ran, f"{name} has {layers} layers only"
    check_weights(name, case, folder, module if case.exact else None)
    print(f"{name}: {layers} layers, losses {'equal to PyTorch bit by bit, ' if case.exact else ''}and the same under "
          f"{', '.join(ran)}", flush=True)


def check_weights(name, case, folder, wanted):
    """Checks that the trained weights load back into the module and equal those of the PyTorch training loop."""
    pipewright("save", folder / "scenario.json", "--checkpoints", folder / "saved", "-o", folder / "tuned")
    torch.manual_seed(8)
    module = case.build().train(case.training)
    before = {key: value.clone() for key, value in module.state_dict().items()}
    load_weights(module, folder / "tuned")
    after = module.state_dict()
    assert any(not torch.equal(after[key], value) for key, value in before.items()), name
    if wanted is not None:
        equal = torch.equal if case.uses < 3 else lambda ours, theirs: torch.allclose(ours, theirs, rtol=1e-5, atol=1e-7)
        differing = [key for key, value in wanted.state_dict().items() if not equal(after[key], value)]
        assert not differing, f"{name}: after the steps these are not PyTorch's: {differing}"
    first = next(iter(dict(module.named_parameters())))
    module.register_parameter("beside", nn.Parameter(torch.ones(1)))
    try:
        load_weights(module, folder / "tuned")
    except ValueError as error:
        assert "beside is missing" in str(error) and first not in str(error), error
    else:
        raise AssertionError("a parameter that the folder lacks is not rejected")


def check_refusals(folder):
    """Checks that unsupported operators are rejected by name, with the line of the user's code."""

    class Branches(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))

    class Autocast(nn.Module):
        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                return x @ x.transpose(0, 1)

    class Item(nn.Module):
        def forward(self, x):
            return x * x.sum().item()

    for module, wanted in ((Branches(), "cond: the computation depends on data"),
                           (Autocast(), "torch.autocast: export without it"),
                           (Item(), "takes a number out of a tensor")):
        export(module, torch.ones(2, 2), folder / "refused.pt2")
        done = subprocess.run([PROGRAM, "import", folder / "refused.pt2"], capture_output=True, text=True)
        assert done.returncode == 2 and wanted in done.stderr, done.stderr
        assert "at imported.py:" in done.stderr, done.stderr
    print("data-dependent control flow, autocast and item() are rejected with their lines")


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    add_libraries()
    names = sys.argv[2:] or CASES
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            check(name, CASES[name], Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        check_refusals(Path(folder))


main()
