"""Asks PyTorch what ops give: reads calls from rules.in, writes them with their results to rules.txt.

A result is a type, followed by "of N + K" when it shares the storage of the N-th tensor of the call,
K elements further on; or "error". Results are those of fake CUDA tensors, which need no GPU; as these
are checked less than real ones, the call is then made on CPU tensors of ones too.

Run here, with PyTorch installed: python3 rules.py
"""

import re

import torch
import torch._inductor.inductor_prims
from torch._subclasses.fake_tensor import FakeTensorMode

NAMES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
    "f8e4m3fnuz": torch.float8_e4m3fnuz, "f8e5m2fnuz": torch.float8_e5m2fnuz,
    "f8e8m0fnu": torch.float8_e8m0fnu, "i64": torch.int64,
    "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "u16": torch.uint16,
    "u32": torch.uint32, "u64": torch.uint64, "b8": torch.bool, "c64": torch.complex64,
    "c128": torch.complex128, "c32": torch.complex32,
}
SHORT = {dtype: name for name, dtype in NAMES.items()}
TYPE = re.compile(r"\b(%s)(\[[\d, ]*\])(\[[\d, ]*\])?" % "|".join(NAMES))


def describe(value, tensors):
    if value is None:
        return "None"
    if isinstance(value, torch.SymInt | int) and not isinstance(value, bool):
        return "int"
    text = SHORT[value.dtype] + str(list(value.shape)) + str(list(value.stride()))
    for i, tensor in enumerate(tensors):
        if tensor.untyped_storage()._cdata == value.untyped_storage()._cdata:
            return f"{text} of {i} + {value.storage_offset() - tensor.storage_offset()}"
    return text


def run(call, device):
    name, args = call.split("(", 1)
    namespace, op = name.split("::")
    base, _, overload = op.partition(".")
    function = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    tensors = []

    def tensor(match):
        sizes = eval(match.group(2))
        strides = eval(match.group(3)) if match.group(3) else None
        dtype = NAMES[match.group(1)]
        made = (
            torch.empty(sizes, dtype=dtype, device=device)
            if strides is None
            else torch.empty_strided(sizes, strides, dtype=dtype, device=device)
        )
        tensors.append(made.fill_(1) if device == "cpu" else made)
        return f"tensors[{len(tensors) - 1}]"

    code = TYPE.sub(tensor, "call(" + args)
    scope = {"call": function, "tensors": tensors, "torch": torch, "device": torch.device,
             "inf": float("inf"), "nan": float("nan")}
    results = eval(code, scope)
    if results is None:
        results = []
    if not isinstance(results, tuple | list):
        results = [results]
    return "; ".join(describe(result, tensors) for result in flat(results))


def flat(results):
    for result in results:
        if isinstance(result, tuple | list):
            yield from flat(result)
        else:
            yield result


# No CPU kernel, or one that wants other shapes.
CUDA_ONLY = (
    "aten::_scaled_dot_product",
    "aten::_fused_rms_norm_backward",
    "aten::_softmax(f16",
    "aten::_softmax_backward_data",
    "aten::mm.dtype",
    "aten::bmm.dtype",
    "prims::inductor",
)


def result_of(call):
    try:
        with FakeTensorMode():
            result = run(call, "cuda")
        if not call.startswith(CUDA_ONLY):
            run(call.replace("cuda:0", "cpu"), "cpu")
        return result
    except Exception as e:
        print(call, "--", str(e).splitlines()[:1])
        return "error"


def main():
    with open("rules.in") as source, open("rules.txt", "w") as target:
        print(f"# PyTorch {torch.__version__}, by rules.py from rules.in", file=target)
        for line in source.read().splitlines():
            if line and not line.startswith("#"):
                print(line, "->", result_of(line), file=target)


if __name__ == "__main__":
    main()
