package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Programs that are measured, each on all ranks of one group. */
public final class BenchPrograms {

  /** The kinds of collectives that can be measured alone. */
  public static final ImmutableList<Kind> KINDS =
      Arrays.stream(Kind.values())
          .filter(kind -> kind != Kind.CUSTOM)
          .collect(ImmutableList.toImmutableList());

  private BenchPrograms() {}

  /**
   * {@return one collective}
   *
   * @param bytes of one rank's operand; rounded down to whole elements for each rank
   */
  public static Program collective(Kind kind, DType dtype, long bytes, int ranks) {
    return collectives(kind, dtype, ImmutableList.of(bytes), ranks);
  }

  /** {@return collectives of several sizes, which have nothing to do with each other} */
  public static Program collectives(Kind kind, DType dtype, List<Long> sizes, int ranks) {
    var inputs = new ArrayList<String>();
    var outputs = new ArrayList<String>();
    var lines = ImmutableList.<String>builder();
    for (int i = 0; i < sizes.size(); i++) {
      long elements = Math.max(ranks, sizes.get(i) / dtype.bytes() / ranks * ranks);
      inputs.add("x%s: %s[%s]".formatted(i, dtype.shortName(), elements));
      lines.add(
          "%s = %s::%s".formatted(label(i), namespace(kind), call(kind, "x" + i, elements, ranks)));
      lines.add("o%s = _c10d_functional::wait_tensor(%s)".formatted(i, label(i)));
      outputs.add("o" + i);
    }
    return program(ranks, String.join(", ", inputs), lines.build(), String.join(", ", outputs));
  }

  /** {@return the name of one of several collectives} */
  public static String label(int index) {
    return "r" + index;
  }

  private static String namespace(Kind kind) {
    return kind == Kind.COLLECTIVE_PERMUTE ? "symplan" : "_c10d_functional";
  }

  /** {@return pairs in which each rank sends to the next} */
  private static String ring(int ranks) {
    return IntStream.range(0, ranks)
        .mapToObj(rank -> "[%s, %s]".formatted(rank, (rank + 1) % ranks))
        .collect(Collectors.joining(", ", "[", "]"));
  }

  private static String call(Kind kind, String operand, long elements, int ranks) {
    var equal =
        IntStream.range(0, ranks)
            .mapToObj(_ -> Long.toString(elements / ranks))
            .collect(Collectors.joining(", ", "[", "]"));
    return switch (kind) {
      case ALL_REDUCE -> "all_reduce(%s, \"sum\", \"g\")".formatted(operand);
      case ALL_GATHER -> "all_gather_into_tensor(%s, %s, \"g\")".formatted(operand, ranks);
      case REDUCE_SCATTER ->
          "reduce_scatter_tensor(%s, \"sum\", %s, \"g\")".formatted(operand, ranks);
      case ALL_TO_ALL -> "all_to_all_single(%s, %s, %s, \"g\")".formatted(operand, equal, equal);
      case BROADCAST -> "broadcast(%s, 0, \"g\")".formatted(operand);
      case COLLECTIVE_PERMUTE ->
          "collective_permute(%s, %s, \"g\")".formatted(operand, ring(ranks));
      case CUSTOM -> throw new IllegalArgumentException("a custom op cannot be timed alone");
    };
  }

  /**
   * {@return a product of square matrices, without any collective}
   *
   * @param dtype of the left one; 8-bit floats are multiplied as {@code _scaled_mm} has them, by
   *     those that can be combined with both kinds
   */
  public static Program product(DType dtype, long size, int ranks) {
    if (dtype == DType.F8E4M3FN || dtype == DType.F8E5M2) {
      return program(
          ranks,
          "x: %1$s[%2$s, %2$s], w: f8e4m3fn[%2$s, %2$s], u: f32[]"
              .formatted(dtype.shortName(), size),
          List.of(
              "t = aten::t(w)",
              "y = aten::_scaled_mm(x, t, u, u, None, None, torch.bfloat16, True)"),
          "y");
    }
    return program(ranks, factors(dtype, size), List.of("y = aten::mm(x, w)"), "y");
  }

  /**
   * {@return such a product, and between the start of an all_gather and its end}
   *
   * @param bytes of one rank's operand of the all_gather
   */
  public static Program productBesideGather(DType dtype, long size, long bytes, int ranks) {
    return program(
        ranks,
        factors(dtype, size) + ", s: %s[%s]".formatted(dtype.shortName(), bytes / dtype.bytes()),
        List.of(
            "r = _c10d_functional::all_gather_into_tensor(s, %s, \"g\")".formatted(ranks),
            "y = aten::mm(x, w)",
            "o = _c10d_functional::wait_tensor(r)"),
        "y, o");
  }

