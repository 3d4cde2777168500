"""Tests of symplan_torch.py: each compares with eager execution. Set SYMPLAN_HOME first.

    python test_symplan_torch.py [TEST…]

SYMPLAN_TEST_DEVICE=cuda runs them on a GPU; SYMPLAN_TEST_TIMES=all also prints times of torch.compile's own backend.
"""

import faulthandler
import gc
import os
import signal
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path
from unittest import mock

# Must come before the JVM starts: the JVM then passes on faults that are not its own.
faulthandler.enable()

import torch
import torch.nn.functional as F

import symplan_torch

DEVICE = torch.device(os.environ.get("SYMPLAN_TEST_DEVICE", "cpu"))


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 128)
        self.down = torch.nn.Linear(128, 64)

    def forward(self, x):
        return self.down(F.gelu(self.up(x))) + x


class Norm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


class Block(torch.nn.Module):
    """A layer like those of Llama, with rotary embeddings and fewer heads of keys than of queries."""

    def __init__(self, size=64, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, size // heads
        self.before, self.between = Norm(size), Norm(size)
        linear = lambda rows, columns: torch.nn.Linear(rows, columns, bias=False)
        self.q, self.o = linear(size, size), linear(size, size)
        self.k, self.v = linear(size, groups * self.head), linear(size, groups * self.head)
        self.gate, self.up, self.down = linear(size, 3 * size), linear(size, 3 * size), linear(3 * size, size)

    def rotated(self, x, angles):
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def forward(self, x):
        batch, length, _ = x.shape
        split = lambda y, n: y.view(batch, length, n, self.head).transpose(1, 2)
        h = self.before(x)
        q, k, v = split(self.q(h), self.heads), split(self.k(h), self.groups), split(self.v(h), self.groups)
        half = torch.arange(self.head // 2, device=x.device, dtype=torch.float32)
        angles = torch.outer(torch.arange(length, device=x.device, dtype=torch.float32), 100.0**-half)
        q, k = self.rotated(q, angles), self.rotated(k, angles)
        k, v = (y.repeat_interleave(self.heads // self.groups, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, -1))
        h = self.between(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(torch.nn.Module):
    def __init__(self, vocabulary=96, size=64, layers=2):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, size)
        self.layers = torch.nn.ModuleList(Block(size) for _ in range(layers))
        self.norm = Norm(size)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.embedding.weight.t()


def same(actual, expected):
    """As close as torch.compile's own tests ask for (torch._dynamo.utils.same)."""
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def gradients(module):
    found = {name: p.grad for name, p in module.named_parameters()}
    module.zero_grad()
    return found


class Tests(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        # Eager execution instead of a plan would pass all comparisons.
        self.caught = warnings.catch_warnings()
        self.caught.__enter__()
        warnings.filterwarnings("error", message="symplan:")
        self.addCleanup(self.caught.__exit__, None, None, None)
        runner = symplan_torch._Plan.runner
        self.runs = 0

        def counting(plan):
            planned = runner(plan)

            def counted(args):
                self.runs += not symplan_torch._forked
                return planned(args)

            counted._boxed_call = True
            return counted

        patch = mock.patch.object(symplan_torch._Plan, "runner", counting)
        patch.start()
        self.addCleanup(patch.stop)

    def compiled(self, function):
        return torch.compile(function, backend="symplan")

    def test_mlp(self):
        model = MLP().to(DEVICE)
        x = torch.randn(8, 64, device=DEVICE)
        with torch.no_grad():
            same(self.compiled(model)(x), model(x))
        self.assertEqual(self.runs, 1)

    def test_llama_inference(self):
        model = Llama().to(DEVICE)
        tokens = torch.randint(96, (2, 16), device=DEVICE)
        with torch.no_grad():
            same(self.compiled(model)(tokens), model(tokens))
        self.assertEqual(self.runs, 1)

    def test_training_steps(self):
        model = Llama().to(DEVICE)
        other = Llama().to(DEVICE)
        other.load_state_dict(model.state_dict())
        run = self.compiled(model)
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9) for m in (model, other)]
        for _ in range(4):
            tokens = torch.randint(96, (2, 17), device=DEVICE)
            for function, optimizer in zip((run, other), optimizers):
                optimizer.zero_grad()
                scores = function(tokens[:, :-1])
                F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten()).backward()
                optimizer.step()
        same(dict(model.named_parameters()), dict(other.named_parameters()))
        self.assertEqual(self.runs, 8)

    def test_saved_inputs_are_not_copied(self):
        model = MLP().to(DEVICE)
        made = []
        first = symplan_torch._Plan.__init__

        def noted(plan, *args):
            first(plan, *args)
            made.append(plan)

        with mock.patch.object(symplan_torch._Plan, "__init__", noted):
            x = torch.randn(8, 64, device=DEVICE)
            self.compiled(model)(x).sum().backward()
        self.assertEqual(len(made), 2)
        forward = made[0]
        self.assertTrue(all(slot.use == "direct" for slot in forward.inputs))
        sizes = {tuple(p.shape) for p in model.parameters()}
        saved = [slot for slot in forward.outputs if tuple(slot.size) in sizes or tuple(slot.size)[::-1] in sizes]
        self.assertTrue(saved)
        self.assertEqual({slot.use for slot in saved}, {"input"})

    def test_outputs_outlive_calls(self):
        model = MLP().to(DEVICE)
        run = self.compiled(model)
        inputs = [torch.randn(8, 64, device=DEVICE) for _ in range(5)]
        with torch.no_grad():
            outputs = [run(x) for x in inputs]
            for x, output in zip(inputs, outputs):
                same(output, model(x))

    def test_two_forwards_before_a_backward(self):
        model = Llama().to(DEVICE)
        run = self.compiled(model)
        a, b = (torch.randint(96, (2, 16), device=DEVICE) for _ in range(2))
        first, second = run(a), run(b)
        (first.square().mean() + 3 * second.square().mean()).backward()
        found = gradients(model)
        (model(a).square().mean() + 3 * model(b).square().mean()).backward()
        same(found, gradients(model))
        self.assertEqual(self.runs, 4)

    def test_backward_again(self):
        model = MLP().to(DEVICE)
        output = self.compiled(model)(torch.randn(8, 64, device=DEVICE)).sum()
        output.backward(retain_graph=True)
        once = {name: grad.clone() for name, grad in gradients(model).items()}
        output.backward()
        same(gradients(model), once)

    def test_many_threads(self):
        model = MLP().to(DEVICE)
        run = self.compiled(model)
        x = torch.randn(8, 64, device=DEVICE, requires_grad=True)
        run(x).sum().backward()
        expected = torch.autograd.grad(model(x).sum(), x)[0]
        failures = []

        def work():
            try:
                for _ in range(50):
                    same(torch.autograd.grad(run(x).sum(), x)[0], expected)
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_backward_in_a_thread_of_its_own(self):
        model = MLP().to(DEVICE)
        output = self.compiled(model)(torch.randn(8, 64, device=DEVICE)).sum()
        thread = threading.Thread(target=output.backward)
        thread.start()
        thread.join()
        self.assertEqual(self.runs, 2)
        self.assertTrue(all(grad is not None for grad in gradients(model).values()))

    def test_reentry(self):
        model = MLP().to(DEVICE)
        run = self.compiled(model)
        x = torch.randn(8, 64, device=DEVICE, requires_grad=True)

        def hook(grad):
            # Runs forward and backward within a backward.
            with torch.enable_grad():
                return grad + torch.autograd.grad(run(x).sum(), x)[0]

        y = 2 * x
        y.register_hook(hook)
        run(y).sum().backward()
        found = x.grad.clone()
        y = (2 * x).detach().requires_grad_()
        inner = torch.autograd.grad(model(x).sum(), x)[0]
        same(found, 2 * (torch.autograd.grad(model(y).sum(), y)[0] + inner))

    def test_buffers_are_updated(self):
        model = torch.nn.BatchNorm1d(16).to(DEVICE)
        other = torch.nn.BatchNorm1d(16).to(DEVICE)
        run = self.compiled(model)
        for _ in range(3):
            x = torch.randn(8, 16, device=DEVICE)
            same(run(x), other(x))
        same(dict(model.named_buffers()), dict(other.named_buffers()))
        self.assertEqual(self.runs, 3)

    def test_strides_and_offsets(self):
        function = lambda x: (x.sin() @ x.t(), x[1:], x.t())
        run = self.compiled(function)
        for x in (
            torch.randn(6, 6, device=DEVICE).t(),
            # The same plan: a call that fits, one whose address does not, and one that fits again.
            torch.randn(6, 6, device=DEVICE),
            torch.randn(80, device=DEVICE)[1:37].view(6, 6),
            torch.randn(6, 6, device=DEVICE),
            torch.randn(6, 12, device=DEVICE)[:, ::2],
            torch.randn(6, 1, device=DEVICE).expand(6, 6),
        ):
            same(run(x), function(x))
        self.assertEqual(self.runs, 6)

    def test_types(self):
        def function(x, n, flags):
            return x.double() * 2, x.to(torch.bfloat16).exp(), torch.where(flags, n, -n), flags & (n > 0), x[:0]

        x = torch.randn(4, 6, device=DEVICE)
        n = torch.arange(-12, 12, device=DEVICE).view(4, 6)
        same(self.compiled(function)(x, n, x > 0), function(x, n, x > 0))

    def test_dynamic_sizes(self):
        model = MLP().to(DEVICE)
        run = torch.compile(model, backend="symplan", dynamic=True)
        for rows in (8, 3, 8, 17):
            x = torch.randn(rows, 64, device=DEVICE)
            run(x).sum().backward()
            found = gradients(model)
            model(x).sum().backward()
            same(found, gradients(model))
        self.assertEqual(self.runs, 8)

    def test_exception_in_java(self):
        if DEVICE.type != "cpu":
            self.skipTest("kernels on GPUs check no indices")
        run = self.compiled(lambda table, rows: table[rows] * 2)
        table = torch.randn(4, 3)
        with self.assertRaisesRegex(symplan_torch.SymplanError, "index.*9.*4"):
            run(table, torch.tensor([1, 9]))
        rows = torch.tensor([1, 3])
        same(run(table, rows), table[rows] * 2)

    def test_fallback(self):
        def function(x):
            return torch.linalg.qr(x).R.abs() + 1

        x = torch.randn(4, 4, device=DEVICE)
        with self.assertWarnsRegex(UserWarning, r"eager mode: .*linalg_qr.*fx\.txt:[0-9]+"):
            warnings.filterwarnings("default", message="symplan:")
            same(self.compiled(function)(x), function(x))
        self.assertEqual(self.runs, 0)

    def test_random_numbers_are_pytorchs(self):
        x = torch.randn(64, 64, device=DEVICE)
        with self.assertWarnsRegex(UserWarning, "eager mode: .*PyTorch's generator"):
            warnings.filterwarnings("default", message="symplan:")
            run = self.compiled(lambda x: F.dropout(x, 0.5))
            self.assertFalse(torch.equal(run(x), run(x)))

    def test_graphs_of_several_ranks(self):
        def module(op, *args):
            graph = torch.fx.Graph()
            graph.output((graph.call_function(op, (graph.placeholder("x"), *args)),))
            return torch.fx.GraphModule({}, graph)

        reduced = module(torch.ops._c10d_functional.all_reduce.default, "sum", "0")
        self.assertIsNone(symplan_torch._groups(reduced))
        c10d = symplan_torch.dist.distributed_c10d
        with (
            mock.patch.multiple(symplan_torch.dist, is_initialized=lambda: True, get_world_size=lambda: 2),
            mock.patch.object(symplan_torch.dist, "get_process_group_ranks", lambda group: group),
            mock.patch.object(c10d, "_world", mock.Mock(pg_names={"all": "0", "own": "1"})),
            mock.patch.object(c10d, "_resolve_process_group", {"0": [0, 1], "1": [1]}.get),
        ):
            self.assertEqual(symplan_torch._groups(reduced), {"0": [0, 1]})
            own = module(torch.ops._c10d_functional.all_reduce.default, "sum", "1")
            self.assertIsNone(symplan_torch._groups(own))
            self.assertIsNone(symplan_torch._groups(module(torch.ops.aten.relu.default)))

    def test_inputs_that_are_written(self):
        def function(x):
            x.add_(1)
            return x * 2

        a, b = (torch.ones(4, device=DEVICE) for _ in range(2))
        same(self.compiled(function)(a), function(b))
        same(a, b)

    def test_pages(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, SYMPLAN_PAGE=folder):
            model = MLP().to(DEVICE)
            self.compiled(model)(torch.randn(8, 64, device=DEVICE)).sum().backward()
            pages = sorted(Path(folder).iterdir())
            self.assertEqual([page.name.split("_")[1] for page in pages], ["forward.html", "backward.html"])
            self.assertTrue(all("<html" in page.read_text() for page in pages))

    def test_graphs_are_closed(self):
        gc.collect()
        closed = []
        bridge = symplan_torch._the_bridge()
        close = bridge.close
        with mock.patch.object(bridge, "close", lambda handle: (close(handle), closed.append(handle))):
            run = self.compiled(lambda x: x + 1)
            run(torch.ones(3, device=DEVICE))
            del run
            torch._dynamo.reset()
            gc.collect()
        self.assertEqual(len(closed), 1)
        with self.assertRaisesRegex(symplan_torch.SymplanError, "no graph has the handle"):
            bridge.describe(closed[0])

    def test_interrupts_reach_python(self):
        symplan_torch._the_bridge()
        with self.assertRaises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)

    def test_forked_process_runs_eagerly(self):
        if torch.cuda.is_available():
            self.skipTest("Dynamo asks CUDA for its devices, which it cannot do after a fork")
        run = self.compiled(lambda x: x + 1)
        x = torch.ones(3)
        run(x)
        child = os.fork()
        if not child:
            same = False
            try:
                signal.alarm(20)
                warnings.simplefilter("ignore")
                other = self.compiled(lambda x: x * 3)
                same = torch.equal(run(x), x + 1) and torch.equal(other(x), x * 3)
            finally:
                # The other tests are the parent's.
                os._exit(0 if same and self.runs == 1 else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_time_of_a_call(self):
        x = torch.randn(4, 4, device=DEVICE)
        functions = {"eager": lambda x: x + 1, "symplan": self.compiled(lambda x: x + 1)}
        models = {"eager": Llama().to(DEVICE)}
        models["symplan"] = self.compiled(models["eager"])
        if os.environ.get("SYMPLAN_TEST_TIMES") == "all":
            functions["inductor"] = torch.compile(lambda x: x + 1)
            models["inductor"] = torch.compile(models["eager"])
        tokens = torch.randint(96, (2, 16), device=DEVICE)
        with torch.no_grad():
            for name, function in functions.items():
                print(f"\nx + 1, {name}: {self.micros(function, x):.1f} µs a call", end="")
            for name, model in models.items():
                print(f"\nLlama of 2 layers, {name}: {self.micros(model, tokens):.1f} µs a call", end="")

    def micros(self, function, *args):
        """The median time of a call, and on GPUs of what it starts, in microseconds."""

        def repeated(count):
            begin = time.perf_counter()
            for _ in range(count):
                function(*args)
            if DEVICE.type == "cuda":
                torch.cuda.synchronize()
            return (time.perf_counter() - begin) / count * 1e6

        repeated(500)
        return sorted(repeated(100) for _ in range(9))[4]


if __name__ == "__main__":
    unittest.main(verbosity=2)
