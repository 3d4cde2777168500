package dev.symplan.cli;

import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.planner.Variant;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(name = "ops", description = "List the ops that graphs may use, with their schemas.")
final class OpsCommand implements Callable<Integer> {
  private final Console console;

  @Parameters(
      arity = "0..1",
      paramLabel = "PATTERN",
      description = "Only ops whose name contains this.")
  private Optional<String> pattern = Optional.empty();

  @Option(
      names = "--collectives",
      description =
          "Only collectives, each with its variants and what these need in symmetric memory.")
  private boolean collectives;

  OpsCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    int shown = 0;
    for (OpName name : OpRegistry.global().names()) {
      if (name.toString().contains(pattern.orElse(""))) {
        var def = OpRegistry.global().get(name.toString());
        if (!collectives || def.collective().isPresent()) {
          console.print(def.schema() + "\n");
          def.collective().ifPresent(spec -> console.print(variants(def)));
          shown++;
        }
      }
    }
    if (shown == 0) {
      console.progress(
          "error[unknown-op]: no op's name contains '%s'".formatted(pattern.orElse("")));
      return ExitCode.FAILED;
    }
    return ExitCode.OK;
  }

  private static String variants(OpDef def) {
    var kind = def.collective().orElseThrow().kind();
    return Arrays.stream(Variant.values())
        .filter(v -> v.implementsKind(kind))
        .map(
            v ->
                "    %-12s %s; symmetric: %s\n"
                    .formatted(
                        v.text(),
                        v.summary(),
                        needs(v.needsSymmetricOperand(kind), v.needsSymmetricResult(kind))))
        .collect(Collectors.joining());
  }

  private static String needs(boolean operand, boolean result) {
    return operand && result
        ? "operand and result"
        : operand ? "operand" : result ? "result" : "nothing";
  }
}
