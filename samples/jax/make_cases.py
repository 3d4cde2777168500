"""Captures small parallel programs of JAX on two devices as cases, for `symplan run CASE --check`.

    python samples/jax/make_cases.py cases                  # on two GPUs
    XLA_FLAGS=--xla_force_host_platform_device_count=2 JAX_PLATFORMS=cpu python samples/jax/make_cases.py cases

writes a folder for each program, and prints what became of it. Names after the folder choose programs.
"""

import os
import pathlib
import re
import sys
import traceback

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from dump_module import capture  # noqa: E402  It must be imported before JAX.

import functools  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

PROGRAMS = {}


def program(build):
    PROGRAMS[build.__name__] = build
    return build


@functools.cache
def mesh():
    return Mesh(np.array(jax.devices()[:2]), ("x",))


def normal(seed, *shape, dtype=jnp.float32, scale=1.0):
    drawn = np.random.default_rng(seed).standard_normal(shape)
    return np.asarray(scale * drawn, dtype=dtype)


def integers(seed, bound, *shape):
    return np.random.default_rng(seed).integers(0, bound, shape, dtype=np.int32)


def put(array, *spec):
    return jax.device_put(array, NamedSharding(mesh(), P(*spec)))


def mapped(function, ins, outs):
    return jax.jit(shard_map(function, mesh=mesh(), in_specs=ins, out_specs=outs))


def unchecked(function, ins, outs):
    """A shard_map whose results JAX cannot prove to be equal on all devices."""
    try:
        return jax.jit(shard_map(function, mesh=mesh(), in_specs=ins, out_specs=outs, check_vma=False))
    except TypeError:
        return jax.jit(shard_map(function, mesh=mesh(), in_specs=ins, out_specs=outs, check_rep=False))


@program
def tp_mlp():
    def f(x, up, down):
        return lax.psum(jax.nn.gelu(x @ up) @ down, "x")

    return mapped(f, (P(), P(None, "x"), P("x", None)), P()), (
        put(normal(0, 8, 16)),
        put(normal(1, 16, 32, scale=0.25), None, "x"),
        put(normal(2, 32, 16, scale=0.2), "x", None),
    )


@program
def tp_mlp_bf16_auto():
    def f(x, up, down):
        return jax.nn.silu(x @ up) @ down

    args = (
        put(normal(0, 8, 16, dtype=jnp.bfloat16)),
        put(normal(1, 16, 32, dtype=jnp.bfloat16, scale=0.25), None, "x"),
        put(normal(2, 32, 16, dtype=jnp.bfloat16, scale=0.2), "x", None),
    )
    return jax.jit(f, out_shardings=NamedSharding(mesh(), P())), args


@program
def fsdp_step():
    def loss(weights, x, y):
        first, second = (lax.all_gather(w, "x", axis=0, tiled=True) for w in weights)
        return jnp.mean((jax.nn.relu(x @ first) @ second - y) ** 2)

    def f(first, second, x, y):
        value, grads = jax.value_and_grad(loss)((first, second), x, y)
        updated = [w - 0.1 * g / 2 for w, g in zip((first, second), grads)]
        return updated[0], updated[1], lax.pmean(value, "x")

    shards = P("x", None)
    return unchecked(f, (shards,) * 4, (shards, shards, P())), (
        put(normal(0, 16, 32, scale=0.25), "x", None),
        put(normal(1, 32, 8, scale=0.2), "x", None),
        put(normal(2, 8, 16), "x", None),
        put(normal(3, 8, 8), "x", None),
    )


@program
def dp_train_step():
    def loss(params, x, y):
        hidden = jnp.tanh(x @ params["w1"] + params["b1"])
        logits = hidden @ params["w2"] + params["b2"]
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
        return -jnp.mean(picked)

    def f(params, momentum, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return jax.tree.map(lambda p, m: p - 0.05 * m, params, momentum), momentum, value

    params = {
        "w1": put(normal(0, 16, 32, scale=0.25)),
        "b1": put(normal(1, 32)),
        "w2": put(normal(2, 32, 8, scale=0.2)),
        "b2": put(normal(3, 8)),
    }
    zeros = jax.tree.map(lambda p: put(np.zeros(p.shape, np.float32)), params)
    args = (params, zeros, put(normal(4, 8, 16), "x", None), put(integers(5, 8, 8), "x"))
    return jax.jit(f, donate_argnums=(0, 1)), args


@program
def adam_block_step():
    """A transformer block, tensor parallel by shardings, with a step of Adam."""
    heads, width, length = 4, 16, 8

    def norm(x, scale):
        return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale

    def block(p, x):
        h = norm(x, p["norm1"])
        q, k, v = (jnp.einsum("bsd,dhk->bshk", h, p[n]) for n in ("q", "k", "v"))
        scores = jnp.einsum("bshk,bthk->bhst", q, k) / 2.0
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
        attended = jnp.einsum("bhst,bthk->bshk", jax.nn.softmax(scores), v)
        x = x + jnp.einsum("bshk,hkd->bsd", attended, p["o"])
        h = norm(x, p["norm2"])
        return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]

    def f(p, m, v, step, x, y):
        value, grads = jax.value_and_grad(lambda p: jnp.mean((block(p, x) - y) ** 2))(p)
        step = step + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)
        rate = 1e-2 * jnp.sqrt(1 - 0.99**step) / (1 - 0.9**step)
        p = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-4), p, m, v)
        return p, m, v, step, value

    def weight(seed, *shape_and_spec):
        shape, spec = shape_and_spec
        return put(normal(seed, *shape, scale=0.25), *spec)

    part = width // heads
    p = {
        "norm1": put(np.ones(width, np.float32)),
        "norm2": put(np.ones(width, np.float32)),
        "q": weight(0, (width, heads, part), (None, "x", None)),
        "k": weight(1, (width, heads, part), (None, "x", None)),
        "v": weight(2, (width, heads, part), (None, "x", None)),
        "o": weight(3, (heads, part, width), ("x", None, None)),
        "gate": weight(4, (width, 32), (None, "x")),
        "up": weight(5, (width, 32), (None, "x")),
        "down": weight(6, (32, width), ("x", None)),
    }
    moments = [jax.tree.map(lambda w: jax.device_put(np.zeros(w.shape, np.float32), w.sharding), p) for _ in "mv"]
    args = (
        p,
        *moments,
        put(np.float32(0)),
        put(normal(7, 2, length, width)),
        put(normal(8, 2, length, width)),
    )
    return jax.jit(f, donate_argnums=(0, 1, 2)), args


