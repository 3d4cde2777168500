package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.HostTensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Programs that PyTorch 2.13 refuses, or gets wrong, once their collectives use symmetric memory:
 * here they are compiled from its own text, run on the host, and compared with evaluation op by op.
 */
class PyTorchProgramsTest {
  private static final String REDUCED_PRODUCT =
      """
      class <lambda>(torch.nn.Module):
          def forward(self, arg0_1: "f32[8, 16][16, 1]cpu", arg1_1: "f32[16, 16][16, 1]cpu"):
              mm: "f32[8, 16][16, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg1_1)
              all_reduce: "f32[8, 16][16, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(mm, 'sum', '0');  mm = None
              wait_tensor: "f32[8, 16][16, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce);  all_reduce = None
              return (wait_tensor,)
      """;

  @TempDir private Path folder;

  private Path file(String text) throws IOException {
    return Files.writeString(folder.resolve("program.fx.txt"), text);
  }

  private Plan plan(String text, CompileOptions options) throws IOException {
    return Compiler.forTarget(Target.H200_X4).with(options.withRanks(4)).compile(file(text));
  }

  private static CompileOptions forced(String selector, Variant variant) {
    return CompileOptions.DEFAULT.withVariants(ImmutableMap.of(selector, variant));
  }

  /** Runs a program; the command compares what comes out with evaluation without a plan. */
  private void runs(String text, String... options) throws IOException {
    var words = new ArrayList<>(List.of("run", file(text).toString(), "--ranks", "4"));
    words.addAll(List.of(options));
    var result = Ran.run(words.toArray());
    assertThat(result.code()).as("%s", result.said()).isZero();
    assertThat(result.out()).contains("ok: all");
  }

