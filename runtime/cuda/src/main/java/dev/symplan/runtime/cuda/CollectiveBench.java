package dev.symplan.runtime.cuda;

import com.google.common.base.Ascii;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.Bytes;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.Plan;
import dev.symplan.planner.Target;
import dev.symplan.planner.Variant;
import dev.symplan.runtime.RunException;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.SeededInputs;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.bytedeco.cuda.global.cudart;

/**
 * Times collectives, alone and beside compute, as a plan runs them: with their barriers, and the
 * launches spread over the replay of a graph that has many of them.
 */
public final class CollectiveBench {
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  private final int ranks;
  private final PrintStream out;

  private CollectiveBench(int ranks, PrintStream out) {
    this.ranks = ranks;
    this.out = out;
  }

  /**
   * Prints a row for each size and variant of some kinds; {@code overlap} and {@code step} are two
   * measurements of their own.
   *
   * @param args what to measure, separated by commas; the number of ranks; sizes in bytes of one
   *     rank's operand
   */
  public static void main(String[] args) {
    var problem = Libraries.problem();
    if (args.length < 2 || problem.isPresent()) {
      System.err.println(
          problem.orElse("usage: all_reduce,all_gather,...,overlap,step RANKS BYTES..."));
      System.exit(problem.isPresent() ? 3 : 2);
    }
    var bench = new CollectiveBench(Integer.parseInt(args[1]), System.out);
    var sizes = List.of(args).subList(2, args.length).stream().map(Long::parseLong).toList();
    var wanted = Splitter.on(',').splitToList(args[0]);
    if (!sizes.isEmpty()) {
      bench.out.println("kind,variant,dtype,bytes,ranks,micros,gpu,date");
    }
    for (var name : wanted) {
      switch (name) {
        case "overlap" -> bench.overlap();
        case "step" -> bench.step();
        default -> sizes.forEach(bytes -> bench.variants(name, bytes));
      }
    }
  }

  private void variants(String name, long bytes) {
    var kind = Kind.valueOf(Ascii.toUpperCase(name));
    for (var variant : Variant.values()) {
      if (variant != Variant.LOCAL && variant != Variant.MULTIMEM && variant.implementsKind(kind)) {
        double micros = micros(plan(kind, variant, DType.BF16, bytes, ranks));
        out.println(
            "%s,%s,bf16,%d,%d,%s,%s,%s"
                .formatted(
                    name,
                    variant.text(),
                    bytes,
                    ranks,
                    text(micros),
                    gpuName(),
                    LocalDate.now(ZoneOffset.UTC)));
      }
    }
  }

  private static String text(double micros) {
    return String.format(Locale.ROOT, "%.2f", micros);
  }

  private static String gpuName() {
    var name = new byte[256];
    new Check(0).driver(cudart.cuDeviceGetName(name, name.length, 0), "cuDeviceGetName");
    return new String(name, 0, Bytes.indexOf(name, (byte) 0), StandardCharsets.US_ASCII);
  }

  /**
   * {@return a plan of one collective}
   *
   * @param bytes of one rank's operand; rounded down to whole elements for each rank
   */
  static Plan plan(Kind kind, Variant variant, DType dtype, long bytes, int ranks) {
    long elements = Math.max(ranks, bytes / dtype.bytes() / ranks * ranks);
    var equal =
        IntStream.range(0, ranks)
            .mapToObj(_ -> Long.toString(elements / ranks))
            .collect(Collectors.joining(", ", "[", "]"));
    var call =
        switch (kind) {
          case ALL_REDUCE -> "all_reduce(x, \"sum\", \"g\")";
          case ALL_GATHER -> "all_gather_into_tensor(x, %d, \"g\")".formatted(ranks);
          case REDUCE_SCATTER -> "reduce_scatter_tensor(x, \"sum\", %d, \"g\")".formatted(ranks);
          case ALL_TO_ALL -> "all_to_all_single(x, %s, %s, \"g\")".formatted(equal, equal);
          case BROADCAST -> "broadcast(x, 0, \"g\")";
          case CUSTOM -> throw new IllegalArgumentException("a custom op cannot be timed alone");
        };
    return plan(
        ranks,
        "x: %s[%d]".formatted(dtype.shortName(), elements),
        List.of("r = _c10d_functional::" + call, "o = _c10d_functional::wait_tensor(r)"),
        "o",
        ImmutableMap.of(Ascii.toLowerCase(kind.name()), variant));
  }

  private static Plan plan(
      int ranks,
      String inputs,
      List<String> lines,
      String outputs,
      ImmutableMap<String, Variant> variants) {
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
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(ranks).withVariants(variants))
        .compile(GraphParser.parse(new SourceFile("bench.graph", text)));
  }

  /**
   * {@return microseconds of a run in the steady state}
   *
   * @throws RunException when the plan cannot be run here
   */
  static double micros(Plan plan) {
    try (var session = CudaSession.open(Lowering.lower(plan), PATIENCE)) {
      fill(session);
      session.run();
      boolean large = plan.symmetric().bytes() > 8 << 20;
      return session.time(large ? 5 : 20, large ? 2 : 5);
    }
  }

  private static void fill(Session session) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      for (int i = 0; i < session.inputNames().size(); i++) {
        SeededInputs.fill(session.input(rank, i).orElseThrow(), 1, rank, "x" + i);
      }
    }
  }

  /** A product of 8192³ beside the gathering of 64 MiB of each rank. */
  private void overlap() {
    var inputs = "x: bf16[8192, 8192], w: bf16[8192, 8192], s: bf16[4096, 8192]";
    var product = "y = aten::mm(x, w)";
    var gather = "r = _c10d_functional::all_gather_into_tensor(s, %d, \"g\")".formatted(ranks);
    var join = "o = _c10d_functional::wait_tensor(r)";
    double alone = micros(plan(ranks, inputs, List.of(product), "y", ImmutableMap.of()));
    out.println("product alone: %s us".formatted(text(alone)));
    for (var variant : List.of(Variant.COPY_ENGINE, Variant.PUSH, Variant.NCCL)) {
      var forced = ImmutableMap.of("all_gather", variant);
      double gathered = micros(plan(ranks, inputs, List.of(gather, join), "o", forced));
      double both = micros(plan(ranks, inputs, List.of(gather, product, join), "y, o", forced));
      out.println(
          "all_gather %s: alone %s us, beside the product %s us, %.3f of the product"
              .formatted(variant.text(), text(gathered), text(both), both / alone));
    }
  }

  /** What the host takes for a run of 20 products and 20 collectives. */
  private void step() {
    var lines =
        IntStream.range(0, 20)
            .mapToObj(
                i ->
                    """
                    a%1$d = aten::mm(%2$s, w)
                      r%1$d = _c10d_functional::all_reduce(a%1$d, "avg", "g")
                      o%1$d = _c10d_functional::wait_tensor(r%1$d)\
                    """
                        .formatted(i, i == 0 ? "x" : "o" + (i - 1)))
            .toList();
    var plan = plan(ranks, "x: bf16[16, 256], w: bf16[256, 256]", lines, "o19", ImmutableMap.of());
    try (var session = CudaSession.open(Lowering.lower(plan), PATIENCE)) {
      fill(session);
      int runs = 1000;
      for (int i = 0; i < runs; i++) {
        session.run();
      }
      long begin = System.nanoTime();
      for (int i = 0; i < runs; i++) {
        session.run();
      }
      double wall = (System.nanoTime() - begin) / 1e3 / runs;
      out.println(
          "40 instructions: %s us from call to return, %s us of them on the GPU"
              .formatted(text(wall), text(session.time(10, 10))));
    }
  }
}
