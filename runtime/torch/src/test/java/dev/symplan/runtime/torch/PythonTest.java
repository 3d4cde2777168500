package dev.symplan.runtime.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs the tests in Python of the backend of torch.compile, on these classes. Skipped where neither
 * {@code SYMPLAN_PYTHON} nor {@code python3} has PyTorch 2.11 or later.
 */
@Timeout(900)
class PythonTest {
  private static final Path TESTS =
      Path.of(System.getProperty("symplan.root"), "samples/pytorch/test_symplan_torch.py");

  private static final String NEW_ENOUGH =
      "import torch; assert tuple(map(int, torch.__version__.split('.')[:2])) >= (2, 11)";

  /** A home whose only jar names the class path of this test. */
  private static void makeHome(Path home) throws IOException {
    var paths =
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(path -> !path.isEmpty())
            .map(path -> Path.of(path).toUri().toString())
            .collect(Collectors.joining(" "));
    var manifest = new Manifest();
    manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
    manifest.getMainAttributes().put(Attributes.Name.CLASS_PATH, paths);
    var lib = Files.createDirectories(home.resolve("lib"));
    new JarOutputStream(Files.newOutputStream(lib.resolve("symplan.jar")), manifest).close();
  }

  private static boolean succeeds(List<String> command) {
    try {
      var process =
          new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start();
      return process.waitFor(60, TimeUnit.SECONDS) && process.exitValue() == 0;
    } catch (IOException e) {
      return false;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  @Test
  void theBackendOfTorchCompile(@TempDir Path folder) throws Exception {
    var python = Optional.ofNullable(System.getenv("SYMPLAN_PYTHON")).orElse("python3");
    assumeTrue(
        succeeds(List.of(python, "-c", NEW_ENOUGH)),
        python + " has no PyTorch 2.11 or later; SYMPLAN_PYTHON can name another one");
    makeHome(folder);
    var builder = new ProcessBuilder(python, TESTS.toString()).redirectErrorStream(true);
    builder.environment().put("SYMPLAN_HOME", folder.toString());
    builder.environment().put("SYMPLAN_JAVA_HOME", System.getProperty("java.home"));
    builder.environment().remove("SYMPLAN_PAGE");
    var process = builder.start();
    var output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    assertThat(output).contains("\nOK");
  }
}
