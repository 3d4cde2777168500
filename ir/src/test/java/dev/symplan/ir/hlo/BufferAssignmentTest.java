package dev.symplan.ir.hlo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.hlo.BufferAssignment.Allocation;
import dev.symplan.ir.hlo.BufferAssignment.Held;
import dev.symplan.ir.hlo.BufferAssignment.Kind;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BufferAssignmentTest {
  private static BufferAssignment read(String text) {
    return BufferAssignment.read(new SourceFile("buffers.txt", text));
  }

  @Test
  void isOfOneModule() {
    var assignment =
        read(
            """
            BufferAssignment:
            allocation 0: size 64, page 0, parameter 0, shape |f32[16]| at ShapeIndex {}:
             value: <1 x @0> (size=64,offset=0): f32[16]{0}
             value: <7 all-reduce.1{0} @0> (size=48,offset=0): f32[12]{0}
            """);
    var module = "HloModule m\n%x = f32[16] parameter(0)\n%all-reduce.1 = f32[12] all-reduce(%x)\n";
    assertThatCode(() -> assignment.requireOf(new SourceFile("m.hlo", module)))
        .doesNotThrowAnyException();
    assertThatThrownBy(
            () -> assignment.requireOf(new SourceFile("m.hlo", module.replace("ce.1", "ce.2"))))
        .hasMessageContaining("the module has no instruction 'all-reduce.1'");
    assertThatThrownBy(() -> assignment.requireOf(new SourceFile("m.graph", "graph version 1")))
        .hasMessageContaining("this is not an HLO module");
  }

  /** XLA prints no computations that only wrap what an instruction such as fusion-start starts. */
  @Test
  void mayPlaceInstructionsThatTextsLeaveOut() {
    var names = "a b c sum-start all-reduce.1";
    var text = new StringBuilder("BufferAssignment:\n");
    text.append("allocation 0: size 64, page 0, preallocated-temp:\n");
    for (var name : names.split(" ")) {
      text.append(" value: <1 %s @0> (size=64,offset=0): f32[16]{0}\n".formatted(name));
    }
    var assignment = read(text.toString());
    var module = "HloModule m\n%a = %b %c %sum-start = fusion-start(%a)\n";

    assertThatCode(() -> assignment.requireOf(new SourceFile("m.hlo", module)))
        .doesNotThrowAnyException();
    assertThatThrownBy(
            () -> assignment.requireOf(new SourceFile("m.hlo", module.replace("%b", "%d"))))
        .hasMessageContaining("the module has no instruction 'b'");
  }

  @Test
  void readsWhatEachAllocationIsFor() {
    var assignment =
        read(
            """
            BufferAssignment:
            allocation 0: size 64, page 0, parameter 0, shape |f32[16]| at ShapeIndex {}:
             value: <1 x @0> (size=64,offset=0): f32[16]{0}
            allocation 1: size 32, page 0, parameter 1, shape |f32[8]| at ShapeIndex {}, maybe-live-out:
            allocation 2: size 48, color 1, page 0, output shape is |f32[12]|, maybe-live-out:
             value: <7 all-reduce.1{0} @0> (size=48,offset=0): f32[12]{0}
            allocation 3: size 4, page 0, constant:
            allocation 4: size 2, page 0, thread-local:
            allocation 5: size 1040, page 0, preallocated-temp:
             value: <2 custom-call.1{} @0> (size=16,offset=1024): (f32[4]{0}, s8[8]{0})
             value: <3 custom-call.1{1} @0> (size=8,offset=0): s8[8]{0}

            Total bytes used: 1190 (1.2KiB)

            Used values:
            anything
            """);

    assertThat(assignment.allocations())
        .extracting(Allocation::kind)
        .containsExactly(
            Kind.PARAMETER,
            Kind.DONATED,
            Kind.OUTPUT,
            Kind.CONSTANT,
            Kind.THREAD_LOCAL,
            Kind.TEMPORARY);
    assertThat(assignment.allocations())
        .extracting(Allocation::space)
        .containsExactly(0, 0, 1, 0, 0, 0);
    assertThat(assignment.allocations().getLast().values())
        .containsExactly(
            new Held("custom-call.1{}", 16, 1024, true), new Held("custom-call.1{1}", 8, 0, false));
    assertThat(assignment.bytes(List.of(Kind.OUTPUT, Kind.TEMPORARY))).isEqualTo(1088);
    assertThat(assignment.of(ImmutableList.of(Kind.CONSTANT))).hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "HloModule m",
        "BufferAssignment:",
        "BufferAssignment:\n value: <1 x @0> (size=64,offset=0): f32[16]",
        "BufferAssignment:\nallocation 1: size many, page 0:",
        "BufferAssignment:\nallocation 1: size 99999999999999999999, page 0:",
        "BufferAssignment:\nallocation 1: size 4, page 0:\n value: <1 x @0> (size=64): f32[16]"
      })
  void saysWhereAFileIsNotOne(String text) {
    assertThatThrownBy(() -> read(text))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("buffers.txt:")
        .hasMessageContaining("error[syntax]");
  }
}
