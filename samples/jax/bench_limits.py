"""Times a training step that XLA compiles for less and less memory, and writes the modules.

    python samples/jax/bench_limits.py limits 100,6,4,2,1
    symplan bench graph limits/100/module.hlo --memory-limit BYTES

The step is the forward and backward of a few Llama layers in bf16 on one device, without an embedding; it takes the
gradient of its result. Attention is written in JAX, so that XLA may compute its parts again. The numbers are percents
of the device's memory, less inputs and outputs: xla_gpu_memory_limit_slop_factor. XLA's rematerialization runs where
the module would take more. With 100 it has nothing to do: limits/100 is the module that others may plan. --options
are compiler options to turn on, such as xla_gpu_enable_host_memory_offloading. Times are medians of several
measurements on the host's clock, of many calls each. Bytes are those of XLA's own plan.
"""

import argparse
import functools
import os
import pathlib
import re
import statistics
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from dump_module import capture, dump  # noqa: E402  It must be imported before JAX.

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

COLUMNS = "module,layers,tokens,percent,options,micros,min_us,max_us,inputs,outputs,temporary,repeated"
HEAD = 128


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("percents", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--width", type=int, default=4096, help="a multiple of 512; a head has 128")
    parser.add_argument("--measurements", type=int, default=7)
    parser.add_argument("--calls", type=int, default=10, help="calls in each measurement")
    parser.add_argument("--options", default="", help="options of XLA to turn on: name,name")
    parser.add_argument("--case", action="store_true", help="write what the first module takes and returns, too")
    return parser.parse_args()


def norm(x, scale):
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-5)
    return (wide * scale.astype(jnp.float32)).astype(x.dtype)


def rotate(x):
    """Rotary position embeddings of [tokens, heads, 128]."""
    tokens, _, size = x.shape
    rates = 10000.0 ** (-jnp.arange(0, size, 2, dtype=jnp.float32) / size)
    angles = jnp.arange(tokens, dtype=jnp.float32)[:, None] * rates
    cos, sin = (jnp.concatenate([f(angles)] * 2, -1)[:, None, :].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    first, second = jnp.split(x, 2, -1)
    return x * cos + jnp.concatenate([-second, first], -1) * sin


def attention(q, k, v):
    """Of [tokens, heads, 128]; several heads of q share one of k and v."""
    tokens, heads, size = q.shape
    q = q.reshape(tokens, k.shape[1], -1, size)
    scores = jnp.einsum("qhgd,khd->hgqk", q, k).astype(jnp.float32) / size**0.5
    scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e30)
    weights = jax.nn.softmax(scores, axis=-1).astype(q.dtype)
    return jnp.einsum("hgqk,khd->qhgd", weights, v).reshape(tokens, heads, size)


def layer(p, x):
    tokens, width = x.shape
    h = norm(x, p["attention_norm"])
    q, k, v = ((h @ p[name]).reshape(tokens, -1, HEAD) for name in "qkv")
    x = x + attention(rotate(q), rotate(k), v).reshape(tokens, width) @ p["o"]
    h = norm(x, p["mlp_norm"])
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]


def forward(params, x):
    return functools.reduce(lambda x, p: layer(p, x), params, x)


@jax.jit
def step(params, x, gradient):
    result, backward = jax.vjp(lambda params: forward(params, x), params)
    return result, backward(gradient)[0]


def inputs(layers, tokens, width):
    inner, keys = width * 7 // 2, width // 4
    sizes = {
        "q": (width, width),
        "k": (width, keys),
        "v": (width, keys),
        "o": (width, width),
        "gate": (width, inner),
        "up": (width, inner),
        "down": (inner, width),
    }

    def draw(seed, sizes, scale):
        return (jax.random.normal(jax.random.key(seed), sizes) * scale).astype(jnp.bfloat16)

    params = [
        {
            "attention_norm": jnp.ones(width, jnp.bfloat16),
            "mlp_norm": jnp.ones(width, jnp.bfloat16),
            **{name: draw(10 * i + j, size, size[0] ** -0.5) for j, (name, size) in enumerate(sizes.items())},
        }
        for i in range(layers)
    ]
    return params, draw(1000, (tokens, width), 1.0), draw(1001, (tokens, width), 1.0)


def measure(call, calls, measurements):
    found = []
    for i in range(-1, measurements):
        begin = time.perf_counter()
        for _ in range(calls):
            last = call()
        jax.block_until_ready(last)
        if i >= 0:  # The first one warms up.
            found.append((time.perf_counter() - begin) * 1e6 / calls)
        del last
    return sorted(found)


def main():
    args = arguments()
    turned_on = {name: True for name in args.options.split(",") if name}
    given = inputs(args.layers, args.tokens, args.width)
    modules = {}
    for percent in args.percents:
        name = "-".join([str(percent), *turned_on])
        if args.case and not modules:
            capture(step, given, args.folder / name)
        options = {"xla_gpu_memory_limit_slop_factor": percent, **turned_on}
        modules[name] = percent, dump(step, given, args.folder / name, options)
    print(f"# {jax.devices()[0].device_kind}, JAX {jax.__version__}")
    print(COLUMNS, flush=True)
    for name, (percent, compiled) in modules.items():
        size = compiled.memory_analysis()
        repeated = len(re.findall(r"^ *%?\S*\.remat\S* = ", compiled.as_text(), re.MULTILINE))
        found = measure(lambda: compiled(*given), args.calls, args.measurements)
        times = f"{statistics.median_high(found):.0f},{found[0]:.0f},{found[-1]:.0f}"
        sizes = f"{size.argument_size_in_bytes},{size.output_size_in_bytes},{size.temp_size_in_bytes}"
        sort = f"{args.layers},{args.tokens},{percent},{args.options or '-'}"
        print(f"{name},{sort},{times},{sizes},{repeated}", flush=True)


if __name__ == "__main__":
    main()
