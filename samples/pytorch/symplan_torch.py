"""Runs the graphs that torch.compile sees with Symplan, in the same process.

    import symplan_torch
    model = torch.compile(model, backend="symplan")

It needs PyTorch 2.11 or later, Linux, and Symplan. Use the unpacked bundle for hosts without Java, or the repository,
once ./symplan has built it. The repository also needs JDK 25 or newer (found by SYMPLAN_JAVA_HOME, JAVA_HOME or PATH).
The first graph starts a JVM in the process.

AOTAutograd makes a forward and a backward graph, and each has its own plan. Inputs are read in place. Outputs, and the
tensors that the forward graph saves for the backward graph, are allocated by PyTorch, so they remain valid after the
call. A graph that cannot run falls back to eager execution, with a warning that gives the reason. So do graphs that
draw random numbers. With dynamic sizes, each combination of sizes gets its own plan.

If a graph has collectives between several ranks, all ranks compile it at the same time, make one plan, and run it
together, each in its own process, as torchrun starts them. If it cannot run on one rank, it runs in eager mode on all.

Environment:
    SYMPLAN_HOME        the bundle, or runtime/cli/target/symplan; by default, the one that contains this file
    SYMPLAN_PAGE        a folder; the page of each plan is written there: 0_forward.html, 1_backward.html, …
    SYMPLAN_JAVA_HOME   the JDK, if SYMPLAN_HOME contains none
    SYMPLAN_JAVA_OPTS   more options for the JVM, separated by spaces

After a fork, the child has no JVM, so graphs run in eager mode there. Signal handlers that were installed before the
JVM starts stay in place. Later handlers of SIGSEGV, SIGBUS and SIGFPE replace those of the JVM, which needs its own:
call faulthandler.enable() before the first graph is compiled.
"""

import atexit
import copy
import ctypes
import json
import os
import secrets
import shutil
import socket
import struct
import threading
import warnings
import weakref
from array import array
from collections import namedtuple
from functools import reduce
from operator import or_
from pathlib import Path

import torch
import torch.distributed as dist
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo import register_backend
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.decomposition import select_decomp_table


class SymplanError(RuntimeError):
    """An error of Symplan: a graph cannot be planned, or a run failed."""


