"""Writes tensors and PyTorch's texts of them to tensor_texts.txt, which TensorTextTest reads.

    python tensor_texts.py        # made with PyTorch 2.13

Each tensor has a line with its type, its sizes and its elements: a list, or `spread S` for numbers
that a formula spreads from -S to S, the parts of complex ones one after the other. Then comes its
text, indented by a space.
"""

import math
import pathlib

import torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
LARGE = [torch.uint16, torch.uint32, torch.uint64]
SMALL = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e8m0fnu]
LISTS = [
    [3.5], [1e-9], [math.nan], [0.0, -0.0, 1.0, 2.0], [1.0, math.inf, -math.inf, math.nan],
    [1e-05, 1.0], [-1e-05, 0.005], [1e9, 2.0], [1000.0, 1.0], [1001.0, 1.0], [0.0, -0.0],
    [0.0001, 0.05, math.nan], [0.00005, 0.5], [0.03125, 2.5, -0.96875], [1e-300, 1e300], [2e8],
]  # fmt: skip


def main():
    out = []

    def write(tensor, elements):
        name = str(tensor.dtype).removeprefix("torch.")
        sizes = ",".join(str(size) for size in tensor.shape)
        out.append(f"{name} [{sizes}] {elements}")
        out.extend(" " + line for line in str(tensor).split("\n"))

    def listed(values, dtype, shape=None):
        tensor = torch.tensor(values, dtype=torch.float64).to(dtype)
        write(tensor.reshape(shape or tensor.shape), " ".join(repr(v) for v in values))

    def spread(scale, dtype, *shape, parts=1):
        shape = shape if parts == 1 else (*shape, parts)
        i = torch.arange(math.prod(shape), dtype=torch.int64)
        values = (i * 40503 % 65536 - 32768).to(torch.float64) / 32768 * scale
        tensor = values.to(dtype).reshape(shape)
        write(torch.view_as_complex(tensor) if parts == 2 else tensor, f"spread {scale}")

    for values in LISTS:
        listed(values, torch.float64)
        listed(values, torch.float32)
    for dtype in FLOATS:
        listed([], dtype)
        listed([], dtype, (2, 0))
        listed([2.0], dtype, ())
        for scale in [2.0, 30000.0]:
            for shape in [(3, 4), (40, 50), (17,), (2, 3, 4), (8, 9, 20), (2000,)]:
                spread(scale, dtype, *shape)
    for dtype in INTEGERS:
        listed([], dtype)
        for shape in [(), (3, 4), (30, 40), (50,)]:
            spread(100.0 if dtype != torch.uint8 else 0.0, dtype, *shape)
    for dtype in LARGE:
        listed([0.0, 7.0, 65535.0], dtype)
    for dtype in SMALL:
        listed([1.0, 2.0, 16.0], dtype)
    for dtype in SMALL[:3]:
        spread(200.0, dtype, 40, 30)
    for dtype in [torch.float32, torch.float64]:
        for shape in [(), (5,), (3, 4), (40, 30)]:
            spread(2.0, dtype, *shape, parts=2)
    listed([0.0, 1.0, 1.0], torch.bool)
    listed([1.0] * 6, torch.bool, (2, 3))
    for size in range(1, 25):
        spread(1000003.0, torch.int64, size)
        spread(2.0, torch.float64, size)
        spread(77.0, torch.int16, size)
    for shape in [(1, 1, 1, 5), (7, 200), (1001, 1), (1, 1001), (7, 7, 30), (1000,), (10, 100)]:
        spread(0.001, torch.float32, *shape)
    pathlib.Path(__file__).with_name("tensor_texts.txt").write_text("\n".join(out) + "\n")


main()
