"""Dumps the module that XLA makes of a jitted JAX function, for `symplan compile` and `symplan compare-xla`.

    from dump_module import dump
    step = jax.jit(train_step, donate_argnums=0)
    dump(step, (state, batch), "dumps/train_step")

writes the module after XLA's passes, partitioned and scheduled (`module.hlo`), and XLA's own memory
plan of it (`buffer-assignment.txt`). The function is compiled, not run: every process of a job
compiles the same module, and the first one writes it.
"""

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


def dump(jitted, args, folder, **kwargs):
    """Compiles `jitted` for `args` (arrays or jax.ShapeDtypeStruct), and keeps the module and XLA's memory plan."""
    before = set(FOLDER.glob("*"))
    text = jitted.lower(*args, **kwargs).compile().as_text()
    if jax.process_index() != 0:
        return
    to = pathlib.Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    (to / "module.hlo").write_text(text)
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
