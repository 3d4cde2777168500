"""Captures training steps as pairs of a forward and a backward graph, with the memory that PyTorch took for them.

    python capture_pairs.py pairs
    python capture_pairs.py pairs gpt2 bert
    symplan compile pairs/bert.0.fx.txt pairs/bert.1.fx.txt --together --ranks 1 --target h100x4

Without names, it captures all pairs, on one GPU. NAME.0.fx.txt is the forward graph and NAME.1.fx.txt the backward
graph, as Inductor compiles them, after its passes. pairs.csv gets a row for each pair: the peak of PyTorch's
allocator in a step, in bytes, above what it held before (weights, inputs, and the gradient of the result if the step
has no loss). Outputs and gradients count. The pairs are

    gpt2              4 layers, 1024 wide, 8 × 1024 tokens, vocabulary 50,304, cross-entropy of all tokens, bf16
    gpt2_dropout      the same with dropout of 0.1 after each block and the embedding
    gpt2_autocast     the same as gpt2, with weights in f32 and products in bf16
    gpt2_loss32       2 layers of gpt2, with the loss in f32
    attention         2 layers of gpt2, 4 × 1024 tokens, attention as products and softmax
    llama_loss32      4 layers, 2048 wide, 4 × 2048 tokens, vocabulary 32,000, 16 heads, 4 for keys, loss in f32
    llama_autocast    the same layers and tokens without embedding and loss, weights in f32 and products in bf16
    geglu             6 layers with GEGLU, 2048 wide, 2 × 2048 tokens, without embedding and loss
    mish              4 layers with mish, 1024 wide, 8 × 1024 tokens, without embedding and loss
    bert              4 layers, 1024 wide, 16 × 512 tokens, norms after the blocks, f32, without embedding and loss
    vit               4 layers, 1024 wide, 64 images of 224 × 224 in patches of 16, cross-entropy of 1000 classes
    experts           2 layers with 8 experts, 2 for each token, 1024 wide, 8192 tokens, without embedding and loss
    convolutions      4 convolutions with batch norms and relu, 16 images of 64 × 64, f32
    checkpoints       2 checkpointed layers with dropout of PyTorch's generator, 512 wide, 4 × 512 tokens
"""

import argparse
import contextlib
import dataclasses
import gc
import platform
import sys
from pathlib import Path
from typing import Callable

import torch
import torch._inductor.config as inductor
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import inductor_graphs

COLUMNS = "pair,peak_above_inputs"
WARM_UP, STEPS = 3, 7


@dataclasses.dataclass(frozen=True)
class Shape:
    """What the layers of a model are."""

    width: int
    heads: int
    key_heads: int = 0  # As many as heads.
    inner: int = 0  # Four times the width.
    norm: Callable = nn.LayerNorm
    activation: Callable = F.gelu
    gated: bool = False
    causal: bool = True
    rotary: bool = False
    dropout: float = 0.0
    norm_last: bool = False
    as_products: bool = False
    bias: bool = True


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.head = shape.width // shape.heads
        self.key_heads = shape.key_heads or shape.heads
        self.q = nn.Linear(shape.width, shape.width, bias=shape.bias)
        self.k = nn.Linear(shape.width, self.key_heads * self.head, bias=shape.bias)
        self.v = nn.Linear(shape.width, self.key_heads * self.head, bias=shape.bias)
        self.out = nn.Linear(shape.width, shape.width, bias=shape.bias)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (
            part.view(batch, tokens, -1, self.head).transpose(1, 2) for part in (self.q(x), self.k(x), self.v(x))
        )
        if self.shape.rotary:
            q, k = rotated(q), rotated(k)
        if self.shape.as_products:
            scores = q @ k.transpose(-2, -1) * self.head**-0.5
            hidden = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
            y = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        else:
            grouped = self.key_heads < self.shape.heads
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.shape.causal, enable_gqa=grouped)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))


