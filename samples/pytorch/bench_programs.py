"""Times whole programs that PyTorch compiles, as `symplan bench graph` times Symplan's, and writes their graphs.

    torchrun --nproc-per-node 2 bench_programs.py mlp8_tok16 max-autotune --csv torch.csv --graphs graphs
    symplan bench graph graphs/mlp8_tok16_tp2.fx.txt --pytorch torch.csv

Each call measures one program in one of torch.compile's modes, so that no other program takes memory in the process.
--csv adds a row to a file, which may already have rows. "symplan" instead of a mode is the backend of symplan_torch.py. A
time is the median of several measurements on the slowest GPU's clock. Each measurement has many calls, one after the
other, as the host submits them. The programs are

    mlpN_tokT             N blocks of a gated MLP with norms and residuals (4096, 14336), T tokens
    llamaNl_bB_sS         N layers of a Llama (4096, 14336, 32 heads, 8 for keys), batch B, S tokens; needs transformers
    llamaNl_train_sS      the same, batch 1, forward and backward
    gather_dimD           x * 1.5, then all_gather along dimension D; [2048, 32064 / ranks] on each rank
    reduce_scatter_dimD   x * 1.5, then reduce_scatter along dimension D; [2048, 8192] in f32
    fsdp_bucketN          N parameters of 32 MiB a rank: cat, one all_gather, a copy of each whole parameter
    exchange_heads        all_to_all from all heads of 2048 rows to some heads of all rows

in bf16 unless stated otherwise, split over all ranks. Memory is in bytes, of the GPU that takes most, once programs
run in the steady state. peak_allocated and peak_reserved are those of PyTorch's allocator. in_use is the driver's
count, less its value before the process group was made. --graphs writes the graphs of rank 0 as Inductor compiles
them, after its passes.

    torchrun --nproc-per-node 1 bench_programs.py llama4l_train_s8192 default --budgets 1,0.5,0 --csv torch.csv

trains within a share of the saved activations (torch._functorch.config.activation_memory_budget), for each share in
turn. The gradient of the result is then an input instead of a loss, as it is in the graphs. The line before a row has
the bytes that are allocated between calls: weights, inputs and the libraries' workspaces.
"""

import argparse
import datetime
import os
import platform
import re
import statistics
import sys
from pathlib import Path

import torch
import torch._functorch.config as functorch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import inductor_graphs

COLUMNS = "program,graphs,mode,ranks,micros,min_us,max_us,peak_allocated,peak_reserved,in_use,gpu,date"
MODES = ["default", "reduce-overhead", "max-autotune"]
SYMPLAN = "symplan"
DTYPE = torch.bfloat16
HIDDEN, INTERMEDIATE = 4096, 14336


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="for example mlp8_tok16, llama4l_b1_s2048, llama4l_train_s2048")
    parser.add_argument("mode", choices=[*MODES, SYMPLAN])
    parser.add_argument("--measurements", type=int, default=7)
    parser.add_argument("--calls", type=int, default=30, help="calls in each measurement")
    parser.add_argument("--csv", type=Path, help="add the row to this file, too")
    parser.add_argument("--graphs", type=Path, help="write the graphs to this folder")
    parser.add_argument("--budgets", type=shares, help="shares of the saved activations, for example 1,0.5,0")
    parser.add_argument("--estimator", default="flops", help="how the budget's partitioner estimates times")
    parser.add_argument("--solver", default="dp", help="how the budget's partitioner solves its knapsack")
    return parser.parse_args()