  /** {@return such a product and the all_reduce of its result} */
  public static Program productThenReduce(DType dtype, long size, int ranks) {
    return program(
        ranks,
        factors(dtype, size),
        List.of(
            "y = aten::mm(x, w)",
            "r = _c10d_functional::all_reduce(y, \"sum\", \"g\")",
            "o = _c10d_functional::wait_tensor(r)"),
        "o");
  }

  /** {@return so many small products, each followed by the all_reduce of its result} */
  public static Program chain(int products, int ranks) {
    var lines = ImmutableList.<String>builder();
    for (int i = 0; i < products; i++) {
      lines.add("a%s = aten::mm(%s, w)".formatted(i, i == 0 ? "x" : "o" + (i - 1)));
      lines.add("r%1$s = _c10d_functional::all_reduce(a%1$s, \"avg\", \"g\")".formatted(i));
      lines.add("o%1$s = _c10d_functional::wait_tensor(r%1$s)".formatted(i));
    }
    return program(
        ranks, "x: bf16[16, 256], w: bf16[256, 256]", lines.build(), "o" + (products - 1));
  }

  /** {@return so many small ops, one after the other} */
  public static Program kernels(int count, int ranks) {
    var lines = ImmutableList.<String>builder();
    for (int i = 0; i < count; i++) {
      lines.add("a%s = aten::neg(%s)".formatted(i, i == 0 ? "x" : "a" + (i - 1)));
    }
    return program(ranks, "x: f32[256]", lines.build(), "a" + (count - 1));
  }

  /** {@return a copy within each rank's memory} */
  public static Program copy(DType dtype, long bytes, int ranks) {
    return program(
        ranks,
        "x: %s[%s]".formatted(dtype.shortName(), bytes / dtype.bytes()),
        List.of("y = aten::clone(x)"),
        "y");
  }

  private static String factors(DType dtype, long size) {
    return "x: %1$s[%2$s, %2$s], w: %1$s[%2$s, %2$s]".formatted(dtype.shortName(), size);
  }

  private static Program program(int ranks, String inputs, List<String> lines, String outputs) {
    var members =
        IntStream.range(0, ranks).mapToObj(Integer::toString).collect(Collectors.joining(", "));
    var text =
        """
        graph version 1
        group g = [%s]
        graph bench(%s) {
          %s
          return %s
        }
        """
            .formatted(members, inputs, String.join("\n  ", lines), outputs);
    return GraphParser.parse(new SourceFile("bench.graph", text));
  }

  /** {@return the plan of a program, with the variants that the planner picks} */
  public static Plan plan(Program program, Target target) {
    return Compiler.forTarget(target).compile(program);
  }

  /** {@return the same plan on these hosts} */
  public static Plan plan(Program program, Target target, Hosts hosts) {
    return Compiler.forTarget(target)
        .with(CompileOptions.DEFAULT.withHosts(hosts))
        .compile(program);
  }

  /** {@return the plan of a program in which all collectives of a kind are of one variant} */
  public static Plan plan(Program program, Target target, Kind kind, Variant variant) {
    return Compiler.forTarget(target)
        .with(CompileOptions.DEFAULT.withVariants(ImmutableMap.of(kind.text(), variant)))
        .compile(program);
  }

  /**
   * {@return the plan of a program in which products are split wherever they can be, or none is}
   */
  public static Plan plan(Program program, Target target, boolean chunked) {
    return Compiler.forTarget(target)
        .with(
            CompileOptions.DEFAULT.withRewrites(
                RewriteOptions.OFF.withChunk(
                    chunked ? RewriteOptions.Mode.ON : RewriteOptions.Mode.OFF)))
        .compile(program);
  }

  /** {@return the plan of a program in which each op is a kernel of its own} */
  public static Plan planUnfused(Program program, Target target) {
    return Compiler.forTarget(target)
        .with(CompileOptions.DEFAULT.withFusion(false))
        .compile(program);
  }

  /**
   * {@return a plan in which every collective stays what it is, and nothing runs beside it}
   *
   * @param hosts the host of each rank
   */
  public static Plan planApart(
      Program program, Target target, Hosts hosts, Kind kind, Variant variant) {
    return Compiler.forTarget(target)
        .with(
            CompileOptions.DEFAULT
                .withHosts(hosts)
                .withVariants(ImmutableMap.of(kind.text(), variant))
                .withRewrites(RewriteOptions.OFF)
                .withOverlap(false))
        .compile(program);
  }

  /** {@return the planner's verdict on each variant of the first collective} */
  public static ImmutableList<Verdict> verdicts(Plan plan) {
    return plan.rankPlans().getFirst().collectives().getFirst().verdicts();
  }
}