@program
def all_to_all():
    def f(x, w):
        experts = lax.all_to_all(x, "x", split_axis=1, concat_axis=0, tiled=True)
        worked = jnp.einsum("td,df->tf", experts.reshape(-1, 8), w[0]).reshape(experts.shape)
        return lax.all_to_all(jax.nn.relu(worked), "x", split_axis=0, concat_axis=1, tiled=True)

    return mapped(f, (P("x", None, None), P("x", None, None)), P("x", None, None)), (
        put(normal(0, 8, 4, 8), "x", None, None),
        put(normal(1, 2, 8, 8, scale=0.3), "x", None, None),
    )


@program
def ring_matmul():
    """The product of a gathered matrix, part by part, while the next part is on its way."""

    def f(x, w):
        own = lax.axis_index("x")
        result = jnp.zeros((2, *x.shape[:-1], w.shape[1]), x.dtype)
        for step in range(2):
            result = lax.dynamic_update_index_in_dim(result, x @ w, (own - step) % 2, 0)
            if step == 0:
                x = lax.ppermute(x, "x", [(0, 1), (1, 0)])
        return result.reshape(-1, w.shape[1])

    return unchecked(f, (P("x", None), P(None, "x")), P(None, "x")), (
        put(normal(0, 8, 16), "x", None),
        put(normal(1, 16, 8), None, "x"),
    )


@program
def pipeline_shift():
    """A device without a source gets zeros."""

    def f(x):
        return lax.ppermute(jnp.sin(x), "x", [(0, 1)]) + x

    return mapped(f, (P("x", None),), P("x", None)), (put(normal(0, 8, 16), "x", None),)


@program
def scatter_and_gather():
    def f(x, scale):
        part = lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True)
        part = part * lax.rsqrt(jnp.mean(part * part, axis=0, keepdims=True) + 1e-6) * scale
        return lax.all_gather(part, "x", axis=1, tiled=True)

    return unchecked(f, (P("x", None), P()), P("x", None)), (
        put(normal(0, 16, 8), "x", None),
        put(np.float32(1.5)),
    )


@program
def reductions():
    def f(x, n):
        high, low = lax.pmax(x, "x"), lax.pmin(x, "x")
        total = lax.psum(n, "x")
        return high - low, total, jnp.argmax(x, axis=1), jnp.cumsum(x, axis=0)

    return mapped(f, (P("x", None), P("x", None)), (P(), P(), P("x"), P("x", None))), (
        put(normal(0, 16, 8), "x", None),
        put(integers(1, 100, 16, 8), "x", None),
    )


@program
def layers_scanned():
    def f(x, ups, downs):
        def layer(x, weights):
            up, down = weights
            out = x + lax.psum(jnp.tanh(x @ up) @ down, "x")
            return out, jnp.max(out)

        return lax.scan(layer, x, (ups, downs))

    return mapped(f, (P(), P(None, None, "x"), P(None, "x", None)), (P(), P())), (
        put(normal(0, 4, 16)),
        put(normal(1, 3, 16, 32, scale=0.2), None, None, "x"),
        put(normal(2, 3, 32, 16, scale=0.2), None, "x", None),
    )


@program
def scan_train_step():
    """Gradients through a scan keep what each round computed."""

    def loss(weights, x):
        def layer(x, w):
            return x + jnp.tanh(x @ w), None

        return jnp.mean(lax.scan(layer, x, weights)[0] ** 2)

    def f(weights, x):
        value, grads = jax.value_and_grad(loss)(weights, x)
        return weights - 0.1 * grads, value

    args = (put(normal(0, 3, 16, 16, scale=0.2)), put(normal(1, 8, 16), "x", None))
    return jax.jit(f, donate_argnums=0), args


