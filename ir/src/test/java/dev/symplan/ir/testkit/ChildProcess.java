package dev.symplan.ir.testkit;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A Java process that runs a class of the tests; what it prints is kept. */
public record ChildProcess(Process process, BufferedReader out) {

  /** Starts one, with the properties of this process that begin with {@code symplan.}. */
  public static ChildProcess start(Class<?> main, Map<String, String> environment, String... args) {
    return start(List.of(), List.of(), main, environment, args);
  }

  /**
   * The same.
   *
   * @param prefix the beginning of the command, such as one that changes the namespace
   * @param options of Java
   */
  static ChildProcess start(
      List<String> prefix,
      List<String> options,
      Class<?> main,
      Map<String, String> environment,
      String... args) {
    var command = new ArrayList<>(prefix);
    command.addAll(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-XX:+UseSerialGC",
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
