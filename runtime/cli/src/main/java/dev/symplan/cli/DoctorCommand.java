package dev.symplan.cli;

import com.google.common.base.Ascii;
import dev.symplan.cli.common.Backends;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.runtime.doctor.Diagnosis;
import dev.symplan.runtime.doctor.DoctorJson;
import dev.symplan.runtime.doctor.DoctorText;
import dev.symplan.runtime.doctor.MachineProbe;
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

  DoctorCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
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
