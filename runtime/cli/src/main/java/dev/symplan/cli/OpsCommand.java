package dev.symplan.cli;

import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.OpName;
import dev.symplan.planner.report.CollectivesTable;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(description = "List the ops that graphs may use, with their schemas.")
final class OpsCommand extends ConsoleCommand {
  @Parameters(
      arity = "0..1",
      paramLabel = "PATTERN",
      description = "List only ops whose name contains this.")
  private Optional<String> pattern = Optional.empty();

  @Option(
      names = "--collectives",
      description = "List only collectives, with their variants and requirements.")
  private boolean collectives;

  OpsCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    if (collectives) {
      return shown(CollectivesTable.text(pattern.orElse("")));
    }
    int shown = 0;
    for (OpName name : BuiltinOps.registry().names()) {
      if (name.toString().contains(pattern.orElse(""))) {
        var def = BuiltinOps.registry().get(name.toString());
        console.print(def.schema() + "\n");
        shown++;
      }
    }
    return shown == 0 ? none() : ExitCode.OK;
  }

  private int shown(String table) {
    console.print(table);
    return table.isEmpty() ? none() : ExitCode.OK;
  }

  private int none() {
    console.progress("error[unknown-op]: no op's name contains '%s'".formatted(pattern.orElse("")));
    return ExitCode.FAILED;
  }
}
