package dev.symplan.ir.testkit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.base.Splitter;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Compilers and the like, which tests run where they are installed. */
public final class Tools {
  private static final long PATIENCE_SECONDS = 300;

  /** A task in a folder. */
  public interface Work<T> {
    T in(Path folder) throws IOException;
  }

  private Tools() {}

  /** {@return whether a program is on the PATH} */
  public static boolean isInstalled(String program) {
    return Splitter.on(File.pathSeparatorChar)
        .omitEmptyStrings()
        .splitToStream(System.getenv().getOrDefault("PATH", ""))
        .anyMatch(folder -> Files.isExecutable(Path.of(folder, program)));
  }

  /** Skips the test where a program is not installed. */
  public static void assumeInstalled(String program) {
    assumeTrue(isInstalled(program), "no %s on the PATH".formatted(program));
  }

  /** {@return the result of the work in a folder that nothing is left of} */
  public static <T> T inFolder(Work<T> work) {
    try {
      var folder = Files.createTempDirectory("symplan-tools");
      try {
        return work.in(folder);
      } finally {
        try (var files = Files.list(folder)) {
          for (var file : files.toList()) {
            Files.delete(file);
          }
        }
        Files.delete(folder);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * {@return the output of a program}
   *
   * @throws IllegalStateException with that when it fails, or does not end
   */
  public static String run(Path folder, List<String> command) throws IOException {
    var words = String.join(" ", command);
    var output = Files.createTempFile(folder, "said", ".txt");
    var process =
        new ProcessBuilder(command)
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        throw new IllegalStateException(words + " does not end");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(e);
    } finally {
      process.destroyForcibly();
    }
    var said = Files.readString(output, UTF_8);
    if (process.exitValue() != 0) {
      throw new IllegalStateException(words + " failed: " + said);
    }
    return said;
  }
}
