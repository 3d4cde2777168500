package dev.symplan.planner.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.OrderDecision;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Each reason that a plan can give is given by some plan here, and has its line in the docs. */
class ReasonsTest {
  private static final Path DOCS = Path.of(System.getProperty("symplan.root"), "docs");
  private static final Set<Enum<?>> GIVEN = new HashSet<>();

  private static final CompileOptions USUAL = CompileOptions.DEFAULT;

  private static Target target(String settings) {
    return TargetFile.read(
        new SourceFile(
            "t.json",
            """
            {"format": "symplan-target", "version": 1, "name": "t", "base": "h200x4", %s}
            """
                .formatted(settings)));
  }

  private static void plan(Target target, CompileOptions options, String graph) {
    var text =
        "graph version 1\ngroup tp = [0, 1, 2, 3]\ngroup pairs = [0, 1], [2, 3]\n"
            + "group own = [0], [1], [2], [3]\ngroup mixed = [0, 2, 1, 3]\n"
            + graph;
    note(
        Compiler.forTarget(target)
            .with(options.withRanks(target.gpus()))
            .compile(GraphParser.parse(new SourceFile("g.graph", text))));
  }

  private static void plan(CompileOptions options, String graph) {
    plan(Target.H200_X4, options, graph);
  }

  private static void note(Plan plan) {
    for (var rankPlan : plan.rankPlans()) {
      for (var collective : rankPlan.collectives()) {
        collective.args().forEach(arg -> GIVEN.add(arg.reason()));
        collective.verdicts().forEach(verdict -> GIVEN.add(verdict.reason()));
        collective.epilogue().ifPresent(epilogue -> GIVEN.add(epilogue.reason()));
      }
    }
    plan.rewrites().forEach(rewrite -> GIVEN.add(rewrite.reason()));
    GIVEN.add(plan.reordering().outcome());
  }

  private static CompileOptions forced(String selector, Variant variant) {
    return USUAL.withVariants(ImmutableMap.of(selector, variant));
  }

  private static CompileOptions rewrites(Mode bucket, Mode chunk) {
    return USUAL.withRewrites(new RewriteOptions(bucket, chunk, Mode.OFF, Mode.OFF, Mode.OFF));
  }

  private static String reduced(String dtype, String op) {
    return """
    graph g(x: %s[64, 64]) {
      y = aten::relu(x)
      r = _c10d_functional::all_reduce(y, "%s", "tp")
      return r
    }
    """
        .formatted(dtype, op);
  }

  @BeforeAll
  static void planAll() {
    tensors();
    variants();
    workspaces();
    epilogues();
    collectives();
    hosts();
    shares();
    stages();
    orders();
  }

  private static void shares() {
    plan(
        USUAL.withRewrites(RewriteOptions.OFF.withSequenceParallel(Mode.ON)),
        """
        graph g(x: f32[64, 64], p: f32[64, 64]) {
          r = _c10d_functional::all_reduce(p, "sum", "tp")
          s = _c10d_functional::all_reduce(p, "sum", "tp")
          y = aten::add.Tensor(x, r)
          z = aten::flip(s, [0])
          return y, z
        }
        """);
  }

  private static void stages() {
    plan(
        USUAL.withRewrites(rewrites(Mode.ON, Mode.ON).rewrites()),
        """
        graph g(x: f32[64, 64]) ranks [0, 1] {
          y = _c10d_functional::all_reduce(x, "sum", "pairs")
          m = aten::mm(x, y)
          r = _c10d_functional::all_reduce(m, "sum", "tp")
          return r
        }
        graph g(x: f32[64, 64]) ranks [2, 3] {
          m = aten::mm(x, x)
          r = _c10d_functional::all_reduce(m, "sum", "tp")
          return r
        }
        """);
  }

  private static void epilogues() {
    var behind =
        """
        graph g(x: f32[64, 64], h: f32[64, 64]) {
          y = aten::mm(x, h)
          r = _c10d_functional::all_reduce(y, "sum", "tp")
          n = aten::add.Tensor(h, r)
          return n
        }
        """;
    plan(USUAL, behind);
    plan(USUAL.withEpilogues(false), behind);
    plan(forced("all_reduce", Variant.NCCL), behind);
    plan(forced("all_reduce", Variant.TWO_SHOT), behind.replace("64, 64", "2048, 2048"));
    plan(USUAL, behind.replace("add.Tensor", "mm"));
    plan(
        forced("all_reduce", Variant.ONE_SHOT).withReorderBudget(OptionalDouble.empty()),
        """
        graph g(x: f32[1024, 1024], y: f32[4096, 4096]) {
          p = aten::relu(x)
          a = aten::mm(y, y)
          r = _c10d_functional::all_reduce(p, "sum", "tp")
          n = aten::add.Tensor(x, r)
          s = aten::sum(a)
          return n, s
        }
        """);
  }

