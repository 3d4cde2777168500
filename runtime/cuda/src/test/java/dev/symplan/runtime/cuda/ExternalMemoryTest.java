package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArenaKind;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ExternalMemoryTest {
  private static final String TEXT =
      """
      graph version 1
      graph places(x: f32[8, 4]) {
        h = aten::relu(x)
        t = aten::t(h)
        e = aten::exp(x)
        return t, h, e
      }
      """;

  private final List<Long> allocated = new ArrayList<>();
  private final List<Long> told = new ArrayList<>();

  private ExternalMemory memory() {
    var options =
        CompileOptions.DEFAULT
            .withInputs(MemorySpace.EXTERNAL)
            .withSpaces(ImmutableMap.of("h", MemorySpace.EXTERNAL));
    var plan =
        Compiler.forDefaultTarget()
            .with(options)
            .compile(GraphParser.parse(new SourceFile("test.graph", TEXT)));
    return new ExternalMemory(
        Lowering.lower(plan).ranks().getFirst(),
        bytes -> {
          allocated.add(bytes);
          return 4096L * allocated.size();
        });
  }

  @Test
  void followersHearOfEachMove() {
    var memory = memory();
    memory.follow(ArenaKind.EXTERNAL_INPUT, 0, told::add);
    assertThat(told).isEmpty();
    assertThat(memory.move(ArenaKind.EXTERNAL_INPUT, 0, 512)).isTrue();
    assertThat(memory.move(ArenaKind.EXTERNAL_INPUT, 0, 512)).isFalse();
    assertThat(memory.move(ArenaKind.EXTERNAL_INPUT, 0, 1024)).isTrue();
    memory.follow(ArenaKind.EXTERNAL_INPUT, 0, told::add);
    assertThat(told).containsExactly(512L, 1024L, 1024L);
    assertThat(memory.base(ArenaKind.EXTERNAL_INPUT, 0)).isEqualTo(1024);
    assertThat(allocated).isEmpty();
  }

  @Test
  void allocatesWhereTheCallerGivesNothing() {
    var memory = memory();
    memory.follow(ArenaKind.EXTERNAL_OUTPUT, 1, told::add);
    memory.move(ArenaKind.EXTERNAL_INPUT, 0, 512);
    memory.allocateAll();
    memory.allocateAll();
    assertThat(allocated).containsExactly(128L);
    assertThat(told).containsExactly(4096L);
    assertThat(memory.base(ArenaKind.EXTERNAL_INPUT, 0)).isEqualTo(512);
  }

  @Test
  void knowsNoOtherTensors() {
    // The first output lies in the second one, and the third one is planned.
    assertThatThrownBy(() -> memory().base(ArenaKind.EXTERNAL_OUTPUT, 0))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> memory().move(ArenaKind.EXTERNAL_OUTPUT, 2, 512))
        .isInstanceOf(IllegalStateException.class);
  }
}