class _Reply(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


class _Bridge:
    """The JVM of this process, and the functions of dev.symplan.runtime.torch.Bridge."""

    VERSION = 3

    def __init__(self):
        table = ctypes.cast(_start_jvm(), ctypes.POINTER(ctypes.c_int64))
        if table[0] != self.VERSION:
            raise SymplanError(f"SYMPLAN_HOME has version {table[0]} of the bridge, not {self.VERSION}")
        word, pointer, reply = ctypes.c_int64, ctypes.c_void_p, ctypes.POINTER(_Reply)

        def function(index, *types):
            return ctypes.CFUNCTYPE(word, *types)(table[index])

        self._compile = function(1, ctypes.c_char_p, word, reply)
        self._describe = function(2, word, reply)
        self.run = function(3, word)
        self._close = function(4, word, reply)
        self._release = function(5, pointer)
        self._leave = function(6, reply)

    def compile(self, request):
        data = json.dumps(request).encode()
        reply = _Reply()
        handle = self._compile(data, len(data), reply)
        if not handle:
            raise SymplanError(self._text(reply))
        return handle

    def describe(self, handle):
        reply = _Reply()
        self._check(self._describe(handle, reply), reply)
        return json.loads(self._text(reply))

    def failure(self, text, size):
        """Returns the error of a run."""
        return SymplanError(self._text(_Reply(text, size)))

    def close(self, handle):
        reply = _Reply()
        self._check(self._close(handle, reply), reply)

    def leave(self):
        """Signs off from the processes of the other ranks."""
        reply = _Reply()
        self._check(self._leave(reply), reply)

    def _check(self, failed, reply):
        if failed:
            raise SymplanError(self._text(reply))

    def _text(self, reply):
        if not reply.text:
            return "Symplan failed, and not enough memory was left to give the reason"
        text = ctypes.string_at(reply.text, reply.bytes).decode()
        self._release(reply.text)
        return text


_lock = threading.Lock()
_bridge = None
_world = None
_forked = False


def _the_bridge():
    global _bridge
    with _lock:
        if _bridge is None:
            _bridge = _Bridge()
        return _bridge


def _after_fork():
    global _forked, _lock
    _lock = threading.Lock()
    _forked = _bridge is not None


os.register_at_fork(after_in_child=_after_fork)


# How many seconds the ranks of a graph wait for each other: as long as PyTorch's process groups.
_TIMEOUT = 600


def _the_world():
    """Returns where the processes of all ranks meet. Rank 0 chooses the place, and PyTorch's store has it."""
    global _world
    with _lock:
        if _world is None:
            store = dist.distributed_c10d._get_default_store()
            rank, size = dist.get_rank(), dist.get_world_size()
            if rank == 0:
                place = {"host": _host(size), "port": _free_port(), "secret": secrets.token_hex(32)}
                store.set("symplan_world", json.dumps(place))
            place = json.loads(store.get("symplan_world"))
            _world = {"rank": rank, "size": size, "timeout": _TIMEOUT, **place}
            atexit.register(_leave)
        return _world


def _leave():
    if not _forked:
        _the_bridge().leave()


def _host(size):
    """Returns the name by which all ranks find rank 0."""
    if os.environ.get("LOCAL_WORLD_SIZE") == str(size):
        return "127.0.0.1"
    return os.environ.get("MASTER_ADDR") or socket.gethostname()


def _free_port():
    with socket.socket() as found:
        found.bind(("", 0))
        return found.getsockname()[1]


def _start_jvm():
    """Starts the JVM and returns the address of the bridge's table."""
    home = _home()
    library = ctypes.CDLL(str(_libjvm(home)))
    options = [
        *_classes(home),
        "--enable-native-access=ALL-UNNAMED",
        # Python handles SIGINT, SIGTERM and SIGHUP.
        "-Xrs",
        "-XX:+UseSerialGC",
        "-XX:+UseCompactObjectHeaders",
        "-XX:+UseCompressedOops",
        # A call is short, and Python makes all others: the JVM would compile its code only after thousands of calls.
        "-XX:CompileThresholdScaling=0.1",
        "-Xss4m",
        *os.environ.get("SYMPLAN_JAVA_OPTS", "").split(),
    ]

    class Option(ctypes.Structure):
        _fields_ = [("text", ctypes.c_char_p), ("extra", ctypes.c_void_p)]

    class Arguments(ctypes.Structure):
        _fields_ = [
            ("version", ctypes.c_int32),
            ("count", ctypes.c_int32),
            ("options", ctypes.POINTER(Option)),
            ("ignore", ctypes.c_uint8),
        ]

    jni_version = 0x00150000
    each = (Option * len(options))(*(Option(os.fsencode(text), None) for text in options))
    vm, env = ctypes.c_void_p(), ctypes.c_void_p()
    arguments = Arguments(jni_version, len(options), each, 0)
    status = library.JNI_CreateJavaVM(ctypes.byref(vm), ctypes.byref(env), ctypes.byref(arguments))
    if status:
        raise SymplanError(f"the JVM could not be started in this process: JNI_CreateJavaVM returned {status}")

    def call(object, index, result, *arguments):
        """Calls the function at a position of one of JNI's tables."""
        table = ctypes.cast(object, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))[0]
        types = [ctypes.c_char_p if isinstance(a, bytes) else ctypes.c_void_p for a in arguments]
        return ctypes.CFUNCTYPE(result, ctypes.c_void_p, *types)(table[index])(object, *arguments)

    find_class, exception_describe, exception_clear = 6, 16, 17
    get_static_method, call_static_long, detach = 113, 132, 5
    pointer = ctypes.c_void_p
    bridge = call(env, find_class, pointer, b"dev/symplan/runtime/torch/Bridge")
    method = bridge and call(env, get_static_method, pointer, bridge, b"table", b"()J")
    table = method and call(env, call_static_long, ctypes.c_int64, bridge, method)
    if not table:
        call(env, exception_describe, None)
        call(env, exception_clear, None)
    # From now on, each call attaches its thread, which stays attached until it ends.
    call(vm, detach, ctypes.c_int32)
    if not table:
        raise SymplanError(f"SYMPLAN_HOME is {home}, which cannot be used; standard error shows the reason")
    return table


