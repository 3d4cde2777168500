"""Asks PyTorch what ops compute: writes calls with their operands and results to ops.jsonl.gz, those of
complex numbers to complex.jsonl.gz.

A line is an object: the op's schema, its arguments, its results. A tensor is an object of dtype, size,
stride and the elements of its storage, of which complex ones are two; a float that JSON lacks is a string.
Where PyTorch has no CPU kernel, the results are those of the definition, in f64.

Run here, with PyTorch installed: python3 ops.py, or python3 ops.py complex for one of the files. That one needs a
GPU.
"""

import gzip
import json
import math
import sys

import numpy as np
import torch
import torch._inductor.inductor_prims
import torch.nn.functional as F

inf, nan = math.inf, math.nan
DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8,
    "b8": torch.bool, "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
    "f8e4m3fnuz": torch.float8_e4m3fnuz, "f8e5m2fnuz": torch.float8_e5m2fnuz,
    "f8e8m0fnu": torch.float8_e8m0fnu, "c64": torch.complex64, "c128": torch.complex128, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64,
}
SHORT = {dtype: name for name, dtype in DTYPES.items()}
FLOATS = ("f32", "f64", "bf16", "f16")
lines = []
# Sums of several threads depend on their number.
torch.set_num_threads(1)
random = np.random.default_rng(0)


def normal(*size, dtype="f32", scale=1.0, shift=0.0):
    return torch.tensor(np.round(random.normal(size=size) * scale + shift, 2)).to(DTYPES[dtype])


def positive(*size, dtype="f32"):
    return (normal(*size, dtype=dtype).abs() + 0.05).to(DTYPES[dtype])


def uniform(*size, dtype="f32", low=-0.95, high=0.95):
    return torch.tensor(np.round(random.uniform(low, high, size=size), 3)).to(DTYPES[dtype])


def ints(*size, low=-9, high=10, dtype="i64"):
    return torch.tensor(random.integers(low, high, size=size)).to(DTYPES[dtype])


def bools(*size):
    return torch.tensor(random.integers(0, 2, size=size)).to(torch.bool)


def tensor(values, dtype="f32"):
    return torch.tensor(values, dtype=DTYPES[dtype])


def special(dtype="f32"):
    return tensor([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.75, 7.0, inf, -inf, nan, 1e-3], dtype)


def number(value):
    if isinstance(value, bool | int):
        return value
    if not math.isfinite(value):
        return str(value)
    return value


def element(value, dtype):
    value = value.item()
    if dtype == torch.bool:
        return int(value)
    if not dtype.is_floating_point or not math.isfinite(value) or dtype == torch.float64:
        return number(value)
    return float(np.format_float_scientific(np.float32(value)))


def describe(value):
    if isinstance(value, torch.Tensor):
        value = value.resolve_conj().resolve_neg()
        storage = torch.empty(0, dtype=value.dtype)
        extent = 0
        if value.numel() > 0:
            extent = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride()))
        storage = torch.as_strided(value, (extent,), (1,), value.storage_offset())
        if value.is_complex():
            storage = torch.view_as_real(storage).flatten()
        data = [element(x, storage.dtype) for x in storage]
        return {
            "dtype": SHORT[value.dtype], "size": list(value.shape), "stride": list(value.stride()),
            "data": data,
        }
    if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def function(name):
    namespace, op = name.split("::")
    base, _, overload = op.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")


def write(name, args, kwargs, results):
    line = {"op": str(function(name)._schema), "args": [describe(arg) for arg in args]}
    if kwargs:
        line["kwargs"] = {key: describe(value) for key, value in kwargs.items()}
    line["results"] = [describe(result) for result in results]
    lines.append(json.dumps(line, separators=(",", ":")))