  private static void fill(Session session, double number) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      for (int i = 0; i < session.inputNames().size(); i++) {
        var tensor = session.input(rank, i).orElseThrow();
        for (long row = 0; row < tensor.type().size(0); row++) {
          for (long column = 0; column < tensor.type().size(1); column++) {
            tensor.set(number, row, column);
          }
        }
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"one_shot", "two_shot", "nccl"})
  void aTransposedProductIsReduced(String variant) throws IOException {
    runs(
        """
        class <lambda>(torch.nn.Module):
            def forward(self, arg0_1: "f32[8, 16][16, 1]cpu", arg1_1: "f32[16, 16][16, 1]cpu"):
                mm: "f32[8, 16][16, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg1_1)
                permute: "f32[16, 8][1, 16]cpu" = torch.ops.aten.permute.default(mm, [1, 0]);  mm = None
                all_reduce: "f32[16, 8][1, 16]cpu" = torch.ops._c10d_functional.all_reduce.default(permute, 'sum', '0')
                wait_tensor: "f32[16, 8][1, 16]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
                return (wait_tensor,)
        """,
        "--variant",
        "all_reduce=" + variant);
  }

  @ParameterizedTest
  @CsvSource({"f16, 4, one_shot", "f16, 4, two_shot", "bf16, 3, two_shot", "i32, 5, one_shot"})
  void elementTypesAndSizesOfAllKindsAreReduced(String type, int size, String variant)
      throws IOException {
    runs(
        """
        class <lambda>(torch.nn.Module):
            def forward(self, arg0_1: "TYPE[SIZE][1]cpu"):
                neg: "TYPE[SIZE][1]cpu" = torch.ops.aten.neg.default(arg0_1)
                all_reduce: "TYPE[SIZE][1]cpu" = torch.ops._c10d_functional.all_reduce.default(neg, 'sum', '0')
                wait_tensor: "TYPE[SIZE][1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
                return (wait_tensor,)
        """
            .replace("TYPE", type)
            .replace("SIZE", Integer.toString(size)),
        "--variant",
        "all_reduce=" + variant);
  }

  @Test
  void sizesThatAreNotKnownArePlannedForTheirBound() throws IOException {
    var text =
        """
        class <lambda>(torch.nn.Module):
            def forward(self, arg0_1: "Sym(s77)", arg1_1: "f32[s77, 16][16, 1]cpu", arg2_1: "f32[16, 16][16, 1]cpu"):
                mm: "f32[s77, 16][16, 1]cpu" = torch.ops.aten.mm.default(arg1_1, arg2_1)
                all_reduce: "f32[s77, 16][16, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(mm, 'sum', '0')
                wait_tensor: "f32[s77, 16][16, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
                return (wait_tensor,)
        """;
    runs(text, "--dim-max", "s77=48", "--variant", "all_reduce=two_shot");
    var options = forced("all_reduce", Variant.TWO_SHOT);
    var plan = plan(text, options.withDims(ImmutableMap.of(), ImmutableMap.of("s77", 48L)));
    assertThat(plan.symmetric().bytes()).isEqualTo(48 * 16 * 4);
  }

  @Test
  void aTensorOfTwoGroupsIsReducedInBoth() throws IOException {
    var text =
        """
        graph version 1

        group tp = [0, 1, 2, 3]
        group row = [0, 1], [2, 3]

        graph g(x: f32[8, 16], w: f32[16, 16]) {
          y = aten::mm(x, w)
          a = _c10d_functional::all_reduce(y, "sum", "tp")
          oa = _c10d_functional::wait_tensor(a)
          b = _c10d_functional::all_reduce(y, "sum", "row")
          ob = _c10d_functional::wait_tensor(b)
          return oa, ob
        }
        """;
    runs(text, "--variant", "all_reduce=one_shot");
  }

  @Test
  void groupsMayBeUsedInAnyOrder() throws IOException {
    runs(
        """
        graph version 1

        group tp = [0, 1, 2, 3]
        group row = [0, 1], [2, 3]

        graph g(x: f32[8, 16]) {
          a = aten::neg(x)
          b = _c10d_functional::all_reduce(a, "sum", "row")
          c = _c10d_functional::wait_tensor(b)
          d = _c10d_functional::all_reduce(c, "sum", "tp")
          e = _c10d_functional::wait_tensor(d)
          f = _c10d_functional::all_reduce(e, "max", "row")
          h = _c10d_functional::wait_tensor(f)
          return h
        }
        """,
        "--variant",
        "all_reduce=two_shot");
  }

  @Test
  void gatheredMultipliedAndScatteredInOneGraph() throws IOException {
    runs(
        """
        class <lambda>(torch.nn.Module):
            def forward(self, arg0_1: "f32[4, 16][16, 1]cpu", arg1_1: "f32[16, 16][16, 1]cpu"):
                all_gather_into_tensor: "f32[16, 16][16, 1]cpu" = torch.ops._c10d_functional.all_gather_into_tensor.default(arg0_1, 4, '0')
                wait_tensor: "f32[16, 16][16, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_gather_into_tensor)
                mm: "f32[16, 16][16, 1]cpu" = torch.ops.aten.mm.default(wait_tensor, arg1_1)
                reduce_scatter_tensor: "f32[4, 16][16, 1]cpu" = torch.ops._c10d_functional.reduce_scatter_tensor.default(mm, 'sum', 4, '0')
                wait_tensor_1: "f32[4, 16][16, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(reduce_scatter_tensor)
                return (wait_tensor_1,)
        """,
        "--variant",
        "all_gather=push",
        "--variant",
        "reduce_scatter=one_shot");
  }

  @Test
  void aSliceIsGatheredFromWhereItLies() throws IOException {
    runs(
        """
        class <lambda>(torch.nn.Module):
            def forward(self, arg0_1: "f32[16, 16][16, 1]cpu"):
                neg: "f32[16, 16][16, 1]cpu" = torch.ops.aten.neg.default(arg0_1)
                slice_1: "f32[4, 16][16, 1]cpu" = torch.ops.aten.slice.Tensor(neg, 0, 8, 12)
                all_gather_into_tensor: "f32[16, 16][16, 1]cpu" = torch.ops._c10d_functional.all_gather_into_tensor.default(slice_1, 4, '0')
                wait_tensor: "f32[16, 16][16, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_gather_into_tensor)
                return (wait_tensor, neg)
        """,
        "--variant",
        "all_gather=one_shot");
  }

  @Test
  void theFormThatWritesItsOperandNeedsNoCopy() throws IOException {
    var text = REDUCED_PRODUCT.replace("all_reduce.default(mm", "all_reduce_.default(mm");
    var plan = plan(text, forced("all_reduce", Variant.TWO_SHOT));
    assertThat(plan.forRank(0).graph().ops())
        .extracting(op -> op.def().name().toString())
        .containsExactly(
            "aten::mm", "_c10d_functional::all_reduce", "_c10d_functional::wait_tensor");
    assertThat(plan.forRank(0).steps()).hasSize(2);
    assertThat(plan.symmetric().bytes()).isEqualTo(8 * 16 * 4);
    runs(text, "--variant", "all_reduce=two_shot");
  }

  @Test
  void reducedTensorsOutliveTheNextRun() throws IOException {
    // Two forward passes before the backward pass: each result was saved for it.
    var plan =
        plan(
            REDUCED_PRODUCT,
            forced("all_reduce", Variant.TWO_SHOT).withOutputs(MemorySpace.EXTERNAL));
    try (var session = Session.open(plan, new HostBackend())) {
      var type = session.output(0, 0).orElseThrow().type();
      var saved = new ArrayList<HostTensor>();
      for (int microbatch = 1; microbatch <= 2; microbatch++) {
        var own = HostTensor.allocate(type);
        saved.add(own);
        session.bindOutput(0, 0, own);
        fill(session, microbatch);
        session.run();
      }
      assertThat(saved.get(0).get(7, 15)).isEqualTo(4 * 16 * 1 * 1);
      assertThat(saved.get(1).get(7, 15)).isEqualTo(4 * 16 * 2 * 2);
    }
  }

  @Test
  void programsOfOneProcessDoNotDisturbEachOther() throws IOException {
    var small = plan(REDUCED_PRODUCT, forced("all_reduce", Variant.TWO_SHOT));
    var large =
        plan(REDUCED_PRODUCT.replace("8, 16]", "32, 16]"), forced("all_reduce", Variant.TWO_SHOT));
    assertThat(large.symmetric().bytes()).isNotEqualTo(small.symmetric().bytes());
    try (var a = Session.open(small, new HostBackend());
        var b = Session.open(large, new HostBackend())) {
      fill(a, 1);
      fill(b, 2);
      for (int run = 0; run < 2; run++) {
        a.run();
        b.run();
        assertThat(a.output(3, 0).orElseThrow().get(0, 0)).isEqualTo(64);
        assertThat(b.output(3, 0).orElseThrow().get(31, 0)).isEqualTo(256);
      }
    }
  }

  @Test
  void aDonatedInputIsReducedInItsPlace() throws IOException {
    var text =
        """
        class <lambda>(torch.nn.Module):
            def forward(self, arg0_1: "f32[8, 16][16, 1]cpu"):
                all_reduce: "f32[8, 16][16, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(arg0_1, 'sum', '0')
                wait_tensor: "f32[8, 16][16, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
                return (wait_tensor,)
        """;
    runs(text, "--donate", "arg0_1", "--variant", "all_reduce=two_shot");
    var options =
        forced("all_reduce", Variant.TWO_SHOT)
            .withSpaces(ImmutableMap.of("arg0_1", MemorySpace.DONATED));
    try (var session = Session.open(plan(text, options), new HostBackend())) {
      for (int run = 1; run <= 3; run++) {
        fill(session, run);
        session.run();
        assertThat(session.output(2, 0).orElseThrow().get(5, 5)).isEqualTo(4 * run);
        assertThat(session.output(2, 0).orElseThrow().memory().address())
            .isEqualTo(session.input(2, 0).orElseThrow().memory().address());
      }
    }
  }

  @Test
  void joinedProductsAreReducedWhereTheyWereWritten() throws IOException {
    runs(
        """
        class <lambda>(torch.nn.Module):
            def forward(self, arg0_1: "f32[8, 16][16, 1]cpu", arg1_1: "f32[16, 16][16, 1]cpu"):
                mm: "f32[8, 16][16, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg1_1)
                mm_1: "f32[8, 16][16, 1]cpu" = torch.ops.aten.mm.default(mm, arg1_1)
                relu: "f32[8, 16][16, 1]cpu" = torch.ops.aten.relu.default(mm_1)
                cat: "f32[16, 16][16, 1]cpu" = torch.ops.aten.cat.default([mm, relu])
                all_reduce: "f32[16, 16][16, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(cat, 'sum', '0')
                wait_tensor: "f32[16, 16][16, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
                return (wait_tensor,)
        """,
        "--variant",
        "all_reduce=two_shot");
  }
}
