package dev.symplan.runtime.host;

import static dev.symplan.runtime.host.HloModulesRunTest.RANKS;
import static dev.symplan.runtime.host.HloModulesRunTest.element;
import static dev.symplan.runtime.host.HloModulesRunTest.run;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.hlo.HloImporter;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Modules that ask on which device they are. */
class HloDevicesRunTest {
  private static final String ELEMENTS =
      """
      HloModule m, replica_count=2, num_partitions=2

      %scaled (a: f32[2,3], id: u32[]) -> f32[2,3] {
        %a = f32[2,3]{1,0} parameter(0)
        %id = u32[] parameter(1)
        %number = s32[] convert(%id)
        %four = s32[] constant(4)
        %offset = s32[] multiply(%number, %four)
        %wide = s32[2,3]{1,0} broadcast(%offset), dimensions={}
        %float = f32[2,3]{1,0} convert(%wide)
        ROOT %sum = f32[2,3]{1,0} add(%a, %float)
      }

      ENTRY %main (x: f32[2,3]) -> (f32[2,3], f32[2,3], s32[2]) {
        %x = f32[2,3]{1,0} parameter(0)
        %partition = u32[] partition-id()
        %replica = u32[] replica-id()
        %scaled.1 = f32[2,3]{1,0} fusion(%x, %partition), kind=kLoop, calls=%scaled
        %table = s32[2]{0} constant({9, -2})
        %one = s32[1]{0} dynamic-slice(%table, %replica), dynamic_slice_sizes={1}
        %of-replica = s32[] reshape(%one)
        %three = s32[] constant(3)
        %first = pred[] compare(%of-replica, %three), direction=GT
        %firsts = pred[2,3]{1,0} broadcast(%first), dimensions={}
        %zero = f32[] constant(0)
        %zeros = f32[2,3]{1,0} broadcast(%zero), dimensions={}
        %chosen = f32[2,3]{1,0} select(%firsts, %x, %zeros)
        %numbers = s32[2]{0} broadcast(%of-replica), dimensions={}
        ROOT %t = (f32[2,3]{1,0}, f32[2,3]{1,0}, s32[2]{0}) tuple(%scaled.1, %chosen, %numbers)
      }
      """;

  private static final String PARTS =
      """
      HloModule m, num_partitions=%s

      %%own (a: f32[64]) -> f32[64] {
        %%a = f32[64]{0} parameter(0)
        ROOT %%n = f32[64]{0} negate(%%a)
      }

      %%other (b: f32[64]) -> f32[64] {
        ROOT %%b = f32[64]{0} parameter(0)
      }

      ENTRY %%main (x: f32[64]) -> (f32[2], f32[64]) {
        %%x = f32[64]{0} parameter(0)
        %%id = u32[] partition-id()
        %%two = u32[] constant(2)
        %%start = u32[] multiply(%%id, %%two)
        %%part = f32[2]{0} dynamic-slice(%%x, %%start), dynamic_slice_sizes={2}
        %%chosen = f32[64]{0} conditional(%%id, %%x, %%x), branch_computations={%%own, %%other}
        ROOT %%t = (f32[2]{0}, f32[64]{0}) tuple(%%part, %%chosen)
      }
      """;

  private final List<Diagnostic> warnings = new ArrayList<>();

  private Program read(String module) {
    return HloImporter.read(
        new SourceFile("m.hlo", module), BuiltinOps.registry(), 0, warnings::add);
  }

  @Test
  void elementsThatDependOnTheDeviceAreInTheGraphOfAll() {
    assertThat(read(ELEMENTS).graphs()).hasSize(1);
    assertThat(warnings).isEmpty();

    var scaled = run(ELEMENTS, 0);
    var chosen = run(ELEMENTS, 1);
    var numbers = run(ELEMENTS, 2);
    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 6; i++) {
        assertThat(scaled[rank][i]).isEqualTo(element(rank, 0, i) + 4 * (rank % 2));
        assertThat(chosen[rank][i]).isEqualTo(rank < 2 ? element(rank, 0, i) : 0);
      }
      assertThat(numbers[rank]).containsExactly(rank < 2 ? 9 : -2, rank < 2 ? 9 : -2);
    }
  }

  @Test
  void partsAndBranchesThatDependOnTheDeviceMakeAGraphForEach() {
    var module = PARTS.formatted(RANKS);
    assertThat(read(module).graphs()).hasSize(RANKS);
    assertThat(warnings).isEmpty();

    var parts = run(module, 0);
    var chosen = run(module, 1);
    for (int rank = 0; rank < RANKS; rank++) {
      assertThat(parts[rank])
          .containsExactly(element(rank, 0, 2 * rank), element(rank, 0, 2 * rank + 1));
      assertThat(chosen[rank][5]).isEqualTo((rank == 0 ? -1 : 1) * element(rank, 0, 5));
    }
  }

  @Test
  void manyDevicesHaveNoGraphsOfTheirOwn() {
    assertThat(read(PARTS.formatted(32)).graphs()).hasSize(1);
    assertThat(warnings)
        .extracting(Diagnostic::message)
        .containsExactly(
            "the module can be planned, but not run: 'part' depends on the number of its device: up"
                + " to 16 devices can have graphs of their own");
    warnings.clear();

    assertThat(read(ELEMENTS.replace("replica_count=2", "replica_count=16")).graphs()).hasSize(1);
    assertThat(warnings).isEmpty();
  }
}
