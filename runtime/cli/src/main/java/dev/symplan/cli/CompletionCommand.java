package dev.symplan.cli;

import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import picocli.AutoComplete;
import picocli.CommandLine.Command;

@Command(
    description = "Print a script that lets Bash and Zsh complete commands and options.",
    footer = {
      "",
      "For this shell:           source <(symplan completion)",
      "For all later shells:     symplan completion > FILE, and source FILE in ~/.bashrc or"
          + " ~/.zshrc"
    })
final class CompletionCommand extends ConsoleCommand {
  static final String NAME = "completion";

  CompletionCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    var root = spec.root().commandLine();
    console.print(AutoComplete.bash(root.getCommandName(), root));
    return ExitCode.OK;
  }
}