def shares(text):
    found = [float(part) for part in text.split(",")]
    if not all(0 <= share <= 1 for share in found):
        raise argparse.ArgumentTypeError(f"{text}: each share must be from 0 to 1")
    return found


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.gate = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.down = nn.Linear(INTERMEDIATE, HIDDEN, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Blocks(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.mlps = nn.ModuleList(MLP() for _ in range(count))
        self.norms = nn.ModuleList(nn.RMSNorm(HIDDEN) for _ in range(count))

    def forward(self, x):
        for mlp, norm in zip(self.mlps, self.norms):
            x = x + mlp(norm(x))
        return x


def split(model, columns, rows):
    """Splits the modules that these patterns match over all ranks."""
    if dist.get_world_size() == 1:
        return model
    plan = {}
    for name, _ in model.named_modules():
        if re.search(columns, name):
            plan[name] = ColwiseParallel()
        elif re.search(rows, name):
            plan[name] = RowwiseParallel()
    mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=("tp",))
    return parallelize_module(model, mesh, plan)


def blocks(count, tokens):
    with torch.device("cuda"):
        model = Blocks(count).to(DTYPE)
    x = torch.randn(tokens, HIDDEN, device="cuda", dtype=DTYPE)
    return split(model, r"\.(up|gate)$", r"\.down$"), x


def llama(layers, batch, tokens):
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        hidden_size=HIDDEN,
        intermediate_size=INTERMEDIATE,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=32000,
        use_cache=False,
    )
    torch.set_default_dtype(DTYPE)
    with torch.device("cuda"):
        model = LlamaModel(config)
    torch.set_default_dtype(torch.float32)
    ids = torch.randint(0, config.vocab_size, (batch, tokens), device="cuda")
    return split(model, r"\.(q_proj|k_proj|v_proj|gate_proj|up_proj)$", r"\.(o_proj|down_proj)$"), ids


def random(*sizes, dtype=DTYPE):
    return torch.randn(*sizes, device="cuda", dtype=dtype)


