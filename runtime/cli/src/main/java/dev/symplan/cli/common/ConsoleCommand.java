package dev.symplan.cli.common;

import java.util.concurrent.Callable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** A command that writes to a console and returns an {@link ExitCode}. */
public abstract class ConsoleCommand implements Callable<Integer> {
  @Spec protected CommandSpec spec;

  protected final Console console;

  protected ConsoleCommand(Console console) {
    this.console = console;
  }

  /** {@return the error of a command line that makes no sense} */
  protected final ParameterException usage(String message) {
    return new ParameterException(spec.commandLine(), message);
  }
}
