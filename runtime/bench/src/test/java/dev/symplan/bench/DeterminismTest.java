package dev.symplan.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The same bytes whatever the locale, the number of cores, and what hash codes are made from. */
class DeterminismTest {

  /** A JVM that works while this test starts others. */
  private record Running(Process process, String name) {
    List<String> lines() throws InterruptedException {
      try (var out = process.inputReader(StandardCharsets.UTF_8)) {
        var lines = out.lines().toList();
        assertThat(process.waitFor()).as("%s: %s", name, lines).isZero();
        return lines;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private static Running start(String... flags) throws IOException {
    var command = new ArrayList<String>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dstdout.encoding=UTF-8"));
    command.addAll(List.of(flags));
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.add(PlansOfAll.class.getName());
    command.add(Path.of(System.getProperty("symplan.root"), "samples").toString());
    var process = new ProcessBuilder(command).redirectErrorStream(true).start();
    return new Running(process, String.join(" ", flags));
  }

  @Test
  void plansAreTheSameInEveryJvm() throws IOException, InterruptedException {
    var jvms =
        List.of(
            start("-Duser.language=en", "-Duser.country=US", "-XX:ActiveProcessorCount=2"),
            start(
                "-Duser.language=tr",
                "-Duser.country=TR",
                "-Duser.timezone=Pacific/Apia",
                "-Dfile.encoding=COMPAT",
                "-XX:ActiveProcessorCount=1",
                "-XX:+UseSerialGC",
                "-XX:+UnlockExperimentalVMOptions",
                "-XX:hashCode=2"),
            start(
                "-Duser.language=ar",
                "-Duser.country=EG",
                "-XX:ActiveProcessorCount=8",
                "-XX:+UnlockExperimentalVMOptions",
                "-XX:hashCode=3"));
    var expected = jvms.getFirst().lines();
    assertThat(expected).hasSizeGreaterThan(20);
    for (var jvm : jvms.subList(1, jvms.size())) {
      assertThat(jvm.lines()).as(jvm.name()).isEqualTo(expected);
    }
  }
}