@program
def rounds():
    def f(x):
        return lax.fori_loop(0, 4, lambda i, x: lax.psum(x, "x") * 0.5 + i, x)

    return unchecked(f, (P("x", None),), P("x", None)), (put(normal(0, 4, 8), "x", None),)


@program
def branch():
    def f(flag, x, w):
        y = lax.cond(flag > 0, lambda: jnp.tanh(x @ w), lambda: x * 2.0)
        return lax.psum(y, "x")

    return unchecked(f, (P(), P("x", None), P()), P()), (
        put(np.int32(1)),
        put(normal(0, 8, 16), "x", None),
        put(normal(1, 16, 16, scale=0.25)),
    )


@program
def until_small():
    """A loop whose number of rounds depends on the data."""

    def f(x):
        return lax.while_loop(lambda x: jnp.max(jnp.abs(x)) > 0.1, lambda x: x * 0.5 - x**3 * 0.01, x)

    return unchecked(f, (P("x", None),), P("x", None)), (put(normal(0, 4, 8), "x", None),)


@program
def embedding_loss():
    """Rows of a table, picked logits, and gradients, which are added into rows."""

    def loss(table, head, tokens, labels):
        hidden = table[tokens]
        logits = jnp.einsum("btd,vd->btv", hidden, head)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1))

    def f(table, head, tokens, labels):
        value, grads = jax.value_and_grad(loss, argnums=(0, 1))(table, head, tokens, labels)
        return value, *grads

    return jax.jit(f), (
        put(normal(0, 32, 8)),
        put(normal(1, 32, 8), "x", None),
        put(integers(2, 32, 4, 6), "x", None),
        put(integers(3, 32, 4, 6), "x", None),
    )


@program
def attention_heads():
    def f(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)

    parts = (None, None, "x", None)
    return jax.jit(f), tuple(
        put(normal(seed, 2, 8, 4, 16, dtype=jnp.bfloat16), *parts) for seed in range(3)
    )


@program
def sorted_rows():
    def f(x):
        values, places = lax.top_k(x, 3)
        return jnp.sort(x, axis=1), values, places, jnp.argsort(x, axis=1)

    return mapped(f, (P("x", None),), (P("x", None),) * 4), (put(normal(0, 8, 16), "x", None),)


@program
def integers_and_bits():
    def f(n, x):
        mixed = (n ^ (n >> 3)) * 5 + lax.population_count(n)
        return mixed, jnp.where(x > 0, n, -n), (x > 0.5) & (n % 2 == 0), n // 3, jnp.clip(n, 10, 50)

    return mapped(f, (P("x", None), P("x", None)), (P("x", None),) * 5), (
        put(integers(0, 100, 8, 16), "x", None),
        put(normal(1, 8, 16), "x", None),
    )


@program
def broadcast_from_one():
    def f(x):
        return lax.pbroadcast(x, "x", 1) + 1.0

    return unchecked(f, (P("x", None),), P("x", None)), (put(normal(0, 8, 16), "x", None),)


@program
def ragged_all_to_all():
    """Device 0 keeps 1 row and sends 3; device 1 sends 2 and keeps 2."""

    def f(x, out, offsets, sizes, at, received):
        return lax.ragged_all_to_all(x, out, offsets[0], sizes[0], at[0], received[0], axis_name="x")

    tables = ([[0, 1], [0, 2]], [[1, 3], [2, 2]], [[0, 0], [1, 3]], [[1, 2], [3, 2]])
    rows = P("x", None)
    return unchecked(f, (rows,) * 6, rows), (
        put(normal(0, 8, 16), *rows),
        put(np.zeros((12, 16), np.float32), *rows),
        *(put(np.asarray(table, np.int32), *rows) for table in tables),
    )


def collectives(folder):
    text = (folder / "module.hlo").read_text() if (folder / "module.hlo").exists() else ""
    names = re.findall(r" ((?:all|reduce|collective|ragged)-[a-z-]+)\(", text)
    return " ".join(sorted({name for name in names if not name.endswith("-done")})) or "-"


def main(to, chosen):
    if len(jax.devices()) < 2:
        sys.exit(f"The programs are for two devices, but JAX has only {jax.devices()}.\n\n{__doc__}")
    jax.config.update("jax_default_matmul_precision", "highest")
    print(f"jax {jax.__version__}, {jax.devices()[:2]}", flush=True)
    failed = 0
    for name, build in PROGRAMS.items():
        if chosen and name not in chosen:
            continue
        folder = to / name
        try:
            jitted, args = build()
            capture(jitted, args, folder)
            said = "ok"
        except Exception as e:
            failed += 1
            said = f"failed: {type(e).__name__}: {str(e).splitlines()[0][:150] if str(e) else ''}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "error.txt").write_text(traceback.format_exc())
        size = sum(file.stat().st_size for file in folder.glob("*"))
        print(f"{name:20} {size:8} bytes  {collectives(folder)}  {said}", flush=True)
    print(f"{failed} failed")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
