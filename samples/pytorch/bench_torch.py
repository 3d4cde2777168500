"""Times PyTorch's collectives as CollectiveBench times Symplan's.

    torchrun --nproc-per-node 4 bench_torch.py BYTES...

Prints kind, variant, dtype, bytes of one rank's operand, ranks, microseconds on the slowest GPU.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem


def micros(call, times, launches=10):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(times):
            call()
    for _ in range(2):
        graph.replay()
    torch.cuda.synchronize()
    dist.barrier()
    begin = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(launches):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    slowest = torch.tensor([begin.elapsed_time(end) * 1000 / launches / times], device="cuda")
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()


def main():
    rank = int(os.environ["RANK"])
    ranks = int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    group = dist.group.WORLD.group_name
    for size in map(int, sys.argv[1:]):
        count = size // 2
        symmetric = symm_mem.empty(count, dtype=torch.bfloat16, device="cuda")
        symmetric.fill_(0.01 * rank)
        symm_mem.rendezvous(symmetric, group)
        plain = torch.full((count,), 0.01, dtype=torch.bfloat16, device="cuda")
        gathered = torch.empty(count * ranks, dtype=torch.bfloat16, device="cuda")
        part = torch.empty(count // ranks, dtype=torch.bfloat16, device="cuda")
        ops = torch.ops.symm_mem
        calls = [
            ("all_reduce", "torch_one_shot", lambda: ops.one_shot_all_reduce(symmetric, "sum", group)),
            ("all_reduce", "torch_two_shot", lambda: ops.two_shot_all_reduce_(symmetric, "sum", group)),
            ("all_reduce", "torch_nccl", lambda: dist.all_reduce(plain)),
            ("all_gather", "torch_nccl", lambda: dist.all_gather_into_tensor(gathered, plain)),
            ("reduce_scatter", "torch_nccl", lambda: dist.reduce_scatter_tensor(part, plain)),
        ]
        for kind, variant, call in calls:
            time = micros(call, 5 if size > 8 << 20 else 20)
            if rank == 0:
                print(f"{kind},{variant},bf16,{size},{ranks},{time:.2f}", flush=True)
    # Captured graphs still hold the communicator: leaving in order would wait for them.
    os._exit(0)


main()