  /** A workspace larger than the sums, for little time. */
  private static void workspaces() {
    plan(
        USUAL,
        """
        graph g(x: bf16[1024, 1024], w: bf16[1024, 1024]) {
          y = aten::mm(x, w)
          r = _c10d_functional::all_reduce(y, "sum", "tp")
          z = aten::mm(r, w)
          return z
        }
        """);
  }

  private static void tensors() {
    plan(
        forced("all_reduce", Variant.TWO_SHOT),
        """
        op test::anything(Tensor(a! -> *) x) -> ()
        graph g(x: f32[64, 64]) {
          y = aten::relu(x)
          test::anything(y)
          r = _c10d_functional::all_reduce(y, "sum", "tp")
          return r
        }
        """);
    var gather =
        """
        graph g(x: f32[64, 64]) {
          y = aten::relu(x)
          a = _c10d_functional::all_gather_into_tensor(%s, 4, "tp")
          b = _c10d_functional::all_gather_into_tensor(a, 4, "tp")
          return b
        }
        """;
    plan(
        USUAL,
        """
        graph g(x: f32[64, 64], y: f32[64, 64]) {
          a = aten::relu(x)
          r = _c10d_functional::all_reduce(a, "sum", "tp")
          c = aten::cat([r, y], 1)
          return c
        }
        """);
    plan(forced("all_gather", Variant.ONE_SHOT), gather.formatted("y"));
    plan(forced("all_gather", Variant.ONE_SHOT), gather.formatted("x"));
    plan(
        forced("all_gather", Variant.ONE_SHOT).withInputs(MemorySpace.EXTERNAL),
        gather.formatted("x"));
    plan(
        forced("all_gather", Variant.PUSH).withOutputs(MemorySpace.EXTERNAL),
        gather.formatted("y"));
    plan(forced("all_reduce", Variant.TWO_SHOT), reduced("f32", "sum"));
    plan(
        forced("all_reduce", Variant.TWO_SHOT),
        """
        graph g(x: f32[64, 64]) {
          y = aten::relu(x)
          r = _c10d_functional::all_reduce(y, "sum", "tp")
          return r, y
        }
        """);
    plan(
        forced("all_reduce", Variant.ONE_SHOT),
        """
        graph g(x: f32[64]) {
          y = aten::relu(x)
          s = aten::slice.Tensor(y, 0, 1, 33)
          r = _c10d_functional::all_reduce(s, "sum", "tp")
          return r
        }
        """);
    plan(
        USUAL,
        """
        graph g(x: f32[64, 64]) {
          y = aten::neg(x)
          t = aten::slice.Tensor(y, 1, 0, 32)
          r = _c10d_functional::all_gather_into_tensor(t, 4, "tp")
          return r, y
        }
        """);
    plan(
        forced("all_gather", Variant.ONE_SHOT),
        """
        graph g(x: f32[64, 32], w: f32[32, 128]) {
          y = aten::mm(x, w)
          t = aten::t(y)
          r = _c10d_functional::all_gather_into_tensor(t, 4, "tp")
          return r
        }
        """);
    plan(
        forced("all_reduce", Variant.ONE_SHOT),
        """
        graph g(x: f32[64]) ranks [0, 1] {
          y = aten::relu(x)
          s = aten::slice.Tensor(y, 0, 0, 32)
          r = _c10d_functional::all_reduce(s, "sum", "tp")
          return r
        }

        graph g(x: f32[64]) ranks [2, 3] {
          y = aten::relu(x)
          s = aten::slice.Tensor(y, 0, 32, 64)
          r = _c10d_functional::all_reduce(s, "sum", "tp")
          return r
        }
        """);
  }

