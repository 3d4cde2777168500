"""Captures a small Llama for serving: prefill and decode with a cache, on the ranks that torchrun starts.

    torchrun --nproc-per-node 2 samples/pytorch/llama_serve.py samples/serving
    torchrun --nproc-per-node 2 samples/pytorch/llama_serve.py samples/serving/bf16 bfloat16

It writes FOLDER/tpN (N ranks) with the two graphs, and on one rank also the checkpoint (FOLDER/checkpoint) and the
tokens that PyTorch generates on one rank (FOLDER/expected.json). There, "sure" is the number of tokens before the first
one that rounding decides: sums in another order may choose other tokens from there on.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import symplan_capture

VOCABULARY, HIDDEN, INTERMEDIATE, LAYERS = 256, 64, 96, 2
HEADS, KV_HEADS, HEAD = 4, 2, 16
LENGTH, PROMPT, STEPS = 128, 16, 64
# The relative tolerance is torch.testing's. With these seeds, rounding decides none of the first tokens.
TOLERANCES = {torch.float32: 1.3e-6, torch.bfloat16: 1.6e-2}
SEEDS = {torch.float32: 0, torch.bfloat16: 90}


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


class Attention(nn.Module):
    """Attention of a rank's heads to all positions in the cache up to each token's own."""

    def __init__(self, ranks):
        super().__init__()
        self.q_proj = nn.Linear(HIDDEN, HEADS * HEAD, bias=False)
        self.k_proj = nn.Linear(HIDDEN, KV_HEADS * HEAD, bias=False)
        self.v_proj = nn.Linear(HIDDEN, KV_HEADS * HEAD, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD, HIDDEN, bias=False)
        for cache in ("k_cache", "v_cache"):
            self.register_buffer(cache, torch.zeros(1, KV_HEADS // ranks, LENGTH, HEAD), persistent=False)

    def forward(self, x, positions, cos, sin, mask):
        q, k, v = (
            proj(x).view(1, x.shape[1], -1, HEAD).transpose(1, 2) for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        self.k_cache.index_copy_(2, positions, rotated(k, cos, sin))
        self.v_cache.index_copy_(2, positions, v)
        y = F.scaled_dot_product_attention(
            rotated(q, cos, sin), self.k_cache, self.v_cache, attn_mask=mask, enable_gqa=True
        )
        return self.o_proj(y.transpose(1, 2).reshape(1, x.shape[1], -1))


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.up_proj = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.down_proj = nn.Linear(INTERMEDIATE, HIDDEN, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, ranks):
        super().__init__()
        self.input_layernorm = RMSNorm()
        self.self_attn = Attention(ranks)
        self.post_attention_layernorm = RMSNorm()
        self.mlp = MLP()

    def forward(self, x, *positions):
        x = x + self.self_attn(self.input_layernorm(x), *positions)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """A Llama with the names of Hugging Face's, which keeps caches, position, prompt and new tokens in buffers.

    Its caller reads the tokens when all are there. Until then, decode can run again and again without the host.
    """

    def __init__(self, ranks):
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.model.layers = nn.ModuleList(Layer(ranks) for _ in range(LAYERS))
        self.model.norm = RMSNorm()
        # Angles need float32, whatever the type of the weights.
        frequencies = 10000.0 ** (torch.arange(0, HEAD, 2, dtype=torch.float32) / -HEAD)
        self.model.register_buffer("inv_freq", frequencies, persistent=False)
        self.lm_head = nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.register_buffer("tokens", torch.zeros(1, LENGTH, dtype=torch.long), persistent=False)
        self.register_buffer("position", torch.zeros(1, dtype=torch.long), persistent=False)

    def prefill(self):
        """Reads the prompt, from position 0 on; writes the token after it."""
        self.position.fill_(PROMPT)
        return self.next(self.tokens[:, :PROMPT], torch.arange(PROMPT))

    def decode(self):
        """Reads the last token; writes the next one."""
        position = self.position.clone()
        self.position.add_(1)
        return self.next(self.tokens[:, position], position)

    def next(self, tokens, positions):
        angles = positions[:, None] * self.model.inv_freq
        angles = torch.cat([angles, angles], -1)
        mask = torch.arange(LENGTH) <= positions[:, None]
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, positions, angles.cos().to(x.dtype), angles.sin().to(x.dtype), mask)
        token = self.lm_head(self.model.norm(x[:, -1:])).argmax(-1)
        self.tokens.index_copy_(1, positions[-1:] + 1, token)
        return token


def generate(model, prompt, prefill, decode):
    model.tokens[:, :PROMPT] = prompt
    prefill()
    for _ in range(STEPS - 1):
        decode()
    return model.tokens[0, PROMPT : PROMPT + STEPS].tolist()


def sure_steps(model, prompt, tolerance):
    """Returns how many tokens come before the first one that rounding decides.

    It decides where a model with the same weights in float32, given the same tokens, chooses another one, or where one of
    the two models has its two largest logits within the tolerance.
    """
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    exact = Llama(1)
    exact.load_state_dict(model.state_dict())
    torch.set_default_dtype(dtype)
    logits = {}
    for each in (model, exact):
        each.tokens[:, :PROMPT] = prompt
        each.lm_head.register_forward_hook(lambda *call, each=each: logits.update({each: call[2].flatten().double()}))
    for step in range(STEPS):
        chosen = set()
        for each in (model, exact):
            each.decode() if step else each.prefill()
            (first, second), (token, _) = logits[each].topk(2)
            if first - second <= tolerance * first.abs():
                return step
            chosen.add(token.item())
        if len(chosen) > 1:
            return step
        exact.tokens.copy_(model.tokens)
    return STEPS


def initialize(model, seed):
    """Random weights, large enough that the tokens vary."""
    torch.manual_seed(seed)
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=1.0 if "embed" in name else 2.0 / weight.shape[1] ** 0.5)


def save_checkpoint(model, folder):
    """Writes two shards and their index, as Hugging Face's save_pretrained does."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    names = sorted(tensors)
    shards = {f"model-0000{i + 1}-of-00002.safetensors": names[i::2] for i in range(2)}
    for shard, of_shard in shards.items():
        save_file({name: tensors[name] for name in of_shard}, folder / shard, metadata={"format": "pt"})
    index = {
        "metadata": {"total_size": sum(tensor.nbytes for tensor in tensors.values())},
        "weight_map": {name: shard for shard, of_shard in shards.items() for name in of_shard},
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def main():
    dist.init_process_group("gloo")
    folder, ranks = Path(sys.argv[1]), dist.get_world_size()
    dtype = getattr(torch, sys.argv[2] if len(sys.argv) > 2 else "float32")
    torch.set_default_dtype(dtype)
    prompt = torch.arange(PROMPT).mul(37).remainder(VOCABULARY)[None]
    whole = Llama(1)
    initialize(whole, SEEDS[dtype])
    if ranks == 1:
        save_checkpoint(whole, folder / "checkpoint")
    model = Llama(ranks)
    model.load_state_dict(whole.state_dict())
    with torch.no_grad():
        expected = generate(whole, prompt, whole.prefill, whole.decode)
        sure = sure_steps(whole, prompt, TOLERANCES[dtype])
    columns = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
    plan = {f"model.layers.*.{name}": ColwiseParallel() for name in columns}
    plan |= {f"model.layers.*.{name}": RowwiseParallel() for name in ("self_attn.o_proj", "mlp.down_proj")}
    parallelize_module(model, init_device_mesh("cpu", (ranks,)), plan)

    cases = folder / f"tp{ranks}"
    prefill = torch.compile(model.prefill, backend=symplan_capture.backend(cases / "prefill", model=model))
    decode = torch.compile(model.decode, backend=symplan_capture.backend(cases / "decode", model=model))
    with torch.no_grad():
        tokens = generate(model, prompt, prefill, decode)
    if tokens[:sure] != expected[:sure]:
        raise AssertionError(f"{ranks} ranks generate {tokens}, one generates {expected}")
    dist.barrier()
    if ranks == 1:
        text = json.dumps({"prompt": prompt[0].tolist(), "tokens": expected, "sure": sure})
        (folder / "expected.json").write_text(text + "\n")
    # The checkpoint has the weights, and the caches begin with zeros.
    for file in cases.glob(f"*/rank{dist.get_rank()}.*.safetensors"):
        file.unlink()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
