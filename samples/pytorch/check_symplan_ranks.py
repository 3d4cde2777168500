"""Runs programs of several ranks with symplan_torch.py, and compares them with eager execution. Set SYMPLAN_HOME first.

    torchrun --nproc-per-node 2 check_symplan_ranks.py [--device cpu] [--inductor] [PROGRAM…]

Prints a row for each program: how many plans ran, the largest relative error (L2 norms) of any output or gradient on any
rank, and times in microseconds of a call, Dynamo included. "host" is the time until the call returns, for a few calls
that no other work precedes; "call" is the time of one of many calls, with all that they start. Both are medians, of the
slowest rank. The last line is "ok", or the exit status is 1.
"""

import argparse
import os
import statistics
import sys
import time
import traceback
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import symplan_torch

# That of f32: sums in another order.
TOLERANCE = 1e-4


class MLP(nn.Module):
    def __init__(self, size=512):
        super().__init__()
        self.up = nn.Linear(size, 4 * size)
        self.down = nn.Linear(4 * size, size)

    def forward(self, x):
        return self.down(F.gelu(self.up(x))) + x


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


class Block(nn.Module):
    """A layer like those of Llama; with tensor parallelism, each rank has a part of the heads."""

    def __init__(self, size, heads, groups, ranks):
        super().__init__()
        self.heads, self.groups, self.head = heads // ranks, groups // ranks, size // heads
        self.before, self.between = Norm(size), Norm(size)
        self.q, self.o = (nn.Linear(size, size, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(size, groups * self.head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(size, 3 * size, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * size, size, bias=False)

    def rotated(self, x, angles):
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def parts(self, x, heads):
        return x.view(x.shape[0], x.shape[1], heads, self.head).transpose(1, 2)

    def forward(self, x):
        batch, length, _ = x.shape
        h = self.before(x)
        q, k, v = self.parts(self.q(h), self.heads), self.parts(self.k(h), self.groups), self.parts(self.v(h), self.groups)
        half = torch.arange(self.head // 2, device=x.device, dtype=torch.float32)
        angles = torch.outer(torch.arange(length, device=x.device, dtype=torch.float32), 100.0 ** (-2 * half / self.head))
        q, k = self.rotated(q, angles), self.rotated(k, angles)
        k, v = (y.repeat_interleave(self.heads // self.groups, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, -1))
        h = self.between(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, ranks, vocabulary=96, size=256, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.layers = nn.ModuleList(Block(size, 8, 4, ranks) for _ in range(layers))
        self.norm = Norm(size)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.embedding.weight.t()


COLUMNS, ROWS = ("q", "k", "v", "gate", "up"), ("o", "down")


def tensor_parallel(model, mesh):
    styles = {name: ColwiseParallel() for name in COLUMNS} | {name: RowwiseParallel() for name in ROWS}
    plan = {
        name: styles[name.rpartition(".")[2]]
        for name, _ in model.named_modules()
        if name.rpartition(".")[2] in styles
    }
    return parallelize_module(model, mesh, plan)


def fully_sharded(model, mesh):
    """Shards parameters as SimpleFSDP does: their modules see them whole, and gradients are averaged."""
    gloo = mesh.device_type == "cpu"

    def whole(shard):
        grads = [Partial("sum" if gloo else "avg")]
        return shard.redistribute(placements=[Replicate()]).to_local(grad_placements=grads)

    for module in model.modules():
        own = dict(module.named_parameters(recurse=False))
        for name, parameter in own.items():
            module.register_parameter(name, nn.Parameter(distribute_tensor(parameter.data, mesh, [Shard(0)])))
        if own:
            seen = {name: property(lambda self, name=name: whole(self._parameters[name])) for name in own}
            module.__class__ = type("Sharded" + type(module).__name__, (type(module),), seen)
    return model


class Check:
    """What all programs need: the ranks, the device, and the plans that ran."""

    def __init__(self, device, inductor):
        self.device = device
        self.inductor = inductor
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.mesh = init_device_mesh(device.type, (self.ranks,), mesh_dim_names=("all",))
        self.plans = []
        self.runs = 0
        self._count()

    def _count(self):
        made, runner = symplan_torch._Plan.__init__, symplan_torch._Plan.runner

        def noted(plan, *args):
            made(plan, *args)
            self.plans.append(plan)

        def counting(plan):
            planned = runner(plan)

            def counted(args):
                self.runs += 1
                return planned(args)

            counted._boxed_call = True
            return counted

        symplan_torch._Plan.__init__, symplan_torch._Plan.runner = noted, counting

    def pair(self, make, parallelize):
        """Returns two equal models, of which the second one is for a compiler."""
        models = []
        for _ in range(2):
            torch.manual_seed(0)
            models.append(parallelize(make().to(self.device), self.mesh))
        return models

    def tokens(self, seed, length=16):
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(96, (2, length), generator=generator).to(self.device)

    def rows(self, seed, count=16, size=512):
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(count, size, generator=generator).to(self.device)

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        dist.barrier()

    def largest(self, value):
        found = [None] * self.ranks
        dist.all_gather_object(found, value)
        return max(found)

    def times(self, call):
        """Returns the medians of the time until a call returns, and of all that it starts."""
        calls = 100 if self.device.type == "cuda" else 20
        for _ in range(calls):
            call()
        medians = []
        for count in (10, calls):
            found = []
            for _ in range(9):
                self.synchronize()
                begin = time.perf_counter()
                for _ in range(count):
                    call()
                submitted = time.perf_counter() - begin
                self.synchronize()
                found.append((submitted if count == 10 else time.perf_counter() - begin) / count * 1e6)
            medians.append(self.largest(statistics.median(found)))
        return medians


def local(tensor):
    tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return tensor.wait() if isinstance(tensor, collectives.AsyncCollectiveTensor) else tensor


def error(actual, expected):
    actual, expected = local(actual).detach().double(), local(expected).detach().double()
    return (torch.linalg.norm(actual - expected) / torch.linalg.norm(expected).clamp_min(1e-30)).item()


def gradients(module):
    found = {name: local(p.grad).clone() for name, p in module.named_parameters() if p.grad is not None}
    module.zero_grad()
    return found


def gradient_error(actual, expected):
    if actual.keys() != expected.keys():
        raise AssertionError(f"gradients of {sorted(actual.keys() ^ expected.keys())} are missing")
    return max(error(actual[name], expected[name]) for name in expected)


def compiled(function, backend="symplan"):
    return torch.compile(function, backend=backend)


# Each program returns its error, and what to time: the function, and how to call it. None if nothing is timed.


def local_add(check):
    x = check.rows(0)
    function = lambda x: x + 1
    return error(compiled(function)(x), function(x)), (function, lambda f: f(x))


def all_reduce(check):
    x = check.rows(check.rank)
    function = lambda x: collectives.all_reduce(x + 1, "sum", dist.group.WORLD) * 2
    return error(compiled(function)(x), function(x)), (function, lambda f: f(x))


def mlp(check):
    eager, model = check.pair(MLP, tensor_parallel)
    run = compiled(model)
    with torch.no_grad():
        worst = max(error(run(x), eager(x)) for x in (check.rows(seed) for seed in range(4)))
    x = check.rows(0)
    return worst, (model, torch.no_grad()(lambda f: f(x)))


def llama(check):
    eager, model = check.pair(lambda: Llama(check.ranks), tensor_parallel)
    run = compiled(model)
    with torch.no_grad():
        worst = max(error(run(tokens), eager(tokens)) for tokens in map(check.tokens, range(3)))
    tokens = check.tokens(0)
    return worst, (model, torch.no_grad()(lambda f: f(tokens)))


def trained(check, make, parallelize):
    """Four steps; a rank has its own tokens if parameters are sharded."""
    eager, model = check.pair(make, parallelize)
    run = compiled(model)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05, foreach=False) for m in (eager, model)]
    own = 100 * check.rank if parallelize is fully_sharded else 0

    def loss(function, tokens):
        scores = function(tokens[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())

    worst = 0
    for step in range(4):
        tokens = check.tokens(own + step, 17)
        losses = [loss(function, tokens) for function in (eager, run)]
        for value in losses:
            value.backward()
        for optimizer in optimizers:
            optimizer.step()
        worst = max(worst, error(losses[1], losses[0]), gradient_error(gradients(model), gradients(eager)))
    tokens = check.tokens(own, 17)

    def step(function):
        loss(function, tokens).backward()
        model.zero_grad()

    return worst, (model, step)


def training(check):
    return trained(check, lambda: Llama(check.ranks), tensor_parallel)


def simple_fsdp(check):
    return trained(check, lambda: Llama(1), fully_sharded)


def kept_outputs(check):
    eager, model = check.pair(MLP, tensor_parallel)
    run = compiled(model)
    inputs = [check.rows(seed) for seed in range(6)]
    with torch.no_grad():
        outputs = [run(x) for x in inputs]
        return max(error(output, eager(x)) for x, output in zip(inputs, outputs)), None


def two_forwards(check):
    eager, model = check.pair(lambda: Llama(check.ranks), tensor_parallel)
    run = compiled(model)
    a, b = check.tokens(0), check.tokens(1)
    for function in (run, eager):
        first, second = function(a), function(b)
        (first.square().mean() + 3 * second.square().mean()).backward()
    return gradient_error(gradients(model), gradients(eager)), None


def exception(check):
    """A call that Java refuses on all ranks, and then one that it does not."""
    eager, model = check.pair(MLP, tensor_parallel)
    run = compiled(model)
    x = check.rows(0)
    with torch.no_grad():
        run(x)
        plan = check.plans[-1]
        # All addresses are 0.
        words, address = symplan_torch._words(plan.handle, len([*plan.inputs, *plan.outputs]))
        if not plan.bridge.run(address):
            raise AssertionError("addresses of 0 were taken")
        refused = plan.bridge.failure(words[2], words[3])
        if "the address is 0" not in str(refused):
            raise refused
        return error(run(x), eager(x)), None


def fallback(check):
    """An op that cannot run, and that the warning names."""
    function = lambda x: collectives.all_reduce(torch.linalg.qr(x).R.abs(), "sum", dist.group.WORLD) + 1
    x = check.rows(check.rank, 16, 16)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        before = check.runs
        result = compiled(function)(x)
    messages = [str(warning.message) for warning in found if "symplan:" in str(warning.message)]
    if check.runs != before or len(messages) != 1 or "linalg_qr" not in messages[0]:
        raise AssertionError(f"{check.runs - before} runs of plans; warnings: {messages}")
    return error(result, function(x)), None


PROGRAMS = {
    "x + 1": local_add,
    "all_reduce": all_reduce,
    "MLP, tensor parallel": mlp,
    "Llama, inference": llama,
    "Llama, training step": training,
    "SimpleFSDP, training step": simple_fsdp,
    "outputs kept": kept_outputs,
    "two forwards, one backward": two_forwards,
    "exception in Java": exception,
    "fallback to eager": fallback,
}


def row(check, name, program):
    """Returns the row of a program, and whether it is as it should be."""
    torch._dynamo.reset()
    check.runs = 0
    problem, worst, timed = "", 0.0, None
    try:
        with warnings.catch_warnings():
            # Eager execution instead of a plan would pass all comparisons.
            warnings.filterwarnings("error", message="symplan:")
            worst, timed = program(check)
    except Exception:
        traceback.print_exc()
        problem = f"rank {check.rank}: " + traceback.format_exc().strip().splitlines()[-1]
    runs = check.runs
    problem = check.largest(problem)
    if problem:
        return f"{name:28}{runs:6}  failed: {problem}", False
    worst = check.largest(worst)
    ok = worst <= TOLERANCE and (runs > 0) == (program is not fallback)
    text = f"{name:28}{runs:6}{worst:12.1e}"
    if timed is not None:
        function, call = timed
        backends = ["symplan", "eager"] + (["inductor"] if check.inductor else [])
        for backend in backends:
            torch._dynamo.reset()
            chosen = function if backend == "eager" else compiled(function, backend)
            host, whole = check.times(lambda: call(chosen))
            text += f"{host:10.1f}{whole:10.1f}"
    return text + ("" if ok else "  WRONG"), ok


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="the beginnings of names of rows; all by default")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--inductor", action="store_true", help="also time torch.compile's own backend")
    args = parser.parse_args()
    device = torch.device("cpu")
    if args.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if args.device == "cuda" else "gloo", device_id=device if args.device == "cuda" else None
    )
    check = Check(device, args.inductor)
    heads = ["symplan", "eager"] + (["inductor"] if args.inductor else [])
    if check.rank == 0:
        print(f"{check.ranks} ranks, {args.device}, PyTorch {torch.__version__}")
        print(f"{'':28}{'':6}{'':12}" + "".join(f"{head:>20}" for head in heads))
        print(f"{'program':28}{'runs':>6}{'error':>12}" + f"{'host':>10}{'call':>10}" * len(heads), flush=True)
    ok = True
    for name, program in PROGRAMS.items():
        if not args.programs or any(name.startswith(begin) for begin in args.programs):
            text, good = row(check, name, program)
            ok = ok and good
            if check.rank == 0:
                print(text, flush=True)
    if check.rank == 0:
        print("ok" if ok else "not ok", flush=True)
    check.synchronize()
    sys.stdout.flush()
    # Captured graphs hold communicators, for which an orderly end of the process group would wait.
    symplan_torch._leave()
    os._exit(0 if ok else 1)


if __name__ == "__main__":
    main()
