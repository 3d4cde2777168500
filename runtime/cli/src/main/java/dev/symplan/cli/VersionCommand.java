package dev.symplan.cli;

import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Version;
import picocli.CommandLine.Command;

@Command(description = "Print the versions of Symplan and of the JDK it runs on.")
final class VersionCommand extends ConsoleCommand {
  VersionCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    console.print(
        "symplan %s\njdk %s (%s)\n"
            .formatted(
                Version.text(),
                System.getProperty("java.version"),
                System.getProperty("java.vm.vendor")));
    return ExitCode.OK;
  }
}
