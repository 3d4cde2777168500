"""Writes PyTorch's schemas of the ops named in schemas.txt, one in a line, over that file.

Run here, with PyTorch installed: python3 schemas.py
"""

import pathlib

import torch
import torch._inductor.inductor_prims
import torchgen
import yaml

packaged = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
known = {}
for schema in torch._C._jit_get_all_schemas():
    known[str(schema).split("(")[0]] = str(schema)
for function in yaml.safe_load(packaged.read_text()):
    known["aten::" + function["func"].split("(")[0]] = "aten::" + function["func"]

path = pathlib.Path("schemas.txt")
names = [line.split("(")[0] for line in path.read_text().splitlines() if line[0] != "#"]
lines = [f"# PyTorch {torch.__version__}, by schemas.py", *(known[name] for name in sorted(names))]
path.write_text("\n".join(lines) + "\n")
