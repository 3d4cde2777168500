package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.ArgDecision.Reason;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Plans around ops of which no rule says what they do. */
class UnknownOpsTest {
  private static final CompileOptions TWO_RANKS = CompileOptions.DEFAULT.withRanks(2);

  @TempDir private Path folder;

  private static RankPlan plan(CompileOptions options, String inputs, String body) {
    var text = "def forward(self, %s):\n%s".formatted(inputs, body.indent(4));
    var program = ProgramReader.read(new SourceFile("g.fx.txt", text), options, warning -> {});
    return Compiler.forTarget(Target.H200_X4).with(options).compile(program).rankPlans().getFirst();
  }

  /** An op fills the operand of a collective, beside which a product could run. */
  private static RankPlan filled(CompileOptions options, String fill) {
    return plan(
        options,
        "g: \"f32[1024, 1024][1024, 1]cuda:0\", a: \"f32[1024, 1024][1024, 1]cuda:0\"",
        """
        e: "f32[1048576][1]cuda:0" = torch.ops.aten.empty.memory_format([1048576], dtype = torch.float32)
        f = %s;  f = None
        r: "f32[524288][1]cuda:0" = torch.ops._c10d_functional.reduce_scatter_tensor.default(e, 'sum', 2, '0')
        m: "f32[1024, 1024][1024, 1]cuda:0" = torch.ops.aten.mm.default(a, g)
        w: "f32[524288][1]cuda:0" = torch.ops._c10d_functional.wait_tensor.default(r)
        return (w, m)
        """
            .formatted(fill));
  }

  private static List<String> order(RankPlan plan) {
    var names = new ArrayList<String>();
    for (var step : plan.steps()) {
      if (step instanceof Step.Compute(int op)) {
        names.add(plan.graph().ops().get(op).def().name().name());
      } else if (step instanceof Step.Start(int k)) {
        names.add("start " + k);
      } else if (step instanceof Step.Join(int k)) {
        names.add("join " + k);
      }
    }
    return names;
  }