  private static void variants() {
    plan(
        USUAL,
        """
        graph g(x: bf16[4, 3]) {
          y = aten::relu(x)
          r = _c10d_functional::reduce_scatter_tensor(y, "sum", 4, "tp")
          return r
        }
        """);
    plan(
        USUAL,
        """
        op _c10d_functional::all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor \
        symm_mem(input)
        """
            + reduced("f32", "sum"));
    plan(USUAL, reduced("f32", "sum"));
    plan(USUAL, reduced("f64", "max"));
    plan(target("\"nccl\": \"2.20.3\""), USUAL, reduced("f32", "sum"));
    plan(
        target("\"copy_engines\": false"),
        USUAL,
        """
        graph g(x: f32[64, 64]) {
          r = _c10d_functional::all_gather_into_tensor(x, 4, "tp")
          return r
        }
        """);
    plan(
        USUAL,
        """
        graph g(x: bf16[8589934592]) {
          r = _c10d_functional::all_reduce(x, "sum", "tp")
          return r
        }
        """);
    plan(
        USUAL,
        """
        graph g(x: f32[64, 64]) {
          r = _c10d_functional::all_reduce(x, "sum", "own")
          return r
        }
        """);
    plan(
        USUAL,
        """
        graph g(x: f32[3, 64]) ranks [0, 2] {
          r = _c10d_functional::all_to_all_single(x, [1, 2], [1, 2], "pairs")
          return r
        }

        graph g(x: f32[3, 64]) ranks [1, 3] {
          r = _c10d_functional::all_to_all_single(x, [2, 1], [2, 1], "pairs")
          return r
        }
        """);
    var coalesced =
        """
        graph g(x: bf16[1024], y: bf16[1024]) {
          a, b = _c10d_functional::all_reduce_coalesced([x, y], "sum", "tp")
          return a, b
        }
        """;
    plan(target("\"nccl\": \"2.27.7\""), USUAL, coalesced);
    plan(target("\"nccl\": \"2.28.9\""), USUAL, coalesced);
    plan(target("\"multicast\": true"), USUAL, reduced("f32", "sum"));
    plan(target("\"multicast\": true"), USUAL.withMulticast(true), reduced("f32", "sum"));
    plan(
        USUAL.withBackend(
            BackendVariants.all("b").without(Variant.TWO_SHOT, "has no kernel for it")),
        reduced("f32", "sum"));
    note(
        Compiler.forTarget(Target.H200_X4)
            .compile(
                GraphParser.parse(
                    new SourceFile(
                        "g.graph",
                        "graph version 1\ngroup tp = [0, 4], [1, 5], [2, 6], [3, 7]\n"
                            + reduced("f32", "sum")))));
  }

  private static void collectives() {
    var small =
        """
        graph small(x: f32[64, 64], y: f32[64, 64]) {
          a = aten::relu(x)
          r = _c10d_functional::all_reduce(a, "sum", "tp")
          b = aten::exp(%s)
          s = _c10d_functional::all_reduce(b, "sum", "%s")
          o = aten::add.Tensor(r, s)
          return o
        }
        """;
    plan(rewrites(Mode.AUTO, Mode.OFF), small.formatted("y", "tp"));
    plan(rewrites(Mode.ON, Mode.OFF), small.formatted("r", "tp"));
    plan(rewrites(Mode.ON, Mode.OFF), small.formatted("y", "pairs"));
    plan(
        rewrites(Mode.ON, Mode.OFF).withVariants(ImmutableMap.of("s", Variant.NCCL)),
        small.formatted("y", "tp"));
    plan(
        rewrites(Mode.ON, Mode.OFF),
        """
        graph chain(x: f32[64, 64]) {
          r = _c10d_functional::all_reduce(x, "sum", "tp")
          s = _c10d_functional::all_reduce(r, "sum", "tp")
          return s
        }
        """);
    var fsdp =
        """
        graph fsdp(x: bf16[4, 2048], v: bf16[512, 2048], w: bf16[512, 2048]) {
          g = _c10d_functional::all_gather_into_tensor(v, 4, "tp")
          a = aten::mm(x, g)
          h = _c10d_functional::all_gather_into_tensor(w, 4, "tp")
          b = aten::mm(a, h)
          return b
        }
        """;
    plan(rewrites(Mode.AUTO, Mode.OFF), fsdp);
    plan(rewrites(Mode.ON, Mode.OFF), fsdp);
    var product =
        """
        graph product(x: bf16[%s, 1024], w: bf16[1024, 1024]) {
          y = aten::mm(x, w)
          r = _c10d_functional::all_reduce(y, "sum", "tp")
          return r
        }
        """;
    plan(rewrites(Mode.OFF, Mode.AUTO), product.formatted(128));
    plan(rewrites(Mode.OFF, Mode.AUTO), product.formatted(4096));
    plan(rewrites(Mode.OFF, Mode.ON), product.formatted(4096));
    var columns =
        """
        graph g(x: bf16[512, 1024]) {
          r = _c10d_functional::all_gather_into_tensor(x, 4, "tp")
          a, b, c, d = aten::split.Tensor(r, 512)
          o = aten::cat([a, b, c, d], 1)
          return o
        }
        """;
    plan(USUAL, columns);
    plan(
        USUAL.withBackend(
            BackendVariants.all("b")
                .without(Variant.ONE_SHOT, "has no kernel for it")
                .without(Variant.PUSH, "has no kernel for it")
                .without(Variant.COPY_ENGINE, "has no copies")),
        columns);
    plan(
        USUAL,
        """
        graph g(x: bf16[1024, 1024], w: bf16[1024, 1024]) {
          a = _c10d_functional::all_reduce(w, "sum", "tp")
          b = _c10d_functional::all_reduce(x, "sum", "tp")
          c = _c10d_functional::all_reduce(w, "sum", "tp")
          return c
        }
        """);
  }