def _home():
    """Returns the folder that contains Symplan's jars."""
    own = Path(__file__).resolve().parents[2]
    named = os.environ.get("SYMPLAN_HOME")
    for home in [Path(named)] if named else [own, own / "runtime" / "cli" / "target" / "symplan"]:
        if any((home / "lib").glob("*.jar")):
            return home
    raise SymplanError(
        (f"SYMPLAN_HOME is {named}, which contains no lib/*.jar. " if named else "SYMPLAN_HOME is not set. ")
        + "Set it to the unpacked bundle, or run ./symplan version in the repository"
        + " and set it to runtime/cli/target/symplan there"
    )


def _classes(home):
    """Returns the options that name Symplan's classes, and the start-up cache if there is one."""
    lib, natives = home / "lib", home / "natives"
    caches = [file for file in (home / "symplan.aot", lib / "symplan.aot") if file.exists()]
    commands = sorted(lib.glob("symplan-cli-*.jar"))
    if not caches or not commands:
        return ["-Djava.class.path=" + os.pathsep.join(map(str, [*sorted(lib.glob("*.jar")), natives]))]
    # As the command has it, or the JVM would refuse the cache: one jar, which names the others, and no folder.
    libraries = os.pathsep.join(map(str, sorted(natives.glob("org/bytedeco/*/*"))))
    return [
        f"-Djava.class.path={commands[0]}",
        *([f"-Djava.library.path={libraries}", "-Dorg.bytedeco.javacpp.pathsFirst=true"] if libraries else []),
        f"-XX:AOTCache={caches[0]}",
        # The JVM may refuse the cache. That costs time only, so its warning is hidden.
        "-Xlog:disable",
    ]


def _libjvm(home):
    """Returns the JVM of the bundle, or of a JDK on this machine."""
    java = shutil.which("java")
    homes = [
        home / "jre",
        *(Path(os.environ[name]) for name in ("SYMPLAN_JAVA_HOME", "JAVA_HOME") if os.environ.get(name)),
        *([Path(java).resolve().parent.parent] if java else []),
        *sorted(Path("/usr/lib/jvm").glob("*")),
    ]
    for candidate in homes:
        library = candidate / "lib" / "server" / "libjvm.so"
        release = candidate / "release"
        if library.exists() and release.exists() and _java_version(release.read_text()) >= 25:
            return library
    raise SymplanError("no JDK 25 or newer was found; set SYMPLAN_JAVA_HOME, or use the bundle")


def _java_version(release):
    for line in release.splitlines():
        if line.startswith('JAVA_VERSION="'):
            digits = line.split('"')[1].split(".")[0]
            return int(digits) if digits.isdigit() else 0
    return 0


@register_backend(name="symplan")
def symplan(module, example_inputs):
    """The backend of torch.compile."""
    return aot_autograd(
        fw_compiler=_compiler("forward"),
        bw_compiler=_compiler("backward"),
        inference_compiler=_compiler("inference"),
        decompositions=select_decomp_table(),
        partition_fn=min_cut_rematerialization_partition,
    )(module, example_inputs)


_count = 0


def _compiler(kind):
    def compile_graph(module, example_inputs):
        global _count
        with _lock:
            name = f"{_count}_{kind}"
            _count += 1
        if _forked:
            return _eager(module, name, "the process was forked, and the JVM belongs to its parent")
        # A missing Symplan is an error, not a reason to fall back.
        _the_bridge()
        try:
            return _Graph(module, name).boxed()
        except SymplanError as error:
            return _eager(module, name, error)

    return compile_graph


def _eager(module, name, error):
    warnings.warn(f"symplan: graph {name} runs in eager mode: {error}", stacklevel=2)
    return make_boxed_func(module.forward)


# An input or output of a plan: its required type and layout, and how its memory is used. dtype is None if the value is
# not a tensor.
_Slot = namedtuple("_Slot", "name dtype size stride bytes use of offset place")