  private static ArgDecision operand(RankPlan plan, int k) {
    return plan.collectives().get(k).args().getFirst();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "torch.ops.mine.fill_.default(e, g)",
        "torch.ops.mine.fill.default([g], 2, out = e)",
        "torch.ops.fsdp.set_.default(e, g)"
      })
  void aCollectiveCopiesWhatAnOpMayHaveMoved(String fill) {
    var plan = filled(TWO_RANKS, fill);
    var order = order(plan);
    assertThat(order.subList(1, 3)).satisfies(names -> assertThat(names.get(1)).isEqualTo("stage"));
    assertThat(order.indexOf("start 0")).isGreaterThan(order.indexOf("stage"));
    assertThat(operand(plan, 0).realization()).isEqualTo(Realization.STAGED);
    assertThat(operand(plan, 0).reason()).isEqualTo(Reason.MAY_HAVE_MOVED);
  }

  @Test
  void aSchemaOfPyTorchKeepsTheTensorInItsPlace() {
    var plan = filled(TWO_RANKS, "torch.ops.aten.special_i1e.out(g, out = e)");
    assertThat(order(plan).subList(0, 3)).containsExactly("empty", "special_i1e", "start 0");
    assertThat(operand(plan, 0).realization()).isEqualTo(Realization.ZERO_COPY);
  }

  @Test
  void aDeclaredSchemaKeepsTheTensorInItsPlace() throws IOException {
    var file =
        Files.writeString(folder.resolve("ops.txt"), "mine::fill_(Tensor(a!) out, Tensor x) -> ()");
    var plan =
        filled(
            TWO_RANKS.withDeclarations(ImmutableList.of(file)),
            "torch.ops.mine.fill_.default(e, g)");
    assertThat(order(plan).subList(0, 3)).containsExactly("empty", "fill_", "start 0");
    assertThat(operand(plan, 0).realization()).isEqualTo(Realization.ZERO_COPY);
  }

  @Test
  void aCapturedCaseBringsItsSchemas() throws IOException {
    Files.writeString(
        folder.resolve("graph.fx.txt"),
        """
        def forward(self, g: "f32[64][1]cuda:0"):
            e: "f32[64][1]cuda:0" = torch.ops.aten.empty.memory_format([64], dtype = torch.float32)
            f = torch.ops.mine.fill_.default(e, g);  f = None
            return (e,)
        """);
    Files.writeString(
        folder.resolve("ops.rank0.txt"), "mine::fill_(Tensor(a!) out, Tensor x) -> ()\n");
    var program = ProgramReader.read(folder, TWO_RANKS, warning -> {});
    var schema = program.graphs().getFirst().ops().getLast().def().schema();
    assertThat(schema).hasToString("mine::fill_(Tensor(a!) out, Tensor x) -> ()");
  }

  /** The parameter becomes a view of what was gathered, and is read after other things are. */
  @ParameterizedTest
  @ValueSource(strings = {"mine.anything.default", "fsdp.set_.default", "aten.set_.source_Tensor"})
  void whatATensorMayBeInIsNotGivenAway(String op) {
    var plan =
        plan(
            TWO_RANKS.withVariants(ImmutableMap.of("all_gather", Variant.NCCL)),
            "x: \"f32[8, 1024][1024, 1]\", s: \"f32[524288][1]\", p: \"f32[1024, 1024][1024, 1]\"",
            """
            g: "f32[1048576][1]" = torch.ops._c10d_functional.all_gather_into_tensor.default(s, 2, '0')
            w: "f32[1048576][1]" = torch.ops._c10d_functional.wait_tensor.default(g)
            v: "f32[1024, 1024][1024, 1]" = torch.ops.aten.reshape.default(w, [1024, 1024])
            t = torch.ops.%s(p, v);  t = None
            a: "f32[8, 1024][1024, 1]" = torch.ops.aten.relu.default(x)
            m: "f32[8, 1024][1024, 1]" = torch.ops.aten.mm.default(a, p)
            return (m,)
            """
                .formatted(op));
    var gathered =
        plan.buffers().stream().filter(b -> b.name().equals("g")).findFirst().orElseThrow();
    // The caller's tensor is in it, too, when the program is done.
    assertThat(gathered.last()).isEqualTo(plan.steps().size());
  }

  @Test
  void collectivesKeepTheirPlacesAroundAnOpThatMayCommunicate() {
    var plan =
        plan(
            TWO_RANKS,
            "x: \"f32[2048, 2048][2048, 1]\", y: \"f32[2048, 2048][2048, 1]\"",
            """
            a: "f32[2048, 2048][2048, 1]" = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0')
            m: "f32[2048, 2048][2048, 1]" = torch.ops.aten.mm.default(y, y)
            s = torch.ops.mine.sync.default('tp');  s = None
            n: "f32[2048, 2048][2048, 1]" = torch.ops.aten.mm.default(m, y)
            b: "f32[2048, 2048][2048, 1]" = torch.ops._c10d_functional.all_reduce.default(y, 'sum', '0')
            o: "f32[2048, 2048][2048, 1]" = torch.ops.aten.mm.default(n, y)
            c: "f32[2048, 2048][2048, 1]" = torch.ops._c10d_functional.wait_tensor.default(a)
            d: "f32[2048, 2048][2048, 1]" = torch.ops._c10d_functional.wait_tensor.default(b)
            return (c, o, d)
            """);
    assertThat(plan.collectives()).hasSize(2);
    var order = order(plan);
    int sync = order.indexOf("sync");
    assertThat(order.indexOf("start 0")).isBetween(0, sync - 1);
    assertThat(order.indexOf("join 0")).isLessThan(sync);
    assertThat(order.indexOf("start 1")).isGreaterThan(sync);
  }

  /** An op later may put the product into the memory of what is gathered. */
  @Test
  void aCollectiveDoesNotRunBesideReadersOfWhatItsResultMayShare() {
    var plan =
        plan(
            TWO_RANKS,
            "x: \"f32[2048, 2048][2048, 1]\", g: \"f32[2048, 2048][2048, 1]\"",
            """
            r: "f32[2048, 2048][2048, 1]" = torch.ops.aten.relu.default(x)
            y: "f32[2048, 2048][2048, 1]" = torch.ops.aten.mm.default(x, g)
            m: "f32[2048, 2048][2048, 1]" = torch.ops.aten.mm.default(y, g)
            n: "f32[2048, 2048][2048, 1]" = torch.ops.aten.mm.default(m, g)
            a: "f32[2048, 2048][2048, 1]" = torch.ops._c10d_functional.all_reduce.default(r, 'sum', '0')
            w: "f32[2048, 2048][2048, 1]" = torch.ops._c10d_functional.wait_tensor.default(a)
            s = torch.ops.mine.mix.default(w, y);  s = None
            return (n, y)
            """);
    var order = order(plan);
    assertThat(order.indexOf("start 0")).isBetween(order.indexOf("mm") + 2, order.indexOf("mix"));
    assertThat(order.subList(order.indexOf("start 0"), order.size())).contains("mm");
  }

  /** A tensor that may be a tensor that may be a third one is moved with all of them. */
  @Test
  void movingATensorMovesAllThatItMayBe() throws IOException {
    var declarations =
        Files.writeString(folder.resolve("ops.txt"), "mine::pass(Tensor(a) x) -> Tensor(a)");
    var plan =
        plan(
            TWO_RANKS.withDeclarations(ImmutableList.of(declarations)),
            "x: \"f32[64][1]\", z: \"f32[64][1]\"",
            """
            a: "f32[64][1]" = torch.ops.aten.relu.default(x)
            b: "f32[64][1]" = torch.ops.mine.pass.default(a)
            c: "f32[64][1]" = torch.ops.mine.pass.default(b)
            d: "f32[64][1]" = torch.ops.aten.exp.default(z)
            s = torch.ops.mine.anything.default(c, d);  s = None
            e: "f32[64][1]" = torch.ops.aten.exp.default(a)
            return (e,)
            """);
    var buffer = plan.buffers().stream().filter(one -> one.name().equals("d")).findFirst();
    assertThat(buffer.orElseThrow().last()).isEqualTo(plan.steps().size() - 1);
  }

  /** Ops that control_deps orders keep the order of the text where that matters. */
  @Test
  void opsWithEffectsKeepTheOrderThatControlDepsStates() {
    var text =
        """
        class GraphModule(torch.nn.Module):
            def forward(self, x: "f32[1024, 1024][1024, 1]", y: "f32[1024, 1024][1024, 1]"):
                big: "f32[1024, 1024][1024, 1]" = torch.ops.aten.mm.default(x, y)
                note = torch.ops.mine.log.default(big);  note = None
                deps = self.deps
                r: "f32[1024, 1024][1024, 1]" = torch.ops.higher_order.control_deps((big,), deps, x)
                draw = self.draw
                d: "f32[1024, 1024][1024, 1]" = torch.ops.higher_order.control_deps((r,), draw, y)
                e: "f32[1024, 1024][1024, 1]" = torch.ops.aten.rand_like.default(x)
                w: "f32[1024, 1024][1024, 1]" = torch.ops._c10d_functional.wait_tensor.default(r)
                return (w, d, e)
            class deps(torch.nn.Module):
                def forward(self, arg_0):
                    r: "f32[1024, 1024][1024, 1]" = torch.ops._c10d_functional.all_reduce.default(arg_0, 'sum', '0')
                    return r
            class draw(torch.nn.Module):
                def forward(self, arg_0):
                    d: "f32[1024, 1024][1024, 1]" = torch.ops.aten.bernoulli.default(arg_0)
                    return d
        """;
    var options = TWO_RANKS.withReorderBudget(OptionalDouble.of(100));
    var program = ProgramReader.read(new SourceFile("g.fx.txt", text), options, warning -> {});
    var plan =
        Compiler.forTarget(Target.H200_X4).with(options).compile(program).rankPlans().getFirst();
    assertThat(order(plan)).containsSubsequence("mm", "log", "start 0");
    assertThat(order(plan)).containsSubsequence("mm", "log", "bernoulli", "rand");
  }

  /** The product reads what may be the memory into which peers push later. */
  @Test
  void aBarrierIsKeptWhereATensorMayBeInWhatPeersTouch() throws IOException {
    var file = Files.writeString(folder.resolve("ops.txt"), "mine::pass(Tensor(a) x) -> Tensor(a)");
    var plan =
        plan(
            TWO_RANKS
                .withOverlap(false)
                .withDeclarations(ImmutableList.of(file))
                .withVariants(ImmutableMap.of("all_to_all", Variant.PUSH)),
            "x: \"f32[64, 64][64, 1]\", y: \"f32[64, 64][64, 1]\"",
            """
            a: "f32[64, 64][64, 1]" = torch.ops.aten.relu.default(x)
            b: "f32[64, 64][64, 1]" = torch.ops.mine.pass.default(a)
            r: "f32[64, 64][64, 1]" = torch.ops._c10d_functional.all_to_all_single.default(y, [], [], '0')
            w: "f32[64, 64][64, 1]" = torch.ops._c10d_functional.wait_tensor.default(r)
            m: "f32[64, 64][64, 1]" = torch.ops.aten.mm.default(b, y)
            s: "f32[64, 64][64, 1]" = torch.ops._c10d_functional.all_to_all_single.default(m, [], [], '0')
            z: "f32[64, 64][64, 1]" = torch.ops._c10d_functional.wait_tensor.default(s)
            return (w, z)
            """);
    assertThat(buffer(plan, "s").offset()).isEqualTo(buffer(plan, "a").offset());
    assertThat(plan.collectives().get(1).start()).isEqualTo(new Barrier.Own());
  }

  private static Buffer buffer(RankPlan plan, String name) {
    return plan.buffers().stream().filter(one -> one.name().equals(name)).findFirst().orElseThrow();
  }

  /** PyTorch marks what goes into a list like what may be anywhere. */
  @Test
  void opsWithARuleDoWhatItSays() {
    var plan =
        plan(
            TWO_RANKS,
            "x: \"f32[64][1]\"",
            """
            s = torch.ops.aten.split.Tensor(x, 32)
            a: "f32[32][1]" = s[0]
            b: "f32[32][1]" = s[1];  s = None
            r: "f32[32][1]" = torch.ops._c10d_functional.all_reduce.default(a, 'sum', '0')
            w: "f32[32][1]" = torch.ops._c10d_functional.wait_tensor.default(r)
            return (w, b)
            """);
    assertThat(order(plan)).containsExactly("start 0");
  }

  /** A list of views in which the operand of a collective, and what is read later, may be. */
  @Test
  void resultsInListsMayBeViewsOfWhatGoesIntoThem() {
    var plan =
        plan(
            TWO_RANKS,
            "x: \"f32[64][1]\"",
            """
            y: "f32[64][1]" = torch.ops.aten.relu.default(x)
            s = torch.ops.aten.tensor_split.sections(y, 2)
            a: "f32[32][1]" = s[0]
            b: "f32[32][1]" = s[1];  s = None
            z: "f32[64][1]" = torch.ops.aten.exp.default(x)
            c: "f32[32][1]" = torch.ops.aten.exp.default(b)
            return (c, z)
            """);
    var viewed = plan.buffers().stream().filter(v -> v.name().equals("y")).findFirst();
    var reader = plan.steps().size() - 1;
    assertThat(viewed.orElseThrow().last()).isEqualTo(reader);
  }

  @Test
  void outputsThatMayHaveMovedAreCopiedToTheirPlaces() {
    for (var space : List.of(MemorySpace.ANY, MemorySpace.EXTERNAL, MemorySpace.SYMMETRIC)) {
      var plan =
          plan(
              TWO_RANKS.withOutputs(space),
              "x: \"f32[64][1]\"",
              """
              y: "f32[64][1]" = torch.ops.mine.view.default(x)
              return (y,)
              """);
      assertThat(order(plan)).containsExactly("view", "stage");
    }
  }

  @Test
  void aCollectiveInPlaceWritesBackWhereATensorMayBeSeenElsewhere() {
    var plan =
        plan(
            TWO_RANKS,
            "x: \"f32[64][1]\"",
            """
            y: "f32[64][1]" = torch.ops.aten.relu.default(x)
            z: "f32[64][1]" = torch.ops.mine.view.default(y)
            r: "f32[64][1]" = torch.ops._c10d_functional.all_reduce_.default(y, 'sum', '0')
            w: "f32[64][1]" = torch.ops._c10d_functional.wait_tensor.default(r)
            s: "f32[64][1]" = torch.ops.aten.exp.default(z)
            return (w, s)
            """);
    assertThat(order(plan)).contains("copy_");
  }
}
