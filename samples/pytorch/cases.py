"""Captures the cases mesh_2d, reduce_ops, moe and complex_rotary of samples/cases.

    torchrun --nproc-per-node 4 samples/pytorch/cases.py FOLDER
"""

import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import symplan_capture


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


def mesh_2d(mesh):
    """Tensor parallel in two groups of ranks, and averages over two other groups."""
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    mlp = parallelize_module(MLP(), mesh["tp"], plan)
    return lambda x: funcol.all_reduce(mlp(x).sum(0), "avg", mesh["dp"])


def reduce_ops(x, n):
    """Every reduction that all_reduce supports."""
    floats = [funcol.all_reduce(x * 2, op, dist.group.WORLD) for op in ("sum", "avg", "product", "min", "max")]
    integers = [funcol.all_reduce(n + 1, op, dist.group.WORLD) for op in ("sum", "band", "bor", "bxor")]
    return floats + integers


class MoE(nn.Module):
    """Two of eight experts for each token, two experts on each rank; tokens beyond an expert's capacity are dropped."""

    experts, local, capacity = 8, 2, 6

    def __init__(self, width=16, hidden=24):
        super().__init__()
        self.router = nn.Linear(width, self.experts, bias=False)
        self.up = nn.Parameter(torch.randn(self.local, width, hidden) * 0.1)
        self.down = nn.Parameter(torch.randn(self.local, hidden, width) * 0.1)

    def exchange(self, tokens):
        rows = [self.local * self.capacity] * 4
        return funcol.all_to_all_single(tokens.contiguous(), rows, rows, dist.group.WORLD)

    def forward(self, x):
        weight, expert = self.router(x).softmax(-1).topk(2, -1)
        expert = expert.flatten()
        chosen = F.one_hot(expert, self.experts)
        place = (chosen.cumsum(0) * chosen).sum(1) - 1
        fits = place < self.capacity
        slots = self.experts * self.capacity
        slot = torch.where(fits, expert * self.capacity + place, slots)
        sent = x.new_zeros(slots + 1, x.shape[1]).index_put((slot,), x.repeat_interleave(2, 0))[:-1]
        here = self.exchange(sent).view(4, self.local, self.capacity, -1).transpose(0, 1)
        done = torch.bmm(F.silu(torch.bmm(here.reshape(self.local, -1, x.shape[1]), self.up)), self.down)
        back = self.exchange(done.view(self.local, 4, self.capacity, -1).transpose(0, 1).reshape(slots, -1))
        padded = torch.cat([back, back.new_zeros(1, x.shape[1])])
        return (padded[slot] * (weight.flatten() * fits)[:, None]).view(x.shape[0], 2, -1).sum(1)


class Rotary(nn.Module):
    """Queries turned by complex numbers of size 1 that depend on positions, and how well they fit those of keys."""

    heads, size = 2, 8

    def __init__(self, width=16):
        super().__init__()
        self.query = nn.Linear(width, self.heads * self.size, bias=False)
        self.out = nn.Linear(self.heads * self.size, width, bias=False)

    def forward(self, x, positions):
        frequency = 100.0 ** -(torch.arange(0, self.size, 2) / self.size)
        turn = torch.polar(torch.ones(x.shape[0], self.size // 2), torch.outer(positions, frequency))
        query = torch.view_as_complex(self.query(x).float().view(x.shape[0], self.heads, -1, 2))
        turned = query * turn[:, None]
        back = turned / turn[:, None] - 2 * query
        fit = (turned * torch.conj_physical(query)).sum(-1).abs() / (query.abs().square().sum(-1) + 1)
        rows = torch.view_as_real(turned + 0.5 * back).flatten(1).to(x.dtype)
        return funcol.all_reduce(self.out(rows), "sum", dist.group.WORLD), fit, turned.angle().mean(0)


def capture(name, function, *inputs):
    with torch.no_grad():
        torch.compile(function, backend=symplan_capture.backend(f"{sys.argv[1]}/{name}"), dynamic=False)(*inputs)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    mesh = mesh_2d(init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp")))
    moe = MoE().bfloat16()
    torch.manual_seed(rank // 2)
    capture("mesh_2d", mesh, torch.randn(8, 16))
    torch.manual_seed(rank)
    capture("reduce_ops", reduce_ops, torch.randn(3, 5), torch.randint(0, 9, (3, 5)))
    capture("moe", moe, torch.randn(10, 16).bfloat16())
    torch.manual_seed(rank)
    rotary = Rotary().bfloat16()
    torch.manual_seed(0)
    capture("complex_rotary", rotary, torch.randn(6, 16).bfloat16(), torch.arange(6.0))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
