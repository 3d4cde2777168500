"""Times PyTorch's collectives as `symplan bench collectives` times Symplan's: many in a CUDA graph.

    torchrun --nproc-per-node 4 bench_torch.py --csv torch.csv 16384 32768 65536 ...

It prints the same columns. Each time is the median of several measurements on the slowest GPU's clock.
`symplan bench table symplan.csv torch.csv` shows both side by side.
"""

import argparse
import datetime
import os
import platform
import statistics
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

COLUMNS = "kind,variant,dtype,bytes,ranks,micros,min_us,max_us,flops,compute_us,transfer_us,gpu,date"
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="+", type=int, help="bytes of one rank's operand")
    parser.add_argument("--dtypes", default="bf16", help="separated by commas: " + ", ".join(DTYPES))
    parser.add_argument("--measurements", type=int, default=7)
    parser.add_argument("--csv", help="write the rows to this file, too")
    return parser.parse_args()


def measure(call, times, launches, measurements):
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
    found = []
    for i in range(-1, measurements):
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
        if i >= 0:  # The first one warms up.
            found.append(slowest.item())
    return sorted(found)


def calls(size, dtype, rank, ranks, group):
    count = size // dtype.itemsize // ranks * ranks
    symmetric = symm_mem.empty(count, dtype=dtype, device="cuda")
    symmetric.fill_(0.01 * rank)
    symm_mem.rendezvous(symmetric, group)
    plain = torch.full((count,), 0.01, dtype=dtype, device="cuda")
    gathered = torch.empty(count * ranks, dtype=dtype, device="cuda")
    part = torch.empty(count // ranks, dtype=dtype, device="cuda")
    exchanged = torch.empty(count, dtype=dtype, device="cuda")
    ops = torch.ops.symm_mem
    return [
        ("all_reduce", "torch_one_shot", lambda: ops.one_shot_all_reduce(symmetric, "sum", group)),
        ("all_reduce", "torch_two_shot", lambda: ops.two_shot_all_reduce_(symmetric, "sum", group)),
        ("all_reduce", "torch_nccl", lambda: dist.all_reduce(plain)),
        ("all_gather", "torch_nccl", lambda: dist.all_gather_into_tensor(gathered, plain)),
        ("reduce_scatter", "torch_nccl", lambda: dist.reduce_scatter_tensor(part, plain)),
        ("all_to_all", "torch_nccl", lambda: dist.all_to_all_single(exchanged, plain)),
        ("broadcast", "torch_nccl", lambda: dist.broadcast(plain, 0)),
    ]


def main():
    args = arguments()
    rank = int(os.environ["RANK"])
    ranks = int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    group = dist.group.WORLD.group_name
    gpu = torch.cuda.get_device_name().replace(",", " ")
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    file = open(args.csv, "w") if args.csv and rank == 0 else None

    def line(text):
        if rank == 0:
            print(text, flush=True)
            if file:
                print(text, file=file, flush=True)

    line("# " + " ".join(["bench_torch.py"] + sys.argv[1:]))
    line(f"# {ranks} x {gpu}; {platform.system()} {platform.machine()}")
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    line(f"# PyTorch {torch.__version__}, CUDA {torch.version.cuda}, NCCL {nccl}")
    line(COLUMNS)
    for name in args.dtypes.split(","):
        for size in args.sizes:
            # Each measurement takes some milliseconds.
            times, launches = (5, 2) if size > 8 << 20 else (20, 5)
            for kind, variant, call in calls(size, DTYPES[name], rank, ranks, group):
                found = measure(call, times, launches, args.measurements)
                median = statistics.median_high(found)
                line(
                    f"{kind},{variant},{name},{size},{ranks},{median:.2f},{found[0]:.2f},"
                    f"{found[-1]:.2f},,,,{gpu},{date}"
                )
    # Captured graphs still hold the communicator: an orderly exit would wait for them.
    sys.stdout.flush()
    os._exit(0)


main()
