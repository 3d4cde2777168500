package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.cuda.ConvolutionPrograms.Case;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.profile.Profile.Activity;
import dev.symplan.runtime.tensor.HostTensor;
import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Convolutions and their gradients, by cuDNN where that has them, against the host backend. */
@Tag("gpu")
class ConvolutionOnGpuTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);
  private static final long SEED = Fuzz.seed(9_000);
  private static final int CASES = 60;

  /** Several kernels of one instruction stand behind each other. */
  private static final Pattern OURS =
      Pattern.compile("(, )?(generated, \\d+ blocks of \\d+ threads(, |$))+");

  @BeforeEach
  void requireGpu() {
    Gpus.require(1);
  }

  /** Layers of usual networks, in each pass. Channels may be innermost in images, or everywhere. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          f32  | 2 |  1 |  64 |  64 | 28 | 3 | 1 | nowhere
          f32  | 2 |  1 |   3 |  64 | 56 | 7 | 2 | nowhere
          f32  | 2 |  1 | 256 | 512 | 14 | 1 | 2 | everywhere
          f32  | 2 |  1 |  64 | 128 | 28 | 3 | 2 | images
          f32  | 2 | 32 |   1 |   1 | 28 | 3 | 1 | nowhere
          bf16 | 4 |  1 |  64 |  64 | 28 | 3 | 1 | nowhere
          bf16 | 4 |  1 |  64 |  64 | 28 | 3 | 1 | images
          bf16 | 4 |  1 | 256 | 512 | 14 | 1 | 2 | nowhere
          bf16 | 4 |  1 |  64 | 128 | 28 | 3 | 2 | everywhere
          bf16 | 2 | 64 |   1 |   1 | 28 | 3 | 1 | nowhere
          bf16 | 2 | 64 |   1 |   1 | 28 | 3 | 1 | images
          f16  | 4 |  1 |  64 |  64 | 28 | 3 | 1 | everywhere
          f16  | 2 |  4 |  16 |  32 | 28 | 5 | 1 | nowhere
          f64  | 2 |  1 |   8 |  16 | 14 | 3 | 1 | nowhere
          """)
  void layers(
      String dtype,
      long batch,
      long groups,
      long in,
      long out,
      long size,
      long window,
      long stride,
      String innermost) {
    var layer =
        Case.square(dtype, batch, groups, in, out, size, window)
            .withStride(stride)
            .withLayout(!innermost.equals("nowhere"), innermost.equals("everywhere"));
    areByLibrary(check(layer.forward()), layer);
    areByLibrary(check(layer.backward(true, false, false)), layer);
    areByLibrary(check(layer.backward(false, true, false)), layer);
  }

  /** cuDNN takes all but empty images and windows that more padding would add. */
  @Test
  void madeUp() {
    System.out.printf("%s convolutions from seed %s%n", CASES, SEED);
    for (var made : ConvolutionPrograms.madeUp(SEED, CASES)) {
      var passes =
          List.of(
              check(made.forward()),
              check(made.backward(true, false, false)),
              check(made.backward(false, true, false)));
      assertThat(check(made.backward(true, true, true))).isNotEmpty();
      for (var activities : passes) {
        if (made.isForLibrary()) {
          areByLibrary(activities, made);
        } else {
          assertThat(activities).allMatch(ConvolutionOnGpuTest::isOurs);
        }
      }
    }
  }

  /** Copies of ours come before and after cuDNN's kernels. */
  @Test
  void parts() {
    for (var text : ConvolutionPrograms.parts()) {
      assertThat(check(text))
          .filteredOn(activity -> activity.label().matches("[abdf]"))
          .hasSizeGreaterThan(1)
          .noneMatch(ConvolutionOnGpuTest::isOurs);
    }
  }

  @Test
  void windowsApart() {
    for (var text : ConvolutionPrograms.apart()) {
      assertThat(check(text))
          .filteredOn(activity -> activity.label().matches("[py]"))
          .hasSize(2)
          .noneMatch(ConvolutionOnGpuTest::isOurs);
    }
  }

  /** {@return whether a step had kernels of ours alone} Biases and copies are always ours. */
  private static boolean isOurs(Activity activity) {
    return OURS.matcher(activity.kernel()).matches();
  }

  private static void areByLibrary(List<Activity> activities, Case layer) {
    assertThat(activities).as("%s", layer).isNotEmpty().noneMatch(ConvolutionOnGpuTest::isOurs);
  }

  /** {@return what ran} Runs twice, with the same bits. */
  private static List<Activity> check(String text) {
    var plan = LocalPrograms.plan(text);
    try (var gpu = CudaSession.open(Lowering.lower(plan), TIMEOUT);
        var host = Session.open(plan, new HostBackend())) {
      LocalPrograms.fill(gpu, 1);
      LocalPrograms.fill(host, 1);
      host.run();
      gpu.run();
      LocalPrograms.compare(plan, gpu, host, text);
      var first =
          IntStream.range(0, gpu.outputCount())
              .mapToObj(i -> gpu.output(0, i).orElseThrow())
              .map(HostTensor::contiguous)
              .toList();
      gpu.run();
      for (int i = 0; i < first.size(); i++) {
        var again = gpu.output(0, i).orElseThrow().contiguous();
        Bits.assertSame(again, first.get(i), "output %s again%n%s".formatted(i, text));
      }
      return gpu.profile().activities();
    }
  }
}
