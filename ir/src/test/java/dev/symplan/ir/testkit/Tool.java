package dev.symplan.ir.testkit;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Programs of this machine that tests use where they are there, such as compilers. */
public final class Tool {
  private Tool() {}

  /** {@return whether the program can be started and tells its version} */
  public static boolean isThere(String name) {
    return run(List.of(name, "--version")).startsWith("0\n");
  }

  /** {@return the exit code of a command and, on the next lines, what it said} */
  public static String run(List<String> command) {
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