def rotated(x):
    half = x.shape[-1] // 2
    rates = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = torch.outer(torch.arange(x.shape[-2], device=x.device, dtype=torch.float32), rates)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class MLP(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.activation = shape.activation
        inner = shape.inner or 4 * shape.width
        self.up = nn.Linear(shape.width, inner, bias=shape.bias)
        self.gate = nn.Linear(shape.width, inner, bias=shape.bias) if shape.gated else None
        self.down = nn.Linear(inner, shape.width, bias=shape.bias)

    def forward(self, x):
        if self.gate is None:
            return self.down(self.activation(self.up(x)))
        return self.down(self.activation(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """Tokens sorted by the 2 experts with the highest scores, in equal parts: as many for each expert."""

    def __init__(self, shape, count=8, chosen=2):
        super().__init__()
        self.count, self.chosen = count, chosen
        self.router = nn.Linear(shape.width, count, bias=False)
        self.up = nn.Parameter(torch.randn(count, shape.width, 4 * shape.width) * shape.width**-0.5)
        self.down = nn.Parameter(torch.randn(count, 4 * shape.width, shape.width) * shape.width**-0.5)

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weights, experts = self.router(rows).float().softmax(-1).topk(self.chosen, -1)
        order = experts.flatten().argsort(stable=True)
        given = rows[order // self.chosen].view(self.count, -1, rows.shape[-1])
        made = torch.bmm(F.gelu(torch.bmm(given, self.up)), self.down).view(-1, rows.shape[-1])
        made = made * weights.flatten()[order].unsqueeze(-1).to(made.dtype)
        return torch.zeros_like(rows).index_add(0, order // self.chosen, made).view_as(x)


class Layer(nn.Module):
    def __init__(self, shape, mlp=MLP):
        super().__init__()
        self.last, self.dropout = shape.norm_last, shape.dropout
        self.norm1, self.norm2 = shape.norm(shape.width), shape.norm(shape.width)
        self.attention, self.mlp = Attention(shape), mlp(shape)

    def forward(self, x):
        for norm, part in ((self.norm1, self.attention), (self.norm2, self.mlp)):
            if self.last:
                x = norm(x + part(x))
            else:
                x = x + F.dropout(part(norm(x)), self.dropout)
        return x


class Layers(nn.Module):
    def __init__(self, count, shape, mlp=MLP):
        super().__init__()
        self.layers = nn.ModuleList(Layer(shape, mlp) for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Language(nn.Module):
    """Layers between an embedding and a cross-entropy of all tokens."""

    def __init__(self, count, shape, vocabulary, positions=0, loss32=False):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, shape.width)
        self.positions = nn.Embedding(positions, shape.width) if positions else None
        self.layers = Layers(count, shape)
        self.norm = shape.norm(shape.width)
        self.head = nn.Linear(shape.width, vocabulary, bias=False)
        self.dropout, self.loss32 = shape.dropout, loss32

    def forward(self, ids, labels):
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        logits = self.head(self.norm(self.layers(F.dropout(x, self.dropout))))
        logits = logits.float() if self.loss32 else logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


class Vision(nn.Module):
    def __init__(self, count, shape, classes=1000):
        super().__init__()
        self.patches = nn.Linear(3 * 16 * 16, shape.width)
        self.positions = nn.Parameter(torch.randn(14 * 14, shape.width))
        self.layers = Layers(count, shape)
        self.norm, self.head = shape.norm(shape.width), nn.Linear(shape.width, classes)

    def forward(self, images, labels):
        cut = images.unfold(2, 16, 16).unfold(3, 16, 16).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        x = self.layers(self.patches(cut) + self.positions)
        return F.cross_entropy(self.head(self.norm(x).mean(1)), labels)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [3, 64, 64, 128, 128]
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm2d(size) for size in sizes[1:])

    def forward(self, x):
        for convolution, norm in zip(self.convolutions, self.norms):
            x = F.relu(norm(convolution(x)))
        return x


class Checkpoints(Layers):
    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


@dataclasses.dataclass(frozen=True)
class Pair:
    """A model and its inputs; without a loss, the gradient of the result is an input of the backward graph."""

    model: Callable
    inputs: Callable
    dtype: torch.dtype = torch.bfloat16
    autocast: bool = False
    loss: bool = False
    fallback_random: bool = False


def words(vocabulary, *sizes):
    return lambda _: [torch.randint(0, vocabulary, sizes) for _ in range(2)]


def rows(*sizes):
    return lambda dtype: [torch.randn(*sizes, dtype=dtype)]


GPT2 = Shape(1024, 16)
LLAMA = Shape(2048, 16, 4, 5632, nn.RMSNorm, F.silu, gated=True, rotary=True, bias=False)


def gpt2(count=4, loss32=False, **changes):
    return lambda: Language(count, dataclasses.replace(GPT2, **changes), 50304, 1024, loss32)


def layers(count, shape, mlp=MLP, **changes):
    return lambda: Layers(count, dataclasses.replace(shape, **changes), mlp)


F32 = torch.float32
PAIRS = {
    "gpt2": Pair(gpt2(), words(50304, 8, 1024), loss=True),
    "gpt2_dropout": Pair(gpt2(dropout=0.1), words(50304, 8, 1024), loss=True),
    "gpt2_autocast": Pair(gpt2(), words(50304, 8, 1024), F32, autocast=True, loss=True),
    "gpt2_loss32": Pair(gpt2(2, loss32=True), words(50304, 8, 1024), loss=True),
    "attention": Pair(gpt2(2, as_products=True), words(50304, 4, 1024), loss=True),
    "llama_loss32": Pair(lambda: Language(4, LLAMA, 32000, loss32=True), words(32000, 4, 2048), loss=True),
    "llama_autocast": Pair(layers(4, LLAMA), rows(4, 2048, 2048), F32, autocast=True),
    "geglu": Pair(layers(6, LLAMA, activation=F.gelu), rows(2, 2048, 2048)),
    "mish": Pair(layers(4, GPT2, activation=F.mish), rows(8, 1024, 1024)),
    "bert": Pair(layers(4, GPT2, causal=False, norm_last=True), rows(16, 512, 1024), F32),
    "vit": Pair(
        lambda: Vision(4, dataclasses.replace(GPT2, causal=False)),
        lambda dtype: [torch.randn(64, 3, 224, 224, dtype=dtype), torch.randint(0, 1000, (64,))],
        loss=True,
    ),
    "experts": Pair(layers(2, GPT2, Experts), rows(8, 1024, 1024)),
    "convolutions": Pair(Convolutions, rows(16, 3, 64, 64), F32),
    "checkpoints": Pair(
        lambda: Checkpoints(2, Shape(512, 8, dropout=0.1)), rows(4, 512, 512), fallback_random=True
    ),
}


def run(pair, compiled, inputs):
    cast = torch.autocast("cuda", torch.bfloat16) if pair.autocast else contextlib.nullcontext()
    with cast:
        return compiled(*inputs)


def measure(name, folder):
    """Returns the row of a pair, whose graphs it writes."""
    pair = PAIRS[name]
    torch.manual_seed(0)
    torch._dynamo.reset()
    inductor.fallback_random = pair.fallback_random
    graphs = []
    inductor_graphs.keep(graphs)
    with torch.device("cuda"):
        model = pair.model().to(pair.dtype).train()
        inputs = pair.inputs(pair.dtype)
    inputs = [x.requires_grad_() if x.is_floating_point() and not pair.loss else x for x in inputs]
    compiled = torch.compile(model, dynamic=False)
    result = run(pair, compiled, inputs)
    gradient = None if pair.loss else torch.randn_like(result)
    del result
    peaks = []
    for i in range(WARM_UP + STEPS):
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result = run(pair, compiled, inputs)
        result.backward(gradient)
        torch.cuda.synchronize()
        if i >= WARM_UP:
            peaks.append(torch.cuda.max_memory_allocated() - before)
        del result
        for tensor in [*model.parameters(), *inputs]:
            tensor.grad = None
    if len(graphs) != 2:
        raise RuntimeError(f"{name}: torch.compile made {len(graphs)} graphs, not a forward and a backward")
    for i, text in enumerate(graphs):
        (folder / f"{name}.{i}.fx.txt").write_text(text)
    return f"{name},{max(peaks)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("pairs", nargs="*", help=", ".join(PAIRS))
    args = parser.parse_args()
    unknown = [name for name in args.pairs if name not in PAIRS]
    if unknown:
        parser.error(f"unknown pair {unknown[0]}; choose from {', '.join(PAIRS)}")
    if not torch.cuda.is_available():
        sys.exit("pairs are captured on a GPU, and torch.cuda.is_available() is False")
    args.folder.mkdir(parents=True, exist_ok=True)
    head = [
        "# " + " ".join(["capture_pairs.py"] + sys.argv[1:]),
        f"# {torch.cuda.get_device_name()}; {platform.system()} {platform.machine()}",
        f"# PyTorch {torch.__version__}, CUDA {torch.version.cuda}, Python {platform.python_version()}",
        COLUMNS,
    ]
    with (args.folder / "pairs.csv").open("w") as file:
        print("\n".join(head), file=file)
        failed = []
        for name in args.pairs or PAIRS:
            try:
                row = measure(name, args.folder)
            except Exception as e:  # The others may still run.
                print(f"{name} failed: {e}", file=sys.stderr, flush=True)
                failed.append(name)
                continue
            print(row, flush=True)
            print(row, file=file, flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
