package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.testkit.MadeUpPieces;
import dev.symplan.ir.testkit.MadeUpRows;
import dev.symplan.ir.testkit.MadeUpTurned;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.runtime.host.JoinProgram;
import dev.symplan.runtime.host.LayoutProgram;
import dev.symplan.runtime.host.PackProgram;
import dev.symplan.runtime.host.PartProgram;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import java.util.stream.IntStream;

/**
 * Adds the ops of programs that were made up for single passes, so that rewrites meet others, and
 * ops that come between: random ops alone are never such patterns.
 */
final class Splices {
  private static final List<Function<Random, String>> WITH_GROUP =
      List.of(
          random -> LayoutProgram.draw(random).text(),
          random -> PackProgram.draw(random).text(),
          random -> PartProgram.draw(random).text(),
          random -> JoinProgram.draw(random).text(),
          Splices::chain,
          Splices::projection);

  private static final List<Function<Random, String>> LOCAL =
      List.of(
          random -> MadeUpPieces.text(random.nextInt(100_000)),
          random -> MadeUpRows.text(random.nextInt(100_000), false),
          random -> MadeUpTurned.text(random.nextInt(100_000)));

  private static final int ATTEMPTS = 4;

  private final Sketch sketch;
  private final List<ProcessGroup> groups;
  private final Runnable between;
  private final Map<Integer, Value> now = new HashMap<>();

  /**
   * @param between adds some other op
   */
  Splices(Sketch sketch, List<ProcessGroup> groups, Runnable between) {
    this.sketch = sketch;
    this.groups = groups;
    this.between = between;
  }

  void add() {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      var random = new Random(sketch.random.nextLong());
      var text = sketch.pick(sketch.chance(80) ? WITH_GROUP : LOCAL).apply(random);
      var program = GraphParser.parse(new SourceFile("spliced.graph", text));
      var sizes = program.groups().stream().map(ProcessGroup::size).toList();
      var fitting =
          groups.stream()
              .filter(group -> sizes.stream().allMatch(size -> size == group.size()))
              .toList();
      if (!fitting.isEmpty()) {
        add(program.graphs().getFirst(), sketch.pick(fitting).name());
        return;
      }
    }
  }

  private void add(Graph graph, String group) {
    graph.inputs().forEach(input -> now.put(input.id(), input(input.tensor(), group)));
    for (var op : graph.ops()) {
      var args = op.args().stream().map(arg -> placed(arg, op, group)).toList();
      var made =
          sketch
              .apply(
                  op.def(), ImmutableList.copyOf(args), sketch.chance(4) || isReturned(op, graph))
              .orElseThrow(Sketch.Refused::new);
      for (int i = 0; i < made.size(); i++) {
        now.put(op.results().get(i).id(), made.get(i));
      }
      if (sketch.chance(5)) {
        between.run();
      }
    }
  }

  private static boolean isReturned(Op op, Graph graph) {
    return op.results().stream().anyMatch(graph.outputValues()::contains);
  }

  /** Some tensor of the type, or what ranks reduce. */
  private Value input(TensorType type, String group) {
    var value =
        type.isContiguous()
            ? sketch.tensor(type.dtype(), type.sizes())
            : sketch.input(type, Fill.ANY);
    if (!sketch.isUniform(value)) {
      throw new Sketch.Refused();
    }
    if (!sketch.chance(25)) {
      return value;
    }
    var reduced =
        sketch.must(
            "_c10d_functional::all_reduce",
            new Arg.Ref(value),
            new Arg.Str(type.dtype().isFloat() && !sketch.exact ? "sum" : "max"),
            new Arg.Str(group),
            Arg.None.NONE);
    return sketch.must("_c10d_functional::wait_tensor", new Arg.Ref(reduced));
  }

  private Arg placed(Arg arg, Op op, String group) {
    if (op.def().collective().isPresent() && arg instanceof Arg.Str(String text)) {
      boolean rounds = text.equals("sum") || text.equals("avg");
      return new Arg.Str(text.equals("g") ? group : rounds && sketch.exact ? "max" : text);
    }
    return Rebuild.map(arg, now);
  }

  /** Products, whose results ranks reduce, and ops by rows behind them. */
  private static String projection(Random random) {
    int rows = 4 * (1 + random.nextInt(4));
    int columns = 8 * (1 + random.nextInt(6));
    var reductions =
        List.of("all_reduce(y, \"sum\", \"g\")", "reduce_scatter_tensor(y, \"sum\", 2, \"g\")");
    int kind = random.nextInt(3) == 0 ? 1 : 0;
    var after =
        List.of(
            "o = aten::add.Tensor(r, b)",
            "s = aten::sum.dim_IntList(r, [-1], True)\n  o = aten::mul.Tensor(r, s)",
            "a = aten::add.Tensor(r, %s)\n  n = aten::amax(a, [-1], True)\n  o = aten::sub.Tensor(a, n)"
                .formatted(kind == 0 ? "e" : "b"),
            "c = prims::convert_element_type(r, torch.bfloat16)\n  o = aten::neg(c)",
            "q = _c10d_functional::all_gather_into_tensor(r, 2, \"g\")\n"
                + "  w0 = _c10d_functional::wait_tensor(q)\n"
                + "  o = prims::convert_element_type(w0, torch.bfloat16)",
            "o = aten::select.int(r, 0, 1)",
            "o = aten::slice.Tensor(r, 0, 0, 2)");
    return """
    graph version 1
    group g = [0, 1]

    graph projection(x: f32[%1$s, 4], w: f32[4, %2$s], b: f32[%2$s], e: f32[%1$s, %2$s]) {
      y = aten::%3$s
      t = _c10d_functional::%4$s
      r = _c10d_functional::wait_tensor(t)
      %5$s
      return o
    }
    """
        .formatted(
            rows,
            columns,
            List.of("mm(x, w)", "addmm(b, x, w)", "add.Tensor(e, b)", "relu(e)")
                .get(random.nextInt(4)),
            reductions.get(kind),
            after.get(random.nextInt(after.size())));
  }

  /** Collectives of one kind, one after the other, that could be one. */
  private static String chain(Random random) {
    var kind =
        List.of(
                "all_reduce(%s, \"sum\", \"g\")",
                "all_reduce(%s, \"max\", \"g\")",
                "all_gather_into_tensor(%s, 2, \"g\")",
                "reduce_scatter_tensor(%s, \"avg\", 2, \"g\")")
            .get(random.nextInt(4));
    int count = 2 + random.nextInt(4);
    int waits = random.nextInt(3);
    var lines = new StringBuilder();
    var last = new StringBuilder();
    for (int i = 0; i < count; i++) {
      lines.append("  a%s = aten::neg(x%s)\n".formatted(i, i));
      lines.append("  r%s = _c10d_functional::%s\n".formatted(i, kind.formatted("a" + i)));
      (waits == 0 ? lines : last)
          .append("  w%s = _c10d_functional::wait_tensor(r%s)\n".formatted(i, i))
          .append("  o%s = aten::relu(w%s)\n".formatted(i, i));
    }
    var inputs =
        IntStream.range(0, count)
            .mapToObj(
                i ->
                    "x%s: f32[%s, %s]"
                        .formatted(i, 2 + 2 * random.nextInt(3), 1 + random.nextInt(5)))
            .toList();
    var outputs = IntStream.range(0, count).mapToObj(i -> "o" + i).toList();
    return "graph version 1\ngroup g = [0, 1]\n\ngraph chain(%s) {\n%s%s  return %s\n}\n"
        .formatted(String.join(", ", inputs), lines, last, String.join(", ", outputs));
  }
}
