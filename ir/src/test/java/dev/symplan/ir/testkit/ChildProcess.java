package dev.symplan.ir.testkit;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;

/** A Java process that runs a class of the tests; what it prints is kept. */
public record ChildProcess(Process process, BufferedReader out) {

  /** Starts one, with the properties of this process that begin with {@code symplan.}. */
  public static ChildProcess start(Class<?> main, Map<String, String> environment, String... args) {
    return start(List.of(), main, environment, args);
  }

  private static ChildProcess start(
      List<String> options, Class<?> main, Map<String, String> environment, String... args) {
    var command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path")));
    System.getProperties().stringPropertyNames().stream()
        .filter(name -> name.startsWith("symplan."))
        .map(name -> "-D%s=%s".formatted(name, System.getProperty(name)))
        .forEach(command::add);
    command.addAll(options);
    command.add(main.getName());
    command.addAll(List.of(args));
    var builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().putAll(environment);
    try {
      var process = builder.start();
      return new ChildProcess(process, process.inputReader(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Starts a process for each rank, as torchrun does. */
  public static List<ChildProcess> launch(Class<?> main, int size, String... args) {
    return launch(_ -> List.of(), main, size, args);
  }

  /**
   * The same.
   *
   * @param options of each rank's Java
   */
  public static List<ChildProcess> launch(
      IntFunction<List<String>> options, Class<?> main, int size, String... args) {
    return launch(options, _ -> Map.of(), main, size, args);
  }

  /**
   * The same.
   *
   * @param options of each rank's Java
   * @param more variables of each rank's environment
   */
  public static List<ChildProcess> launch(
      IntFunction<List<String>> options,
      IntFunction<Map<String, String>> more,
      Class<?> main,
      int size,
      String... args) {
    var port = Integer.toString(freePort() - 1);
    var children = new ArrayList<ChildProcess>();
    for (int rank = 0; rank < size; rank++) {
      var environment =
          new HashMap<>(
              Map.of(
                  "RANK", Integer.toString(rank),
                  "LOCAL_RANK", Integer.toString(rank),
                  "WORLD_SIZE", Integer.toString(size),
                  "MASTER_ADDR", "localhost",
                  "MASTER_PORT", port));
      environment.putAll(more.apply(rank));
      children.add(start(options.apply(rank), main, environment, args));
    }
    return children;
  }

  /** {@return a port that nobody has had a moment ago} */
  public static int freePort() {
    try (var socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** {@return the next line that begins so; what came before it is part of the failure if none} */
  public String line(String begin) {
    var seen = new StringBuilder();
    try {
      for (var line = out.readLine(); line != null; line = out.readLine()) {
        if (line.startsWith(begin)) {
          return line;
        }
        seen.append(line).append('\n');
      }
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    throw new AssertionError("no line '%s' in:%n%s".formatted(begin, seen));
  }

  /** {@return all that is still to come} */
  public String rest() {
    var rest = new StringBuilder();
    out.lines().forEach(line -> rest.append(line).append('\n'));
    return rest.toString();
  }
}
