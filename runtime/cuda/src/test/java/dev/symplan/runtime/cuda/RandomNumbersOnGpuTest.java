package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.DrawnAgain;
import dev.symplan.runtime.host.DrawnAgain.Handing;
import dev.symplan.runtime.host.HostBackend;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Random numbers of a GPU: those of the host backend, and the same ones again from a state. */
@Tag("gpu")
class RandomNumbersOnGpuTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  @TempDir private Path folder;

  @BeforeEach
  void requireGpus() {
    Gpus.require(1);
  }

  @Test
  void agreesWithTheHost() {
    for (var text : LocalPrograms.randomNumbers()) {
      var plan = LocalPrograms.plan(text);
      try (var gpu = CudaSession.open(Lowering.lower(plan), TIMEOUT);
          var host = Session.open(plan, new HostBackend())) {
        LocalPrograms.fill(gpu, 0);
        LocalPrograms.fill(host, 0);
        host.run();
        gpu.run();
        LocalPrograms.compare(plan, gpu, host, text);
      }
    }
  }

  private static Stream<Arguments> calls() {
    return DrawnAgain.all()
        .flatMap(call -> Stream.of(Handing.values()).map(handing -> Arguments.of(call, handing)));
  }

  @ParameterizedTest
  @MethodSource("calls")
  void bothGraphsDrawTheSameNumbers(DrawnAgain call, Handing handing) throws IOException {
    var plan = call.plan(handing, folder);
    try (var gpu = CudaSession.open(Lowering.lower(plan), TIMEOUT);
        var host = Session.open(plan, new HostBackend())) {
      DrawnAgain.fill(gpu);
      DrawnAgain.fill(host);
      gpu.run();
      host.run();
      LocalPrograms.compare(plan, gpu, host, call.toString());
      int half = gpu.outputCount() / 2;
      assertThat(half).isPositive();
      for (int i = 0; i < half; i++) {
        Bits.assertSame(
            gpu.output(0, i).orElseThrow(),
            gpu.output(0, half + i).orElseThrow(),
            "%s, %s".formatted(call, handing));
      }
    }
  }
}
