package dev.symplan.codegen;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.StreamKind;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class LoweringTest {

  private static final String MLP =
      """
      graph version 1
      group tp = [0, 1]

      graph mlp(x: bf16[16, 64], w1: bf16[64, 32], w2: bf16[32, 64]) {
        h = aten::mm(x, w1)
        a = aten::relu(h)
        y = aten::mm(a, w2)
        r = _c10d_functional::all_reduce(y, "sum", "tp")
        o = _c10d_functional::wait_tensor(r)
        return o, None
      }
      """;

  private static final String OVERLAP =
      """
      graph version 1
      group g = [0, 1], [3, 2]

      graph overlap(x: bf16[4096, 4096], w: bf16[1024, 4096]) {
        s = _c10d_functional::all_gather_into_tensor(w, 2, "g")
        y = aten::mm(x, x)
        f = _c10d_functional::wait_tensor(s)
        ft = aten::permute(f, [1, 0])
        z = aten::mm(y, ft)
        e = _c10d_functional::all_to_all_single(z, [2048, 2048], [2048, 2048], "g")
        o = _c10d_functional::wait_tensor(e)
        return o
      }
      """;

  private static Plan plan(String text, CompileOptions options) {
    var program = GraphParser.parse(new SourceFile("test.graph", text));
    return Compiler.forTarget(Target.H200_X4).with(options).compile(program);
  }

  @Test
  void printsOneLineForEachInstruction() {
    var plan =
        plan(
            MLP,
            CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", Variant.TWO_SHOT)));
    Golden.check("mlp.txt", Lowering.lower(plan).toText());
  }

  @Test
  void printsExternalMemory() {
    var plan =
        plan(
            MLP,
            CompileOptions.DEFAULT
                .withInputs(MemorySpace.EXTERNAL)
                .withOutputs(MemorySpace.EXTERNAL)
                .withVariants(ImmutableMap.of("all_reduce", Variant.NCCL)));
    Golden.check("mlp_external.txt", Lowering.lower(plan).toText());
  }

  @Test
  void whatAttentionGivesBesidesItsResultIsMadeIfItIsRead() {
    var text =
        """
        graph version 1
        graph t(q: bf16[1, 2, 16, 64], k: bf16[1, 2, 16, 64]) {
          a, l, b, c, d, e, f, g, h = aten::_scaled_dot_product_cudnn_attention(q, k, k, None, True)
          return a%s
        }
        """;
    var options = CompileOptions.DEFAULT.withRanks(1);
    for (int read = 0; read <= 2; read++) {
      var plan = plan(text.formatted(List.of("", ", l", ", l, f").get(read)), options);
      var results =
          Lowering.lower(plan).ranks().getFirst().instructions().stream()
              .filter(LocalOp.class::isInstance)
              .map(op -> ((LocalOp) op).results().stream().filter(Optional::isPresent).count());
      assertThat(results).containsExactly(1L + read);
    }
  }

  @Test
  void forksAndJoinsCollectivesOnSideStreams() {
    var options =
        CompileOptions.DEFAULT.withVariants(
            ImmutableMap.of("all_gather", Variant.COPY_ENGINE, "all_to_all", Variant.NCCL));
    var executable = Lowering.lower(plan(OVERLAP, options));
    Golden.check("overlap.txt", executable.toText());

    for (var program : executable.ranks()) {
      var instructions = program.instructions();
      int collective = 0;
      while (!(instructions.get(collective) instanceof Collective c
          && c.stream() == StreamKind.COPY)) {
        collective++;
      }
      assertThat(instructions.get(collective - 2))
          .isEqualTo(new RecordEvent(StreamKind.COMPUTE, 0));
      assertThat(instructions.get(collective - 1)).isEqualTo(new AwaitEvent(StreamKind.COPY, 0));
      assertThat(instructions.get(collective + 1)).isEqualTo(new RecordEvent(StreamKind.COPY, 1));
      assertThat(instructions.subList(collective + 2, instructions.size()))
          .contains(new AwaitEvent(StreamKind.COMPUTE, 1));
      assertThat(program.events()).isEqualTo(2);
    }
  }

  @Test
  void givesEachRankItsPartOfTheGroup() {
    var executable = Lowering.lower(plan(OVERLAP, CompileOptions.DEFAULT));
    var parts = new HashSet<ImmutableIntArray>();
    for (var program : executable.ranks()) {
      for (var instruction : program.instructions()) {
        if (instruction instanceof Collective c) {
          parts.add(c.group().members());
          assertThat(c.group().members().get(c.group().self())).isEqualTo(program.rank());
        }
      }
    }
    assertThat(parts)
        .containsExactlyInAnyOrder(ImmutableIntArray.of(0, 1), ImmutableIntArray.of(3, 2));
  }

  @Test
  void leavesViewsAndWaitsOut() {
    var executable = Lowering.lower(plan(OVERLAP, CompileOptions.DEFAULT));
    assertThat(executable.ranks().getFirst().instructions())
        .filteredOn(LocalOp.class::isInstance)
        .extracting(instruction -> ((LocalOp) instruction).def().name().toString())
        .containsExactly("aten::mm", "aten::mm");
  }

  @Test
  void givesTheSameTextAgain() {
    var first = Lowering.lower(plan(OVERLAP, CompileOptions.DEFAULT));
    var second = Lowering.lower(plan(OVERLAP, CompileOptions.DEFAULT));
    assertThat(second).isEqualTo(first);
    assertThat(second.toText()).isEqualTo(first.toText());
  }
}