def _slot(described):
    return _Slot(
        described["name"],
        getattr(torch, described["dtype"]) if "dtype" in described else None,
        torch.Size(described.get("sizes", ())),
        tuple(described.get("strides", ())),
        described.get("bytes", 0),
        described["use"],
        described.get("of"),
        described.get("offset", 0),
        described.get("place"),
    )


class _Graph:
    """A graph of AOTAutograd, and its plans: one, or one for each combination of symbolic sizes."""

    def __init__(self, module, name):
        self.module = module
        self.name = name
        self.groups = _groups(module)
        self.device = None
        self.refused = ""
        try:
            self.device = _device(module)
            _check_ops(module)
        except SymplanError as error:
            # The other ranks have to hear of it.
            if self.groups is None:
                raise
            self.refused = str(error)
        lifted, self.constants = _without_constants(module)
        self.text = lifted.print_readable(print_output=False, include_stride=True, include_device=True)
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.sizes = [
            (i, str(node.meta["val"]))
            for i, node in enumerate(placeholders)
            if isinstance(node.meta.get("val"), torch.SymInt) and str(node.meta["val"]).isidentifier()
        ]
        (output,) = (node for node in module.graph.nodes if node.op == "output")
        self.results = [
            arg.meta["val"] if isinstance(arg, torch.fx.Node) else arg for arg in output.args[0]
        ]
        self.plans = {}
        if not self.sizes:
            self.plans[()] = _Plan(self, {}).runner()

    def boxed(self):
        if not self.sizes:
            return self.plans[()]

        def run(args):
            values = tuple(args[i] for i, _ in self.sizes)
            plan = self.plans.get(values)
            if plan is None:
                plan = self._plan(values)
            return plan(args)

        run._boxed_call = True
        return run

    def _plan(self, values):
        dims = {symbol: value for (_, symbol), value in zip(self.sizes, values)}
        try:
            plan = _Plan(self, dims).runner()
        except SymplanError as error:
            plan = _eager(self.module, f"{self.name} for {dims}", error)
        self.plans[values] = plan
        return plan