class Gather(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        gathered = collectives.all_gather_tensor(x * 1.5, 0, dist.group.WORLD)
        return gathered if self.dim == 0 else torch.cat(gathered.chunk(dist.get_world_size()), self.dim)


class ReduceScatter(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return collectives.reduce_scatter_tensor(x * 1.5, "sum", self.dim, dist.group.WORLD)


class Bucket(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.shards = nn.ParameterList(random(2048, 8192) for _ in range(count))

    def forward(self, x):
        flat = torch.cat([shard.reshape(-1) for shard in self.shards])
        ranks = dist.get_world_size()
        whole = collectives.all_gather_tensor(flat, 0, dist.group.WORLD).view(ranks, -1)
        size = self.shards[0].numel()
        return [
            whole[:, i * size : (i + 1) * size].reshape(ranks * 2048, 8192)
            for i in range(len(self.shards))
        ]


class ExchangeHeads(nn.Module):
    def forward(self, x):
        ranks = dist.get_world_size()
        rows, heads, size = x.shape
        parts = x.view(rows, ranks, heads // ranks, size).permute(1, 0, 2, 3).contiguous()
        splits = [rows] * ranks
        return collectives.all_to_all_single(parts.flatten(0, 1), splits, splits, dist.group.WORLD)


def make(program):
    """Returns the model, its input, and whether it is trained."""
    torch.manual_seed(0)  # The same on all ranks.
    if match := re.fullmatch(r"gather_dim([01])", program):
        sizes = (2048, 32064 // dist.get_world_size())
        return Gather(int(match[1])), random(*sizes), False
    if match := re.fullmatch(r"reduce_scatter_dim([01])", program):
        return ReduceScatter(int(match[1])), random(2048, 8192, dtype=torch.float32), False
    if match := re.fullmatch(r"fsdp_bucket(\d+)", program):
        return Bucket(int(match[1])), random(1), False
    if program == "exchange_heads":
        return ExchangeHeads(), random(2048, 32, 128), False
    if match := re.fullmatch(r"mlp(\d+)_tok(\d+)", program):
        return *blocks(*map(int, match.groups())), False
    if match := re.fullmatch(r"llama(\d+)l_b(\d+)_s(\d+)", program):
        return *llama(*map(int, match.groups())), False
    if match := re.fullmatch(r"llama(\d+)l_train_s(\d+)", program):
        return *llama(int(match[1]), 1, int(match[2])), True
    sys.exit(f"unknown program {program}; see --help")


def step(model, compiled, x, trains, gradient):
    if not trains:
        with torch.no_grad():
            compiled(x)
        return
    result = compiled(x)
    result = getattr(result, "last_hidden_state", result)
    if gradient is None:
        result.float().square().mean().backward()
    else:
        result.backward(gradient)
    for parameter in model.parameters():
        parameter.grad = None


def largest(*values):
    """Returns the maximum of each value over all ranks."""
    tensor = torch.tensor(values, device="cuda", dtype=torch.float64)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return tensor.tolist()


def measure(call, calls, measurements):
    found = []
    for i in range(-1, measurements):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        torch.cuda.synchronize()
        (slowest,) = largest(begin.elapsed_time(end) * 1000 / calls)
        if i >= 0:  # The first one warms up.
            found.append(slowest)
    return sorted(found)


def in_use():
    free, total = torch.cuda.mem_get_info()
    return total - free


def write(folder, name, graphs):
    folder.mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(graphs):
        part = f".{i}" if len(graphs) > 1 else ""
        (folder / f"{name}{part}.fx.txt").write_text(text)


def report(args, name, row, resting):
    gpu = torch.cuda.get_device_name().replace(",", " ")
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    lines = [
        "# " + " ".join(["bench_programs.py"] + sys.argv[1:]),
        f"# {dist.get_world_size()} x {gpu}; {platform.system()} {platform.machine()}",
        f"# PyTorch {torch.__version__}, CUDA {torch.version.cuda}, NCCL {nccl}, Python {platform.python_version()}",
        f"# between calls: {resting} bytes",
    ]
    print("\n".join(lines + [COLUMNS, f"{name},{row},{gpu},{date}"]), flush=True)
    if args.csv:
        first = not args.csv.exists() or args.csv.stat().st_size == 0
        with args.csv.open("a") as file:
            print("\n".join(lines + [COLUMNS] * first + [f"{name},{row},{gpu},{date}"]), file=file)


def compile_in(mode, model):
    if mode == SYMPLAN:
        import symplan_torch  # noqa: F401, as it registers the backend

        return torch.compile(model, backend=SYMPLAN)
    return torch.compile(model, mode=None if mode == "default" else mode)


def main():
    args = arguments()
    if args.mode == SYMPLAN and args.graphs:
        sys.exit("--graphs writes what Inductor compiles, which symplan does without")
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    before = in_use()
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    ranks = dist.get_world_size()
    name = f"{args.program}_tp{ranks}"
    model, x, trains = make(args.program)
    model.train(trains)
    if args.budgets and not trains:
        sys.exit("--budgets needs a program that trains")
    if args.graphs and len(args.budgets or []) > 1:
        sys.exit("--graphs writes the graphs of one budget")
    gradient = random(*x.shape, HIDDEN) if args.budgets else None
    for budget in args.budgets or [None]:
        mode = args.mode
        if budget is not None:
            torch._dynamo.reset()
            functorch.activation_memory_budget = budget
            functorch.activation_memory_budget_runtime_estimator = args.estimator
            functorch.activation_memory_budget_solver = args.solver
            mode = f"{mode} budget {budget:g} {args.estimator} {args.solver}"
        graphs = []
        inductor_graphs.keep(graphs)
        compiled = compile_in(args.mode, model)

        def call():
            step(model, compiled, x, trains, gradient)

        for _ in range(10):
            call()
        # Give back the memory that compiling took, so that only running counts.
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        resting = torch.cuda.memory_allocated()
        found = measure(call, args.calls, args.measurements)
        memory = largest(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), in_use() - before)
        if rank == 0:
            if args.graphs:
                write(args.graphs, name, graphs)
            median = statistics.median_high(found)
            times = f"{median:.2f},{found[0]:.2f},{found[-1]:.2f}"
            bytes_used = ",".join(str(int(value)) for value in memory)
            report(args, name, f"{len(graphs)},{mode},{ranks},{times},{bytes_used}", resting)
    dist.barrier()
    # Captured graphs still hold the communicator: an orderly exit would wait for them.
    sys.stdout.flush()
    os._exit(0)


main()
