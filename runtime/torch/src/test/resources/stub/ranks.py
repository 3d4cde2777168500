"""Runs graphs with symplan_torch.py on torch.py beside this file. SYMPLAN_HOME, PYTHONPATH and a launcher's variables
are set. Prints a line for each check; the last one is "done"."""

import ctypes
import os
import sys
import time
import warnings

import numpy
import torch

import symplan_torch

RANK, SIZE = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))

DOUBLED = """
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8, 4][4, 1]cpu", w: "f32[4, 4][4, 1]cpu"):
        add: "f32[8, 4][4, 1]cpu" = torch.ops.aten.add.Tensor(x, x)
        t: "f32[4, 4][1, 4]cpu" = torch.ops.aten.permute.default(w, [1, 0]);  w = None
        return (add, t, x, None)
"""

PICKED = """
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8, 4][4, 1]cpu", rows: "i64[1][1]cpu"):
        index: "f32[1, 4][4, 1]cpu" = torch.ops.aten.index.Tensor(x, [rows])
        return (index,)
"""

REDUCED = """
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8, 4][4, 1]cpu", w: "f32[4, 4][4, 1]cpu"):
        mm: "f32[8, 4][4, 1]cpu" = torch.ops.aten.mm.default(x, w)
        all_reduce: "f32[8, 4][4, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(mm, 'sum', '0')
        wait_tensor: "f32[8, 4][4, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
        add: "f32[8, 4][4, 1]cpu" = torch.ops.aten.add.Tensor(wait_tensor, x)
        return (add, wait_tensor)
"""

GATHERED = """
class GraphModule(torch.nn.Module):
    def forward(self, s0: "Sym(s0)", x: "f32[s0, 4][4, 1]cpu"):
        sum_1: "f32[4][1]cpu" = torch.ops.aten.sum.dim_IntList(x, [0])
        all_reduce: "f32[4][1]cpu" = torch.ops._c10d_functional.all_reduce.default(sum_1, 'sum', '0')
        wait_tensor: "f32[4][1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
        return (wait_tensor,)
"""

UNKNOWN = """
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8, 4][4, 1]cpu"):
        made: "f32[8, 4][4, 1]cpu" = torch.ops.mine.made.default(x)
        all_reduce: "f32[8, 4][4, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(made, 'sum', '0')
        wait_tensor: "f32[8, 4][4, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
        return (wait_tensor,)
"""

ALL_REDUCE = (torch._ops.OpOverload("_c10d_functional::all_reduce"), ("sum", "0"))
DROPOUT = (torch._ops.OpOverload("aten::native_dropout", (torch.Tag.nondeterministic_seeded,)), ())
X, W, ROWS = (torch.tensor(numpy.zeros(n, t)) for n, t in (((8, 4), "f4"), ((4, 4), "f4"), ((1,), "i8")))


def values(first, *shape):
    return torch.tensor(first + numpy.arange(numpy.prod(shape), dtype="f4").reshape(shape))


def compiled(text, inputs, outputs, *ops):
    return symplan_torch._compiler("forward")(torch.module(text, inputs, outputs, ops), inputs)


def caught(text, inputs, outputs, *ops):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run = compiled(text, inputs, outputs, *ops)
    (warning,) = found
    return run, str(warning.message)


def check(name, ok):
    print(f"{name}: {'ok' if ok else 'WRONG'}", flush=True)


