package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.List;

/** Compiles kernels for every architecture that they are meant for, where there is an nvcc. */
final class Nvcc {
  private static final List<String> ARCHITECTURES = List.of("sm_80", "sm_90", "sm_100");

  private Nvcc() {}

  /** Fails with what nvcc says; skips the test where there is none. */
  static void check(List<String> kernels) {
    check(kernels, ARCHITECTURES);
  }

  /** As {@link #check(List)}, for some architectures. */
  static void check(List<String> kernels, List<String> architectures) {
    assumeTrue(run(List.of("nvcc", "--version")).startsWith("0\n"), "no nvcc on the PATH");
    var text = new StringBuilder();
    for (int i = 0; i < kernels.size(); i++) {
      // Each in a namespace of its own, its macros undone behind it.
      var kernel = kernels.get(i).replace("symplan_kernel", "kernel" + i);
      text.append("namespace n%d {\n%s}\n".formatted(i, kernel));
      kernel
          .lines()
          .filter(line -> line.startsWith("#define "))
          .forEach(line -> text.append("#undef ").append(line.split(" ")[1]).append('\n'));
    }
    try {
      var folder = Files.createTempDirectory("symplan-nvcc");
      var source = Files.writeString(folder.resolve("kernels.cu"), text);
      for (var architecture : architectures) {
        var said =
            run(
                List.of(
                    "nvcc",
                    "-arch=" + architecture,
                    "-std=c++17",
                    "-ptx",
                    "-o",
                    folder.resolve("kernels.ptx").toString(),
                    source.toString()));
        assertThat(said).as(architecture).startsWith("0\n");
      }
      Files.delete(folder.resolve("kernels.ptx"));
      Files.delete(source);
      Files.delete(folder);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The exit code and, on the next lines, what was said. */
  private static String run(List<String> command) {
    try {
      var process = new ProcessBuilder(command).redirectErrorStream(true).start();
      var said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      return process.waitFor() + "\n" + said;
    } catch (IOException e) {
      return "127\n" + e.getMessage();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "130\n";
    }
  }
}
