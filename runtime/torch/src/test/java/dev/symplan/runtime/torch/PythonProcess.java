package dev.symplan.runtime.torch;

import dev.symplan.ir.testkit.ChildProcess;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;

/** Starts Python, whose process finds the classes of the tests as a program finds Symplan. */
final class PythonProcess {
  static final String NAME = Optional.ofNullable(System.getenv("SYMPLAN_PYTHON")).orElse("python3");

  private PythonProcess() {}

  /** {@return whether there is a Python that does this without an error} */
  static boolean succeeds(String... args) {
    try {
      var process =
          new ProcessBuilder(command(args))
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

  private static List<String> command(String... args) {
    var command = new ArrayList<>(List.of(NAME));
    command.addAll(List.of(args));
    return command;
  }

  /**
   * {@return a process that runs Python}
   *
   * @param home an empty folder, or that of another one, for what Symplan's home contains
   * @param more variables of its environment
   */
  static ChildProcess start(Path home, Map<String, String> more, String... args)
      throws IOException {
    makeHome(home);
    var builder = new ProcessBuilder(command(args)).redirectErrorStream(true);
    var environment = builder.environment();
    environment.put("SYMPLAN_HOME", home.toString());
    environment.put("SYMPLAN_JAVA_HOME", System.getProperty("java.home"));
    environment.put("PYTHONDONTWRITEBYTECODE", "1");
    environment.put("JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1");
    environment.remove("SYMPLAN_PAGE");
    environment.putAll(more);
    var process = builder.start();
    return new ChildProcess(process, process.inputReader(StandardCharsets.UTF_8));
  }

  /** The only jar names the class path of this test. */
  private static void makeHome(Path home) throws IOException {
    var jar = home.resolve("lib/symplan.jar");
    if (Files.exists(jar)) {
      return;
    }
    var paths =
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(path -> !path.isEmpty())
            .map(path -> Path.of(path).toUri().toString())
            .collect(Collectors.joining(" "));
    var manifest = new Manifest();
    manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
    manifest.getMainAttributes().put(Attributes.Name.CLASS_PATH, paths);
    Files.createDirectories(home.resolve("lib"));
    new JarOutputStream(Files.newOutputStream(jar), manifest).close();
  }
}