  /** On two hosts: three ranks and one, other ranks in turn, elements that two do not divide. */
  private static void hosts() {
    var gathered =
        """
        graph g(x: f32[64, 64]) {
          r = _c10d_functional::all_gather_into_tensor(x, 4, "%s")
          return r
        }
        """;
    plan(USUAL.withHosts(Hosts.filled(ImmutableIntArray.of(3, 1))), gathered.formatted("tp"));
    var halves = USUAL.withHosts(Hosts.filled(ImmutableIntArray.of(2, 2)));
    plan(halves, gathered.formatted("mixed"));
    plan(
        halves,
        """
        graph g(x: f32[3, 3]) {
          r = _c10d_functional::all_reduce(x, "sum", "tp")
          return r
        }
        """);
  }

  private static void orders() {
    var tree =
        """
        graph g(x: f32[256, 256]) {
          a = aten::mm(x, x)
          b = aten::mm(x, x)
          c = aten::mm(x, x)
          sa = aten::sum(a)
          sb = aten::sum(b)
          sc = aten::sum(c)
          return sa, sb, sc
        }
        """;
    plan(USUAL, tree);
    plan(USUAL.withReorderBudget(OptionalDouble.empty()), tree);
    plan(
        USUAL.withMemoryLimit(OptionalLong.of(14 << 20)),
        """
        graph g(x: f32[1024, 1024]) {
          k = aten::relu(x)
          a = aten::mm(k, x)
          b = aten::mm(x, a)
          n = aten::sum(b)
          z = aten::mul.Tensor(k, n)
          return z
        }
        """);
    plan(
        USUAL,
        """
        graph g(x: f32[4096, 4096], y: f32[4096, 4096]) {
          p = aten::mm(x, y)
          r = _c10d_functional::all_reduce(p, "sum", "tp")
          a = aten::mm(y, x)
          b = aten::mm(y, a)
          c = aten::mm(y, b)
          q = aten::sum(r)
          s = aten::sum(c)
          return q, s
        }
        """);
  }

  static Stream<Enum<?>> all() {
    return Stream.<Enum<?>[]>of(
            ArgDecision.Reason.values(),
            Verdict.Reason.values(),
            Epilogue.Reason.values(),
            Rewrite.Reason.values(),
            OrderDecision.Outcome.values())
        .flatMap(Stream::of);
  }

  @ParameterizedTest
  @MethodSource("all")
  void isGiven(Enum<?> reason) {
    assertThat(GIVEN).contains(reason);
  }

  @Test
  void theDocumentsAreGenerated() {
    Golden.checkFile(DOCS.resolve("reasons.md"), ReasonTexts.markdown());
    Golden.checkFile(DOCS.resolve("collectives.md"), CollectivesTable.markdown());
  }

  @Test
  void everyCollectiveOfTheRegistryIsInTheTable() {
    var table = CollectivesTable.text("");
    var registry = BuiltinOps.registry();
    var missing = new ArrayList<String>();
    for (var name : registry.names()) {
      var def = registry.get(name.toString());
      boolean waits = def.has(OpTrait.WAIT);
      if (def.collective().isPresent() && !waits && !table.contains(name + "(")) {
        missing.add(name.toString());
      }
    }
    assertThat(missing).isEmpty();
    assertThat(Variant.values())
        .filteredOn(variant -> variant != Variant.CUSTOM)
        .allMatch(variant -> table.contains("\n    " + variant.text()));
    assertThat(CollectivesTable.text("two_shot_all_reduce_out"))
        .contains("Tensor(b!) output) -> Tensor(b!)  as two_shot\n    NCCL: ncclAllReduce\n");
    assertThat(CollectivesTable.text("fused_matmul")).contains("taken apart into collectives");
    assertThat(CollectivesTable.text("no such op")).isEmpty();
  }
}
