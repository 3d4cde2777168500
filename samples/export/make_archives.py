"""Writes the cases beside this file: archives of torch.export, and the results of PyTorch.

    python samples/export/make_archives.py

It needs PyTorch with gloo, and safetensors. The cases were made with PyTorch 2.13. The build does not run this script.
"""

import json
import os
import re
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.multiprocessing as mp
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.export import Dim, export, save

HERE = Path(__file__).resolve().parent
RANKS = 2


class TensorParallelMlp(nn.Module):
    """A collective in the exported graph."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16, bias=False)

    def forward(self, x):
        y = self.down(F.gelu(self.up(x)))
        return fc.all_reduce(y, "sum", dist.group.WORLD)


class Block(nn.Module):
    """Embedding, tied weights, buffers of both kinds, a constant, nested inputs and outputs."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.norm = nn.LayerNorm(8)
        self.qkv = nn.Linear(8, 24, bias=False)
        self.out = nn.Linear(8, 8)
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.tensor(0.5))
        self.register_buffer("bias", torch.linspace(-1, 1, 8), persistent=False)
        self.shift = torch.arange(8.0)

    def forward(self, ids, options, flag=None, times=2):
        h = self.embed(ids) * self.scale + self.bias + self.shift
        heads = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(self.norm(h)).chunk(3, -1))
        a = F.scaled_dot_product_attention(*heads, is_causal=True)
        y = h + self.out(a.transpose(1, 2).flatten(2)) * options["gain"] * times
        return {"logits": self.head(y), "hidden": (y, ids.shape[1])}


class Counter(nn.Module):
    """Changes a buffer and an input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(4))

    def forward(self, x):
        self.total.add_(x.sum(0))
        x.mul_(2)
        return x + self.total


class Copied(nn.Module):
    """Exported without decompositions: the buffer is written in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(4))

    def forward(self, x):
        self.total.copy_(self.total + x.sum(0))
        return x + self.total


class Shared(nn.Module):
    """Tensors of one storage, with offsets and strides."""

    def __init__(self):
        super().__init__()
        whole = torch.randn(6, 8)
        self.register_buffer("whole", whole)
        self.register_buffer("rows", whole[2:5])
        self.register_buffer("turned", whole.t()[1:4])
        self.weight = nn.Parameter(torch.randn(8, 8, dtype=torch.bfloat16))

    def forward(self, x):
        y = x @ self.whole.t() + (self.rows.sum() + self.turned.sum())
        return y, x.to(torch.bfloat16) @ self.weight, -torch.inf + self.rows[0]


def flat(tree):
    return torch.utils._pytree.tree_leaves(tree)


def tensors(prefix, start, values):
    return {
        f"{prefix}{start + i}": v.detach().clone().contiguous()
        for i, v in enumerate(values)
        if isinstance(v, torch.Tensor)
    }


def write(name, program, args, rank=0):
    """A case: the archive, and one rank's own inputs and all outputs of the graph."""
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    stored = len(program.graph_signature.input_specs) - len(program.graph_signature.user_inputs)
    inputs = tensors("in", stored, flat(args))
    state = [
        program.constants[s.target] if s.target in program.constants else program.state_dict[s.target]
        for s in program.graph_signature.input_specs
        if s.kind.name != "USER_INPUT"
    ]
    outputs = program.graph_module(*(t.clone() for t in state), *flat(args))
    for node in program.graph.nodes:
        # Leave out private paths of the machine that exported.
        trace = node.meta.get("stack_trace") or ""
        node.meta["stack_trace"] = re.sub(r'File ".*?([^/"]+)"', r'File "\1"', trace)
    if rank == 0:
        save(program, folder / "graph.pt2")
    dims = {
        str(d.node.expr): d.node.hint
        for node in program.graph.nodes
        if node.op == "placeholder"
        for d in getattr(node.meta.get("val"), "shape", ())
        if isinstance(d, torch.SymInt)
    }
    if dims:
        (folder / "dims.json").write_text(json.dumps(dims) + "\n")
    save_file(inputs, folder / f"rank{rank}.inputs.safetensors")
    save_file(tensors("out", 0, outputs), folder / f"rank{rank}.outputs.safetensors")


def collective(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    model = TensorParallelMlp()
    torch.manual_seed(1 + rank)
    args = (torch.randn(4, 16),)
    with torch.no_grad():
        write("tp_mlp", export(model, args), args, rank)
    dist.destroy_process_group()


def single():
    torch.manual_seed(0)
    args = (torch.randint(0, 16, (2, 4)), {"gain": torch.randn(8)})
    with torch.no_grad():
        shapes = {"ids": {1: Dim.AUTO}, "options": {"gain": None}}
        write("block", export(Block().eval(), args, dynamic_shapes=shapes), args)
        args = (torch.randn(3, 4),)
        write("counter", export(Counter(), args).run_decompositions(), args)
        write("copy_in_place", export(Copied(), args), args)
        write("batch_norm", export(nn.BatchNorm1d(4).eval(), args).run_decompositions(), args)
        args = (torch.randn(3, 8),)
        write("shared", export(Shared(), args), args)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    single()
    mp.spawn(collective, nprocs=RANKS)