def compute(name, args, kwargs):
    """What the op gives on a GPU, as far as that differs.

    With a number next to 16-bit tensors, the CPU rounds the number to 16 bits first; statistics of 16-bit
    layer norms are kept in 16 bits there. GPUs do both in f32.
    """
    op = function(name)
    narrow = [a.dtype for a in args if isinstance(a, torch.Tensor) and a.dtype in (torch.float16, torch.bfloat16)]
    results = op(*args, **kwargs)
    wide = [a.float() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
    if narrow and ".Scalar" in name and isinstance(results, torch.Tensor) and results.dtype == narrow[0]:
        return op(*wide, **kwargs).to(narrow[0])
    if narrow and name == "aten::native_layer_norm":
        return results[0], *op(*wide, **kwargs)[1:]
    return results


def call(name, *args, **kwargs):
    try:
        results = compute(name, args, kwargs)
    except Exception as e:
        raise SystemExit(f"{name}{[getattr(a, 'shape', a) for a in args]}: {e}")
    write(name, args, kwargs, list(flat(results)))


def call_where_devices_agree(name, *args):
    """Only the elements for which CPUs and GPUs give the same: PyTorch has a library for each."""
    wide = torch.broadcast_tensors(*(arg for arg in args if isinstance(arg, torch.Tensor)))
    on_cpu, on_gpu = function(name)(*args), on_cuda(name, args)
    parts = [torch.view_as_real(r) if r.is_complex() else r.unsqueeze(-1) for r in (on_cpu, on_gpu)]
    signs = [torch.signbit(part) for part in parts]
    near = torch.isclose(*parts, rtol=1e-5, atol=0, equal_nan=True) & ((parts[0] != 0) | (signs[0] == signs[1]))
    kept = near.all(-1)
    if kept.any():
        rest = iter(arg[kept] for arg in wide)
        call(name, *(next(rest) if isinstance(arg, torch.Tensor) else arg for arg in args))


def on_cuda(name, args):
    return function(name)(*(arg.cuda() if isinstance(arg, torch.Tensor) else arg for arg in args)).cpu()


def flat(results):
    if isinstance(results, tuple | list):
        for result in results:
            yield from flat(result)
    else:
        yield results


def names(text):
    return text.split()


def unary():
    wide = names(
        "neg abs relu sign sgn square floor ceil round trunc exp exp2 expm1 sigmoid tanh sin cos tan atan sinh cosh"
        " erf erfc reciprocal isnan isinf isfinite isposinf isneginf logical_not signbit silu gelu hardswish"
        " hardsigmoid mish selu log_sigmoid frac relu6 asinh deg2rad rad2deg sinc"
    )
    for name in wide:
        # PyTorch's vectorized f32 gelu gives NaN for infinity, on CPUs only.
        call(f"aten::{name}", special("f64" if name == "gelu" else "f32"))
        for dtype in FLOATS:
            call(f"aten::{name}", normal(3, 4, dtype=dtype, scale=2))
    for name in names("log log2 log10 log1p sqrt rsqrt lgamma digamma"):
        call(f"aten::{name}", tensor([0.0, 1.0, -1.5, inf, nan, 1e-3, 2.0]))
        for dtype in FLOATS:
            call(f"aten::{name}", positive(3, 4, dtype=dtype))
    for name in names("asin acos atanh erfinv"):
        for dtype in FLOATS:
            call(f"aten::{name}", uniform(3, 4, dtype=dtype))
    call("aten::acosh", tensor([1.0, 1.5, 7.0, 0.5, inf]))
    call("aten::atanh", tensor([1.0, -1.0, 0.0, 2.0]))
    call("aten::lgamma", tensor([-0.5, -2.5, -3.0, 0.0], "f64"))
    call("aten::digamma", tensor([-0.5, -2.5, -3.0, 0.0, -0.0], "f64"))
    for name in names("i0 special_erfcx special_log_ndtr"):
        call(f"aten::{name}", normal(10, dtype="f64", scale=3))
    call("aten::special_ndtri", uniform(10, dtype="f64", low=0.01, high=0.99))
    for name in names("exp sigmoid sqrt rsqrt reciprocal tanh log"):
        call(f"aten::{name}", ints(5, low=0, high=9))
        call(f"aten::{name}", ints(5, low=1, high=9, dtype="i32"))
        call(f"aten::{name}", bools(4))
    for name in names("neg abs sign sgn square floor ceil round trunc relu isnan isfinite logical_not bitwise_not signbit"):
        call(f"aten::{name}", ints(6, low=-5, high=5))
        call(f"aten::{name}", ints(6, low=-5, high=5, dtype="i8"))
        call(f"aten::{name}", ints(6, low=0, high=250, dtype="u8"))
    call("aten::bitwise_not", bools(6))
    call("aten::logical_not", bools(6))
    call("aten::gelu", normal(3, 5), approximate="tanh")
    call("aten::gelu", normal(3, 5, dtype="bf16"), approximate="tanh")
    call("aten::exp", normal(4, 6).t())
    call("aten::exp", normal(4, 6)[:, 1:5:2])
    call("aten::exp", normal(4, 1).expand(4, 3))
    call("aten::round.decimals", tensor([1.2345, -0.005, 123.456, 2.5]), decimals=2)
    call("aten::round.decimals", tensor([1234.5, 155.0, -25.0]), decimals=-1)
    call("aten::nan_to_num", special())
    call("aten::nan_to_num", special("f16"))
    call("aten::nan_to_num", special("bf16"), 1.5, posinf=3.0)


def pairs(dtype):
    return normal(3, 4, dtype=dtype, scale=3), normal(3, 4, dtype=dtype, scale=3)


def binary():
    specials = [a.flatten() for a in torch.meshgrid(special(), special(), indexing="ij")]
    symmetric = names("add.Tensor sub.Tensor mul.Tensor div.Tensor remainder.Tensor fmod.Tensor floor_divide maximum minimum")
    compare = names("eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and logical_or logical_xor")
    for name in symmetric + compare:
        call(f"aten::{name}", *specials)
        for dtype in FLOATS:
            call(f"aten::{name}", *pairs(dtype))
        call(f"aten::{name}", ints(3, 4), ints(4, low=1))
        call(f"aten::{name}", ints(3, 4, dtype="i32"), ints(3, 1, low=-5, high=0))
        call(f"aten::{name}", ints(4, low=0, high=200, dtype="u8"), ints(4, low=1, high=9, dtype="i8"))
        call(f"aten::{name}", normal(2, 3), ints(2, 3, low=1))
        call(f"aten::{name}", normal(2, 3, dtype="f64"), normal(3))
        call(f"aten::{name}", normal(3, dtype="bf16"), normal(2, 3, dtype="f16"))
        call(f"aten::{name}", ints(2, 3, low=1), normal(1).reshape(()))
        call(f"aten::{name}", normal(2, 3), tensor(1.5, "f64"))
        call(f"aten::{name}", normal(4, 6).t(), normal(6, 1))
    for name in compare + ["add.Tensor", "mul.Tensor", "maximum", "bitwise_and.Tensor"]:
        call(f"aten::{name}", bools(5), bools(5))
    for name in names("add.Scalar sub.Scalar mul.Scalar div.Scalar remainder.Scalar fmod.Scalar floor_divide.Scalar eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar pow.Tensor_Scalar"):
        for dtype in FLOATS:
            call(f"aten::{name}", normal(5, dtype=dtype), 1.7)
        call(f"aten::{name}", ints(5), 3)
        call(f"aten::{name}", ints(5), 2.5)
        call(f"aten::{name}", ints(5, dtype="i32"), 2)
    for name in names("eq.Scalar lt.Scalar ge.Scalar"):
        call(f"aten::{name}", tensor([0.1, 0.2, 0.3], "bf16"), 0.1)
        call(f"aten::{name}", tensor([0.1, 0.2, 0.3]), 0.1)
    call("aten::add.Tensor", normal(4), normal(4), alpha=2.5)
    call("aten::add.Tensor", ints(4), ints(4), alpha=3)
    call("aten::add.Tensor", normal(4), 2)
    call("aten::mul.Tensor", normal(4, dtype="bf16"), 0.3)
    call("aten::add.Scalar", normal(4), 2, 3)
    call("aten::sub.Tensor", normal(4), normal(4), alpha=2)
    call("aten::rsub.Scalar", normal(4), 1)
    call("aten::rsub.Scalar", normal(4), 1, 2)
    call("aten::rsub.Tensor", ints(4), ints(4), alpha=3)
    call("aten::remainder.Scalar_Tensor", 7, ints(5, low=1))
    for mode in (None, "floor", "trunc"):
        for dtype in FLOATS:
            call("aten::div.Tensor_mode", *pairs(dtype), rounding_mode=mode)
        call("aten::div.Tensor_mode", ints(6), ints(6, low=1, high=5), rounding_mode=mode)
        call("aten::div.Tensor_mode", ints(6), ints(6, low=-5, high=0), rounding_mode=mode)
        call("aten::div.Scalar_mode", normal(6, scale=9), 0.7, rounding_mode=mode)
    call("aten::floor_divide", tensor([1.0, 0.6, -0.7, 5.1]), tensor([0.1, 0.2, 0.1, -0.3]))
    for exponent in (2, 3, 0.5, -1, -2.5, 0, 1.0):
        call("aten::pow.Tensor_Scalar", positive(4), exponent)
    call("aten::pow.Tensor_Scalar", tensor([1.0, -1.0, 0.0, 2.0, nan]), inf)
    call("aten::pow.Tensor_Scalar", tensor([1.0, -1.0, 0.0, 2.0, nan]), nan)
    call("aten::pow.Tensor_Scalar", special(), 2)
    call("aten::pow.Tensor_Tensor", ints(6, low=-4, high=5), ints(6, low=0, high=5))
    call("aten::pow.Tensor_Tensor", positive(6, dtype="bf16"), normal(6, dtype="bf16"))
    call("aten::pow.Scalar", 2, ints(6, low=0, high=9))
    call("aten::pow.Scalar", 2.5, normal(6))
    call("aten::float_power.Tensor_Scalar", ints(4, low=1), 2)
    call("aten::float_power.Tensor_Tensor", positive(4), normal(4))
    for name in names("bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__"):
        call(f"aten::{name}.Tensor", ints(6), ints(6))
        call(f"aten::{name}.Scalar", ints(6, dtype="i32"), 6)
        call(f"aten::{name}.Tensor", bools(6), bools(6))
    for name in names("bitwise_left_shift bitwise_right_shift"):
        call(f"aten::{name}.Tensor", ints(6), ints(6, low=0, high=5))
        call(f"aten::{name}.Tensor_Scalar", ints(6, dtype="i32"), 3)
        call(f"aten::{name}.Tensor", ints(3, dtype="i8"), tensor([7, 8, 20], "i8"))
        call(f"aten::{name}.Scalar_Tensor", 5, ints(3, low=0, high=5))
    for name in names("fmax fmin"):
        call(f"aten::{name}", *specials)
    for name in names("atan2 hypot copysign.Tensor xlogy.Tensor logaddexp logaddexp2 nextafter"):
        call(f"aten::{name}", *specials)
        call(f"aten::{name}", *pairs("f32"))
    call("aten::nextafter", normal(5, dtype="bf16"), normal(5, dtype="bf16"))
    call("aten::atan2", ints(4), ints(4))
    call("aten::copysign.Scalar", normal(4), -1.0)
    call("aten::gcd", ints(8), ints(8))
    call("aten::lcm", ints(8), ints(8))
    call("aten::heaviside", tensor([-1.0, 0.0, 2.0, nan]), tensor([0.5, 0.5, 0.5, 0.5]))
    call("aten::max.other", normal(4), normal(4))
    call("aten::min.other", ints(4), ints(4))


def choices():
    for dtype in FLOATS:
        call("aten::where.self", bools(3, 4), normal(3, 4, dtype=dtype), normal(4, dtype=dtype))
    call("aten::where.self", bools(3, 1), ints(4), normal(3, 4))
    call("aten::where.self", bools(3), ints(3), ints(3, dtype="i32"))
    call("aten::where.ScalarSelf", bools(3), 1.5, normal(3))
    call("aten::where.ScalarOther", bools(3), normal(3, dtype="bf16"), -inf)
    call("aten::where.Scalar", bools(3), 1.5, 2.5)
    call("aten::clamp", special(), -1, 1.5)
    call("aten::clamp", special(), None, 0.3)
    call("aten::clamp", normal(5, dtype="bf16"), 0.1)
    call("aten::clamp", ints(8), -2, 3)
    call("aten::clamp", ints(8), -2.5, 3)
    call("aten::clamp", normal(5), 1, -1)
    call("aten::clamp.Tensor", normal(3, 4), normal(4), normal(3, 1))
    call("aten::clamp.Tensor", special(), None, special())
    call("aten::clamp_min", special(), 0.5)
    call("aten::clamp_min", ints(5), 1)
    call("aten::clamp_max", special(), 0.5)
    call("aten::clamp_min.Tensor", normal(4), normal(4))
    call("aten::clamp_max.Tensor", normal(4), normal(4))
    call("aten::masked_fill.Scalar", normal(3, 4), bools(4), -inf)
    call("aten::masked_fill.Scalar", ints(3, 4), bools(3, 1), 7)
    call("aten::masked_fill.Tensor", normal(3, 4, dtype="bf16"), bools(3, 4), tensor(2.5, "bf16"))
    call("aten::fill.Scalar", normal(3, 2), 2.25)
    call("aten::fill.Tensor", ints(3, 2), tensor(3, "i64"))
    call("aten::hardtanh", special())
    call("aten::hardtanh", normal(5), -0.3, 0.4)
    call("aten::threshold", special(), 0.5, 9)
    call("aten::threshold", ints(6), 2, -7)


def activations():
    for dtype in FLOATS:
        x, g = normal(3, 4, dtype=dtype, scale=2), normal(3, 4, dtype=dtype)
        call("aten::silu", x)
        call("aten::gelu", x)
        call("aten::elu", x, 0.7, 1.3, 0.9)
        call("aten::celu", x, 1.7)
        call("aten::leaky_relu", x, 0.2)
        call("aten::softplus", x, 1.5, 2.0)
        call("aten::gelu_backward", g, x)
        call("aten::gelu_backward", g, x, approximate="tanh")
        call("aten::silu_backward", g, x)
        call("aten::mish_backward", g, x)
        call("aten::sigmoid_backward", g, torch.sigmoid(x))
        call("aten::tanh_backward", g, torch.tanh(x))
        call("aten::threshold_backward", g, x, 0)
        call("aten::hardtanh_backward", g, x, -1, 1.5)
        call("aten::hardsigmoid_backward", g, x)
        call("aten::hardswish_backward", g, x)
        call("aten::leaky_relu_backward", g, x, 0.2, False)
        call("aten::softplus_backward", g, x, 1.5, 2.0)
        call("aten::elu_backward", g, 0.7, 1.3, 0.9, False, x)
        call("aten::elu_backward", g, 0.7, 1.3, 0.9, True, F.elu(x, 0.7))
        call("aten::addcmul", x, g, x, value=0.5)
        call("aten::addcdiv", x, g, x + 9, value=0.5)
        call("aten::lerp.Scalar", x, g, 0.3)
        call("aten::lerp.Scalar", x, g, 0.8)
        call("aten::lerp.Tensor", x, g, uniform(3, 4, dtype=dtype))
    call("aten::logit", uniform(5, low=0.02, high=0.98))
    call("aten::logit", uniform(5, low=-0.2, high=1.2), 0.1)
    call("aten::logit_backward", normal(5), uniform(5, low=-0.2, high=1.2), 0.1)
    call("aten::logit_backward", normal(5), uniform(5, low=-0.2, high=1.2))
    call("aten::addcmul", ints(4), ints(4), ints(4), value=2)
    x = normal(6)
    call("aten::log_sigmoid_backward", normal(6), x, torch.exp(-x.abs()))
    call("aten::native_dropout_backward", normal(6), bools(6), 2.0)


def reductions():
    for dtype in FLOATS:
        x = normal(3, 4, 5, dtype=dtype)
        for name in names("sum mean amax amin var_mean.correction"):
            base = {"sum": "sum.dim_IntList", "mean": "mean.dim"}.get(name, name)
            call(f"aten::{base}", x, [1], keepdim=True) if "var" in base else call(f"aten::{base}", x, [1], True)
            call(f"aten::{base}", x, [-1, 0])
            call(f"aten::{base}", x.permute(2, 0, 1), [1])
        call("aten::sum", x)
        call("aten::mean", x)
        call("aten::max", x)
        call("aten::min", x)
        call("aten::prod", x)
        call("aten::prod.dim_int", x, 1, True)
        call("aten::max.dim", x, 1)
        call("aten::min.dim", x, -1, True)
        call("aten::argmax", x)
        call("aten::argmax", x, 1, True)
        call("aten::argmin", x, 0)
        call("aten::var.correction", x, [0, 2], correction=0)
        call("aten::var", x, False)
        call("aten::std.dim", x, [1], True, True)
        call("aten::std_mean.correction", x, [2], correction=2)
        call("aten::logsumexp", x, [1])
        call("aten::cumsum", x, 1)
        call("aten::cumprod", x, -1)
        call("aten::logcumsumexp", x, 0)
        call("aten::linalg_vector_norm", x, 2, [1], True)
        call("aten::linalg_vector_norm", x, 3.5)
        call("aten::sort", x, 1)
        call("aten::topk", x, 2, -1)
    for x in (ints(3, 4), ints(3, 4, dtype="i32"), bools(3, 4), ints(3, 4, low=0, high=200, dtype="u8")):
        for name in names("sum prod max min amax any all argmax argmin count_nonzero"):
            if name.startswith("arg") and x.dtype == torch.bool:
                continue
            call(f"aten::{name}", x)
        for name in names("sum.dim_IntList any.dims all.dims amin"):
            call(f"aten::{name}", x, [1])
        for name in names("any.dim all.dim max.dim min.dim prod.dim_int cumsum"):
            call(f"aten::{name}", x, 0)
        call("aten::count_nonzero.dim_IntList", x, [0])
    call("aten::sum", bools(7), dtype=torch.float32)
    call("aten::sum.dim_IntList", normal(3, 4), [1], dtype=torch.float64)
    call("aten::mean", ints(5), dtype=torch.float32)
    call("aten::sum.dim_IntList", normal(3, 4), None, True)
    call("aten::sum.dim_IntList", normal(3, 0), [1])
    call("aten::mean.dim", normal(3, 0), [1])
    call("aten::any.dims", bools(3, 4), [])
    call("aten::all.dims", bools(3, 4))
    call("aten::all.dim", bools(3, 0), 1)
    call("aten::any", special())
    call("aten::nansum", special()[[0, 2, 4, 13]], [0])
    x = tensor([[1.0, nan, 3.0], [nan, nan, 2.0], [-inf, 5.0, 5.0]])
    for name in names("max.dim min.dim median.dim cummax cummin sort cumsum"):
        call(f"aten::{name}", x, 1)
    for name in names("amax amin logsumexp"):
        call(f"aten::{name}", x, [1])
    for name in names("argmax argmin"):
        call(f"aten::{name}", x, 1)
    call("aten::max", x)
    call("aten::sum", tensor(2.5))
    call("aten::max.dim", tensor(2.5), 0)
    call("aten::cumsum", tensor(2.5), 0)
    call("aten::aminmax", normal(3, 4), dim=1, keepdim=True)
    call("aten::aminmax", normal(3, 4))
    for p in (0, 1, inf, -inf, 0.5):
        call("aten::linalg_vector_norm", normal(3, 4), p, [0])
    call("aten::norm.Scalar", normal(3, 4))
    call("aten::norm.ScalarOpt_dim", normal(3, 4), 1, [1])
    call("aten::logsumexp", tensor([[-inf, -inf], [inf, 1.0], [1.0, -inf]]), [1])
    call("aten::logcumsumexp", tensor([-inf, 1.0, 2.0]), 0)
    call("aten::var_mean.correction", normal(4, 6), [1], correction=0, keepdim=True)
    call("aten::var", normal(1))
    call("aten::cummax", ints(3, 5, low=0, high=3), 1)
    call("aten::cummin", normal(5, 3).t(), 1)
    call("aten::sort.stable", ints(4, 6, low=0, high=3), stable=True, dim=1, descending=True)
    call("aten::argsort.stable", ints(4, 6, low=0, high=3), stable=True, dim=0)
    call("aten::topk", normal(6), 4, 0, False)
    call("aten::median.dim", normal(3, 4), 1, True)
    call("aten::median.dim", ints(3, 5), 0)
    call("aten::bucketize.Tensor", normal(3, 4), tensor([-1.0, 0.0, 0.5, 1.0]))
    call("aten::bucketize.Tensor", ints(3, 4), tensor([-4, 0, 0, 3], "i64"), right=True, out_int32=True)
    call("aten::searchsorted.Tensor", normal(2, 5).sort(1).values, normal(2, 3))
    call("aten::searchsorted.Tensor", normal(5).sort().values, normal(2, 3), side="right")
    call("aten::histc", normal(20), 5, -2, 2)
    call("aten::histc", normal(20), 4)


def norms():
    for dtype in FLOATS:
        x = normal(2, 3, 8, dtype=dtype)
        w, b = normal(8, dtype=dtype, shift=1), normal(8, dtype=dtype)
        g = normal(2, 3, 8, dtype=dtype)
        for dim in (1, -1):
            call("aten::_softmax", x, dim, False)
            call("aten::_log_softmax", x, dim, False)
            call("aten::_softmax_backward_data", g, torch.softmax(x, dim), dim, DTYPES[dtype])
            call("aten::_log_softmax_backward_data", g, torch.log_softmax(x, dim), dim, DTYPES[dtype])
        call("aten::softmax.int", x, 2, torch.float32)
        call("aten::log_softmax.int", x, 0)
        call("aten::native_layer_norm", x, [8], w, b, 1e-5)
        call("aten::native_layer_norm", x, [3, 8], None, None, 1e-3)
        call("aten::layer_norm", x.transpose(0, 1), [8], w)
        call("aten::rms_norm", x, [8], w, 1e-6)
        call("aten::rms_norm", x, [8])
        call("aten::_fused_rms_norm", x, [8], w, 1e-6)
        _, mean, rstd = torch.ops.aten.native_layer_norm(x, [8], w, b, 1e-5)
        for mask in ([True, True, True], [True, False, True]):
            call("aten::native_layer_norm_backward", g, x, [8], mean, rstd, w, b, mask)
        y = normal(2, 6, 4, dtype=dtype)
        gw, gb = normal(6, dtype=dtype, shift=1), normal(6, dtype=dtype)
        call("aten::native_group_norm", y, gw, gb, 2, 6, 4, 3, 1e-5)
        call("aten::group_norm", y, 2, gw, gb)
        _, mean, rstd = torch.ops.aten.native_group_norm(y, gw, gb, 2, 6, 4, 3, 1e-5)
        if dtype in ("f32", "f64"):
            call("aten::native_group_norm_backward", normal(2, 6, 4, dtype=dtype), y, mean, rstd, gw, 2, 6, 4, 3, [True, True, True])
        a, t = normal(4, 5, dtype=dtype), normal(4, 5, dtype=dtype)
        for reduction in (0, 1, 2):
            call("aten::mse_loss", a, t, reduction)
            call("aten::mse_loss_backward", normal(4, 5, dtype=dtype) if reduction == 0 else tensor(0.7, dtype), a, t, reduction)
    call("aten::_safe_softmax", tensor([[-inf, -inf], [1.0, 2.0]]), 1)
    call("aten::_softmax", tensor([[-inf, -inf], [inf, 2.0], [nan, 1.0], [-inf, 0.0]]), 1, False)
    call("aten::_softmax", tensor(3.0), 0, False)
    for dtype in ("f32", "f64"):
        logp = torch.log_softmax(normal(6, 4, dtype=dtype), 1)
        target = tensor([0, 3, 1, -100, 2, 2], "i64")
        weight = positive(4, dtype=dtype)
        for reduction in (0, 1, 2):
            for w in (None, weight):
                call("aten::nll_loss_forward", logp, target, w, reduction, -100)
                total = torch.ops.aten.nll_loss_forward(logp, target, w, reduction, -100)[1]
                g = normal(6, dtype=dtype) if reduction == 0 else tensor(0.7, dtype)
                call("aten::nll_loss_backward", g, logp, target, w, reduction, -100, total)
                call("aten::cross_entropy_loss", normal(6, 4, dtype=dtype), target, w, reduction)
    call("aten::cross_entropy_loss", normal(2, 4, 3), ints(2, 3, low=0, high=4))
    for dtype in ("f32", "bf16"):
        x = normal(3, 8, dtype=dtype).double()
        w = normal(8, dtype=dtype, shift=1).double()
        g = normal(3, 8, dtype=dtype).double()
        rstd = torch.rsqrt((x * x).mean(-1, True) + 1e-6)
        x.requires_grad_(), w.requires_grad_()
        (x * torch.rsqrt((x * x).mean(-1, True) + 1e-6) * w).backward(g)
        kind = DTYPES[dtype]
        args = (g.to(kind), x.detach().to(kind), [8], rstd.float(), w.detach().to(kind), [True, True])
        write("aten::_fused_rms_norm_backward", args, {}, [x.grad.to(kind), w.grad.to(kind)])
    x = normal(3, 5)
    top = x.amax(-1, True)
    write("prims::prepare_softmax_online", (x, -1), {}, [top, (x - top).exp().sum(-1, True)])


def indexing():
    for dtype in ("f32", "bf16", "i64", "b8"):
        x = bools(4, 5, 3) if dtype == "b8" else ints(4, 5, 3).to(DTYPES[dtype])
        row, column = ints(2, 3, low=-4, high=4), ints(3, low=0, high=5)
        for indices in ([row], [None, column], [row, column], [row, None, ints(2, 1, low=0, high=3)], [None, None, tensor(1, "i64")]):
            call("aten::index.Tensor", x, indices)
            values = x.new_ones(()) if dtype == "b8" else ints(1, low=10, high=20).to(DTYPES[dtype])
            if dtype != "b8":
                call("aten::index_put", x, indices, values, True)
        call("aten::gather", x, 1, ints(4, 2, 3, low=0, high=5))
        call("aten::gather", x, 0, ints(2, 2, 2, low=0, high=4))
        call("aten::index_select", x, 1, ints(6, low=0, high=5))
        call("aten::scatter.src", x, 1, torch.stack([torch.tensor([[0, 1, 2], [4, 3, 1]])] * 2), x[:2, :2])
        call("aten::take", x, ints(2, 3, low=0, high=60))
        call("aten::slice_scatter", x, x[:, 1:5:2].clone() if dtype == "b8" else x[:, 1:5:2] + 1, 1, 1, 5, 2)
        call("aten::select_scatter", x, x[:, 2] if dtype == "b8" else x[:, 2] + 1, 1, -3)
        call("aten::index_copy", x, 2, tensor([2, 0], "i64"), x[:, :, 1:].clone())
    x = normal(4, 5)
    call("aten::index_put", x, [tensor([3, 0], "i64"), tensor([1, 4], "i64")], normal(2))
    call("aten::index_put", x, [tensor([3, 0], "i64")], normal(5))
    call("aten::index_put", x, [None, tensor([3, 0, 3], "i64")], normal(4, 3), True)
    call("aten::_unsafe_index.Tensor", x, [None, tensor([3, 0, 3], "i64")])
    call("aten::_unsafe_index_put", x, [tensor([3, 0, 3], "i64")], normal(3, 5), True)
    call("aten::embedding", x, ints(2, 3, low=0, high=4))
    call("aten::embedding", normal(5, 4).t(), ints(3, low=0, high=4, dtype="i32"))
    for dtype in ("f32", "bf16", "f64"):
        call("aten::embedding_dense_backward", normal(2, 3, 4, dtype=dtype), ints(2, 3, low=0, high=5), 5, 1, False)
    call("aten::embedding_dense_backward", normal(6, 4), tensor([0, 1, 1, 2, 1, 0], "i64"), 4, -1, True)
    call("aten::one_hot", ints(2, 3, low=0, high=4), 4)
    call("aten::scatter.value", x, 1, ints(4, 2, low=0, high=5), 2.5)
    for reduce in ("add", "multiply"):
        call("aten::scatter.reduce", x, 0, ints(3, 5, low=0, high=4), normal(3, 5), reduce=reduce)
        call("aten::scatter.value_reduce", x, 0, ints(3, 5, low=0, high=4), 1.5, reduce=reduce)
    call("aten::scatter_add", x, 0, ints(6, 5, low=0, high=4), normal(6, 5))
    call("aten::scatter_add", ints(4, 5), 1, ints(2, 5, low=0, high=5), ints(2, 5))
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            call("aten::scatter_reduce.two", x, 0, ints(6, 5, low=0, high=4), normal(6, 5), reduce, include_self=include)
            call("aten::scatter_reduce.two", ints(4), 0, ints(6, low=0, high=4), ints(6), reduce, include_self=include)
    call("aten::index_add", x, 1, tensor([2, 0, 2], "i64"), normal(4, 3), alpha=0.5)
    call("aten::index_add", ints(4, 5), 0, tensor([2, 0], "i64"), ints(2, 5))
    call("aten::index_fill.int_Scalar", x, 1, tensor([2, 0], "i64"), 7)
    call("aten::index_fill.int_Tensor", x, 0, tensor([1], "i64"), tensor(0.5))
    mask = bools(4, 5)
    call("aten::masked_scatter", x, mask, normal(20))
    call("aten::slice_backward", normal(2, 3), [5, 3], 0, 1, 5, 2)
    call("aten::select_backward", normal(3), [4, 3], 0, -1)
    call("aten::diagonal_scatter", normal(4, 5), normal(3), -1)
    call("aten::as_strided_scatter", normal(4, 5), normal(2, 2), [2, 2], [5, 2], 3)


def copies():
    for source in FLOATS + ("i64", "i32", "u8", "i8", "b8"):
        for target in FLOATS + ("i64", "i32", "b8"):
            x = tensor([0, 1, 2, 100, 3, 7], source) if source in ("u8", "b8") else (
                tensor([0.0, 1.49, -2.7, 100.4, 3.3333, -7.75], "f64").to(DTYPES[source]))
            call("prims::convert_element_type", x, DTYPES[target])
    edges = tensor([1 + 2**-8, 1 + 3 * 2**-9, 1 - 2**-9, 3.4e38, 1e-40, inf, nan, 2**-24, 65519.0, 65520.0, 6e-8])
    call("prims::convert_element_type", edges, torch.bfloat16)
    call("prims::convert_element_type", edges, torch.float16)
    call("prims::convert_element_type", edges.double() * 1.0000001, torch.bfloat16)
    call("prims::convert_element_type", tensor([2**24 + 1, 2**53 + 1, -(2**31) - 7, 2**62 + 2**38 + 1], "i64"), torch.float32)
    call("prims::convert_element_type", tensor([nan, inf, 0.5]), torch.bool)
    call("prims::convert_element_type", tensor([300, -1, 2**31 + 5], "i64"), torch.int32)
    call("prims::convert_element_type", tensor([300, -1, 5], "i64"), torch.uint8)
    call("aten::_to_copy", normal(3, 4).t(), dtype=torch.bfloat16)
    call("aten::clone", normal(3, 4).t())
    call("aten::clone", normal(3, 4).t(), memory_format=torch.contiguous_format)
    call("aten::copy", normal(3, 4), normal(4, dtype="f64"))
    call("aten::cat", [normal(2, 3), normal(2, 1), normal(0), normal(2, 2).t()], 1)
    call("aten::cat", [normal(2, 3), ints(1, 3)])
    call("aten::cat", [normal(2, 3, dtype="bf16"), normal(1, 3, dtype="f16")], -2)
    call("aten::stack", [normal(2, 3), normal(3, 2).t()], 1)
    call("aten::stack", [ints(2), ints(2)], -1)
    call("aten::repeat", normal(2, 3), [2, 1, 3])
    call("aten::repeat", normal(3), [0, 2])
    call("aten::tile", normal(2, 3), [2])
    call("aten::repeat_interleave.self_int", normal(2, 3), 2, 1)
    call("aten::repeat_interleave.self_int", normal(2, 3).t(), 3)
    call("aten::repeat_interleave.self_Tensor", normal(3, 2), tensor([2, 0, 1], "i64"), 0, output_size=3)
    call("aten::flip", normal(2, 3, 4), [0, -1])
    call("aten::flip", normal(2, 3), [])
    call("aten::roll", normal(2, 3, 4), [1, -2], [0, 2])
    call("aten::roll", normal(2, 3), [4])
    call("aten::roll", normal(2, 3), [1, 1], [1, 1])
    call("aten::constant_pad_nd", normal(2, 3), [1, 2, 0, 1], 2.5)
    call("aten::constant_pad_nd", ints(3, 4), [-1, 1, 1, -2])
    call("aten::constant_pad_nd", bools(2, 3), [0, 5], True)
    call("aten::pad", normal(2, 3), [1, 1])
    for diagonal in (-1, 0, 2):
        call("aten::tril", normal(3, 4), diagonal)
        call("aten::triu", ints(2, 4, 3), diagonal)
    call("aten::diag_embed", normal(2, 3), 1)
    call("aten::diag_embed", normal(3), -2, 0, 1)
    call("aten::reshape", normal(2, 3, 4).permute(2, 0, 1), [4, 6])
    call("aten::full", [2, 3], 1.5)
    call("aten::full", [2], 7)
    call("aten::full", [], True)
    call("aten::full_like", normal(2, 3), 3)
    call("aten::new_full", ints(2), [3], 2**53 + 1)
    call("aten::scalar_tensor", 2.5)
    call("aten::scalar_tensor", -inf, dtype=torch.bfloat16)
    call("aten::zeros", [2, 2])
    call("aten::ones_like", bools(2))
    call("aten::eye", 3)
    call("aten::eye.m", 2, 4, dtype=torch.int64)
    call("aten::arange", 5)
    call("aten::arange.start", 1.5, 6)
    call("aten::arange.start_step", 1, 10, 3, dtype=torch.int32)
    call("aten::arange.start_step", 5, -3, -2)
    call("aten::arange.start_step", 0, 1, 0.1)
    call("aten::linspace", -1, 2.5, 7)
    call("aten::linspace", 3, 1, 1)
    call("aten::linspace", 0, 1, 11, dtype=torch.float64)
    call("prims::iota", 5, start=3, step=-2, dtype=torch.int64, device=torch.device("cpu"), requires_grad=False)
    call("aten::tril_indices", 3, 4, -1)
    call("aten::triu_indices", 3, 4, 1)


def products():
    for dtype in FLOATS:
        a, b = normal(3, 4, dtype=dtype), normal(4, 5, dtype=dtype)
        call("aten::mm", a, b)
        call("aten::mm", normal(4, 3, dtype=dtype).t(), normal(5, 4, dtype=dtype).t())
        call("aten::mm", normal(3, 8, dtype=dtype)[:, ::2], b)
        call("aten::mm", a[:, :0], b[:0])
        call("aten::bmm", normal(2, 3, 4, dtype=dtype), normal(2, 5, 4, dtype=dtype).transpose(1, 2))
        call("aten::addmm", normal(5, dtype=dtype), a, b)
        call("aten::addmm", normal(3, 5, dtype=dtype), a, b, beta=0.5, alpha=2)
        call("aten::addmm", tensor([nan] * 5, dtype), a, b, beta=0)
        call("aten::baddbmm", normal(2, 3, 5, dtype=dtype), normal(2, 3, 4, dtype=dtype), normal(2, 4, 5, dtype=dtype), beta=0.3, alpha=1.7)
        call("aten::addbmm", normal(3, 5, dtype=dtype), normal(2, 3, 4, dtype=dtype), normal(2, 4, 5, dtype=dtype))
        call("aten::mv", a, normal(4, dtype=dtype))
        call("aten::addmv", normal(3, dtype=dtype), a, normal(4, dtype=dtype), beta=2, alpha=0.5)
        call("aten::dot", normal(6, dtype=dtype), normal(6, dtype=dtype))
        call("aten::outer", normal(3, dtype=dtype), normal(4, dtype=dtype))
        call("aten::linear", normal(2, 3, 4, dtype=dtype), normal(5, 4, dtype=dtype), normal(5, dtype=dtype))
        call("aten::linear", normal(2, 4, dtype=dtype), normal(5, 4, dtype=dtype))
    for a, b in (((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,))):
        call("aten::matmul", normal(*a), normal(*b))
    call("aten::mm", ints(3, 4), ints(4, 2))
    call("aten::addmm", ints(2), ints(3, 4), ints(4, 2), beta=2, alpha=3)
    call("aten::bmm", ints(2, 3, 4, dtype="i32"), ints(2, 4, 2, dtype="i32"))
    call("aten::_int_mm", ints(17, 8, dtype="i8"), ints(8, 8, dtype="i8"))
    for dtype in ("bf16", "f32"):
        a, b = normal(2, 8, dtype="bf16"), normal(8, 8, dtype="bf16")
        exact = (a.double() @ b.double()).to(DTYPES[dtype])
        write("aten::mm.dtype", (a, b, DTYPES[dtype]), {}, [exact])


def attention(name, tensors, extra, kwargs, results):
    write(name, (*tensors, *extra), kwargs, results)


def attentions():
    for dtype, heads, causal, masked in (
        ("f32", 2, False, False), ("f32", 2, True, False), ("f32", 2, False, True),
        ("bf16", 2, True, True), ("bf16", 1, False, False), ("f16", 1, True, False),
    ):
        kind = DTYPES[dtype]
        rows, columns = 3, 5
        q = normal(2, 2, rows, 4, dtype=dtype).double().requires_grad_()
        k = normal(2, heads, columns, 4, dtype=dtype).double().requires_grad_()
        v = normal(2, heads, columns, 4, dtype=dtype).double().requires_grad_()
        bias = normal(2, 1, rows, columns, dtype=dtype).double().requires_grad_() if masked else None
        scale = 0.3
        wide_k, wide_v = (x.repeat_interleave(2 // heads, 1) for x in (k, v))
        scores = q @ wide_k.transpose(-1, -2) * scale
        if masked:
            scores = scores + bias
        if causal:
            keep = torch.ones(rows, columns).tril().bool()
            scores = scores.masked_fill(~keep, -inf)
        lse = scores.logsumexp(-1)
        out = scores.softmax(-1) @ wide_v
        grad = normal(2, 2, rows, 4, dtype=dtype)
        out.backward(grad.double())
        kinds = [x.detach().to(kind) for x in (q, k, v)]
        o = out.detach().to(kind)
        statistics = lse.detach().to(torch.float32)
        gradients = [x.grad.to(kind) for x in (q, k, v)]
        zero = tensor(0, "i64")
        b = bias.detach().to(kind) if masked else None
        db = bias.grad.to(kind) if masked else None
        if heads == 2:
            padded = torch.full((2, 2, 32), inf, dtype=statistics.dtype)
            padded[:, :, :rows] = statistics
            write("aten::_scaled_dot_product_efficient_attention", (*kinds, b, True, 0.0, causal), {"scale": scale},
                  [o, padded, zero, zero])
            write("aten::_scaled_dot_product_efficient_attention_backward",
                  (grad, *kinds, b, o, padded, zero, zero, 0.0, [True, True, True, masked], causal), {"scale": scale},
                  [*gradients, db])
        write("aten::_scaled_dot_product_cudnn_attention", (*kinds, b, True, 0.0, causal, False), {"scale": scale},
              [o, statistics.unsqueeze(-1), None, None, None, None, zero, zero, None])
        write("aten::_scaled_dot_product_cudnn_attention_backward",
              (grad, *kinds, o, statistics.unsqueeze(-1), zero, zero, b, None, None, rows, columns, 0.0, causal),
              {"scale": scale}, gradients)
        if not masked:
            write("aten::_scaled_dot_product_flash_attention", (*kinds, 0.0, causal, False), {"scale": scale},
                  [o, statistics, None, None, None, None, None, None, None])
            write("aten::_scaled_dot_product_flash_attention_backward",
                  (grad, *kinds, o, statistics, None, None, rows, columns, 0.0, causal, zero, zero), {"scale": scale},
                  gradients)
    for dtype in ("f32", "bf16"):
        q, k, v = (normal(1, 2, 4, 8, dtype=dtype) for _ in range(3))
        call("aten::_scaled_dot_product_flash_attention_for_cpu", q, k, v, 0.0, True)
        call("aten::scaled_dot_product_attention", q, k, v, bools(4, 4) | torch.eye(4).bool())
        call("aten::scaled_dot_product_attention", q, k[:, :1], v[:, :1], is_causal=True, enable_gqa=True)
        call("aten::scaled_dot_product_attention", q[0], k[0], v[0], normal(4, 4, dtype=dtype), scale=0.2)
    q, k, v, g = (normal(1, 2, 4, 8) for _ in range(4))
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, False)
    call("aten::_scaled_dot_product_flash_attention_for_cpu_backward", g, q, k, v, out, lse, 0.0, False)


def narrow_floats():
    for name in ("f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0fnu"):
        every = torch.arange(256, dtype=torch.int64).to(torch.uint8).view(DTYPES[name])
        call("prims::convert_element_type", every, torch.float32)
        # Each number, its neighbours' middle, and a little to either side of that.
        wide = every.float()
        known = wide[wide.isfinite()].sort().values.double()
        middles = (known[1:] + known[:-1]) / 2
        edges = torch.cat([known, middles, middles * (1 + 2**-20), middles * (1 - 2**-20), known[-1:] * 1.2]).float()
        call("prims::convert_element_type", torch.cat([edges, special()]), DTYPES[name])
        call("prims::convert_element_type", normal(12, dtype="bf16", scale=3), DTYPES[name])
        call("aten::_to_copy", normal(3, 4).t().to(DTYPES[name]), dtype=torch.bfloat16)
        x = normal(4, 6).to(DTYPES[name])
        call("aten::clone", x.t())
        call("aten::cat", [x, x.flip(0)], 1)
        call("aten::index_select", x, 0, tensor([2, 0], "i64"))
        call("aten::constant_pad_nd", x, [1, 0], 1.0)


def unsigned():
    large = torch.tensor([0, 1, 2**53 + 1, 2**63 + 1025, 2**64 - 1, 2**62 + 2**38 + 1], dtype=torch.uint64)
    for dtype in ("f32", "f64", "bf16", "i64", "i32", "b8"):
        call("prims::convert_element_type", large, DTYPES[dtype])
    call("prims::convert_element_type", tensor([0.0, 1.7, 2.0**63 + 2048, 2.0**64 - 2048], "f64"), torch.uint64)
    call("aten::sort", large, 0)
    call("aten::mul.Tensor", large, large)
    call("aten::eq.Tensor", large, large[[1, 1, 2, 2, 4, 0]])
    call("aten::div.Tensor", large[:2], large[1:3])
    call("aten::cat", [large, large])
    for name, low in (("u16", 2**16), ("u32", 2**32)):
        x = torch.tensor([0, 1, low // 2, low - 1], dtype=DTYPES[name])
        for dtype in ("f32", "f64", "i64", "i32", "u8"):
            call("prims::convert_element_type", x, DTYPES[dtype])
        call("prims::convert_element_type", tensor([-1, 3, low + 5], "i64"), DTYPES[name])
        call("aten::mul.Tensor", x, x)
        call("aten::bitwise_and.Tensor", x, x.to(torch.int64).flip(0).to(x.dtype))
        call("aten::sort", x, 0, True)
        call("aten::sum", x)
        call("aten::cumsum", x, 0)
        call("aten::index_select", x.to(torch.int64).to(torch.int32), 0, tensor([3, 1], "i64"))


def wide_integers():
    large = tensor([2**24 + 1, 2**53 + 1, -(2**53) - 3, 2**62 + 2**38 + 1, -(2**62) - 2**38 - 1, 2**63 - 1], "i64")
    for dtype in FLOATS:
        call("prims::convert_element_type", large, DTYPES[dtype])
    call("aten::add.Tensor", large, tensor([0.0], "f32"))
    call("aten::mul.Tensor", large, tensor([1.0], "bf16"))
    call("aten::div.Tensor", large, tensor([3] * 6, "i64"))
    for name in ("sqrt", "reciprocal"):
        call(f"aten::{name}", large.abs())
    call("aten::where.self", bools(6), large, tensor([0.5]))
    call("aten::lt.Tensor", large, large.float())
    call("aten::eq.Scalar", large, 2.0**53)
    call("aten::maximum", large, large.flip(0))
    call("aten::cat", [large, tensor([0.5])])


def paddings():
    x = normal(2, 3, 4, 5)
    for mode, amounts in (("reflect", [2, 4, 1, 3]), ("replicate", [7, 0, 1, 6]), ("circular", [5, 2, 0, 4])):
        call("aten::pad", x, amounts, mode)
        call("aten::pad", x[0], amounts[:2], mode)
        call("aten::pad", x, [-1, 2, 1, -2], mode)
    for kind in ("reflection", "replication"):
        for dims, size, padding in ((1, (2, 5), [2, 4]), (2, (2, 4, 5), [1, 2, 3, 0]), (3, (1, 3, 4, 5), [1, 2, 3, 0, 2, 1])):
            for dtype in ("f32", "bf16"):
                x = normal(*size, dtype=dtype)
                out = getattr(torch.ops.aten, f"{kind}_pad{dims}d")(x, padding)
                call(f"aten::{kind}_pad{dims}d", x, padding)
                # CPUs sum 16-bit gradients in 16 bits.
                if dtype == "f32":
                    call(f"aten::{kind}_pad{dims}d_backward", normal(*out.shape), x, padding)
    call("aten::roll", normal(2, 5), [1, 2], [1, 1])
    call("aten::roll", normal(3, 4, 5), [1, -7, 2], [0, 2, 0])


def losses():
    for dtype in ("f32", "f64"):
        x, p = normal(4, 5, dtype=dtype), torch.softmax(normal(4, 5, dtype=dtype), 1)
        w = positive(5, dtype=dtype)
        t = tensor([0, 4, 2, 1], "i64")
        ignored = tensor([0, -100, 2, -100], "i64")
        for reduction in (0, 1, 2):
            for weight in (None, w):
                call("aten::cross_entropy_loss", x, p, weight, reduction)
                call("aten::cross_entropy_loss", x, p, weight, reduction, -100, 0.2)
                call("aten::cross_entropy_loss", x, t, weight, reduction, -100, 0.2)
                call("aten::cross_entropy_loss", x, ignored, weight, reduction, -100, 0.1)
                call("aten::cross_entropy_loss", x, t, weight, reduction, 2)
        wide = normal(2, 5, 3, dtype=dtype)
        call("aten::cross_entropy_loss", wide, ints(2, 3, low=0, high=5), w, 1, -100, 0.3)
        call("aten::cross_entropy_loss", wide, torch.softmax(normal(2, 5, 3, dtype=dtype), 1), w, 0, -100, 0.3)
        call("aten::cross_entropy_loss", x[0], tensor(3, "i64"), w, 1, -100, 0.3)
        call("aten::cross_entropy_loss", x[0], p[0], w, 1, -100, 0.3)
    for dtype in FLOATS:
        # Small enough for eps to matter.
        call("aten::rms_norm", normal(2, 3, 8, dtype=dtype, scale=3) * 2**-11, [8])
        call("aten::rms_norm", normal(2, 3, 8, dtype=dtype, scale=3) * 2**-11, [8], normal(8, dtype=dtype), 1e-9)


def selections():
    x = normal(4, 5)
    call("aten::index_fill.int_Scalar", x, 1, tensor([-1, 2], "i64"), 7)
    call("aten::take", x, tensor([[-1, 0], [3, -20]], "i64"))
    unsorted = normal(2, 5)
    call("aten::searchsorted.Tensor", unsorted, normal(2, 3), sorter=unsorted.argsort(1))
    call("aten::bincount", tensor([1, 3, 3, 0, 6], "i64"), None, 7)
    call("aten::bincount", tensor([1, 3, 3, 0, 6], "i32"), normal(5), 9)
    call("aten::bincount", tensor([1, 3, 3, 0, 6], "i64"), ints(5), 7)
    i, j, mask = tensor([0, 9, 3], "i64"), tensor([-1, -70, 2], "i64"), tensor([1, 0, 1], "b8")
    call("aten::_unsafe_masked_index", x, mask, [i, j], 1.5)
    call("aten::_unsafe_masked_index", ints(4, 5), mask.unsqueeze(1), [i.unsqueeze(1), tensor([1, 1, 4], "i64")], 7)
    for dtype in ("f32", "f64", "i64"):
        call("aten::_unsafe_masked_index_put_accumulate", normal(4, 5, dtype="f64", scale=9).to(DTYPES[dtype]),
             tensor([1, 0, 1, 1], "b8"), [tensor([0, 9, 3, 0], "i64"), tensor([-1, -70, 2, -1], "i64")],
             normal(4, dtype="f64", scale=9).to(DTYPES[dtype]))
    call("aten::masked_scatter_backward", normal(3, 4), bools(3, 4), [3, 5])
    call("aten::masked_scatter_backward", normal(3, 4), tensor([0, 1, 1, 0], "b8"), [6])
    for dtype in FLOATS:
        x = normal(4, 6, dtype=dtype)
        call("aten::glu", x)
        call("aten::glu", x.t(), 0)
        call("aten::glu_backward", normal(4, 3, dtype=dtype), x, 1)


def lists():
    for dtype in FLOATS:
        xs = [normal(2, 3, dtype=dtype), normal(4, dtype=dtype), normal(3, 2, dtype=dtype).t()]
        ys = [normal(2, 3, dtype=dtype, shift=4), normal(4, dtype=dtype, shift=4), normal(3, 2, dtype=dtype, shift=4).t()]
        ps = [x.abs() + 0.5 for x in xs]
        for name in names("abs exp expm1 max neg reciprocal round sigmoid sign tanh"):
            call(f"aten::_foreach_{name}", xs)
        for name in names("log log10 log1p log2 rsqrt sqrt"):
            call(f"aten::_foreach_{name}", ps)
        for name in names("add sub mul div clamp_max clamp_min maximum minimum"):
            call(f"aten::_foreach_{name}.Scalar", xs, 1.5)
            call(f"aten::_foreach_{name}.ScalarList", xs, [1.5, 2, -0.5])
            call(f"aten::_foreach_{name}.List", xs, ys)
        call("aten::_foreach_add.List", xs, ys, alpha=0.5)
        call("aten::_foreach_sub.List", xs, ys, alpha=2)
        for name in names("add mul div"):
            call(f"aten::_foreach_{name}.Tensor", xs, tensor(1.5, dtype))
        for name in names("addcmul addcdiv"):
            call(f"aten::_foreach_{name}.Scalar", xs, xs, ys, 0.5)
            call(f"aten::_foreach_{name}.ScalarList", xs, xs, ys, [0.5, -1, 2])
        call("aten::_foreach_lerp.Scalar", xs, ys, 0.3)
        call("aten::_foreach_lerp.List", xs, ys, [p * 0.3 for p in ps])
        call("aten::_foreach_lerp.ScalarList", xs, ys, [0.3, 0.7, 1.5])
        call("aten::_foreach_pow.Scalar", ps, 1.5)
        call("aten::_foreach_pow.ScalarList", ps, [2, 0.5, -1])
        call("aten::_foreach_pow.List", ps, xs)
        call("aten::_foreach_pow.ScalarAndTensor", 0.9, xs)
        call("aten::_foreach_norm.Scalar", xs)
        call("aten::_foreach_norm.Scalar", xs, 1)
        call("aten::_foreach_norm.Scalar", xs, inf)
        call("aten::_foreach_clone", xs)
        call("aten::_foreach_copy", xs, [normal(2, 3), normal(4), normal(2, 3)])
    call("aten::_foreach_add.Scalar", [ints(3), ints(2, dtype="i32")], 2)
    call("aten::_foreach_mul.ScalarList", [ints(3), normal(2)], [2.5, 3])


def optimizers():
    def state(dtype):
        return [normal(3, 4, dtype=dtype), normal(5, dtype=dtype)]

    for dtype in ("f32", "f64"):
        for name in ("adam", "adamw"):
            for decay, amsgrad, maximize, extra in (
                (0.0, False, False, {}), (0.1, True, False, {}), (0.1, False, True, {}),
                (0.1, True, True, {"grad_scale": tensor(4.0), "found_inf": tensor(0.0)}),
                (0.1, False, False, {"grad_scale": tensor(4.0), "found_inf": tensor(1.0)}),
            ):
                largest = [x.abs() for x in state(dtype)] if amsgrad else []
                lists = (state(dtype), state(dtype), state(dtype), [x.abs() for x in state(dtype)], largest)
                hyper = dict(beta1=0.8, beta2=0.95, weight_decay=decay, eps=1e-8, amsgrad=amsgrad, maximize=maximize, **extra)
                call(f"aten::_fused_{name}", *lists, [tensor(3.0), tensor(1.0)], lr=0.05, **hyper)
                call(f"aten::_fused_{name}.tensor_lr", *lists, [tensor(3.0), tensor(1.0)], lr=tensor(0.05), **hyper)
        for decay, momentum, dampening, nesterov, maximize, first in (
            (0.0, 0.0, 0.0, False, False, False), (0.1, 0.9, 0.2, False, False, False),
            (0.1, 0.9, 0.0, True, True, False), (0.1, 0.9, 0.2, False, False, True),
        ):
            buffers = state(dtype) if momentum else []
            call("aten::_fused_sgd", state(dtype), state(dtype), buffers, weight_decay=decay, momentum=momentum,
                 lr=0.05, dampening=dampening, nesterov=nesterov, maximize=maximize, is_first_step=first)
        call("aten::_fused_sgd.tensor_lr", state(dtype), state(dtype), state(dtype), weight_decay=0.1, momentum=0.9,
             lr=tensor(0.05), dampening=0.0, nesterov=True, maximize=False, is_first_step=False,
             grad_scale=tensor(4.0), found_inf=tensor(0.0))


def convolutions():
    cases = (
        # input, weight, bias, stride, padding, dilation, transposed, output padding, groups
        ((2, 4, 6, 5), (6, 4, 3, 2), True, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        ((2, 4, 6, 5), (6, 2, 3, 3), False, [2, 1], [1, 2], [1, 2], False, [0, 0], 2),
        ((1, 3, 8), (4, 3, 3), True, [2], [1], [1], False, [0], 1),
        ((1, 2, 4, 3, 5), (2, 1, 2, 2, 2), True, [1, 2, 1], [1, 0, 1], [1, 1, 2], False, [0, 0, 0], 2),
        ((2, 3, 4, 4), (3, 1, 1, 1), True, [1, 1], [0, 0], [1, 1], False, [0, 0], 3),
        ((2, 4, 3, 4), (4, 3, 3, 2), True, [2, 1], [1, 0], [1, 1], True, [1, 0], 1),
        ((1, 4, 3, 4), (4, 2, 2, 3), False, [2, 3], [0, 1], [2, 1], True, [1, 2], 2),
    )
    for size, kernel, biased, *rest, groups in cases:
        transposed = rest[3]
        for dtype in FLOATS if size == (2, 4, 6, 5) else ("f32",):
            x, w = normal(*size, dtype=dtype), normal(*kernel, dtype=dtype)
            channels = kernel[1] * groups if transposed else kernel[0]
            b = normal(channels, dtype=dtype) if biased else None
            y = torch.ops.aten.convolution(x, w, b, *rest, groups)
            call("aten::convolution", x, w, b, *rest, groups)
            g = normal(*y.shape, dtype=dtype)
            mask = [True, True, biased]
            call("aten::convolution_backward", g, x, w, [channels] if biased else None, *rest, groups, mask)
    x = normal(2, 4, 5, 4).to(memory_format=torch.channels_last)
    call("aten::convolution", x, normal(3, 4, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    x = normal(2, 3, 6, 5)
    call("aten::im2col", x, [2, 3], [1, 1], [1, 0], [2, 1])
    call("aten::im2col", x[0], [2, 2], [2, 1], [0, 1], [1, 2])
    call("aten::col2im", torch.ops.aten.im2col(x, [2, 3], [2, 1], [1, 0], [1, 1]), [6, 5], [2, 3], [2, 1], [1, 0], [1, 1])
    call("aten::col2im", normal(8, 6), [3, 4], [2, 2], [1, 1], [0, 0], [1, 1])


def pools():
    x = normal(2, 3, 7, 6)
    holes = x.clone()
    holes[0, 0, 2, 2], holes[0, 0, 3, 3], holes[0, 1] = nan, nan, -inf
    holes[1, 0, :4] = 1.0
    for image in (x, holes, x[0], normal(2, 3, 7, 6, dtype="bf16"), x.to(memory_format=torch.channels_last)):
        for kernel, stride, padding, dilation, ceil in (
            ([2, 3], [], [0, 0], [1, 1], False), ([3, 3], [2, 2], [1, 1], [1, 1], False),
            ([3, 2], [2, 3], [1, 1], [2, 1], True), ([2, 2], [2, 2], [1, 1], [1, 1], True),
        ):
            call("aten::max_pool2d_with_indices", image, kernel, stride, padding, dilation, ceil)
            if stride:
                call("prims::_low_memory_max_pool_with_offsets", image, kernel, stride, padding, dilation, ceil)
    for kernel, stride, padding, dilation, ceil in (([3, 3], [2, 2], [1, 1], [1, 1], False), ([3, 2], [1, 2], [1, 1], [2, 1], True)):
        out, indices = torch.ops.aten.max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil)
        _, offsets = torch.ops.prims._low_memory_max_pool_with_offsets(x, kernel, stride, padding, dilation, ceil)
        call("prims::_low_memory_max_pool_offsets_to_indices", offsets, kernel, [7, 6], stride, padding, dilation)
        call("aten::max_pool2d_with_indices_backward", normal(*out.shape), x, kernel, stride, padding, dilation, ceil, indices)
    for dtype in ("f32", "f64", "bf16"):
        x = normal(2, 3, 7, 6, dtype=dtype)
        for args in (
            ([2, 3],), ([3, 3], [2, 2], [1, 1], False, True, None), ([3, 2], [2, 3], [1, 1], True, True, None),
            ([3, 3], [2, 2], [1, 1], True, False, None), ([2, 2], [2, 2], [1, 1], True, True, 3),
        ):
            out = torch.ops.aten.avg_pool2d(x, *args)
            call("aten::avg_pool2d", x, *args)
            if len(args) > 1 and dtype != "bf16":
                call("aten::avg_pool2d_backward", normal(*out.shape, dtype=dtype), x, *args)
        for size in ([1, 1], [3, 4], [7, 6], [9, 2]):
            call("aten::_adaptive_avg_pool2d", x, size)
            if dtype != "bf16":
                call("aten::_adaptive_avg_pool2d_backward", normal(2, 3, *size, dtype=dtype), x)
    call("aten::_adaptive_avg_pool2d", x[0].float(), [2, 5])


def batch_norms():
    for dtype in ("f32", "f64", "bf16"):
        kind = DTYPES[dtype]
        x, g = normal(3, 4, 5, dtype=dtype, shift=1, scale=2), normal(3, 4, 5, dtype=dtype)
        wide = torch.float64 if dtype == "f64" else torch.float32
        w, b, rm = (normal(4).to(wide) for _ in range(3))
        rv = positive(4).to(wide)
        for weight, bias in ((w, b), (None, None)):
            for training in (True, False):
                args = (x.to(wide), weight, bias, rm, rv, training, 0.2, 1e-3)
                out, mean, invstd, new_mean, new_var = torch.ops.aten._native_batch_norm_legit_functional(*args)
                if not training:
                    # As GPUs do, which keep these outside training too.
                    mean, invstd = rm, (rv + 1e-3).rsqrt()
                    write("aten::_native_batch_norm_legit_no_training", (x, *args[1:5], 0.2, 1e-3), {}, [out.to(kind), mean, invstd])
                write("aten::_native_batch_norm_legit_functional", (x, *args[1:]), {}, [out.to(kind), mean, invstd, new_mean, new_var])
                if training:
                    write("aten::_batch_norm_with_update_functional", (x, *args[1:5], 0.2, 1e-3), {},
                          [out.to(kind), mean, invstd, None, new_mean, new_var])
                    no_stats = torch.ops.aten._native_batch_norm_legit.no_stats(x.to(wide), weight, bias, True, 0.2, 1e-3)
                    write("aten::_native_batch_norm_legit.no_stats", (x, weight, bias, True, 0.2, 1e-3), {}, [no_stats[0].to(kind), *no_stats[1:]])
                grads = torch.ops.aten.native_batch_norm_backward(
                    g.to(wide), x.to(wide), weight, rm, rv, mean, invstd, training, 1e-3, [True, True, True])
                if weight is not None:
                    results = [grads[0].to(kind), *grads[1:]]
                    write("aten::native_batch_norm_backward", (g, x, weight, rm, rv, mean, invstd, training, 1e-3, [True] * 3), {}, results)
                    write("aten::batch_norm_backward", (g, x, weight, rm, rv, mean, invstd, training, 1e-3, [True] * 3, tensor([], "u8")), {}, results)
                elif dtype != "bf16":
                    write("aten::native_batch_norm_backward", (g, x, None, rm, rv, mean, invstd, training, 1e-3, [True, False, False]), {},
                          [grads[0].to(kind), None, None])


def upsamples():
    for dtype in ("f32", "f64", "bf16"):
        x = normal(2, 3, 4, 5, dtype=dtype)
        for size in ([8, 10], [7, 3], [4, 5], [1, 1]):
            call("aten::upsample_nearest2d", x, size)
            for corners in (True, False):
                call("aten::upsample_bilinear2d", x, size, corners)
                if dtype != "bf16":
                    call("aten::upsample_bilinear2d_backward", normal(2, 3, *size, dtype=dtype), size, [2, 3, 4, 5], corners)
            if dtype != "bf16":
                call("aten::upsample_nearest2d_backward", normal(2, 3, *size, dtype=dtype), size, [2, 3, 4, 5])
        call("aten::upsample_nearest2d.vec", x, None, [2.0, 1.7])
        call("aten::upsample_nearest2d.vec", x, [3, 9], None)
        call("aten::upsample_bilinear2d.vec", x, None, False, [1.5, 2.3])
        call("aten::upsample_bilinear2d.vec", x, [3, 9], True, None)
    call("aten::upsample_nearest2d", x.float(), [6, 11], 1.7, 2.3)
    call("aten::upsample_bilinear2d", x.float(), [6, 11], False, 1.7, 2.3)
    call("aten::upsample_nearest2d", normal(1, 2, 4, 5).to(memory_format=torch.channels_last), [6, 11])


def call_in_place(name, *args, **kwargs):
    def copy(arg):
        return torch.empty_strided(arg.shape, arg.stride(), dtype=arg.dtype).copy_(arg) if isinstance(arg, torch.Tensor) else arg

    mine = [copy(arg) for arg in args]
    function(name)(*mine, **kwargs)
    write(name, args, kwargs, [mine[0]])


def in_place():
    for dtype in ("f32", "f64"):
        x, y, p = normal(3, 4, dtype=dtype), normal(3, 4, dtype=dtype), positive(3, 4, dtype=dtype)
        for name in names("abs_ neg_ relu_ floor_ sign_ exp_ sigmoid_ tanh_ silu_ gelu_ square_ zero_"):
            call_in_place(f"aten::{name}", x)
        for name in names("sqrt_ rsqrt_ log_ reciprocal_"):
            call_in_place(f"aten::{name}", p)
        for name in names("add_.Tensor sub_.Tensor mul_.Tensor div_.Tensor eq_.Tensor lt_.Tensor logical_and_"):
            call_in_place(f"aten::{name}", x, y)
            call_in_place(f"aten::{name}", x.t(), y[0, :3])
        call_in_place("aten::add_.Tensor", x, y, alpha=0.5)
        call_in_place("aten::addcmul_", x, y, p, value=0.5)
        call_in_place("aten::addcdiv_", x, y, p, value=0.5)
        call_in_place("aten::lerp_.Scalar", x, y, 0.3)
        call_in_place("aten::addmm_", normal(3, 3, dtype=dtype), x, y.t(), beta=0.5)
        call_in_place("aten::masked_fill_.Scalar", x, bools(4), -inf)
        call_in_place("aten::clamp_", x, -0.5, 0.7)
        call_in_place("aten::clamp_min_", x, 0.1)
        call_in_place("aten::fill_.Scalar", x, 1.25)
        call_in_place("aten::copy_", x, y[0])
        call_in_place("aten::tril_", x, 1)
        call_in_place("aten::cumsum_", x, 1)
        call_in_place("aten::index_add_", x, 0, tensor([2, 0, 2], "i64"), y)
        call_in_place("aten::index_copy_", x, 0, tensor([2, 0], "i64"), y[:2])
        call_in_place("aten::index_put_", x, [tensor([2, 0, 2], "i64")], y, True)
        call_in_place("aten::scatter_.src", x, 1, tensor([[0, 3], [1, 2], [3, 0]], "i64"), y)
        call_in_place("aten::scatter_add_", x, 0, ints(3, 4, low=0, high=3), y)
        call_in_place("aten::scatter_reduce_.two", x, 0, ints(3, 4, low=0, high=3), y, "amax")
    call_in_place("aten::add_.Tensor", normal(3, dtype="bf16"), normal(3))
    call_in_place("aten::mul_.Tensor", normal(3), normal(3, dtype="f64"))
    call_in_place("aten::add_.Tensor", ints(3, dtype="i32"), ints(3))
    call_in_place("aten::bitwise_or_.Tensor", ints(3), ints(3))
    call_in_place("aten::remainder_.Scalar", normal(3), 2)
    call_in_place("aten::div_.Tensor_mode", normal(3), normal(3), rounding_mode="floor")


def overloads():
    """Forms of ops whose other forms are recorded above."""
    for dtype in FLOATS:
        x = normal(3, 4, 5, dtype=dtype)
        call("aten::std", x)
        call("aten::std.correction", x, [1], correction=0, keepdim=True)
        call("aten::std_mean", x, False)
        call("aten::std_mean.dim", x, [0, 2])
        call("aten::var.dim", x, [1], False)
        call("aten::var_mean", x)
        call("aten::var_mean.dim", x, [2], False, True)
        call("aten::norm.ScalarOpt_dim_dtype", x, 2, [1], True, dtype=torch.float64 if dtype == "f64" else torch.float32)
        call("aten::xlogy.Scalar_Other", x, 2.5)
        call("aten::xlogy.Scalar_Self", 2.5, positive(4, dtype=dtype))
        call("aten::float_power.Scalar", 2.5, x)
        call("aten::zeros_like", x.permute(2, 0, 1))
        call("aten::new_ones", x, [2, 3])
        call("aten::new_zeros", x, [2], dtype=torch.int64)
        call("aten::argsort", x, 1, True)
        call("aten::concat", [x, x], 1)
        call("aten::flatten.using_ints", x.transpose(0, 1), 0, 1)
        call("aten::reshape_as", x.permute(2, 0, 1), normal(6, 10))
        call("aten::lift_fresh_copy", x)
    for name in names("bitwise_and bitwise_or bitwise_xor"):
        call(f"aten::{name}.Scalar_Tensor", 6, ints(6))
    call("aten::ones", [2, 3], dtype=torch.float64)
    call("prims::rev", normal(2, 3, 4), [0, 2])
    a, b, c = normal(5), normal(5), normal(5)
    write("prims::fma", (a, b, c), {}, [(a.double() * b.double() + c.double()).float()])
    call("aten::_grouped_mm", normal(8, 16, dtype="bf16"), normal(3, 16, 24, dtype="bf16"), tensor([2, 2, 8], "i32"))
    call("aten::_grouped_mm", normal(3, 8, 16, dtype="bf16"), normal(3, 16, 24, dtype="bf16"))
    # No CPU kernel: by definition.
    for dtype in ("bf16", "f32"):
        a, b, bias = normal(2, 8, dtype="bf16"), normal(8, 8, dtype="bf16"), normal(2, 8, dtype=dtype)
        product = a.double() @ b.double()
        kind = DTYPES[dtype]
        write("aten::addmm.dtype", (bias, a, b, kind), {"beta": 0.5, "alpha": 2}, [(0.5 * bias.double() + 2 * product).to(kind)])
        write("aten::bmm.dtype", (a.unsqueeze(0), b.unsqueeze(0), kind), {}, [product.unsqueeze(0).to(kind)])
        write("aten::baddbmm.dtype", (bias.unsqueeze(0), a.unsqueeze(0), b.unsqueeze(0), kind), {}, [(bias.double() + product).unsqueeze(0).to(kind)])
        x, y = normal(16, 32).to(torch.float8_e4m3fn), normal(16, 32).to(torch.float8_e4m3fn).t()
        exact = x.double() @ y.double()
        one, other = tensor(0.5), tensor(0.25)
        write("aten::_scaled_mm", (x, y, one, other), {"out_dtype": kind}, [(exact * 0.125).to(kind)])
        rows, columns = positive(16, 1), positive(1, 16)
        write("aten::_scaled_mm", (x, y, rows, columns), {"out_dtype": kind}, [(exact * rows.double() * columns.double()).to(kind)])


def reductions_of_other_types():
    x = tensor([1.5, 2.7, -0.5, 2.9])
    for to in (torch.int64, torch.int32):
        for name in ("aten::sum", "aten::prod"):
            call(name, x, dtype=to)
        call("aten::sum.dim_IntList", x.reshape(2, 2), [0], dtype=to)
        call("aten::prod.dim_int", x.reshape(2, 2), 1, dtype=to)
        call("aten::nansum", x, dtype=to)
        for name in ("aten::cumsum", "aten::cumprod"):
            call(name, x, 0, dtype=to)


def complexes(*size, dtype="c64"):
    part = "f64" if dtype == "c128" else "f32"
    return torch.complex(normal(*size, dtype=part), normal(*size, dtype=part))


def complex_numbers():
    zero, large = tensor([0j, 1e-3j, 2], "c64"), tensor([3e30 + 1e30j, 1e30, -2e30j], "c64")
    for dtype in ("c64", "c128"):
        part = "f64" if dtype == "c128" else "f32"
        x, y, row = complexes(3, 4, dtype=dtype), complexes(3, 4, dtype=dtype), complexes(4, dtype=dtype)
        for name in names("neg conj_physical _conj_physical abs angle sgn square reciprocal exp log"):
            call(f"aten::{name}", x)
        for other in (y, row, complexes(dtype=dtype), x.t().contiguous().t(), normal(3, 4, dtype=part), ints(4)):
            for name in names("add sub rsub mul div eq ne"):
                call(f"aten::{name}.Tensor", x, other)
        for name in names("add sub rsub mul div eq ne"):
            call(f"aten::{name}.Scalar", x, 2.5)
        for name in names("add sub rsub"):
            call(f"aten::{name}.Tensor", x, y, alpha=-3)
            call(f"aten::{name}.Tensor", normal(3, 4, dtype=part), y, alpha=2)
        call("aten::eq.Tensor", x, x.clone())
        call("aten::ne.Tensor", x, torch.complex(x.real, y.imag))
        call("aten::where.self", bools(3, 4), x, row)
        call("aten::where.self", bools(3, 1), x, normal(4, dtype=part))
        call("aten::where.ScalarOther", bools(4), x, 1.5)
        call("aten::where.ScalarSelf", bools(4), 1.5, x)
        call("aten::complex", normal(3, 4, dtype=part), normal(4, dtype=part))
        call("aten::polar", positive(3, 4, dtype=part), normal(3, 4, dtype=part))
        for name in ("sum", "mean"):
            call(f"aten::{name}", x)
            call(f"aten::{name}", complexes(dtype=dtype))
        for name in ("sum.dim_IntList", "mean.dim"):
            call(f"aten::{name}", x, [0])
            call(f"aten::{name}", complexes(2, 3, 4, dtype=dtype), [-1, 0], True)
        call("aten::mm", x, y.t())
        call("aten::mm", x.t()[:2], complexes(3, 5, dtype=dtype))
        call("aten::mm", complexes(3, 3, dtype=dtype), complexes(3, 3, dtype=dtype))
        call("aten::bmm", complexes(2, 3, 4, dtype=dtype), complexes(2, 4, 2, dtype=dtype))
        call("prims::convert_element_type", x, DTYPES["c64"])
        call("prims::convert_element_type", x, DTYPES["c128"])
        call("prims::convert_element_type", normal(3, dtype=part), DTYPES[dtype])
        call("aten::_to_copy", ints(3), dtype=DTYPES[dtype])
        call("aten::_to_copy", x, dtype=DTYPES["f32"])
        call("aten::sum", complexes(0, 3, dtype=dtype))
        call("aten::sum.dim_IntList", complexes(0, 3, dtype=dtype), [0])
        call("aten::mul.Tensor", complexes(0, 3, dtype=dtype), 2.0 * complexes(3, dtype=dtype))
        for name in names("mul add"):
            call_in_place(f"aten::{name}_.Tensor", x.clone(), y)
    call("aten::add.Tensor", complexes(3), normal(3, dtype="f64"))
    call("aten::mul.Tensor", normal(3, dtype="f16"), complexes(3))
    call("aten::div.Tensor", large, large.flip(0))
    call("aten::div.Tensor", tensor([1 + 1j, 1j, -1], "c64"), zero)
    call("aten::abs", large)
    call("aten::sgn", zero)
    for x in (normal(5), ints(5)):
        for name in names("angle _conj_physical"):
            call(f"aten::{name}", x)


# Both signs of zero, and numbers on both sides of branch cuts.
PARTS = (0.0, -0.0, 1.0, -2.5, inf, -inf, nan)
EXPONENTS = (0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5)


def pairs_of_parts(parts=PARTS):
    return torch.tensor([complex(re, im) for re in parts for im in parts], dtype=torch.complex64)


def single(re, im=0.0):
    return torch.tensor([complex(re, im)], dtype=torch.complex64)


def complex_functions():
    functions = names(
        "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh sqrt rsqrt sigmoid silu reciprocal square"
        " isnan isinf isfinite logical_not"
    )
    for name in functions:
        for dtype in ("c64", "c128"):
            call(f"aten::{name}", complexes(3, 4, dtype=dtype))
            call(f"aten::{name}", complexes(4, 3, dtype=dtype).t())
        call_where_devices_agree(f"aten::{name}", pairs_of_parts())
    for name in names("abs angle sgn"):
        call_where_devices_agree(f"aten::{name}", pairs_of_parts())
    for name in names("exp sinh cosh tanh sigmoid expm1"):
        for re, im in ((20, 3), (-20, 1), (100, 1), (-100, 2), (0.25, 30)):
            call_where_devices_agree(f"aten::{name}", single(re, im))
    for name in names("sin cos tan"):
        for re, im in ((3, 20), (1, -20), (1, 100), (2, -100), (30, 0.25)):
            call_where_devices_agree(f"aten::{name}", single(re, im))
    for name in names("sqrt rsqrt log log2 log10 log1p reciprocal abs angle sgn"):
        for re, im in ((3e38, 3e38), (3e30, -1e30), (1e-30, 1e-30), (-4, 0.0), (-4, -0.0), (0, 1e30), (-0.5, 1e-4), (1e-20, 0)):
            call_where_devices_agree(f"aten::{name}", single(re, im))
    for dtype in ("c64", "c128"):
        part = "f64" if dtype == "c128" else "f32"
        x, y, g = (complexes(3, 4, dtype=dtype) for _ in range(3))
        for exponent in EXPONENTS:
            call("aten::pow.Tensor_Scalar", x, exponent)
        call("aten::pow.Tensor_Tensor", x, y / 2)
        call("aten::pow.Tensor_Tensor", x, normal(4, dtype=part))
        call("aten::pow.Tensor_Tensor", x, ints(3, 4, low=0, high=3))
        call("aten::pow.Tensor_Tensor", normal(3, 1, dtype=part), y)
        call("aten::pow.Scalar", 2, x)
        call("aten::pow.Scalar", 0.5, x)
        for name in names("logical_and logical_or logical_xor"):
            call(f"aten::{name}", tensor([0, 1j, 1, 0], dtype), tensor([0, 0, 2, 1j], dtype))
            call(f"aten::{name}", tensor([0, 1j, 1, 0], dtype), bools(4))
        call("aten::addcmul", x, y, g, value=-2)
        call("aten::addcmul", normal(4, dtype=part), x, y)
        call("aten::addcdiv", x, y, g, value=1.5)
        call("aten::lerp.Scalar", x, y, 0.3)
        call("aten::lerp.Scalar", x, y, 0.8)
        call("aten::lerp.Tensor", x, y, g)
        call("aten::tanh_backward", g, x)
        call("aten::sigmoid_backward", g, x)
        call("aten::silu_backward", g, x)
        call("aten::float_power.Tensor_Scalar", x, 2)
        call("aten::float_power.Tensor_Tensor", x, y)
        for name in names("exp_ sin_ sqrt_ tanh_ sigmoid_ conj_physical_"):
            call_in_place(f"aten::{name}", x)
        call_in_place("aten::addcmul_", x, y, g)
    bases = pairs_of_parts((0.0, -0.0, -2.5, inf, nan))
    for exponent in EXPONENTS:
        call_where_devices_agree("aten::pow.Tensor_Scalar", bases, exponent)
    few = pairs_of_parts((0.0, 1.0, -2.0, inf))
    grid = [a.flatten() for a in torch.meshgrid(few, few, indexing="ij")]
    for name in names("pow.Tensor_Tensor mul.Tensor div.Tensor"):
        call_where_devices_agree(f"aten::{name}", *grid)
    call_where_devices_agree("aten::pow.Scalar", 0, few)
    call_where_devices_agree("aten::pow.Scalar", 1, few)
    call_where_devices_agree("aten::pow.Scalar", -2, few)


def complex_views():
    for dtype in ("c64", "c128"):
        x = complexes(3, 4, dtype=dtype)
        for name in names("_conj resolve_conj _neg_view resolve_neg"):
            call(f"aten::{name}", x)
            call(f"aten::{name}", x.t())
            call(f"aten::{name}", x[:, 1:3])
    call("aten::_conj", pairs_of_parts())
    call("aten::nan_to_num", pairs_of_parts())
    call("aten::nan_to_num", pairs_of_parts(), 1.5, posinf=3.0)
    for name in names("resolve_conj _neg_view resolve_neg"):
        call(f"aten::{name}", normal(3, 4))


def complex_sums():
    for dtype in ("c64", "c128"):
        x = complexes(3, 4, dtype=dtype)
        for name in names("sum prod mean any all count_nonzero var std"):
            call(f"aten::{name}", x)
        for name in names("sum prod any all"):
            call(f"aten::{name}", complexes(0, 3, dtype=dtype))
            call(f"aten::{name}", complexes(dtype=dtype))
        for dim in (0, -1):
            for name in names("cumsum cumprod prod.dim_int any.dim all.dim"):
                call(f"aten::{name}", x, dim)
            call("aten::count_nonzero", tensor([[0, 1j], [0, 0], [2, 1j]], dtype), dim)
        call("aten::cumsum", complexes(2, 3, 4, dtype=dtype), 1)
        call("aten::cumprod", complexes(2, 3, 4, dtype=dtype), 1)
        for name in names("cumsum cumprod prod.dim_int"):
            call(f"aten::{name}", complexes(dtype=dtype), 0)
            call(f"aten::{name}", complexes(0, 3, dtype=dtype), 0)
        call("aten::prod.dim_int", complexes(2, 3, 4, dtype=dtype), 1, True)
        call("aten::any.dims", tensor([[0, 1j], [0, 0]], dtype), [0, 1])
        call("aten::all.dims", tensor([[0, 1j], [1, 2]], dtype), [1], True)
        for order in (2, 1, 0, 3, 0.5, inf, -inf):
            call("aten::linalg_vector_norm", x, order)
            call("aten::linalg_vector_norm", complexes(2, 3, 4, dtype=dtype), order, [0, 2])
        call("aten::norm.Scalar", x)
        call("aten::norm.ScalarOpt_dim", x, 2, [1], True)
        call("aten::var.correction", x, [1], correction=1, keepdim=True)
        call("aten::var.correction", x, [0], correction=0)
        call("aten::std.correction", complexes(2, 3, 4, dtype=dtype), [0, 2])
        call("aten::var_mean.correction", x, [1])
        call("aten::std_mean.correction", x, [0])
    call("aten::sum", complexes(3, 4), dtype=torch.complex128)
    call("aten::sum.dim_IntList", normal(3, 4), [1], dtype=torch.complex64)
    call("aten::prod", normal(4), dtype=torch.complex64)
    call("aten::cumsum", ints(4), 0, dtype=torch.complex128)
    call("aten::any", tensor([complex(0, nan), 0], "c64"))
    call("aten::all", tensor([complex(0, nan), complex(nan, 0)], "c64"))


def complex_products():
    for dtype in ("c64", "c128"):

        def z(*size):
            return complexes(*size, dtype=dtype)

        for name in names("dot vdot"):
            call(f"aten::{name}", z(5), z(5))
            call(f"aten::{name}", z(4, 2)[:, 0], z(4))
        call("aten::mv", z(3, 4), z(4))
        call("aten::mv", z(4, 3).t(), z(4))
        call("aten::addmv", z(3), z(3, 4), z(4), beta=2, alpha=-1.5)
        call("aten::addmm", z(5), z(3, 4), z(4, 5))
        call("aten::addmm", z(3, 5), z(4, 3).t(), z(5, 4).t(), beta=0.5, alpha=2)
        call("aten::addmm", z(3, 5), z(3, 4), z(4, 5), beta=0)
        call("aten::baddbmm", z(2, 3, 5), z(2, 3, 4), z(2, 4, 5), beta=0.5, alpha=2)
        call("aten::baddbmm", z(1, 1, 5), z(2, 3, 4), z(2, 4, 5))
        call("aten::addbmm", z(3, 5), z(2, 3, 4), z(2, 4, 5), beta=0.5, alpha=2)
        call("aten::matmul", z(3, 4), z(4, 5))
        call("aten::matmul", z(4), z(4))
        call("aten::matmul", z(4), z(4, 5))
        call("aten::matmul", z(3, 4), z(4))
        call("aten::matmul", z(2, 3, 4), z(4, 5))
        call("aten::matmul", z(2, 3, 4), z(4))
        call("aten::matmul", z(2, 1, 3, 4), z(3, 4, 2))
        call("aten::linear", z(2, 3, 4), z(5, 4), z(5))
        call("aten::linear", z(4), z(5, 4))
        call("aten::outer", z(3), z(4))
        call("aten::mm", z(3, 0), z(0, 4))
        call("aten::addmm", z(4), z(3, 0), z(0, 4), beta=2)
        call("aten::dot", z(0), z(0))
        call_in_place("aten::addmm_", z(3, 5), z(3, 4), z(4, 5))


def complex_moves():
    for dtype in ("c64", "c128"):
        part = "f64" if dtype == "c128" else "f32"
        x, i = complexes(4, 5, dtype=dtype), tensor([3, 0, 3], "i64")
        y = complexes(3, 5, dtype=dtype)
        call("aten::index_select", x, 0, i)
        call("aten::index.Tensor", x, [None, i])
        call("aten::gather", x, 1, ints(4, 3, low=0, high=5))
        call("aten::take", x, ints(3, low=0, high=20))
        call("aten::embedding", x, ints(2, 3, low=0, high=4))
        call("aten::embedding_dense_backward", complexes(2, 3, 4, dtype=dtype), ints(2, 3, low=0, high=5), 5, 1, False)
        call("aten::index_put", x, [i[:2]], y[:2])
        call("aten::index_put", x, [i], y, True)
        call("aten::_unsafe_index_put", x, [i], y, True)
        call("aten::index_add", x, 0, i, y)
        call("aten::index_add", x, 0, i, y, alpha=2.5)
        call("aten::index_copy", x, 0, i[:2], y[:2])
        call("aten::index_fill.int_Scalar", x, 1, i[:2], 1.5)
        call("aten::scatter.src", x, 1, torch.stack([torch.tensor([0, 2, 4])] * 3), y)
        call("aten::scatter.value", x, 1, ints(4, 2, low=0, high=5), 2.5)
        call("aten::scatter_add", x, 0, ints(3, 5, low=0, high=4), y)
        call("aten::masked_scatter", x, bools(4, 5), complexes(20, dtype=dtype))
        call("aten::masked_fill.Scalar", x, bools(5), -2.5)
        call("aten::masked_fill.Tensor", x, bools(4, 5), complexes(dtype=dtype))
        call("aten::fill.Scalar", x, 2.5)
        call("aten::native_dropout_backward", x, bools(4, 5), 1.25)
        call("aten::fill.Tensor", x, complexes(dtype=dtype))
        call("aten::where.Scalar", bools(3), 1.5, 2.5)
        call("aten::tril", x)
        call("aten::triu", x, 1)
        call("aten::constant_pad_nd", x, [1, 2], 1.5)
        call("aten::flip", x, [1])
        call("aten::roll", x, [1], [0])
        call("aten::repeat", x, [2, 1])
        call("aten::cat", [x, y])
        call("aten::cat", [x, normal(2, 5, dtype=part)])
        call("aten::stack", [x, x], 1)
        call("aten::clone", x.t())
        call("aten::diag_embed", y)
        call("aten::slice_scatter", x, y, 0, 1, 4)
        call("aten::select_scatter", x, y[0], 0, 2)
        call("aten::slice_backward", y, [4, 5], 0, 0, 3, 1)
        call("aten::select_backward", y[0], [4, 5], 0, 2)
        call("aten::full", [2, 3], 2.5, dtype=DTYPES[dtype])
        call("aten::zeros", [2, 3], dtype=DTYPES[dtype])
        call("aten::ones", [2, 3], dtype=DTYPES[dtype])
        call("aten::eye", 3, dtype=DTYPES[dtype])
        call("aten::scalar_tensor", 2.5, dtype=DTYPES[dtype])
        for name in ("zeros", "ones"):
            call(f"aten::{name}_like", x)
            call(f"aten::new_{name}", x, [3])
        call("aten::full_like", x, -1.5)
        call("aten::new_full", x, [2], 1.5)
        truths = tensor([0, 1, 1j, -0.0, complex(0, nan), complex(nan, 0)], dtype)
        for other in names("b8 i64 f64 f32 f16 bf16"):
            call("prims::convert_element_type", truths if other == "b8" else x, DTYPES[other])
            call("aten::_to_copy", truths if other == "b8" else x, dtype=DTYPES[other])
        call("prims::convert_element_type", bools(5), DTYPES[dtype])
        call("aten::_to_copy", bools(5), dtype=DTYPES[dtype])
        call("aten::_to_copy", normal(5, dtype="f16"), dtype=DTYPES[dtype])
        call("aten::copy", x, bools(4, 5))
        call("aten::copy", normal(3, 5), y)
        call("aten::_foreach_add.List", [x, y], [x, y], alpha=2)
        call("aten::_foreach_mul.Scalar", [x, y], 2.5)
        call("aten::_foreach_mul.List", [x, y], [x, y])
        call("aten::_foreach_addcmul.Scalar", [x, y], [x, y], [x, y], 0.5)
        call("aten::_foreach_norm.Scalar", [x, y], 2)
        call("aten::_foreach_exp", [x, y])
        call_in_place("aten::copy_", x, normal(5, dtype=part))
        call_in_place("aten::index_put_", x, [i], y, True)
        call_in_place("aten::fill_.Scalar", x, 1.5)


FILES = {
    "ops": (
        unary,
        binary,
        choices,
        activations,
        reductions,
        norms,
        indexing,
        copies,
        products,
        attentions,
        narrow_floats,
        unsigned,
        wide_integers,
        paddings,
        losses,
        selections,
        lists,
        optimizers,
        convolutions,
        pools,
        batch_norms,
        upsamples,
        in_place,
        overloads,
        reductions_of_other_types,
    ),
    "complex": (complex_numbers, complex_functions, complex_views, complex_sums, complex_products, complex_moves),
}
for name in sys.argv[1:] or FILES:
    lines.clear()
    random = np.random.default_rng(0)
    for part in FILES[name]:
        part()
    text = "\n".join([json.dumps({"pytorch": torch.__version__}), *lines, ""])
    with open(f"{name}.jsonl.gz", "wb") as target:
        target.write(gzip.compress(text.encode(), 9, mtime=0))
