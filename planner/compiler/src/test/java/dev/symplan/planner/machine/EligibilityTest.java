package dev.symplan.planner.machine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Verdict.Reason;
import dev.symplan.planner.options.CompileOptions;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class EligibilityTest {
  private static final String COALESCED =
      """
      graph version 1
      group tp = [0, 1, 2, 3]
      graph g(x: bf16[1024], y: bf16[1024]) {
        a, b = _c10d_functional::all_reduce_coalesced([x, y], "sum", "tp")
        p = _c10d_functional::wait_tensor(a)
        q = _c10d_functional::wait_tensor(b)
        return p, q
      }
      """;

  private static Target withNccl(String version) {
    return TargetFile.read(
        new SourceFile(
            "t.json",
            """
            {"format": "symplan-target", "version": 1, "name": "t", "base": "h200x4",
             "nccl": "%s"}
            """
                .formatted(version)));
  }

  private static Verdict verdict(String text, Target target, Variant variant) {
    var plan =
        Compiler.forTarget(target)
            .with(CompileOptions.DEFAULT)
            .compile(GraphParser.parse(new SourceFile("g.graph", text)));
    return plan.rankPlans().getFirst().collectives().getFirst().verdicts().stream()
        .filter(v -> v.variant() == variant)
        .findFirst()
        .orElseThrow();
  }

  /** Eligible where there is no reason. */
  private static void judged(Verdict verdict, @Nullable Reason reason, @Nullable String detail) {
    if (reason == null) {
      assertThat(verdict.reason().eligible()).as(verdict.toString()).isTrue();
    } else {
      assertThat(verdict.reason()).isEqualTo(reason);
      assertThat(verdict.detail()).contains(detail);
    }
  }

  private static String reduced(String dtype, String op, long count) {
    return """
    graph version 1
    group tp = [0, 1, 2, 3]
    graph g(x: %s[%s]) {
      r = _c10d_functional::all_reduce(x, "%s", "tp")
      o = _c10d_functional::wait_tensor(r)
      return o
    }
    """
        .formatted(dtype, count, op);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          2.26.5 | bf16 | sum | LIBRARY | a symmetric kernel needs NCCL 2.27, t has 2.26.5
          2.27.0 | bf16 | sum | | |
          2.28.9 | f32 | sum | | |
          2.28.9 | f8e4m3fn | sum | | |
          2.28.9 | f64 | sum | DTYPE | at most 32 bits, not f64 |
          2.28.9 | i32 | sum | DTYPE | at most 32 bits, not i32 |
          2.28.9 | bf16 | max | REDUCTION | do not support max |
          2.28.9 | bf16 | avg | LIBRARY | avg in symmetric kernels needs NCCL 2.30, t has 2.28.9 |
          2.30.0 | bf16 | avg | | |
          """)
  void symmetricKernelsTakeWhatTheirVersionTakes(
      String nccl, String dtype, String op, @Nullable Reason reason, @Nullable String detail) {
    judged(verdict(reduced(dtype, op, 1024), withNccl(nccl), Variant.NCCL_SYMM), reason, detail);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          2.27.7 | LIBRARY_GROUP | 2 collectives in one group; NCCL 2.27.7 allows one, 2.28 more
          2.28.9 | LIBRARY_RACE | race in NCCL 2.28.9; 2.30.7 orders them
          2.30.6 | LIBRARY_RACE | race in NCCL 2.30.6; 2.30.7 orders them
          2.30.7 | |
          """)
  void severalInOneGroupWaitForTheVersionThatOrdersThem(
      String nccl, @Nullable Reason reason, @Nullable String detail) {
    judged(verdict(COALESCED, withNccl(nccl), Variant.NCCL_SYMM), reason, detail);
  }

  @Test
  void symmetricKernelsCountTo64GiB() {
    long half = 1L << 32;
    assertThat(verdict(reduced("bf16", "sum", half), Target.H200_X4, Variant.NCCL_SYMM).reason())
        .isNotEqualTo(Reason.SIZE);
    assertThat(
            verdict(reduced("bf16", "sum", 2 * half), Target.H200_X4, Variant.NCCL_SYMM).reason())
        .isEqualTo(Reason.SIZE);
  }

  @Test
  void plainKernelsReduceEightBitsFrom224() {
    var graph = reduced("f8e4m3fn", "sum", 1024);
    assertThat(verdict(graph, withNccl("2.23.4"), Variant.NCCL).reason()).isEqualTo(Reason.LIBRARY);
    assertThat(verdict(graph, withNccl("2.24.3"), Variant.NCCL).reason().eligible()).isTrue();
  }
}
