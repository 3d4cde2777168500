package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.Target;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class FailureWordsTest {
  private static final long ON_DEVICE = 0x7000;
  private static final Duration TIMEOUT = Duration.ofSeconds(27);

  /** Ranks 1 and 3 add up; then all do. */
  private static final String GRAPH =
      """
      graph version 1
      group half = [0, 2], [1, 3]
      group all = [0, 1, 2, 3]
      graph two(x: f32[64]) {
        a = _c10d_functional::all_reduce(x, "sum", "half")
        b = _c10d_functional::wait_tensor(a)
        c = _c10d_functional::all_reduce(b, "sum", "all")
        d = _c10d_functional::wait_tensor(c)
        return d
      }
      """;

  private final int[] memory = new int[2];
  private final FailureWords words =
      new FailureWords(program(), MemorySegment.ofArray(memory), ON_DEVICE);

  private static RankProgram program() {
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT)
            .compile(GraphParser.parse(new SourceFile("two.graph", GRAPH)));
    return Lowering.lower(plan).ranks().get(1);
  }

  private void write(long address, int value) {
    MemorySegment.ofArray(memory).set(ValueLayout.JAVA_INT, address - ON_DEVICE, value);
  }

  @Test
  void nothingIsWrongAtFirst() {
    words.watch("a");
    assertThat(words.failure(TIMEOUT)).isEmpty();
  }

  @Test
  void theRankThatDidNotComeIsNamed() {
    write(words.watch("a"), DeviceProgram.FIRST_PEER + 1);
    assertThat(words.failure(TIMEOUT))
        .contains("all_reduce 'a' (two.graph:5) waited more than 27 s for rank 3");
  }

  @Test
  void theFirstCollectiveOfTheProgramCounts() {
    var first = words.watch("a");
    write(words.watch("c"), DeviceProgram.FIRST_PEER);
    assertThat(words.failure(TIMEOUT).orElseThrow()).contains("'c' (two.graph:7)", "for rank 0");
    write(first, DeviceProgram.FIRST_PEER + 1);
    assertThat(words.failure(TIMEOUT).orElseThrow()).contains("'a' (two.graph:5)", "for rank 3");
  }

  @Test
  void whoIsUnknownAreThePeers() {
    write(words.watch("c"), 1);
    assertThat(words.failure(Duration.ofMillis(900)).orElseThrow())
        .endsWith("waited more than 900 ms for its peers");
  }
}
