"""Captures the graphs that torch.compile makes of a distributed program, as cases for Symplan.

    import symplan_capture
    model = torch.compile(model, backend=symplan_capture.backend("cases/mine"))
    model(x).sum().backward()

Run it on all ranks (torchrun). Every compiled graph becomes a case: cases/mine_0_forward, cases/mine_1_backward, …
(_inference without gradients). Each rank writes its graph at compile time, and its inputs and outputs when the
graph runs for the first time. Then check the case:

    symplan run cases/mine_0_forward --check
"""

import copy
import json
from pathlib import Path

import torch
import torch.distributed as dist
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from safetensors.torch import save_file
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.decomposition import select_decomp_table


def backend(prefix, decompositions=None):
    """Returns a torch.compile backend that runs each graph op by op and writes it to PREFIX_N_forward and so on.

    decompositions: a table of decompositions; Inductor's by default, {} for none.
    """
    table = select_decomp_table() if decompositions is None else decompositions
    count = 0

    def compiler(kind):
        def compile_graph(module, example_inputs):
            nonlocal count
            folder = Path(f"{prefix}_{count}_{kind}")
            count += 1
            return make_boxed_func(_capture(module, folder))

        return compile_graph

    return aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=table,
        partition_fn=min_cut_rematerialization_partition,
    )


def _capture(module, folder):
    rank = dist.get_rank()
    folder.mkdir(parents=True, exist_ok=True)
    lifted, constants = _without_constants(module)
    text = lifted.print_readable(print_output=False, include_stride=True, include_device=True)
    (folder / f"graph.rank{rank}.fx.txt").write_text(text)
    (folder / f"groups.rank{rank}.json").write_text(json.dumps(_groups(module), indent=2))
    declarations = _declarations(module)
    if declarations:
        (folder / f"ops.rank{rank}.txt").write_text("".join(line + "\n" for line in declarations))
    captured = False

    def run(*args):
        nonlocal captured
        if captured:
            return module(*args)
        captured = True
        dims = _dims(module, args)
        if dims:
            (folder / "dims.json").write_text(json.dumps(dims, indent=2))
        # Save the inputs before the graph runs: it may write to them.
        save_file(_named("in", [*args, *constants]), folder / f"rank{rank}.inputs.safetensors")
        results = module(*args)
        save_file(_named("out", results), folder / f"rank{rank}.outputs.safetensors")
        return results

    return run


def _without_constants(module):
    """Returns the module with its constant tensors as additional last inputs, and these tensors.

    The text of a graph cannot contain tensors.
    """
    lifted = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
    graph = lifted.graph
    last = next(node for node in graph.nodes if node.op != "placeholder").prev
    constants = []
    for node in list(graph.nodes):
        if node.op == "get_attr" and isinstance(getattr(module, node.target, None), torch.Tensor):
            with graph.inserting_after(last):
                last = graph.placeholder(f"constant_{len(constants)}")
            last.meta = dict(node.meta)
            node.replace_all_uses_with(last)
            graph.erase_node(node)
            constants.append(getattr(module, node.target))
    lifted.recompile()
    return lifted, constants


def _named(prefix, values):
    """Returns the tensors among the values, by position, each in its own memory."""
    return {
        f"{prefix}{i}": value.detach().cpu().clone(memory_format=torch.contiguous_format)
        for i, value in enumerate(values)
        if isinstance(value, torch.Tensor)
    }


def _dims(module, args):
    """Returns the values that symbolic sizes have in this run."""
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    return {
        str(node.meta["val"]): arg
        for node, arg in zip(inputs, args)
        if isinstance(node.meta.get("val"), torch.SymInt) and str(node.meta["val"]).isidentifier()
    }


def _declarations(module):
    """Returns the schemas of the ops that are not part of PyTorch, with the arguments registered as symmetric."""
    # Ops that write are arguments of auto_functionalized.
    called = (part for node in module.graph.nodes for part in (node.target, *node.args))
    ops = {part for part in called if isinstance(part, torch._ops.OpOverload)}
    return sorted(
        str(op._schema) + _symmetric(op) for op in ops if op.namespace not in ("aten", "prims", "_c10d_functional")
    )


def _symmetric(op):
    """Returns what register_symm_mem_args registered for an op (PyTorch 2.13 and later), as declaration clauses.

    As in PyTorch, only ops with an argument group_name count.
    """
    entry = torch._library.simple_registry.singleton.find(op._schema.name)
    holder = getattr(entry, "symm_mem_args", None)
    names = holder.get() if holder is not None else None
    if not names or all(argument.name != "group_name" for argument in op._schema.arguments):
        return ""
    return f"  symm_mem({', '.join(names)}) group(group_name)"


def _groups(module):
    """Returns the ranks of every process group that the graph names."""
    known = set(dist.distributed_c10d._world.pg_names.values())
    strings = {
        argument
        for node in module.graph.nodes
        for argument in (*node.args, *node.kwargs.values())
        if "c10d" in str(node.target) and isinstance(argument, str)
    }
    return {
        name: dist.get_process_group_ranks(dist.distributed_c10d._resolve_process_group(name))
        for name in sorted(strings & known)
    }
