package dev.symplan.ir.testkit;

import dev.symplan.ir.diag.CompileException;
import java.util.OptionalLong;
import java.util.function.LongConsumer;
import java.util.regex.Pattern;

/** Finds the least memory that a program can be planned in. */
public final class LeastMemory {
  private static final Pattern LEAST = Pattern.compile("allow at least (\\d+) bytes");

  private LeastMemory() {}

  /**
   * {@return the bytes that the compiler asks for; empty if it refuses the program for another
   * reason, or needs no memory}
   *
   * @param compile with a memory limit
   */
  public static OptionalLong of(LongConsumer compile) {
    try {
      compile.accept(0);
    } catch (CompileException e) {
      var least = LEAST.matcher(String.valueOf(e.getMessage()));
      if (least.find()) {
        return OptionalLong.of(Long.parseLong(least.group(1)));
      }
    }
    return OptionalLong.empty();
  }
}
