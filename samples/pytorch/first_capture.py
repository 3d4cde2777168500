"""Captures an MLP whose weights are split between the ranks, as a case for Symplan.

    torchrun --nproc-per-node 2 samples/pytorch/first_capture.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import symplan_capture

on_gpus = torch.cuda.is_available()
dist.init_process_group("nccl" if on_gpus else "gloo")
mesh = init_device_mesh("cuda" if on_gpus else "cpu", (dist.get_world_size(),))
if on_gpus:
    torch.cuda.set_device(dist.get_rank())
torch.manual_seed(0)
device = mesh.device_type

# Your model here.
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32)).to(device)
model = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})

model = torch.compile(model, backend=symplan_capture.backend("cases/mine"))
with torch.no_grad():
    model(torch.randn(8, 32, device=device))
dist.destroy_process_group()
