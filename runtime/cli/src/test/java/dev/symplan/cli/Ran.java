package dev.symplan.cli;

import dev.symplan.cli.common.Console;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.ToIntFunction;

/** The end of a command: its exit code, and its output. */
record Ran(int code, String out, String err) {

  /** Runs one command of the command line. */
  static Ran run(Object... args) {
    var words = Arrays.stream(args).map(Object::toString).toArray(String[]::new);
    return on(console -> Main.run(words, console.out(), console.err()));
  }

  /** Runs something that writes to a console and gives an exit code. */
  static Ran on(ToIntFunction<Console> work) {
    var out = new ByteArrayOutputStream();
    var err = new ByteArrayOutputStream();
    int code;
    try (var o = new PrintStream(out, true, StandardCharsets.UTF_8);
        var e = new PrintStream(err, true, StandardCharsets.UTF_8)) {
      code = work.applyAsInt(new Console(o, e));
    }
    return new Ran(
        code, out.toString(StandardCharsets.UTF_8), err.toString(StandardCharsets.UTF_8));
  }

  /** {@return all that it printed} */
  String said() {
    return out + err;
  }
}
