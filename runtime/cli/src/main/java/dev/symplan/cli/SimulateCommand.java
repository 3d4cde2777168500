package dev.symplan.cli;

import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Inputs;
import dev.symplan.planner.simulate.Job;
import dev.symplan.planner.simulate.Scenario;
import dev.symplan.planner.simulate.Scenario.Slow;
import dev.symplan.planner.simulate.SimulationReport;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Predict how long a step takes on several hosts: ranks wait for each other, and collectives"
          + " that use a rail (the network adapter of a GPU) at the same time share it.",
      "The times come from the target's figures for its network, which are published or assumed"
          + " ones unless the target was calibrated (docs/targets.md).",
      "A table shows how much longer the step would take if one rail or GPU had half its rate."
    })
final class SimulateCommand extends ConsoleCommand {
  @Parameters(paramLabel = "INPUT", description = "A plan, or what compile takes.")
  private Path input;

  @Option(
      names = "--slow-rail",
      paramLabel = "HOST:GPU*SHARE",
      description = {
        "Give the rail of a GPU another rate: 3:1*0.5 halves that of GPU 1 of host 3. Hosts, and"
            + " the GPUs of each, count from 0. May be repeated."
      })
  private List<String> rails = new ArrayList<>();

  @Option(
      names = "--slow-gpu",
      paramLabel = "HOST:GPU*SHARE",
      description =
          "Give the local work of a GPU another rate, in the form of --slow-rail. May be repeated.")
  private List<String> gpus = new ArrayList<>();

  @Option(
      names = "--format",
      paramLabel = "FORMAT",
      description = "text or json (default: text).",
      defaultValue = "text")
  private DoctorCommand.Format format = DoctorCommand.Format.TEXT;

  @Mixin private CompileFlags flags;

  SimulateCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    var plan = Inputs.plan(input, flags.toSimulate(), console);
    var scenario = Scenario.of(Job.of(plan, flags.topology(plan)));
    for (var text : rails) {
      var slow = slow("--slow-rail", text);
      scenario = scenario.withRail(rank("--slow-rail", slow, scenario), slow.factor());
    }
    for (var text : gpus) {
      var slow = slow("--slow-gpu", text);
      scenario = scenario.withGpu(rank("--slow-gpu", slow, scenario), slow.factor());
    }
    var report = SimulationReport.of(scenario);
    console.print(
        switch (format) {
          case TEXT -> report.text();
          case JSON -> report.json();
        });
    return ExitCode.OK;
  }

  private Slow slow(String option, String text) {
    return Slow.parse(text)
        .orElseThrow(
            () ->
                usage(
                    "%s: '%s' is not a GPU and a share of its rate, such as 3:1*0.5"
                        .formatted(option, text)));
  }

  private int rank(String option, Slow slow, Scenario scenario) {
    return scenario
        .rank(slow)
        .orElseThrow(
            () ->
                usage(
                    "%s: no rank is on GPU %s of host %s; the hosts are %s"
                        .formatted(
                            option, slow.gpu(), slow.host(), scenario.job().topology().text())));
  }
}
