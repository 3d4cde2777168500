"""Dumps the module that XLA makes of a jitted JAX function, or captures a run of it as a case.

    from dump_module import capture, dump
    step = jax.jit(train_step, donate_argnums=0)
    dump(step, (state, batch), "dumps/train_step")

writes the module after XLA's passes, partitioned and scheduled (`module.hlo`), and XLA's own memory
plan of it (`buffer-assignment.txt`), for `symplan compile` and `symplan compare-xla`. The function
is compiled, not run: every process of a job compiles the same module, and the first one writes it.

    capture(step, (state, batch), "cases/train_step")

also runs the function, and writes what each device takes and returns (`rankN.inputs.safetensors`,
`rankN.outputs.safetensors`), for `symplan run cases/train_step --check`. All devices must belong to
one process.
"""

import json
import os
import pathlib
import re
import shutil
import tempfile

FLAG = "--xla_dump_to="


def _dump_folder() -> pathlib.Path:
    """Returns the folder of --xla_dump_to, which XLA reads once, when JAX makes its first array."""
    flags = os.environ.get("XLA_FLAGS", "")
    found = re.search(re.escape(FLAG) + r"(\S+)", flags)
    if found:
        return pathlib.Path(found.group(1))
    folder = tempfile.mkdtemp(prefix="xla_dump_")
    os.environ["XLA_FLAGS"] = f"{flags} {FLAG}{folder}".strip()
    return pathlib.Path(folder)


FOLDER = _dump_folder()

import jax  # noqa: E402  JAX must be imported after the flag is set.
import numpy as np  # noqa: E402

# The names of types in safetensors files.
DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}


def dump(jitted, args, folder, options=None, **kwargs):
    """Compiles `jitted` for `args` (arrays or jax.ShapeDtypeStruct), and keeps the module and XLA's memory plan.

    `options` are XLA's, as a dictionary: {"xla_gpu_memory_limit_slop_factor": 5}.
    """
    before = set(FOLDER.glob("*"))
    compiled = jitted.lower(*args, **kwargs).compile(compiler_options=options)
    if jax.process_index() != 0:
        return compiled
    to = pathlib.Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    (to / "module.hlo").write_text(compiled.as_text())
    plans = [
        path
        for path in FOLDER.glob("*after_optimizations-buffer-assignment.txt")
        if path not in before
    ]
    if not plans:
        raise RuntimeError(
            f"XLA wrote no buffer assignment to {FOLDER}: was JAX used before this file was"
            " imported, or was the function compiled before? Import this file first"
        )
    # The largest plan is that of the module; the other plans are of computations that XLA compiled on the way.
    shutil.copy(max(plans, key=lambda path: path.stat().st_size), to / "buffer-assignment.txt")
    return compiled


def capture(jitted, args, folder):
    """Dumps `jitted`, runs it on `args`, and writes the inputs and outputs of each device beside the module."""
    if jax.process_count() != 1:
        raise RuntimeError("run all devices in one process: each case needs the tensors of all")
    compiled = dump(jitted, args, folder)
    to = pathlib.Path(folder)
    devices = compiled.runtime_executable().local_devices()
    given = jax.tree.leaves(args)
    kept = _kept(compiled, len(given))
    shardings = jax.tree.leaves(compiled.input_shardings[0])
    if len(shardings) == len(given):
        shardings = [shardings[i] for i in kept]
    inputs = [jax.device_put(given[i], sharding) for i, sharding in zip(kept, shardings)]
    parameters = _parameters((to / "module.hlo").read_text())
    if parameters != len(inputs):
        raise RuntimeError(f"the module has {parameters} parameters, not {len(inputs)}: does it have constants?")
    # The run may take the memory of donated arguments, so their contents are written first.
    _write(to, "inputs", "in", inputs, devices)
    _write(to, "outputs", "out", jax.tree.leaves(compiled(*args)), devices)


def _kept(compiled, count):
    """Returns the positions of the arguments that the module has: JAX leaves out those that nothing reads."""
    kept = getattr(getattr(compiled, "_executable", None), "_kept_var_idx", None)
    return range(count) if kept is None else sorted(kept)


def _parameters(text):
    entry = text[text.index("\nENTRY ") :]
    return len(re.findall(r" parameter\(\d+\)", entry[: entry.index("\n}")]))


def _write(folder, kind, prefix, arrays, devices):
    for rank, device in enumerate(devices):
        tensors = {}
        for i, array in enumerate(arrays):
            shard = next(shard for shard in array.addressable_shards if shard.device == device)
            tensors[f"{prefix}{i}"] = np.asarray(shard.data)
        write_safetensors(folder / f"rank{rank}.{kind}.safetensors", tensors)


def write_safetensors(path, tensors):
    """Writes arrays of NumPy by their names."""
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": DTYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in tensors.values():
            file.write(array.tobytes())