class _Plan:
    """A plan of a graph that is ready to run."""

    def __init__(self, graph, dims):
        self.bridge = _the_bridge()
        self.handle = self.bridge.compile(self._request(graph, dims))
        weakref.finalize(self, _close, self.bridge, self.handle).atexit = False
        described = self.bridge.describe(self.handle)
        self.mask = described["alignment"] - 1
        self.device = graph.device
        self.constants = graph.constants
        self.inputs = [_slot(slot) for slot in described["inputs"]]
        self.outputs = outputs = [_slot(slot) for slot in described["outputs"]]
        if len(outputs) != len(self.results):
            raise SymplanError(f"{graph.name} has {len(self.results)} outputs, but its plan has {len(outputs)}")
        self.module = graph.module
        # A call goes through these only: the tensors among the inputs, the outputs that need memory, and the views.
        self.tensors = [i for i, s in enumerate(self.inputs) if s.dtype is not None]
        self.guards = None
        # _fast_cpu and _fast_cuda take plain tuples only.
        self.made = [
            (i, tuple(s.size), s.stride, s.dtype) for i, s in enumerate(outputs) if s.use in ("direct", "copied")
        ]
        self.views = [(i, s) for i, s in enumerate(outputs) if s.use in ("input", "output")]

    def _request(self, graph, dims):
        refused = graph.refused
        self.results = []
        try:
            self.results = [_number(value, dims) for value in graph.results]
        except SymplanError as error:
            if graph.groups is None:
                raise
            refused = refused or str(error)
        gpu = graph.device is not None and graph.device.type == "cuda"
        request = {
            "name": graph.name + ".fx.txt",
            "text": graph.text,
            "backend": "cuda" if gpu else "host",
            "device": graph.device.index or 0 if gpu else 0,
            "dims": dims,
        }
        if graph.groups is not None:
            request |= {"world": _the_world(), "groups": graph.groups, "refused": refused}
        if os.environ.get("SYMPLAN_PAGE"):
            suffix = "".join(f"_{name}_{value}" for name, value in dims.items())
            folder = Path(os.environ["SYMPLAN_PAGE"]).absolute()
            folder.mkdir(parents=True, exist_ok=True)
            request["page"] = str(folder / f"{graph.name}{suffix}.html")
        return request

    def runner(self):
        """Returns the function of a call. What it needs is in its own variables: they are read faster than attributes."""
        handle, run, failure = self.handle, self.bridge.run, self.bridge.failure
        module, constants, device, mask = self.module, self.constants, self.device, self.mask
        results_at_first, made, views, places = self.results, self.made, self.views, self.tensors
        count, expected = len(self.inputs) + len(self.outputs), len(self.inputs) - len(self.constants)
        every, all_made = len(places) == len(self.inputs), len(made) == len(self.outputs)
        no_inputs, no_outputs = [0] * len(self.inputs), [0] * len(self.outputs)
        layouts = [layout for _, *layout in made]
        data_ptr = torch.Tensor.data_ptr
        slow = _slow(device)
        on_gpu, index = device.type == "cuda", device.index
        fast = _fast_cuda if on_gpu else _fast_cpu or slow
        if on_gpu:
            current_stream, current_device = torch._C._cuda_getCurrentRawStream, torch._C._cuda_getDevice
        # The words of a call, which Bridge describes, from the stream on.
        pack, from_stream = struct.Struct(f"{count + 1}q").pack_into, 4 * 8
        # The words of calls that are over, and their addresses. Calls at the same time have different ones.
        spare = []

        def call(args):
            if _forked:
                return module(*args)
            if len(args) != expected:
                raise SymplanError(f"{len(args)} inputs, but the plan has {expected}")
            if constants:
                args = [*args, *constants]
            tensors = args if every else [args[i] for i in places]
            addresses = [*map(data_ptr, tensors)]
            guards = self.guards
            if guards is None or not guards.check(*tensors) or reduce(or_, addresses, 0) & mask:
                tensors = self._fitting(tensors)
                addresses = [*map(data_ptr, tensors)]
            if not every:
                addresses = _scattered(no_inputs, places, addresses)
            empty, stream = fast, 0
            if on_gpu:
                stream = current_stream(index)
                if fast is None or current_device() != index:
                    empty = slow
            if all_made:
                results = [empty(*layout) for layout in layouts]
                outputs = map(data_ptr, results)
            else:
                results, outputs = results_at_first.copy(), no_outputs.copy()
                for i, size, stride, dtype in made:
                    results[i] = result = empty(size, stride, dtype)
                    outputs[i] = result.data_ptr()
            words, address = spare.pop() if spare else _words(handle, count)
            pack(words, from_stream, stream, *addresses, *outputs)
            if run(address):
                raise failure(words[2], words[3])
            spare.append((words, address))
            if not views:
                return results
            # Views of an input that was copied are views of the copy.
            given = tensors if every else _scattered(args, places, tensors)
            for i, slot in views:
                base = (given if slot.use == "input" else results)[slot.of]
                if base.shape != slot.size or base.stride() != slot.stride or slot.offset:
                    base = base.as_strided(slot.size, slot.stride, base.storage_offset() + slot.offset)
                results[i] = base
            return results

        call._boxed_call = True
        return call

    def _fitting(self, tensors):
        """Returns the tensors, or copies of those whose layout is not the plan's; other types are an error."""
        fitting = list(tensors)
        for n, i in enumerate(self.tensors):
            slot, arg = self.inputs[i], tensors[n]
            if arg.dtype is not slot.dtype or arg.device != self.device:
                raise SymplanError(
                    f"{slot.name} must be {slot.dtype} on {self.device}, not {arg.dtype} on {arg.device}"
                )
            if arg.shape != slot.size or arg.stride() != slot.stride or arg.data_ptr() & self.mask:
                fitting[n] = self._relaid(arg, slot)
        if _TensorGuards is not None:
            self.guards = _TensorGuards(
                *fitting,
                dynamic_dims_sizes=[list(tensor.shape) for tensor in fitting],
                dynamic_dims_strides=[list(tensor.stride()) for tensor in fitting],
            )
        return fitting

    def _relaid(self, arg, slot):
        """Returns a copy with the plan's strides; a gradient, for example, may have different ones."""
        if arg.shape != slot.size:
            raise SymplanError(f"{slot.name} must have the shape {tuple(slot.size)}, not {tuple(arg.shape)}")
        return torch.empty_strided(slot.size, slot.stride, dtype=arg.dtype, device=arg.device).copy_(arg)


