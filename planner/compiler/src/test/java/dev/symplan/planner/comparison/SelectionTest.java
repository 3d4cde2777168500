package dev.symplan.planner.comparison;

import static dev.symplan.planner.comparison.Planned.forced;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArgDecision.Realization;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which algorithm a collective may be, which it is, and what the plan says of the others. */
class SelectionTest {
  private static final String ALL_REDUCE =
      """
      graph version 1

      group tp = [0, 1, 2, 3]

      graph g(x: %s) {
        h = aten::neg(x)
        r = _c10d_functional::all_reduce(h, "%s", "tp")
        o = _c10d_functional::wait_tensor(r)
        return o
      }
      """;

  private static Planned reduce(String type, String op) {
    return Planned.of(ALL_REDUCE.formatted(type, op));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "all_reduce(h, 'sum', 'tp')",
        "all_gather_into_tensor(h, 4, 'tp')",
        "reduce_scatter_tensor(h, 'sum', 4, 'tp')",
        "all_to_all_single(h, [4, 4, 4, 4], [4, 4, 4, 4], 'tp')",
        "broadcast(h, 1, 'tp')",
      })
  void everyKindOfCollectiveHasSymmetricVariants(String call) {
    everyVariantIsJudged(
        Planned.graph(
            """
            graph g(x: f32[16, 64]) {
              h = aten::neg(x)
              r = _c10d_functional::%s
              o = _c10d_functional::wait_tensor(r)
              return o
            }
            """
                .formatted(call),
            CompileOptions.DEFAULT));
  }

  private static void everyVariantIsJudged(Planned planned) {
    var collective = planned.collective(0);
    assertThat(collective.verdicts().stream().map(Verdict::variant))
        .containsExactlyInAnyOrderElementsOf(
            Arrays.stream(Variant.values())
                .filter(variant -> variant.implementsKind(collective.kind()))
                .toList());
    assertThat(collective.verdicts())
        .filteredOn(v -> v.reason().eligible() && v.variant() != Variant.NCCL)
        .isNotEmpty();
    assertThat(collective.verdicts())
        .filteredOn(v -> !v.reason().eligible())
        .allSatisfy(v -> assertThat(v.detail()).isNotEmpty());
    assertThat(collective.verdicts()).filteredOn(Verdict::chosen).hasSize(1);
  }

  @Test
  void coalescedCollectivesAreRealizedTensorByTensor() {
    var planned =
        Planned.graph(
            """
            graph g(x: f32[16, 64], y: f32[8]) {
              a = aten::neg(x)
              b = aten::neg(y)
              ra, rb = _c10d_functional::all_reduce_coalesced([a, b], "sum", "tp")
              oa = _c10d_functional::wait_tensor(ra)
              ob = _c10d_functional::wait_tensor(rb)
              return oa, ob
            }
            """,
            forced("all_reduce", Variant.TWO_SHOT));
    assertThat(planned.copies()).isZero();
    assertThat(planned.buffer("a").symmetric()).isTrue();
    assertThat(planned.buffer("b").symmetric()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"sum", "avg", "min", "max"})
  void reductionsOtherThanSumsAreSymmetricToo(String op) {
    var planned = reduce("f32[64, 64]", op);
    everyVariantIsJudged(planned);
    assertThat(planned.verdict(0, Variant.TWO_SHOT).reason().eligible()).isTrue();
    assertThat(planned.verdict(0, Variant.ONE_SHOT).reason().eligible()).isTrue();
  }

  @ParameterizedTest
  @CsvSource({
    "f32, ''",
    "bf16, ''",
    "f16, ''",
    "i32, no kernel reduces i32",
    "f64, no kernel reduces f64"
  })
  void elementTypesAreCheckedBeforeARun(String type, String rejection) {
    var verdict = reduce(type + "[64, 64]", "sum").verdict(0, Variant.TWO_SHOT);
    assertThat(verdict.detail().startsWith("no kernel") ? verdict.detail() : "")
        .isEqualTo(rejection);
    assertThat(verdict.reason().eligible()).isEqualTo(rejection.isEmpty());
  }

  @ParameterizedTest
  @ValueSource(strings = {"bf16[3]", "f16[1]", "f32[7, 11]", "f32[0, 8]", "f32[]"})
  void anySizeIsReducedInSymmetricMemory(String type) {
    var planned =
        Planned.of(ALL_REDUCE.formatted(type, "sum"), forced("all_reduce", Variant.TWO_SHOT));
    assertThat(planned.copies()).isZero();
    assertThat(planned.buffer("h").symmetric() || planned.buffer("h").bytes() == 0).isTrue();
  }

  @Test
  void withoutMulticastOtherVariantsAreTaken() {
    var without = reduce("f32[64, 64]", "sum");
    assertThat(without.verdict(0, Variant.MULTIMEM).reason())
        .isEqualTo(Verdict.Reason.NO_MULTICAST);
    assertThat(without.collective(0).variant()).isNotEqualTo(Variant.NCCL);
    var with =
        Planned.of(
            Target.H100_X8,
            ALL_REDUCE.formatted("f32[64, 64]", "sum"),
            CompileOptions.DEFAULT.withMulticast(true));
    assertThat(with.verdict(0, Variant.MULTIMEM).reason().eligible()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"h200x8", "h100x8", "b200x8", "host"})
  void multicastThatTheTargetHasIsUsedWhereItIsSwitchedOn(String name) {
    var target = Target.ofName(name).orElseThrow();
    assertThat(target.multicast()).isTrue();
    var text =
        ALL_REDUCE
            .formatted("bf16[1024, 4096]", "sum")
            .replace("[0, 1, 2, 3]", "[0, 1, 2, 3, 4, 5, 6, 7]");
    var usual = Planned.of(target, text, CompileOptions.DEFAULT);
    assertThat(usual.verdict(0, Variant.MULTIMEM).reason()).isEqualTo(Verdict.Reason.MULTICAST_OFF);
    assertThat(usual.verdict(0, Variant.MULTIMEM).detail())
        .isEqualTo("multicast is off; add --multicast=on");
    var on = Planned.of(target, text, CompileOptions.DEFAULT.withMulticast(true));
    assertThat(on.verdict(0, Variant.MULTIMEM).reason().eligible()).isTrue();
  }

  /** Even where all others are predicted to take longer. */
  @Test
  void variantThatMayGiveRanksOtherBitsIsTakenOnlyWhereItIsNamed() {
    var target =
        TargetFile.read(
            new SourceFile(
                "fast.json",
                """
                {"format": "symplan-target", "version": 1, "name": "fast", "base": "h200x8",
                 "curves": {"all_reduce": {"multimem_one_shot": [{"ranks": 4, "measured": false,
                   "source": "made up", "floor_us": 0, "per_rank_us": 0, "protocols": [{"latency_us": 0.001, "gbps": 1000000}]}]}}}
                """));
    var multicast = CompileOptions.DEFAULT.withMulticast(true);
    var text = ALL_REDUCE.formatted("bf16[64, 64]", "sum");
    var free = Planned.of(target, text, multicast);
    var verdict = free.verdict(0, Variant.MULTIMEM_ONE_SHOT);
    assertThat(verdict.reason()).isEqualTo(Verdict.Reason.NOT_NAMED);
    assertThat(verdict.detail())
        .isEqualTo("estimated, only if named: ranks may get different bits");
    assertThat(verdict.totalMicros())
        .isLessThan(free.verdict(0, free.collective(0).variant()).totalMicros());
    assertThat(free.collective(0).spec().numerics().isSameOnAllRanks()).isTrue();

    var options = ImmutableMap.of("all_reduce", Variant.MULTIMEM_ONE_SHOT);
    var forced = Planned.of(target, text, multicast.withVariants(options));
    assertThat(forced.collective(0).variant()).isEqualTo(Variant.MULTIMEM_ONE_SHOT);
    var named = text.replace("\"sum\", \"tp\"", "\"sum\", \"tp\", config=\"multimem_one_shot\"");
    assertThat(Planned.of(target, named, multicast).collective(0).variant())
        .isEqualTo(Variant.MULTIMEM_ONE_SHOT);
    assertThat(
            Planned.of(target, named, multicast.withFreeVariants(true))
                .verdict(0, Variant.MULTIMEM_ONE_SHOT)
                .reason())
        .isEqualTo(Verdict.Reason.NOT_NAMED);
  }

  @Test
  void whatTheLibraryWouldSilentlyNotDoIsKnownInAdvance() {
    var planned = reduce("f32[64, 64]", "avg");
    assertThat(planned.verdict(0, Variant.NCCL_SYMM).reason()).isEqualTo(Verdict.Reason.LIBRARY);
    assertThat(planned.verdict(0, Variant.NCCL_SYMM).detail()).contains("NCCL 2.30");
    assertThat(reduce("f32[64, 64]", "max").verdict(0, Variant.NCCL_SYMM).reason())
        .isEqualTo(Verdict.Reason.REDUCTION);
    assertThat(reduce("f64[64, 64]", "sum").verdict(0, Variant.NCCL_SYMM).reason())
        .isEqualTo(Verdict.Reason.DTYPE);
  }

  @Test
  void groupsThatReachBeyondTheMachineStayWithTheLibrary() {
    var text =
        ALL_REDUCE
            .formatted("f32[64, 64]", "sum")
            .replace("[0, 1, 2, 3]", "[0, 1, 2, 3, 4, 5, 6, 7]");
    var planned = Planned.of(Target.H200_X4, text, CompileOptions.DEFAULT);
    assertThat(planned.collective(0).variant()).isEqualTo(Variant.NCCL);
    assertThat(planned.verdict(0, Variant.ONE_SHOT).reason())
        .isEqualTo(Verdict.Reason.NO_PEER_ACCESS);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          [0, 4], [1, 5], [2, 6], [3, 7] | ranks 0 and 4 are on different hosts; the hosts are 2x4
          [0, 1], [3, 4], [2, 5], [6, 7] | ranks 3 and 4 are on different hosts; the hosts are 2x4
          [7, 6], [5, 3], [4, 2], [1, 0] | ranks 5 and 3 are on different hosts; the hosts are 2x4
          """)
  void groupsBetweenHostsStayWithTheLibrary(String parts, String reason) {
    var text = ALL_REDUCE.formatted("f32[64, 64]", "sum").replace("[0, 1, 2, 3]", parts);
    var planned = Planned.of(Target.H200_X4, text, CompileOptions.DEFAULT);
    assertThat(planned.collective(0).variant()).isEqualTo(Variant.NCCL);
    assertThat(planned.verdict(0, Variant.NCCL).detail()).isEqualTo("estimated");
    for (var verdict : planned.collective(0).verdicts()) {
      if (verdict.variant() != Variant.NCCL && verdict.variant() != Variant.LOCAL) {
        assertThat(verdict.reason()).isEqualTo(Verdict.Reason.NO_PEER_ACCESS);
        assertThat(verdict.detail()).isEqualTo(reason);
      }
    }
    assertThat(Planned.of(Target.H200_X8, text, CompileOptions.DEFAULT).collective(0).variant())
        .isNotEqualTo(Variant.NCCL);
  }

  @ParameterizedTest
  @ValueSource(strings = {"[0, 1], [2, 3], [4, 5], [6, 7]", "[3, 0], [1, 2], [7, 4], [6, 5]"})
  void groupsOfEachHostUseItsMemory(String parts) {
    var text = ALL_REDUCE.formatted("f32[64, 64]", "sum").replace("[0, 1, 2, 3]", parts);
    assertThat(Planned.of(Target.H200_X4, text, CompileOptions.DEFAULT).collective(0).variant())
        .isNotEqualTo(Variant.NCCL);
  }

  /** The ranks of one graph are on one host, those that run the other are not. */
  @Test
  void eachGraphsGroupIsLookedAt() {
    var text =
        """
        graph version 1
        group a = [0, 1]
        group b = [2, 5], [3, 4]
        graph g(x: f32[64, 64]) ranks [0, 1] {
          r = _c10d_functional::all_reduce(x, "sum", "a")
          return r
        }

        graph g(x: f32[64, 64]) ranks [2, 3, 4, 5] {
          r = _c10d_functional::all_reduce(x, "sum", "b")
          return r
        }
        """;
    var planned = Planned.of(Target.H200_X4, text, CompileOptions.DEFAULT);
    assertThat(planned.collective(0).variant()).isEqualTo(Variant.NCCL);
    assertThat(planned.verdict(0, Variant.ONE_SHOT).detail()).startsWith("ranks 2 and 5 are on");
  }

  @Test
  void variantBetweenHostsIsRefused() {
    var text = ALL_REDUCE.formatted("f32[64]", "sum").replace("[0, 1, 2, 3]", "[0, 1, 2, 3, 4]");
    assertThatThrownBy(
            () -> Planned.of(Target.H200_X4, text, forced("all_reduce", Variant.NCCL_SYMM)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("'r' cannot run as nccl_symm: ranks 0 and 4 are on different hosts")
        .hasMessageContaining("eligible: nccl");
  }

  @Test
  void customOpThatNeedsSymmetricMemoryIsRefusedBetweenHosts() {
    var text =
        """
        graph version 1
        group tp = [0, 4], [1, 5], [2, 6], [3, 7]
        op my_lib::swap(Tensor input, str group) -> Tensor %s group(group)
        graph g(x: f32[64]) {
          r: f32[64] = my_lib::swap(x, "tp")
          return r
        }
        """;
    var registered = text.formatted("symm_mem(input)");
    assertThatThrownBy(() -> Planned.of(Target.H200_X4, registered, CompileOptions.DEFAULT))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("no variant can run 'r'")
        .hasMessageContaining("custom: ranks 0 and 4 are on different hosts");
    Planned.of(Target.H200_X8, registered, CompileOptions.DEFAULT);
    Planned.of(Target.H200_X4, text.formatted(""), CompileOptions.DEFAULT);
  }

  @Test
  void functionalCollectiveThatIsRegisteredRunsFromSymmetricMemory() {
    var op =
        "op _c10d_functional::all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor"
            + "  %s\n\ngraph g";
    var text = ALL_REDUCE.formatted("bf16[33554432]", "sum");
    var free = Planned.of(text, forced("all_reduce", Variant.NCCL));
    assertThat(free.collective(0).args().getFirst().realization())
        .isEqualTo(Realization.NOT_NEEDED);

    for (var clause : List.of("symm_mem(input)", "symm_mem_results(0)")) {
      var registered = text.replace("graph g", op.formatted(clause));
      boolean result = clause.contains("results");
      var planned = Planned.of(registered, CompileOptions.DEFAULT);
      assertThat(planned.collective(0).args())
          .filteredOn(arg -> arg.result() == result)
          .noneMatch(arg -> arg.realization() == Realization.NOT_NEEDED);
      assertThat(planned.verdict(0, Variant.NCCL).reason()).isEqualTo(Verdict.Reason.NOT_SYMMETRIC);
      assertThatThrownBy(() -> Planned.of(registered, forced("all_reduce", Variant.NCCL)))
          .isInstanceOf(CompileException.class)
          .hasMessageContaining(
              "'r' cannot run as nccl: _c10d_functional::all_reduce is registered");
    }
  }

  @Test
  void groupsNeedNotBePowersOfTwo() {
    var text = ALL_REDUCE.formatted("f32[64, 64]", "sum").replace("[0, 1, 2, 3]", "[0, 1, 2]");
    var planned = Planned.of(text, forced("all_reduce", Variant.TWO_SHOT));
    assertThat(planned.copies()).isZero();
    assertThat(planned.plan().worldSize()).isEqualTo(3);
  }

  @Test
  void variantDependsOnTheSize() {
    var small = reduce("bf16[1024]", "sum");
    var large = reduce("bf16[33554432]", "sum");
    assertThat(small.collective(0).variant()).isNotEqualTo(large.collective(0).variant());
  }

  @Test
  void variantThatCannotBeIsRefusedWithAReason() {
    assertThatThrownBy(
            () ->
                Planned.of(
                    ALL_REDUCE.formatted("f32[64]", "sum"), forced("all_reduce", Variant.MULTIMEM)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("'r' cannot run as multimem: the target has no multicast")
        .hasMessageContaining("eligible:");
  }
}
