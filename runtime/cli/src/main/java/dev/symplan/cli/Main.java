package dev.symplan.cli;

import com.google.common.collect.ImmutableMap;
import dev.symplan.cli.bench.BenchCommand;
import dev.symplan.cli.bench.CalibrateCommand;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Usage;
import dev.symplan.cli.common.Version;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.report.View;
import dev.symplan.runtime.failure.RunException;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.InvalidPathException;
import java.util.Locale;
import java.util.function.Function;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ScopeType;

/** The command line: exit codes 0 ok, 1 wrong input, 2 usage, 3 no device, 4 run failed, 70 bug. */
@Command(
    name = "symplan",
    description = {
      "Compile tensor graphs for several GPUs and decide where every tensor lives, so that"
          + " collectives run straight out of symmetric memory."
    },
    mixinStandardHelpOptions = true,
    scope = ScopeType.INHERIT,
    versionProvider = Version.class,
    synopsisSubcommandLabel = "COMMAND",
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {
      "0:ok",
      "1:the input is wrong, or a check failed",
      "2:the command line is wrong",
      "3:no usable device",
      "4:the program failed while it ran",
      "70:an internal error"
    })
public final class Main {
  /** The system's message after a reader such as {@code head} has closed the pipe. */
  private static final String BROKEN_PIPE = "Broken pipe";

  private Main() {}

  /** Runs one command and exits. */
  public static void main(String[] args) {
    // Some locales write numbers in digits of their own, which no program reads.
    Locale.setDefault(Locale.Category.FORMAT, Locale.ROOT);
    System.exit(
        runOn(
            args,
            new FileOutputStream(FileDescriptor.out),
            new FileOutputStream(FileDescriptor.err)));
  }

  /** {@return the exit code of one command, which is not ok where its output is lost} */
  static int runOn(String[] args, OutputStream standard, OutputStream errors) {
    var kept = new FailureKeeper(standard);
    var out = stream(kept);
    var err = stream(errors);
    int code = run(args, out, err);
    out.flush();
    var lost = kept.failure().filter(why -> !BROKEN_PIPE.equals(why.getMessage()));
    lost.ifPresent(why -> err.println("error: cannot write the output: " + why.getMessage()));
    err.flush();
    return lost.isPresent() && code == ExitCode.OK ? ExitCode.FAILED : code;
  }

  private static PrintStream stream(OutputStream to) {
    return new PrintStream(new BufferedOutputStream(to, 1 << 16), false, StandardCharsets.UTF_8);
  }

  /**
   * {@return the command line with all its commands, or only with the one that the arguments name}
   */
  static CommandLine commandLine(Console console, String... args) {
    var commands =
        ImmutableMap.<String, Function<Console, Object>>builder()
            .put("compile", CompileCommand::new)
            .put("run", RunCommand::new)
            .put("import", ImportCommand::new)
            .put("dump", DumpCommand::new)
            .put("explain", ExplainCommand::new)
            .put("diff", DiffCommand::new)
            .put("compare-xla", CompareXlaCommand::new)
            .put("bisect", BisectCommand::new)
            .put("verify", VerifyCommand::new)
            .put("simulate", SimulateCommand::new)
            .put("pack", PackCommand::new)
            .put("calibrate", CalibrateCommand::new)
            .put("bench", BenchCommand::of)
            .put("ops", OpsCommand::new)
            .put("doctor", DoctorCommand::new)
            .put(CompletionCommand.NAME, CompletionCommand::new)
            .put("version", VersionCommand::new)
            .buildOrThrow();
    var line = new CommandLine(new Main());
    // Reading the options of all commands takes longer than most commands do.
    boolean named =
        args.length > 0 && commands.containsKey(args[0]) && !args[0].equals(CompletionCommand.NAME);
    commands.forEach(
        (name, make) -> {
          if (!named || name.equals(args[0])) {
            line.addSubcommand(name, make.apply(console));
          }
        });
    line.setOut(new PrintWriter(console.out(), true, StandardCharsets.UTF_8))
        .setErr(new PrintWriter(console.err(), true, StandardCharsets.UTF_8))
        .setCaseInsensitiveEnumValuesAllowed(true)
        // A file may have a name that begins with @.
        .setExpandAtFiles(false)
        .setUsageHelpWidth(100)
        .setExecutionExceptionHandler((e, command, parsed) -> failed(e, console));
    Usage.of(line, View.class, DoctorCommand.Format.class);
    return line;
  }

  /** {@return the exit code of one command} */
  static int run(String[] args, PrintStream out, PrintStream err) {
    var console = new Console(out, err);
    var line = commandLine(console, args);
    if (args.length == 0) {
      line.usage(err);
      return ExitCode.USAGE;
    }
    try {
      return line.execute(args);
    } catch (Error e) {
      // Of which picocli catches none.
      return failed(e, console);
    }
  }

  static int failed(Throwable e, Console console) {
    return switch (e) {
      case CompileException wrong -> {
        console.warnings(wrong.diagnostics());
        yield ExitCode.FAILED;
      }
      case RunException failed -> {
        console.progress("error: " + failed.getMessage());
        yield ExitCode.RUNTIME;
      }
      case InvalidPathException wrong -> {
        console.progress(
            "error: '%s' is not a path: %s".formatted(wrong.getInput(), wrong.getReason()));
        yield ExitCode.USAGE;
      }
      case OutOfMemoryError _ -> {
        console.progress(
            "symplan: out of memory (%s); set a larger heap with SYMPLAN_JAVA_OPTS=-Xmx<size>"
                .formatted(e.getMessage()));
        yield ExitCode.BUG;
      }
      default -> {
        console.progress("symplan: internal error; please report it with the input: " + e);
        e.printStackTrace(console.err());
        yield ExitCode.BUG;
      }
    };
  }
}
