"""Writes torch.promote_types for every pair of element types to promotions.txt.

Run here, with PyTorch installed: python3 promotions.py
"""

import torch

from rules import SHORT

with open("promotions.txt", "w") as out:
    print(f"# PyTorch {torch.__version__}, by promotions.py", file=out)
    for a, first in SHORT.items():
        for b, second in SHORT.items():
            try:
                result = SHORT[torch.promote_types(a, b)]
            except RuntimeError:
                result = "error"
            print(first, second, result, file=out)
