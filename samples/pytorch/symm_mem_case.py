"""Captures the case symm_mem of samples/cases: the results of torch.ops.symm_mem in eager PyTorch.

    torchrun --nproc-per-node 2 samples/pytorch/symm_mem_case.py FOLDER

Ops that need multicast or NVSHMEM are not included. Without two GPUs, use --graph-only.
"""

import sys
from pathlib import Path

import torch

ROWS, INNER, COLUMNS = 64, 128, 32

INPUTS = [
    ("x", "bf16", (ROWS, INNER)),
    ("w", "bf16", (INNER, COLUMNS)),
    ("a", "f8e4m3fn", (ROWS, INNER)),
    ("b", "f8e4m3fn", (COLUMNS, INNER)),
    ("scale_a", "f32", ()),
    ("scale_b", "f32", ()),
]
DTYPES = {"bf16": torch.bfloat16, "f8e4m3fn": torch.float8_e4m3fn, "f32": torch.float32}

EMPTY = "torch.ops.aten.empty.memory_format(%s, dtype=torch.bfloat16, device=device(type='cuda', index=0))"

# Each op: the name and size of its result, and its arguments. symm(x) is a copy of x; in eager mode, it is in symmetric
# memory.
OPS = [
    ("one_shot_all_reduce", "one_shot", (ROWS, INNER), "symm(x), 'sum', '0'"),
    ("one_shot_all_reduce_out", "one_shot_out", (ROWS, INNER), "symm(x), 'sum', '0', out(ROWS, INNER)"),
    ("one_shot_all_reduce_copy", "one_shot_copy", (ROWS, INNER), "symm(x), x, 'sum', '0'"),
    ("one_shot_all_reduce_copy_out", "one_shot_copy_out", (ROWS, INNER), "symm(x), x, 'sum', '0', out(ROWS, INNER)"),
    ("two_shot_all_reduce_", "two_shot", (ROWS, INNER), "symm(x), 'sum', '0'"),
    ("two_shot_all_reduce_out", "two_shot_out", (ROWS, INNER), "symm(x), 'sum', '0', out(ROWS, INNER)"),
    ("reduce_scatter_out", "scatter_flat", (ROWS * INNER // 2,), "symm(flat(x)), '0', False, out(ROWS * INNER // 2)"),
    ("reduce_scatter_out", "scatter_columns", (ROWS, INNER // 2), "symm(x), '0', True, out(ROWS, INNER // 2)"),
    ("_low_contention_all_gather", "gathered", (2 * ROWS, INNER), "x, '0'"),
    ("_low_contention_reduce_scatter", "scattered", (ROWS // 2, INNER), "x, 'sum', '0'"),
    ("fused_all_gather_matmul", "gather_matmul", (2 * ROWS, COLUMNS), "x, [w], 0, '0'"),
    ("fused_matmul_reduce_scatter", "matmul_scatter", (ROWS // 2, COLUMNS), "x, w, 'sum', 0, '0'"),
    (
        "fused_all_gather_scaled_matmul",
        "gather_scaled",
        (2 * ROWS, COLUMNS),
        "a, [columns(b)], scale_a, [scale_b], 0, '0', [None], [None], [torch.bfloat16], [False]",
    ),
    (
        "fused_scaled_matmul_reduce_scatter",
        "scaled_scatter",
        (ROWS // 2, COLUMNS),
        "a, columns(b), scale_a, scale_b, 'sum', 0, 0, '0', [ROWS, COLUMNS], None, None, torch.bfloat16, False",
    ),
]
LISTS = ("gather_matmul", "gather_scaled")
ASYNC = ("gathered", "scattered")


def typed(name, dtype, size):
    strides = [*size[1:], 1] if size else []
    return f'{name}: "{dtype}{list(size)}{strides}cuda:0"'


def graph():
    """The graph's FX text: the helpers of the table become nodes."""
    arguments = ", ".join(typed(*given) for given in INPUTS)
    lines = ["class GraphModule(torch.nn.Module):", f"    def forward(self, {arguments}):"]

    def node(code, name="", size=()):
        name = name or f"node_{len(lines)}"
        lines.append(f"        {typed(name, 'bf16', size) if size else name} = {code}")
        return name

    def nodes(args):
        """Returns the arguments, as the call in the text has them."""
        class Node(str):
            __repr__ = str.__str__

        names = {name: Node(name) for name, _, _ in INPUTS}
        names |= dict(ROWS=ROWS, INNER=INNER, COLUMNS=COLUMNS, torch=Node("torch"))
        names["symm"] = lambda x: Node(node(f"torch.ops.aten.clone.default({x})"))
        names["columns"] = lambda x: Node(node(f"torch.ops.aten.t.default({x})"))
        names["flat"] = lambda x: Node(node(f"torch.ops.aten.view.default({x}, [{ROWS * INNER}])"))
        names["out"] = lambda *size: Node(node(EMPTY % list(size)))
        args = args.replace("torch.bfloat16", "bf16")
        return repr(eval(f"[{args}]", names | {"bf16": Node("torch.bfloat16")}))[1:-1]

    for op, name, size, args in OPS:
        code = f"torch.ops.symm_mem.{op}.default({nodes(args)})"
        if name in LISTS:
            code = f"{node(node(code) + '[1]')}[0]"
        elif name in ASYNC:
            code = f"torch.ops._c10d_functional.wait_tensor.default({node(code, size=size)})"
        node(code, name, size)
    lines.append("        return (" + ", ".join(name for _, name, _, _ in OPS) + ")")
    return "\n".join(lines) + "\n"


def main(folder):
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm_mem
    from safetensors.torch import save_file

    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    torch.manual_seed(rank)
    world = dist.group.WORLD.group_name
    values = {}
    for name, dtype, size in INPUTS:
        made = torch.tensor(0.75) if dtype == "f32" else torch.randn(size)
        values[name] = made.to(DTYPES[dtype]).cuda()

    def symm(x):
        buffer = symm_mem.empty(x.shape, dtype=x.dtype, device=x.device)
        symm_mem.rendezvous(buffer, dist.group.WORLD)
        return buffer.copy_(x)

    names = dict(
        values, symm=symm, columns=torch.t, flat=torch.flatten, ROWS=ROWS, INNER=INNER, COLUMNS=COLUMNS, torch=torch,
        out=lambda *size: torch.empty(size, dtype=torch.bfloat16, device="cuda"),
    )
    outputs = {}
    for i, (op, name, _, args) in enumerate(OPS):
        arguments = eval("[" + args.replace("'0'", repr(world)) + "]", names)
        torch.cuda.synchronize()
        dist.barrier()
        result = getattr(torch.ops.symm_mem, op)(*arguments)
        if name in LISTS:
            result = result[1][0]
        elif name in ASYNC:
            result = torch.ops._c10d_functional.wait_tensor(result)
        outputs[f"out{i}"] = result.contiguous().clone().cpu()
        if rank == 0:
            print(f"{op}: {tuple(result.shape)} {result.dtype}", flush=True)
    inputs = {f"in{i}": values[name].cpu() for i, (name, _, _) in enumerate(INPUTS)}
    save_file(inputs, folder / f"rank{rank}.inputs.safetensors")
    save_file(outputs, folder / f"rank{rank}.outputs.safetensors")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    into = Path(sys.argv[1])
    into.mkdir(parents=True, exist_ok=True)
    (into / "graph.fx.txt").write_text(graph())
    if "--graph-only" not in sys.argv:
        main(into)