def _words(handle, count):
    """Returns the words of a call, and their address."""
    words = array("q", [handle, count, 0, 0, 0, *[0] * count])
    return words, words.buffer_info()[0]


def _scattered(values, places, given):
    """Returns a copy of a list with other values at some places."""
    scattered = list(values)
    for i, value in zip(places, given):
        scattered[i] = value
    return scattered


# What the code that Inductor generates allocates with: it needs less time than torch.empty_strided, and takes the
# current GPU. Dynamo's guards check types, sizes and strides of all tensors in one call.
_fast = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
_fast_cpu = getattr(_fast, "_empty_strided_cpu", None)
_fast_cuda = getattr(_fast, "_empty_strided_cuda", None)
_TensorGuards = getattr(_fast, "TensorGuards", None)


def _slow(device):
    return lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device=device)


def _close(bridge, handle):
    if not _forked:
        bridge.close(handle)


def _number(value, dims):
    """Returns the value of an output that is not a tensor; None for a tensor."""
    if not isinstance(value, torch.SymInt):
        return None if isinstance(value, torch.Tensor) else value
    expression = value.node.expr
    number = expression.subs({s: dims[str(s)] for s in expression.free_symbols if str(s) in dims})
    if not number.is_Integer:
        raise SymplanError(f"the output {expression} depends on sizes that are not known before the graph runs")
    return int(number)


def _device(module):
    """Returns the device of all tensors of a graph. Tensors on several devices are an error."""
    found = {}
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            found.setdefault(value.device, node)
    if len(found) != 1:
        named = ", ".join(f"'{node}' is on {device}" for device, node in found.items())
        raise SymplanError(f"its tensors are on several devices: {named}" if found else "it has no tensors")
    (device,) = found
    if device.type not in ("cpu", "cuda"):
        raise SymplanError(f"its tensors are on {device}; Symplan runs on CPUs and on NVIDIA GPUs")
    return device


def _calls(module):
    """Returns the ops of a graph and its subgraphs, each with its node. Higher-order ops take others as arguments."""
    graphs = [part.graph for part in module.modules() if isinstance(part, torch.fx.GraphModule)]
    return [
        (op, node)
        for graph in graphs
        for node in graph.nodes
        for op in (node.target, *node.args)
        if isinstance(op, torch._ops.OpOverload)
    ]


def _check_ops(module):
    """Refuses ops that would run, but give different results than in PyTorch."""
    for op, node in _calls(module):
        where = (node.meta.get("stack_trace") or "").strip().splitlines()
        named = f"'{node}' is {op}" + (f" ({where[-2].strip()})" if len(where) > 1 else "")
        if torch.Tag.nondeterministic_seeded in op.tags and not _is_without_dropout(op, node):
            raise SymplanError(f"{named}, whose random numbers only PyTorch's generator can draw")
        if op is node.target and op._schema.is_mutable:
            raise SymplanError(f"{named}, which writes into its arguments")


def _groups(module):
    """Returns the ranks of each process group that a graph names; None if only one rank takes part in the graph."""
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return None
    collectives = [
        node for op, node in _calls(module) if "c10d" in op.namespace or op.namespace in ("symm_mem", "_dtensor")
    ]
    known = set(dist.distributed_c10d._world.pg_names.values())
    words = {word for node in collectives for word in (*node.args, *node.kwargs.values()) if isinstance(word, str)}
    groups = {
        name: list(dist.get_process_group_ranks(dist.distributed_c10d._resolve_process_group(name)))
        for name in sorted(words & known)
    }
    alone = groups and all(len(ranks) == 1 for ranks in groups.values())
    return groups if collectives and not alone else None


def _is_without_dropout(op, node):
    """Whether an op, such as attention, would draw random numbers only for dropout, and its dropout is 0."""
    for i, argument in enumerate(op._schema.arguments):
        if op is node.target and argument.name == "dropout_p":
            given = node.args[i] if i < len(node.args) else node.kwargs.get("dropout_p", argument.default_value)
            return given == 0
    return False


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
