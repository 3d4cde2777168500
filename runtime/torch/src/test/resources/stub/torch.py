"""As much of PyTorch as symplan_torch.py needs to plan and run graphs that are given as text, on numpy's memory.

There is no Dynamo and no AOTAutograd: module() makes what these would hand to the backend.
"""

import os
import sys
import time
import types
from pathlib import Path

import numpy


def _submodule(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], own, module)
    return module


float32, float64, int64 = (numpy.dtype(name) for name in ("float32", "float64", "int64"))


class Size(tuple):
    pass


class SymInt:
    """A symbolic size that is one symbol."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


class Device:
    def __init__(self, type):
        self.type = type
        self.index = None

    def __eq__(self, other):
        return self.type == other.type

    def __hash__(self):
        return hash(self.type)

    def __str__(self):
        return self.type


CPU = Device("cpu")


class Tensor:
    def __init__(self, array):
        self.array = array
        self.dtype = array.dtype
        self.device = CPU

    @property
    def shape(self):
        return Size(self.array.shape)

    def stride(self):
        return tuple(bytes // self.array.itemsize for bytes in self.array.strides)

    def storage_offset(self):
        return 0

    def data_ptr(self):
        return self.array.ctypes.data

    def copy_(self, other):
        self.array[...] = other.array
        return self

    def as_strided(self, size, stride, offset):
        bytes = [steps * self.array.itemsize for steps in stride]
        flat = numpy.lib.stride_tricks.as_strided(self.array, (self.array.size,), (self.array.itemsize,))
        return Tensor(numpy.lib.stride_tricks.as_strided(flat[offset:], size, bytes))


def empty_strided(size, stride, dtype, device):
    elements = 1 + sum((n - 1) * step for n, step in zip(size, stride)) if 0 not in size else 0
    # PyTorch aligns to 64 bytes.
    memory = numpy.empty(elements * dtype.itemsize + 64, numpy.uint8)
    begin = -memory.ctypes.data % 64
    flat = memory[begin : begin + elements * dtype.itemsize].view(dtype)
    return Tensor(numpy.lib.stride_tricks.as_strided(flat, size, [step * dtype.itemsize for step in stride]))


def tensor(values):
    array = numpy.asarray(values)
    array = array.astype("float32") if array.dtype.kind == "f" else array
    strides = [bytes // array.itemsize for bytes in numpy.ascontiguousarray(array).strides]
    made = empty_strided(array.shape, strides, array.dtype, CPU)
    made.array[...] = array
    return made


class OpOverload:
    def __init__(self, name, tags=(), mutable=False):
        self.name = name
        self.namespace = name.split("::")[0]
        self.tags = tags
        self._schema = types.SimpleNamespace(is_mutable=mutable, arguments=[])

    def __str__(self):
        return self.name


class Node:
    def __init__(self, name, op, target=None, args=(), val=None):
        self.name, self.op, self.target, self.args, self.kwargs = name, op, target, args, {}
        self.meta = {"val": val}

    def __str__(self):
        return self.name


class Graph:
    def __init__(self, nodes):
        self.nodes = nodes
        for before, node in zip(nodes, nodes[1:]):
            node.prev = before


class GraphModule:
    def __init__(self, root, graph):
        self.text = root.text if isinstance(root, GraphModule) else root
        self.graph = graph

    def modules(self):
        return [self]

    def recompile(self):
        pass

    def print_readable(self, **options):
        return self.text

    def forward(self, *args):
        return ["eager"]


def module(text, inputs, outputs, ops=()):
    """Returns what AOTAutograd would hand to the backend.

    inputs: for each placeholder, its value: a tensor or a SymInt.
    outputs: the same for each result.
    ops: the ops between, with the strings among their arguments.
    """
    given = [Node(f"in{i}", "placeholder", val=value) for i, value in enumerate(inputs)]
    called = [Node(f"op{i}", "call_function", op, args) for i, (op, args) in enumerate(ops)]
    made = [Node(f"out{i}", "call_function", val=value) for i, value in enumerate(outputs)]
    return GraphModule(text, Graph([*given, *called, *made, Node("output", "output", args=(made,))]))


class Store:
    """torch.distributed's, as files of a folder."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def set(self, key, value):
        new = self.folder / f"{key}.new"
        new.write_text(value)
        new.rename(self.folder / key)

    def get(self, key):
        while not (self.folder / key).exists():
            time.sleep(0.01)
        return (self.folder / key).read_bytes()


class Tag:
    nondeterministic_seeded = "nondeterministic_seeded"


_submodule("torch._C")
_submodule("torch._ops", OpOverload=OpOverload)
_submodule("torch.fx", GraphModule=GraphModule, Node=Node)
_submodule("functorch")
_submodule("functorch.compile", make_boxed_func=lambda run: run, min_cut_rematerialization_partition=None)
_submodule("torch._dynamo", register_backend=lambda name: lambda function: function)
_submodule("torch._dynamo.backends")
_submodule("torch._dynamo.backends.common", aot_autograd=None)
_submodule("torch._inductor")
_submodule("torch._inductor.decomposition", select_decomp_table=None)
_world = int(os.environ.get("WORLD_SIZE", "1"))
_submodule(
    "torch.distributed",
    is_available=lambda: True,
    is_initialized=lambda: _world > 1,
    get_world_size=lambda: _world,
    get_rank=lambda: int(os.environ["RANK"]),
    get_process_group_ranks=lambda group: list(range(_world)),
)
_submodule(
    "torch.distributed.distributed_c10d",
    _world=types.SimpleNamespace(pg_names={"world": "0"}),
    _resolve_process_group=lambda name: name,
    _get_default_store=lambda: Store(os.environ["SYMPLAN_TEST_STORE"]),
)
