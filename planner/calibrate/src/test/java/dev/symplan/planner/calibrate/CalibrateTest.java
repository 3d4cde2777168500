package dev.symplan.planner.calibrate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.assertj.core.api.Assertions.within;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.collect.ImmutableTable;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.calibrate.Calibration.MeasuredSize;
import dev.symplan.planner.calibrate.Point.Subject.Collective;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.machine.Variant;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CalibrateTest {
  private static final Path FIGURES =
      Path.of(System.getProperty("symplan.root", "..")).resolve("docs/figures");

  /**
   * The measurements behind the built-in target, in the order of the command in docs/targets.md.
   */
  private static final List<Path> MEASURED =
      List.of(FIGURES.resolve("collectives-4xh200.csv"), FIGURES.resolve("collectives-2xh200.csv"));

  private static final List<Path> MEASURED_H100 =
      List.of(
          FIGURES.resolve("collectives-2xh100.csv"),
          FIGURES.resolve("overlap-2xh100.csv"),
          FIGURES.resolve("machine-2xh100.csv"));

  private static final String HEADER = "kind,variant,dtype,bytes,ranks,micros\n";

  private static final String BETWEEN = "kind,variant,bytes,ranks,hosts,micros\n";

  private static Points points(String text) {
    return Points.read(new SourceFile("lab/points.csv", text));
  }

  private static Calibration fit(String text, Target base) {
    return Calibration.of(points(text), base, "lab");
  }

  @Test
  void theBuiltInTargetIsWhatItsPointsGive() {
    var calibration = Calibration.of(Points.read(MEASURED), Target.H200_X4, "h200x4");
    assertThat(TargetFile.toJson(calibration.target()))
        .as("the command in docs/targets.md gives the built-in target again")
        .isEqualTo(TargetFile.toJson(Target.H200_X4));
    assertThat(calibration.agreement()).isGreaterThanOrEqualTo(0.95);
  }

  @Test
  void theBuiltInTargetOfH100IsWhatItsPointsGive() {
    var calibration = Calibration.of(Points.read(MEASURED_H100), Target.H200_X4, "h100x4");
    assertThat(TargetFile.toJson(calibration.target()))
        .as("the command in docs/targets.md gives the built-in target again")
        .isEqualTo(TargetFile.toJson(Target.H100_X4));
    assertThat(calibration.agreement()).isGreaterThanOrEqualTo(0.93);
  }

  @Test
  void predictsTheVariantThatWasMeasuredFastest() {
    var calibration = Calibration.of(Points.read(MEASURED), Target.HOST, "lab");
    assertThat(calibration.sizes()).hasSizeGreaterThan(50);
    assertThat(calibration.agreement()).isGreaterThanOrEqualTo(0.95);
    assertThat(calibration.sizes()).extracting(MeasuredSize::regret).allMatch(r -> r < 0.03);
  }

  /** Each size but the smallest and the largest is left out of one fit, which then picks at it. */
  @Test
  void picksAtSizesThatTheFitHasNotSeen() {
    var all = Points.read(MEASURED);
    var sizes =
        all.list().stream()
            .flatMap(point -> transfer(point).stream())
            .map(Collective::bytes)
            .collect(ImmutableSortedSet.toImmutableSortedSet(Comparator.naturalOrder()));
    var regrets = new ArrayList<Double>();
    for (long bytes : sizes.subSet(sizes.first(), false, sizes.last(), false)) {
      var parts =
          all.list().stream()
              .collect(
                  Collectors.partitioningBy(
                      point -> transfer(point).filter(of -> of.bytes() == bytes).isPresent(),
                      ImmutableList.toImmutableList()));
      var rest = new Points(all.name(), parts.get(false), all.comments());
      var costs = new CostModel(Calibration.of(rest, Target.HOST, "lab").target());
      parts.get(true).stream()
          .collect(Collectors.groupingBy(CalibrateTest::group))
          .values()
          .forEach(points -> regrets.add(regret(costs, points)));
    }
    assertThat(regrets).hasSizeGreaterThan(100);
    assertThat(regrets.stream().filter(regret -> regret == 0).count())
        .isGreaterThanOrEqualTo(Math.round(0.92 * regrets.size()));
    assertThat(Collections.max(regrets)).isLessThan(0.05);
  }

  private static Optional<Collective> transfer(Point point) {
    return point.subject() instanceof Collective collective
        ? Optional.of(collective)
        : Optional.empty();
  }

  private static String group(Point point) {
    var collective = transfer(point).orElseThrow();
    return collective.kind() + " of " + collective.ranks();
  }

  /**
   * {@return how much longer the variant that is predicted to be fastest takes than the fastest}
   */
  private static double regret(CostModel costs, List<Point> points) {
    var predicted =
        Collections.min(
            points,
            Comparator.comparingDouble(
                point -> {
                  var of = transfer(point).orElseThrow();
                  return costs.transferMicros(of.kind(), of.variant(), of.bytes(), of.ranks());
                }));
    return predicted.micros() / points.stream().mapToDouble(Point::micros).min().orElseThrow() - 1;
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5})
  void recoversAKnownTarget(long seed) {
    var random = new Random(seed);
    var truth = new CostModel(Target.B200_X8);
    var text = new StringBuilder(HEADER);
    for (var kind : List.of(Kind.ALL_REDUCE, Kind.ALL_GATHER)) {
      for (var variant : List.of(Variant.ONE_SHOT, Variant.MULTIMEM, Variant.NCCL)) {
        for (int ranks : new int[] {4, 8}) {
          for (long bytes = 1 << 13; bytes <= 1 << 28; bytes *= 2) {
            for (int repeat = 0; repeat < 7; repeat++) {
              double noise = 1 + 0.02 * random.nextGaussian();
              // Now and then something else runs on the machine.
              double outlier = random.nextInt(25) == 0 ? 1.7 : 1;
              text.append(kind.name().toLowerCase(Locale.ROOT)).append(',');
              text.append(variant.text()).append(",bf16,").append(bytes).append(',');
              text.append(ranks).append(',');
              text.append(truth.transferMicros(kind, variant, bytes, ranks) * noise * outlier);
              text.append('\n');
            }
          }
        }
      }
    }
    var bare = Target.B200_X8.with("bare", ImmutableTable.of());
    var calibration = fit(text.toString(), bare);
    var found = new CostModel(calibration.target());
    for (var fit : calibration.fits()) {
      for (long bytes = 1 << 13; bytes <= 1 << 28; bytes *= 2) {
        double expected = truth.transferMicros(fit.kind(), fit.variant(), bytes, fit.ranks());
        assertThat(found.transferMicros(fit.kind(), fit.variant(), bytes, fit.ranks()))
            .as("seed %s, %s of %s bytes", seed, fit, bytes)
            .isCloseTo(expected, within(0.05 * expected));
      }
    }
    assertThat(calibration.sizes()).extracting(MeasuredSize::regret).allMatch(r -> r < 0.05);
  }

  /** Between hosts, all kinds of collectives have the same rail. */
  @ParameterizedTest
  @CsvSource({"2, 2", "8, 2", "16, 4"})
  void recoversTheNetwork(int ranks, int hosts) {
    var reach = new Reach(ranks, hosts, ranks / hosts);
    var truth = new CostModel(network(12.5, 21));
    var text = new StringBuilder(BETWEEN);
    for (var kind : List.of(Kind.ALL_REDUCE, Kind.ALL_GATHER, Kind.ALL_TO_ALL)) {
      for (long bytes = 1 << 20; bytes <= 1 << 28; bytes *= 4) {
        text.append("%s,nccl,%s,%s,%s,".formatted(kind.text(), bytes, ranks, hosts))
            .append(truth.transferMicros(kind, Variant.NCCL, bytes, 1, reach))
            .append('\n');
      }
    }
    var found = fit(text.toString(), Target.H200_X8).target();
    assertThat(found.network().rate()).isCloseTo(12.5, within(0.01));
    assertThat(found.network().latencyMicros()).isCloseTo(21, within(0.1));
    assertThat(found.network().curves())
        .containsOnlyKeys(Kind.ALL_REDUCE, Kind.ALL_GATHER, Kind.ALL_TO_ALL);
    double between = truth.transferMicros(Kind.ALL_GATHER, Variant.NCCL, 3 << 20, 1, reach);
    assertThat(
            new CostModel(found).transferMicros(Kind.ALL_GATHER, Variant.NCCL, 3 << 20, 1, reach))
        .isCloseTo(between, within(0.01 * between));
    assertThat(found.sources().get("network")).startsWith("points.csv: 15 points");
    assertThat(found.curves())
        .isEqualTo(fit("kind,micros\nlaunch,0.85\n", Target.H200_X8).target().curves());
  }

  private static Target network(double rate, double latency) {
    return TargetFile.read(
        new SourceFile(
            "far.json",
            """
            {"format": "symplan-target", "version": 3, "name": "far", "base": "h200x8",
             "network": {"gbps": %s, "latency_us": %s}}
            """
                .formatted(rate, latency)));
  }

  /** One size does not tell rate and latency apart. */
  @Test
  void oneSizeBetweenHostsGivesNoNetwork() {
    assertThat(fit(BETWEEN + "all_reduce,nccl,1024,2,2,70\n", Target.H200_X8).target().network())
        .isEqualTo(Target.H200_X8.network());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "all_reduce,one_shot,1024,2,2,7 | one_shot does not run between hosts",
        "all_reduce,nccl,1024,3,2,7 | 3 ranks on 2 hosts",
        "all_reduce,nccl,1024,2,x,7 | 'x' is not a valid number of hosts"
      })
  void wrongPointsBetweenHostsAreReported(String row, String message) {
    var failure = catchThrowableOfType(CompileException.class, () -> points(BETWEEN + row + "\n"));
    assertThat(failure).hasMessageContaining(message);
  }

  @Test
  void onePointOutOfLineDoesNotPull() {
    var clean = new StringBuilder(HEADER);
    for (long bytes = 1 << 16; bytes <= 1 << 26; bytes *= 2) {
      clean.append("all_gather,push,,%s,4,%s\n".formatted(bytes, 10 + 3 * bytes / 300e3));
    }
    var spoilt = clean.toString().replaceFirst(",1048576,4,[0-9.]+\n", ",1048576,4,60\n");
    assertThat(spoilt).isNotEqualTo(clean.toString());
    for (long bytes = 1 << 16; bytes <= 1 << 26; bytes *= 2) {
      double expected = 10 + 3 * bytes / 300e3;
      assertThat(
              new CostModel(fit(spoilt, Target.H200_X4).target())
                  .transferMicros(Kind.ALL_GATHER, Variant.PUSH, bytes, 4))
          .as("%s bytes", bytes)
          .isCloseTo(expected, within(0.03 * expected));
    }
  }

  @Test
  void fewLinesComeNearAllPoints() {
    var text = new StringBuilder(HEADER);
    for (long bytes = 1 << 10; bytes <= 1 << 26; bytes *= 2) {
      // Flat, then one protocol of 5 us and 100 GB/s, then one of 20 us and 300 GB/s.
      double wire = 3e-3 * bytes;
      double micros = Math.max(6, Math.min(5 + wire / 100, 20 + wire / 300));
      text.append("all_gather,push,,%s,4,%s\n".formatted(bytes, micros));
    }
    var target = fit(text.toString(), Target.H200_X4).target();
    var curve = target.curve(Kind.ALL_GATHER, Variant.PUSH, 4).orElseThrow();
    assertThat(((Target.Knots) curve.shape()).list()).hasSizeBetween(4, 7);
    assertThat(((Target.Knots) curve.shape()).rate()).isCloseTo(300, within(15.0));
    var costs = new CostModel(target);
    assertThat(costs.transferMicros(Kind.ALL_GATHER, Variant.PUSH, 1, 4))
        .isCloseTo(6, within(0.01));
    assertThat(costs.transferMicros(Kind.ALL_GATHER, Variant.PUSH, 1 << 28, 4))
        .isCloseTo(20 + 3e-3 * (1 << 28) / 300, within(150.0));
  }

  @Test
  void moreBytesNeverTakeLessTime() {
    var text =
        """
        all_gather,push,,1024,4,5
        all_gather,push,,2048,4,5.4
        all_gather,push,,4096,4,5.2
        all_gather,push,,8192,4,9
        all_gather,push,,16384,4,6
        all_gather,push,,32768,4,7
        """;
    var calibration = fit(HEADER + text, Target.H200_X4);
    var costs = new CostModel(calibration.target());
    double before = 0;
    for (long bytes = 512; bytes <= 1 << 17; bytes *= 2) {
      double micros = costs.transferMicros(Kind.ALL_GATHER, Variant.PUSH, bytes, 4);
      assertThat(micros).as("%s bytes", bytes).isGreaterThanOrEqualTo(before);
      before = micros;
    }
    // 9 is out of line: 16 KiB took 6.
    assertThat(costs.transferMicros(Kind.ALL_GATHER, Variant.PUSH, 8192, 4)).isLessThan(6);
    assertThat(calibration.fits().getFirst().maxError()).isGreaterThan(0.3);
  }

  @Test
  void otherLibrariesTimesAreNotFitted() {
    var calibration =
        fit(
            HEADER + "all_reduce,nccl,bf16,1024,4,9\n" + "all_reduce,torch_nccl,bf16,1024,4,3\n",
            Target.H200_X4);
    assertThat(calibration.fits()).hasSize(1);
    assertThat(calibration.sizes()).isEmpty();
  }

  @Test
  void fitsTheFiguresOfTheMachine() {
    var target =
        fit(
                """
                kind,variant,bytes,ranks,micros,flops,compute_us,transfer_us,gpu,date
                launch,,,,1.5,,,,X1,2026-01-02
                launch,,,,1.7,,,,X1,2026-01-02
                launch,,,,9.9,,,,X1,2026-01-03
                copy,,1000000,,6.7,,,,X1,
                gemm,,,,101.7,1e11,,,X1,
                barrier,,,2,1,,,,X1,
                barrier,,,4,2,,,,X1,
                barrier,,,8,4,,,,X1,
                copy_engine,,,,25,,,,X1,
                overlap,nccl,,,1300,,1000,500,X1,
                overlap,copy_engine,,,1100,,1000,500,X1,
                """,
                Target.H200_X4)
            .target();
    assertThat(target.launchMicros()).isEqualTo(1.7);
    assertThat(target.memoryRate()).isEqualTo(400);
    assertThat(target.compute().matrixRate()).isEqualTo(1000);
    assertThat(target.barrier()).isEqualTo(new Target.Barrier(1, 0.5));
    assertThat(target.copyEngineMicros()).isEqualTo(25);
    // Told the times of each alone, the model gives the times together.
    assertThat(target.smOverlap().exposed(500, 1000)).isCloseTo(300, within(1.0));
    assertThat(target.copyEngineOverlap().exposed(500, 1000)).isCloseTo(100, within(1.0));
    assertThat(target.sources())
        .containsEntry("launch_us", "points.csv: 3 points on X1, 2026-01-02, 2026-01-03")
        .containsEntry("barrier", "points.csv: 3 points on X1");
  }

  @Test
  void writesTheSameFileInAnyOrderOfThePoints() {
    var lines =
        SourceReader.read(MEASURED.getFirst())
            .text()
            .lines()
            .filter(l -> !l.startsWith("#"))
            .toList();
    var rows = new ArrayList<>(lines.subList(1, lines.size()));
    var expected = TargetFile.toJson(fit(String.join("\n", lines), Target.H200_X4).target());
    Collections.reverse(rows);
    var reversed = lines.getFirst() + "\n" + String.join("\n", rows);
    assertThat(TargetFile.toJson(fit(reversed, Target.H200_X4).target())).isEqualTo(expected);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          all_reduce,one_shot,bf16,0,4,9 | 2:26 | '0' is not a valid number of bytes
          all_reduce,one_shot,bf16,many,4,9 | 2:26 | 'many' is not a valid number of bytes
          all_reduce,one_shot,bf16,8,1,9 | 2:28 | one rank has no peer to communicate with
          all_reduce,one_shot,bf16,8,4,-9 | 2:30 | '-9' is not a valid micros
          all_reduce,one_shot,bf16,8,4,NaN | 2:30 | 'NaN' is not a valid micros
          all_reduce,one_shot,bf16,8,4 | 2:1 | 5 fields, but the header names 6
          all_reduce,push,bf16,8,4,9 | 2:12 | unknown variant 'push' of all_reduce
          reduce_all,one_shot,bf16,8,4,9 | 2:1 | known: all_reduce, all_gather
          gemm,,bf16,,,9 | 2:1 | column 'flops' is missing
          """)
  void pointsAtWhatIsWrong(String line, String place, String message) {
    var thrown = catchThrowableOfType(CompileException.class, () -> points(HEADER + line));
    assertThat(thrown.diagnostics()).hasSize(1);
    assertThat(thrown.diagnostics().getFirst().render())
        .startsWith("lab/points.csv:" + place + ": error[bad-points]")
        .contains(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          '' | the file has no points
          kind,micros | the file has no points
          kind,size,micros | unknown column 'size'
          kind,variant | column 'micros' is missing
          kind,kind,micros | a second column 'kind'
          """)
  void wantsAHeader(String text, String message) {
    var thrown = catchThrowableOfType(CompileException.class, () -> points(text));
    assertThat(thrown.diagnostics().getFirst().render()).contains(message);
  }
}
