package dev.symplan.runtime.cuda;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableMap;
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
import dev.symplan.runtime.tensor.SeededInputs;
import java.time.Duration;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Times single collectives: every call is as a plan makes it, with its barriers, and the launches
 * are spread over the replay of a graph that has many of them.
 */
public final class CollectiveBench {
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  private CollectiveBench() {}

  /**
   * {@return a plan of one collective}
   *
   * @param bytes of one rank's operand; rounded down to whole elements for each rank
   */
  public static Plan plan(Kind kind, Variant variant, DType dtype, long bytes, int ranks) {
    long elements = Math.max(ranks, bytes / dtype.bytes() / ranks * ranks);
    var equal = "[%s]".formatted(repeated(ranks, elements / ranks));
    var call =
        switch (kind) {
          case ALL_REDUCE -> "all_reduce(x, \"sum\", \"g\")";
          case ALL_GATHER -> "all_gather_into_tensor(x, %d, \"g\")".formatted(ranks);
          case REDUCE_SCATTER -> "reduce_scatter_tensor(x, \"sum\", %d, \"g\")".formatted(ranks);
          case ALL_TO_ALL -> "all_to_all_single(x, %s, %s, \"g\")".formatted(equal, equal);
          case BROADCAST -> "broadcast(x, 0, \"g\")";
          case CUSTOM -> throw new IllegalArgumentException("a custom op cannot be timed alone");
        };
    var text =
        """
        graph version 1
        group g = [%s]
        graph bench(x: %s[%d]) {
          r = _c10d_functional::%s
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """
            .formatted(
                IntStream.range(0, ranks)
                    .mapToObj(Integer::toString)
                    .collect(Collectors.joining(", ")),
                dtype.shortName(),
                elements,
                call);
    var options =
        CompileOptions.DEFAULT.withVariants(
            ImmutableMap.of(Ascii.toLowerCase(kind.name()), variant));
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("bench.graph", text)));
  }

  private static String repeated(int ranks, long rows) {
    return IntStream.range(0, ranks)
        .mapToObj(_ -> Long.toString(rows))
        .collect(Collectors.joining(", "));
  }

  /**
   * {@return microseconds of one collective in the steady state}
   *
   * @throws dev.symplan.runtime.RunException when there is no such variant here
   */
  public static double micros(Plan plan) {
    try (var session = CudaSession.open(Lowering.lower(plan), PATIENCE)) {
      for (int rank = 0; rank < session.ranks(); rank++) {
        SeededInputs.fill(session.input(rank, 0).orElseThrow(), 1, rank, "x");
      }
      session.run();
      long bytes = plan.forRank(0).graph().inputs().getFirst().tensor().bytes();
      int times = bytes > 8 << 20 ? 5 : 20;
      return session.time(times, bytes > 8 << 20 ? 4 : 10);
    }
  }

  /**
   * Prints {@code kind,variant,dtype,bytes,ranks,micros} for each size and variant.
   *
   * @param args kinds, separated by commas; the number of ranks; sizes in bytes
   */
  public static void main(String[] args) {
    int ranks = Integer.parseInt(args[1]);
    for (var name : args[0].split(",", -1)) {
      var kind = Kind.valueOf(Ascii.toUpperCase(name));
      for (int i = 2; i < args.length; i++) {
        for (var variant : Variant.values()) {
          if (variant == Variant.LOCAL
              || variant == Variant.MULTIMEM
              || !variant.implementsKind(kind)) {
            continue;
          }
          long bytes = Long.parseLong(args[i]);
          var plan = plan(kind, variant, DType.BF16, bytes, ranks);
          System.out.println(
              "%s,%s,bf16,%d,%d,%s"
                  .formatted(
                      name, variant.text(), bytes, ranks, Math.round(micros(plan) * 100) / 100.0));
        }
      }
    }
  }
}