def alone():
    run = compiled(DOUBLED, [X, W], [X, W, X, None])
    kept = []
    for i in range(4):
        x, w = values(i, 8, 4), values(1, 4, 4)
        add, t, same, none = run([x, w])
        kept.append((x, add))
        check(f"call {i}", numpy.array_equal(add.array, 2 * x.array) and same is x and none is None)
        check(f"view {i}", numpy.array_equal(t.array, w.array.T) and t.data_ptr() == w.data_ptr())
    check("kept outputs", all(numpy.array_equal(add.array, 2 * x.array) for x, add in kept))
    turned = torch.Tensor(values(0, 4, 8).array.T)
    add, _, same, _ = run([turned, w])
    check("other strides", numpy.array_equal(add.array, 2 * turned.array))
    off = torch.Tensor(values(0, 9, 4).array.reshape(-1)[1:33].reshape(8, 4))
    check("other alignment", numpy.array_equal(run([off, w])[0].array, 2 * off.array))
    try:
        run([values(0, 4, 4), w])
        check("shape", False)
    except symplan_torch.SymplanError as error:
        check("shape", "must have the shape (8, 4), not (4, 4)" in str(error))
    pick = compiled(PICKED, [X, ROWS], [torch.tensor(numpy.zeros((1, 4), "f4"))])
    for row in (8, 7):
        try:
            (found,) = pick([values(0, 8, 4), torch.tensor(numpy.array([row]))])
            check(f"row {row}", row == 7 and found.array[0, 3] == 31)
        except symplan_torch.SymplanError as error:
            check(f"row {row}", row == 8 and "aten::index.Tensor" in str(error))


def together():
    run = compiled(REDUCED, [X, W], [X, X], ALL_REDUCE)
    for i in range(20):
        x, w = values(RANK + i, 8, 4), values(1, 4, 4)
        expected = sum(values(rank + i, 8, 4).array @ w.array for rank in range(SIZE))
        add, sums = run([x, w])
        if i in (0, 1, 19):
            check(f"sum {i}", numpy.array_equal(sums.array, expected) and numpy.array_equal(add.array, sums.array + x.array))
    run, message = caught(UNKNOWN, [X], [X], ALL_REDUCE)
    check("an op that cannot run", run([X]) == ["eager"] and "mine::made has no host implementation" in message)
    run, message = caught(REDUCED, [X, W], [X, X], ALL_REDUCE, *([DROPOUT] if RANK == 1 else []))
    check("an op that one rank refuses", "rank 1: 'op1' is aten::native_dropout" in message)
    run = compiled(GATHERED, [torch.SymInt("s0"), X], [torch.tensor(numpy.zeros(4, "f4"))], ALL_REDUCE)
    for rows in (3, 5):
        # Each rank has as many rows more as its number.
        (found,) = run([rows + RANK, values(RANK, rows + RANK, 4)])
        expected = sum(values(rank, rows + rank, 4).array.sum(0) for rank in range(SIZE))
        check(f"{rows} rows", numpy.allclose(found.array, expected))


def fails_on_one_rank():
    text = REDUCED.replace('w: "f32[4, 4][4, 1]cpu"', 'rows: "i64[8][1]cpu"').replace("mm.default(x, w)", "index.Tensor(x, [rows])")
    run = compiled(text, [X, ROWS], [X, X], ALL_REDUCE)
    rows = torch.tensor(numpy.full(8, 9 if RANK == 1 else 0))
    for i in range(2):
        try:
            run([values(0, 8, 4), rows])
            check(f"failure {i}", False)
        except symplan_torch.SymplanError as error:
            check(f"failure {i}", "aten::index.Tensor" in str(error) and "rank 1" in str(error))
    _, message = caught(REDUCED, [X, W], [X, X], ALL_REDUCE)
    check("after a failure", "rank 1" in message)


def times():
    run = compiled(DOUBLED, [X, W], [X, W, X, None])
    x, w = values(0, 8, 4), values(1, 4, 4)
    for label, alternate in (("same addresses", False), ("other addresses", True)):
        kept = [None] * 3
        best = 1e9
        for batch in range(30):
            begin = time.process_time()
            for i in range(2000):
                # As an allocator in a steady state, which has freed what the call before the last made.
                kept[i % 3 if alternate else 0] = None
                kept[i % 3 if alternate else 0] = run([x, w])
            best = min(best, (time.process_time() - begin) / 2000 * 1e6)
        print(f"{label}: {best:.1f} µs of CPU a call", flush=True)


{"alone": alone, "together": together, "fails": fails_on_one_rank, "times": times}[sys.argv[1]]()
print("done", flush=True)
