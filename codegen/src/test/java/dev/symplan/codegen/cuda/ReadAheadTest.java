package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArenaKind;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Which kernels read ahead for which products, and what. */
class ReadAheadTest {
  private static final String REDUCED =
      "s = _c10d_functional::all_reduce(x, \"sum\", \"g\")\n"
          + "  n = _c10d_functional::wait_tensor(s)\n  ";

  private static final String NORM = "n = aten::_softmax(x, 1, False)\n  ";
  private static final String PRODUCT = "t = aten::t(w)\n  r = aten::mm(n, t)";

  private static Executable executable(int tokens, String ops) {
    var text =
        """
        graph version 1
        group g = [0, 1]
        graph t(x: bf16[%s, 1024], w: bf16[4096, 1024], v: bf16[4096, 1024]) {
          %s
          return r
        }
        """
            .formatted(tokens, ops);
    return Lowering.lower(
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT)
            .compile(GraphParser.parse(new SourceFile("test.graph", text))));
  }

  private static ImmutableList<DeviceProgram> programs(Executable executable) {
    return ReadAhead.in(DeviceLowering.lower(executable), executable);
  }

  /** The steps of the first rank, and how many more blocks each has than without. */
  private static List<Integer> more(Executable executable) {
    var without = DeviceLowering.lower(executable).getFirst().steps();
    var with = programs(executable).getFirst().steps();
    return IntStream.range(0, with.size())
        .mapToObj(
            i ->
                with.get(i) instanceof Launch launch
                    ? launch.blocks() - ((Launch) without.get(i)).blocks()
                    : 0)
        .toList();
  }

  private static List<Integer> more(int tokens, String ops) {
    return more(executable(tokens, ops));
  }

  @Test
  void aCollectiveReadsAheadForTheProductBehindIt() {
    assertThat(more(4, REDUCED + PRODUCT)).containsExactly(16, 0);
    var executable = executable(4, REDUCED + PRODUCT);
    for (var program : programs(executable)) {
      var launch = (Launch) program.steps().getFirst();
      var matrix = (Memory) launch.words().get(launch.words().size() - 2);
      assertThat(matrix.address().arena()).isEqualTo(ArenaKind.EXTERNAL_INPUT);
      assertThat(matrix.address().index()).isEqualTo(1);
      assertThat(matrix.address().rank()).isEqualTo(program.rank());
      assertThat(launch.words().getLast()).isEqualTo(new KernelArgument.Number(matrix.bytes()));
      assertThat(matrix.bytes()).isEqualTo(4 << 20);
    }
  }

  @Test
  void severalMatricesShareWhatIsRead() {
    var executable =
        executable(
            4,
            REDUCED
                + "t = aten::t(w)\n  u = aten::t(v)\n  a = aten::mm(n, t)\n  b = aten::mm(n, u)\n"
                + "  r = aten::cat([a, b])");
    var words = ((Launch) programs(executable).getFirst().steps().getFirst()).words();
    assertThat(words.getLast()).isEqualTo(new KernelArgument.Number(2 << 20));
    assertThat(words.reverse().subList(1, 3)).allMatch(word -> ((Memory) word).bytes() == 2 << 20);
  }

  /** Such a pair is one launch on Hopper GPUs. */
  @Test
  void aPairIsReadAheadToo() {
    var executable =
        executable(
            64,
            REDUCED
                + "t = aten::t(w)\n  u = aten::t(v)\n  a = aten::mm(n, t)\n  b = aten::mm(n, u)\n"
                + "  c = aten::silu(a)\n  r = aten::mul.Tensor(c, b)");
    var steps = programs(executable).getFirst().steps();
    assertThat(steps).last().isInstanceOf(HopperLaunch.class);
    assertThat(more(executable)).containsExactly(16, 0);
    assertThat(((Launch) steps.getFirst()).words())
        .last()
        .isEqualTo(new KernelArgument.Number(2 << 20));
  }

  /** The library's products do not begin early. */
  @Test
  void anyKernelReadsAheadForTheLibrary() {
    var executable = executable(64, NORM + PRODUCT);
    assertThat(programs(executable).getFirst().steps().getLast()).isInstanceOf(Product.class);
    assertThat(more(executable)).containsExactly(16, 0);
  }

  @Test
  void aProductThatBeginsEarlyReadsAheadItself() {
    assertThat(more(4, NORM + PRODUCT)).containsExactly(0, 0);
  }

  @Test
  void theFirstOfSeveralKernelsReadsAhead() {
    assertThat(more(4, REDUCED.replace("n = ", "m = ") + NORM.replace("(x", "(m") + PRODUCT))
        .first()
        .isEqualTo(16);
    assertThat(more(64, "m = aten::_softmax(x, 0, False)\n  " + NORM.replace("(x", "(m") + PRODUCT))
        .containsExactly(16, 0, 0);
  }

  @Test
  void noneReadsAheadForManyTokens() {
    assertThat(more(128, NORM + PRODUCT)).containsExactly(16, 0);
    assertThat(more(129, NORM + PRODUCT)).containsExactly(0, 0);
  }

  @Test
  void noneReadsAheadWhatAStepWrites() {
    assertThat(
            more(
                64,
                "d = aten::mul_.Scalar(w, 2)\n  " + NORM + "t = aten::t(d)\n  r = aten::mm(n, t)"))
        .containsOnly(0);
    assertThat(
            more(
                64,
                "d = aten::_softmax(w, 1, False)\n  "
                    + NORM
                    + "t = aten::t(d)\n  r = aten::mm(n, t)"))
        .containsOnly(0);
  }

  @Test
  void noneReadsAheadBeyondAProduct() {
    assertThat(
            more(
                64,
                NORM
                    + "t = aten::t(w)\n  a = aten::mm(n, t)\n  u = aten::t(a)\n"
                    + "  c = aten::mm(u, n)\n  r = aten::mm(c, aten::t(v))"
                        .replace("aten::mm(c, aten::t(v))", "aten::add.Tensor(c, v)")))
        .startsWith(16, 0);
  }

  /** Its own blocks work as before; the others end at once. */
  @Test
  void ownBlocksAreTheWholeGridForTheirCode() {
    var executable = executable(4, REDUCED + PRODUCT);
    var without = (Launch) DeviceLowering.lower(executable).getFirst().steps().getFirst();
    var with = (Launch) programs(executable).getFirst().steps().getFirst();
    int own = without.blocks();
    assertThat(without.kernel().text()).contains("gridDim.x");
    assertThat(with.kernel().text())
        .doesNotContain("gridDim.x")
        .contains(
            "Args args) {\n  if (blockIdx.x >= %1$s) {\n    do_others(args, blockIdx.x - %1$s);\n    return;\n  }\n"
                .formatted(own))
        .contains("TICKS / %su".formatted(own))
        .contains("  const char* ahead[1];\n  long long ahead_bytes;\n};\n");
    assertThat(with.words()).startsWith(without.words().toArray(KernelArgument[]::new));
    assertThat(with.blocks()).isEqualTo(own + 16);
  }

  @Test
  void compiles() {
    for (var ops : List.of(REDUCED, NORM)) {
      Nvcc.check(List.copyOf(Nvcc.kernels(programs(executable(64, ops + PRODUCT)))));
    }
  }
}
