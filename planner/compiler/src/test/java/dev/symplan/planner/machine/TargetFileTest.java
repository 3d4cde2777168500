package dev.symplan.planner.machine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.io.PlanFile;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class TargetFileTest {
  private static final String OWN =
      """
      {
        "format": "symplan-target",
        "version": 1,
        "name": "lab",
        "base": "h200x4",
        "gpus": 2,
        "nccl": "2.30.7",
        "curves": {
          "all_reduce": {
            "one_shot": [
              {"ranks": 2, "protocols": [{"latency_us": 3, "gbps": 300}], "measured": true}
            ]
          }
        }
      }
      """;

  private static Target read(String text) {
    return TargetFile.read(new SourceFile("lab.json", text));
  }

  private static String complaint(String text) {
    var thrown = catchThrowableOfType(CompileException.class, () -> read(text));
    var diagnostic = thrown.diagnostics().getFirst();
    assertThat(diagnostic.code()).isEqualTo(DiagnosticCode.BAD_TARGET);
    return diagnostic.render();
  }

  static List<String> builtIn() {
    return Target.names();
  }

  @Test
  void networksWithCurvesReadAsTheSame() {
    var network =
        """
        "network": {"gbps": 2, "latency_us": 9, "rail_gbps": 4, "curves":
          {"all_gather": {"points": [[8, 3], [1000, 9]], "gbps": 1}}}\
        """;
    var target = read(OWN.replace("\"gpus\": 2", network));
    assertThat(target.network().curves()).containsOnlyKeys(Kind.ALL_GATHER);
    assertThat(read(TargetFile.toJson(target)).network()).isEqualTo(target.network());
  }

  @ParameterizedTest
  @MethodSource("builtIn")
  void writtenTargetsReadAsTheSame(String name) {
    var target = Target.ofName(name).orElseThrow();
    var text = TargetFile.toJson(target);
    assertThat(target.name()).isEqualTo(name);
    assertThat(read(text)).isEqualTo(target);
    assertThat(TargetFile.toJson(read(text))).isEqualTo(text);
  }

  @Test
  void takesFromItsBaseWhatItDoesNotSay() {
    var target = read(OWN);
    assertThat(target.gpus()).isEqualTo(2);
    assertThat(target.nccl()).isEqualTo(23007);
    assertThat(target.ncclVersion()).isEqualTo("2.30.7");
    assertThat(target.memoryRate()).isEqualTo(Target.H200_X4.memoryRate());
    assertThat(target.curve(Kind.ALL_REDUCE, Variant.ONE_SHOT, 2).orElseThrow().measured())
        .isTrue();
    // Measured there, but not here.
    var inherited = target.curve(Kind.ALL_REDUCE, Variant.NCCL, 4).orElseThrow();
    assertThat(inherited.measured()).isFalse();
    assertThat(inherited.source()).isEqualTo("as on h200x4");
    assertThat(inherited.shape())
        .isEqualTo(Target.H200_X4.curve(Kind.ALL_REDUCE, Variant.NCCL, 4).orElseThrow().shape());
  }

  @Test
  void plansCarryTheirTarget() {
    var program =
        GraphParser.parse(
            new SourceFile(
                "g.graph",
                """
                graph version 1
                group tp = [0, 1]
                graph g(x: f32[64]) {
                  r = _c10d_functional::all_reduce(x, "sum", "tp")
                  o = _c10d_functional::wait_tensor(r)
                  return o
                }
                """));
    var plan = Compiler.forTarget(read(OWN)).compile(program);
    var again = PlanFile.read(new SourceFile("plan.json", PlanFile.toJson(plan)));
    assertThat(again.target()).isEqualTo(plan.target());
    assertThat(PlanFile.toJson(again)).isEqualTo(PlanFile.toJson(plan));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          "nccl": "2.30.7" | "nccl": "2.30" | 7:11: | expected three numbers
          "gpus": 2 | "gpus": 0 | 6:11: | not a whole number from 1
          "gpus": 2 | "gpus": "two" | 6:11: | this is not a number
          "gpus": 2 | "network": {"gbps": 2, "latency_us": 9, "rail_gbps": 1} | 6:56: | less than gbps
          "gpus": 2 | "network": {"gbps": 2, "latency_us": 9, "curves": {"sum": {}}} | 6:54: | known: all_reduce
          "gpus": 2 | "gpu": 2 | 6:3: | unknown field 'gpu'
          "gpus": 2 | "gpus": 2, "gpus": 3 | 6:20: | Duplicate field
          "gpus": 2, | "gpus": 2 | 7:3: | expecting comma
          "base": "h200x4" | "base": "h300" | 5:11: | there are h200x4, h200x8, h100x4, h100x8, b200x8, host
          "base": "h200x4", | | 1:1: | 'link' is missing
          "version": 1 | "version": 4 | 3:14: | this release reads versions 1 to 3
          "all_reduce" | "allreduce" | 9:5: | known: all_reduce, all_gather
          "one_shot" | "push" | 10:7: | unknown variant 'push' of all_reduce
          "one_shot" | "local" | 10:7: | unknown variant 'local'
          "gbps": 300 | "gbps": 0 | 11:62: | not a number above 0
          "gbps": 300 | "gbps": 1e999 | 11:62: | not a number above 0
          "latency_us": 3 | "latency_us": -1 | 11:51: | not a number from 0
          "ranks": 2, | | 11:9: | 'ranks' is missing
          "protocols": | "floor": 1, "protocols": | 11:22: | unknown field 'floor'
          """)
  void pointsAtWhatIsWrong(String part, String instead, String place, String message) {
    var text = OWN.replace(part, instead == null ? "" : instead);
    assertThat(text).isNotEqualTo(OWN);
    assertThat(complaint(text)).startsWith("lab.json:" + place).contains(message, "^");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          "points": [[8, 3], [4, 4]], "gbps": 9 | 11:41: | the points do not rise
          "points": [[8, 3], [9, 2]], "gbps": 9 | 11:41: | the points do not rise
          "points": [[8]], "gbps": 9 | 11:33: | write [BYTES, MICROSECONDS]
          "points": [], "gbps": 9 | 11:32: | give at least one point
          "points": [[8, 3]] | 11:9: | 'gbps' is missing
          "points": [[8, 3]], "gbps": 0 | 11:50: | not a number above 0
          "points": [[8, 3]], "gbps": 9, "protocols": [] | 11:53: | a curve has protocols
          "points": [[8, 3]], "gbps": 9, "floor_us": 1 | 11:53: | a curve has protocols
          """)
  void pointsAtWhatIsWrongWithACurve(String instead, String place, String message) {
    var text = OWN.replace("\"protocols\": [{\"latency_us\": 3, \"gbps\": 300}]", instead);
    assertThat(text).isNotEqualTo(OWN);
    assertThat(complaint(text)).startsWith("lab.json:" + place).contains(message, "^");
  }

  @Test
  void timesBetweenPointsLieOnALine() {
    var text =
        OWN.replace(
            "\"protocols\": [{\"latency_us\": 3, \"gbps\": 300}]",
            "\"points\": [[1000, 3], [5000, 5]], \"gbps\": 0.01");
    var target = read(text);
    var curve = target.curve(Kind.ALL_REDUCE, Variant.ONE_SHOT, 2).orElseThrow();
    assertThat(curve.micros(0, 2)).isEqualTo(3);
    assertThat(curve.micros(1000, 2)).isEqualTo(3);
    assertThat(curve.micros(2000, 2)).isEqualTo(3.5);
    assertThat(curve.micros(5000, 2)).isEqualTo(5);
    assertThat(curve.micros(5100, 2)).isEqualTo(15);
    assertThat(TargetFile.read(new SourceFile("t.json", TargetFile.toJson(target))))
        .isEqualTo(target);
  }

  @Test
  void complainsAboutWhatIsNoTargetAtAll() {
    assertThat(complaint("")).contains("the file is empty");
    assertThat(complaint("[]")).contains("lab.json:1:1").contains("this is not an object");
    assertThat(complaint("{\"format\": \"symplan-plan\"}")).contains("this is not a target file");
    assertThat(complaint("[".repeat(100_000))).contains("nesting depth");
    assertThat(complaint(OWN + "{}")).contains("expected the end of the file");
    assertThat(complaint(OWN.replace("[{\"latency_us\": 3, \"gbps\": 300}]", "[]")))
        .contains("give at least one protocol");
  }

  @Test
  void estimatesVariantsWithoutACurveFromTheLink() {
    var bare =
        """
        {"format": "symplan-target", "version": 1, "name": "bare", "gpus": 4,
         "link": {"send_gbps": 100, "receive_gbps": 50, "latency_us": 1},
         "memory_gbps": 1000, "matrix_tflops": 100, "launch_us": 2,
         "barrier": {"base_us": 1, "per_rank_us": 0.5}, "copy_engine_us": 10,
         "sm_contention": {"compute": 0.5, "transfer": 0.5},
         "copy_engine_contention": {"compute": 0.1, "transfer": 0},
         "workspace_bytes": 0, "multicast": true, "copy_engines": true, "nccl": "2.28.9"}
        """;
    var costs = new CostModel(read(bare));
    // A launch, two barriers of four ranks, three hops, and three times as much in as at 50 GB/s.
    assertThat(costs.transferMicros(Kind.ALL_GATHER, Variant.PUSH, 1_000_000, 4))
        .isEqualTo(2 + 2 * 2 + 3 + 60.0);
    // The root sends three times at 100 GB/s, while each peer receives once at 50 GB/s.
    assertThat(costs.transferMicros(Kind.BROADCAST, Variant.COPY_ENGINE, 1_000_000, 4))
        .isEqualTo(2 + 2 * 2 + 10 + 3 + 30.0);
  }
}
