"""Captures the graphs that torch.compile makes of a distributed program, as cases for Symplan.

    import symplan_capture
    model = torch.compile(model, backend=symplan_capture.backend("cases/mine"))
    model(x).sum().backward()

Run it on all ranks (torchrun). Every compiled graph becomes a case: cases/mine_0_forward, cases/mine_1_backward, …
(_inference without gradients). Each rank writes its graph at compile time, and its inputs and outputs when the
graph runs for the first time. Then check the case:

    symplan run cases/mine_0_forward --check

A model whose weights come from a checkpoint:

    backend = symplan_capture.backend("cases/mine/decode", model=model)

Inputs are then named after the model's parameters and buffers. Each case gets a weights.json. It maps each input to a
tensor of the checkpoint, and says how the ranks divide that tensor. The case does not contain the checkpoint's tensors.
The folder of the cases gets three files: weights.json for all graphs without gradients; constants.safetensors with the
buffers that are not in the checkpoint and that no graph writes; and ties.json, which lists the inputs of different
graphs that are one tensor:

    symplan compile cases/mine/prefill_0_inference cases/mine/decode_0_inference --together --ties cases/mine/ties.json
"""

import copy
import json
import re
from pathlib import Path

import torch
import torch.distributed as dist
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from safetensors.torch import save_file
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes.reinplace import reinplace_inplaceable_ops_core
from torch.distributed.tensor import DTensor

# By folder, what was captured for it without gradients: for each graph, its inputs that belong to the model; the entries
# of weights.json; buffers that are not in the checkpoint; and inputs that graphs write.
_programs = {}


def backend(prefix, decompositions=None, model=None):
    """Returns a torch.compile backend that runs each graph op by op and writes it to PREFIX_N_forward and so on.

    decompositions: a table of decompositions; Inductor's by default, {} for none.
    model: the module whose parameters and buffers give inputs their names, and whose checkpoint has their values.
    """
    table = select_decomp_table() if decompositions is None else decompositions
    count = 0

    def compiler(kind):
        def compile_graph(module, example_inputs):
            nonlocal count
            folder = Path(f"{prefix}_{count}_{kind}")
            count += 1
            return make_boxed_func(_capture(module, folder, model, kind))

        return compile_graph

    return aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=table,
        partition_fn=min_cut_rematerialization_partition,
        # A cache that the model updates is updated by the graph, not after it.
        keep_inference_input_mutations=True,
    )


def _capture(module, folder, model, kind):
    rank = dist.get_rank()
    folder.mkdir(parents=True, exist_ok=True)
    lifted, constants = _without_constants(module)
    if kind == "inference":
        # As Inductor does: an update of a cache writes its rows, not a copy of the whole cache.
        reinplace_inplaceable_ops_core(lifted.graph)
        lifted.recompile()
    _write_graph(lifted, folder)
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
        inputs = [*args, *constants]
        if model is not None:
            weights = _name_inputs(lifted, inputs, model, folder, kind)
            _write_graph(lifted, folder)
            inputs = [None if i in weights else value for i, value in enumerate(inputs)]
        # Save the inputs before the graph runs: it may write to them.
        save_file(_named("in", inputs), folder / f"rank{rank}.inputs.safetensors")
        results = module(*args)
        save_file(_named("out", results), folder / f"rank{rank}.outputs.safetensors")
        return results

    return run


def _write_graph(module, folder):
    text = module.print_readable(print_output=False, include_stride=True, include_device=True)
    (folder / f"graph.rank{dist.get_rank()}.fx.txt").write_text(text)


def _name_inputs(module, inputs, model, folder, kind):
    """Gives inputs the names of the model's parameters and buffers, and writes weights.json and ties.json.

    Returns the positions of the inputs that a checkpoint has.
    """
    known = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        known.setdefault(_memory(tensor), (name, tensor))
    saved = model.state_dict().keys()
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    named, weights, buffers, written = [], {}, {}, set()
    for i, (node, value) in enumerate(zip(placeholders, inputs)):
        if not isinstance(value, torch.Tensor) or value.numel() == 0 or _memory(value) not in known:
            continue
        name, tensor = known[_memory(value)]
        node._rename(re.sub("[^A-Za-z0-9_]", "_", name))
        node.target = node.name
        named.append(node.name)
        if name in saved:
            weights[i] = (node.name, {"tensor": name, **_shard(tensor)})
        elif _is_written(node):
            written.add(node.name)
        else:
            buffers[node.name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
    module.recompile()
    layout = dict(weights.values())
    if dist.get_rank() == 0:
        (folder / "weights.json").write_text(json.dumps(layout, indent=2) + "\n")
        if kind == "inference":
            _write_program(folder.parent, named, layout, buffers, written)
    return weights


def _is_written(node):
    """Returns whether an op writes into an input."""
    return any(
        given is node and declared.alias_info is not None and declared.alias_info.is_write
        for user in node.users
        if isinstance(user.target, torch._ops.OpOverload)
        for given, declared in zip(user.args, user.target._schema.arguments)
    )


def _memory(tensor):
    """Returns what two tensors have in common if they are the same memory, seen in the same way."""
    local = tensor._local_tensor if isinstance(tensor, DTensor) else tensor
    return local.data_ptr(), local.dtype, tuple(local.shape), local.stride()


def _shard(tensor):
    """Returns the dimension that ranks divide and, if they are not all ranks, the groups that do."""
    if not isinstance(tensor, DTensor):
        return {}
    mesh = tensor.device_mesh
    dims = [dim for dim, placement in enumerate(tensor.placements) if not placement.is_replicate()]
    if not dims:
        return {}
    if len(dims) > 1 or not tensor.placements[dims[0]].is_shard():
        raise NotImplementedError(f"a weight with the placements {tensor.placements} cannot be read from a checkpoint")
    shard = {"shard": tensor.placements[dims[0]].dim}
    groups = mesh.mesh.movedim(dims[0], -1).reshape(-1, mesh.size(dims[0])).tolist()
    return shard if groups == [list(range(dist.get_world_size()))] else {**shard, "groups": groups}


def _write_program(folder, named, layout, buffers, written):
    graphs, layouts, constants, changed = _programs.setdefault(folder, ([], {}, {}, set()))
    graphs.append(named)
    layouts.update(layout)
    constants.update(buffers)
    changed.update(written)
    ties = []
    for to, names in enumerate(graphs):
        for name in names:
            first = next(i for i, others in enumerate(graphs) if name in others)
            if first < to:
                ties.append({"from": {"graph": first, "value": name}, "to": {"graph": to, "value": name}})
    (folder / "weights.json").write_text(json.dumps(layouts, indent=2) + "\n")
    (folder / "ties.json").write_text("[" + ",\n ".join(map(json.dumps, ties)) + "]\n")
    save_file(
        {name: constants[name] for name in constants if name not in changed}, folder / "constants.safetensors"
    )


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
