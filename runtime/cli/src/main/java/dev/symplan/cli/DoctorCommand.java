package dev.symplan.cli;

import com.google.common.base.Ascii;
import dev.symplan.cli.common.Backends;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.LaunchedRun;
import dev.symplan.cli.common.Version;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.doctor.Diagnosis;
import dev.symplan.runtime.doctor.DoctorJson;
import dev.symplan.runtime.doctor.DoctorText;
import dev.symplan.runtime.doctor.MachineProbe;
import dev.symplan.runtime.doctor.WorldDiagnosis;
import dev.symplan.runtime.doctor.WorldText;
import dev.symplan.runtime.launch.Launch;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

@Command(
    description = {
      "Show what this machine offers for backend cuda: GPUs, the links between them, libraries and"
          + " where they were found, and for every variant what it needs and whether this machine"
          + " has it.",
      "Starts nothing on the GPUs. Exits with 0 even if there are none."
    })
final class DoctorCommand extends ConsoleCommand {
  /** The format of the report. */
  enum Format {
    TEXT,
    JSON;

    /** For errors. */
    @Override
    public String toString() {
      return Ascii.toLowerCase(name());
    }
  }

  @Option(
      names = "--format",
      paramLabel = "FORMAT",
      description = "text or json (default: text).",
      defaultValue = "text")
  private Format format = Format.TEXT;

  @Option(names = "--require-gpu", description = "Exit with 3 if backend cuda cannot be used.")
  private boolean requireGpu;

  @Option(
      names = "--world",
      description = {
        "Compare the hosts of all processes that torchrun, mpirun or srun has started: versions,"
            + " settings, GPUs and clocks. Rank 0 prints what differs."
      })
  private boolean world;

  @Option(
      names = "--insecure",
      description = "With --world: let other hosts join without a secret, as for run.")
  private boolean insecure;

  DoctorCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    return world ? callInWorld() : callHere();
  }

  private int callInWorld() {
    if (format == Format.JSON) {
      throw usage("--world is text: it excludes --format json");
    }
    var environment = Launch.ENV.environment(System.getenv()).orElseThrow();
    return LaunchedRun.call(
        environment.withAccess(environment.access().withInsecure(insecure)),
        SessionOptions.DEFAULT,
        console,
        (joined, own) -> {
          var machine = MachineProbe.ofThisMachine();
          own.print(
              WorldText.print(
                  WorldDiagnosis.of(joined.world().orElseThrow(), machine, Version.text())));
          return requireGpu && machine.problem().isPresent() ? ExitCode.NO_DEVICE : ExitCode.OK;
        });
  }

  private int callHere() {
    var diagnosis =
        Diagnosis.of(MachineProbe.ofThisMachine(), Backends.named("cuda", spec).variants(false));
    console.print(
        switch (format) {
          case TEXT -> DoctorText.print(diagnosis);
          case JSON -> DoctorJson.print(diagnosis);
        });
    return requireGpu && !diagnosis.isUsable() ? ExitCode.NO_DEVICE : ExitCode.OK;
  }
}
