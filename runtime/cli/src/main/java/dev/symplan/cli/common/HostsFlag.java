package dev.symplan.cli.common;

import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.HostsFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.plan.Plan;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The option that says how many ranks each host has. */
@Heading("Planning")
public final class HostsFlag {
  @Option(
      names = "--hosts",
      paramLabel = "HOSTS|FILE",
      description = {
        "How many ranks each host has: 4x8 (four hosts of 8), 8,4 (two hosts), or a file with the"
            + " name and the number of ranks of one host on each line (gpu01 8, as well as the"
            + " files of Open MPI, MPICH and Slurm). Ranks fill hosts in order;"
            + " otherwise, list the ranks of each host: '[0, 2], [1, 3]', '[0:16:2], [1:16:2]'"
            + " (default: as many on each host as the target has GPUs; for run, the hosts on which"
            + " torchrun, mpirun or srun has started processes)."
      })
  private Optional<String> hosts = Optional.empty();

  /** The hosts on which processes were started; empty for those that the target implies. */
  private Optional<Hosts> started = Optional.empty();

  /**
   * Plans for the hosts on which processes were started.
   *
   * @return false if the option names hosts, or if these have more ranks than a host of the target
   */
  boolean start(Hosts placement, Target machine) {
    boolean fits = hosts.isEmpty() && placement.most() <= machine.gpus();
    started = fits ? Optional.of(placement) : started;
    return fits;
  }

  /**
   * {@return the host of each rank; empty for the hosts that the target implies}
   *
   * @param command named in errors
   */
  Optional<Hosts> placement(CommandSpec command) {
    return hosts.map(text -> read(text, command)).or(() -> started);
  }

  /** {@return the hosts that a plan runs on: those that are given, or its own} */
  Topology topology(CommandSpec command, Plan plan) {
    return hosts
        .map(text -> Topology.ofHosts(read(text, command), plan.target()))
        .orElseGet(plan::topology);
  }

  private static Hosts read(String text, CommandSpec command) {
    try {
      var listed = Hosts.parse(text);
      if (listed.isPresent()) {
        return listed.get();
      }
    } catch (IllegalArgumentException e) {
      throw new ParameterException(
          command.commandLine(), "--hosts: '%s': %s".formatted(text, e.getMessage()), e);
    }
    var file = Path.of(text);
    if (text.isBlank() || !Files.exists(file)) {
      throw new ParameterException(
          command.commandLine(),
          ("--hosts: '%s' is neither a list of ranks on hosts, such as 4x8, 8,4 or [0, 2], [1, 3],"
                  + " nor a file")
              .formatted(text));
    }
    return HostsFile.read(file);
  }
}
