"""Keeps the text of the graphs that Inductor compiles, after its passes. bench_programs.py and capture_pairs.py use it."""

import torch._inductor.config as inductor


def keep(graphs):
    """Adds the text of each graph that is compiled from here on to a list."""

    def add(graph):
        module = graph.owning_module
        graphs.append(module.print_readable(print_output=False, include_stride=True, include_device=True))

    inductor.post_grad_custom_post_pass = add
    inductor.force_disable_caches = True  # Cached graphs would not go through the passes.
