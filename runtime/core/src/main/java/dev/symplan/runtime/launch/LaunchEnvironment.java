package dev.symplan.runtime.launch;

import com.google.common.base.Splitter;
import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.failure.RunException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The values that a launcher passes to each of its processes in environment variables.
 *
 * @param rank which of the processes this is, from 0
 * @param size how many there are
 * @param localRank which of the processes of its host this is, from 0
 * @param host where rank 0 runs
 * @param port where rank 0 listens for the others
 * @param job a name that no other run has, if the launcher has one; else empty
 * @param access who may come into the store of rank 0
 * @param hostId the name by which this process's host is known; empty for its own
 */
public record LaunchEnvironment(
    Launcher launcher,
    int rank,
    int size,
    int localRank,
    String host,
    int port,
    String job,
    StoreAccess access,
    String hostId) {

  /** A launcher, which starts a process for each rank. */
  public enum Launcher {
    /** PyTorch's. */
    TORCHRUN,
    /** Open MPI's. */
    MPIRUN,
    /** Slurm's. */
    SRUN;

    /** {@return the name of the command} */
    public String text() {
      return switch (this) {
        case TORCHRUN -> "torchrun";
        case MPIRUN -> "mpirun";
        case SRUN -> "srun";
      };
    }
  }

  /** The port on which rank 0 listens, whatever else is set. */
  public static final String STORE_PORT = "SYMPLAN_STORE_PORT";

  /** The host's name for NCCL. With different ones, one host can emulate several. */
  public static final String HOST_ID = "NCCL_HOSTID";

  /** PyTorch's {@code MASTER_PORT} where none is given, and one more, as with one that is given. */
  private static final int DEFAULT_PORT = 29500 + 1;

  private static final int LAST_PORT = 65535;

  /** Steps that Slurm makes for a batch script and for a shell, which nobody launched by srun. */
  private static final String BATCH_STEP = "4294967291";

  private static final String INTERACTIVE_STEP = "4294967290";

  /** How many tasks a node has, and how many such nodes follow one another. */
  private static final Pattern TASKS =
      Pattern.compile("([1-9][0-9]{0,5})(?:\\(x([1-9][0-9]{0,5})\\))?");

  private static final String LOOPBACK = "127.0.0.1";

  public LaunchEnvironment {
    if (size < 1 || rank < 0 || rank >= size || localRank < 0 || localRank >= size) {
      throw new IllegalArgumentException(
          "rank %s, local rank %s of %s".formatted(rank, localRank, size));
    }
    if (port < 1 || port > LAST_PORT || host.isEmpty()) {
      throw new IllegalArgumentException("rank 0 at '%s', port %s".formatted(host, port));
    }
  }

  /** The environment of processes that need no secret, each on its own host. */
  public LaunchEnvironment(
      Launcher launcher, int rank, int size, int localRank, String host, int port, String job) {
    this(launcher, rank, size, localRank, host, port, job, StoreAccess.DEFAULT, "");
  }

  /** {@return the same with another access to the store} */
  public LaunchEnvironment withAccess(StoreAccess newAccess) {
    return new LaunchEnvironment(
        launcher, rank, size, localRank, host, port, job, newAccess, hostId);
  }

  /**
   * {@return the same for a process whose host is taken for another one, as {@code NCCL_HOSTID} has
   * it}
   */
  public LaunchEnvironment withHostId(String newHostId) {
    return new LaunchEnvironment(
        launcher, rank, size, localRank, host, port, job, access, newHostId);
  }

  /**
   * {@return the launch that the environment describes; empty if no launcher started this process}
   *
   * @param variables as of {@link System#getenv()}
   * @throws RunException when variables are missing, are not numbers or contradict each other
   */
  public static Optional<LaunchEnvironment> of(Map<String, String> variables) {
    var reader = new Reader(variables);
    if (reader.hasAny("RANK", "WORLD_SIZE", "LOCAL_RANK")) {
      return Optional.of(reader.torchrun());
    }
    if (reader.hasAny(
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")) {
      return Optional.of(reader.mpirun());
    }
    return reader.isSlurmTask() ? Optional.of(reader.srun()) : Optional.empty();
  }

  /** {@return for example {@code rank 1 of 4, started by torchrun}} */
  @Override
  public String toString() {
    return "rank %s of %s, started by %s".formatted(rank, size, launcher.text());
  }

  private record Reader(Map<String, String> variables) {

    private String value(String name) {
      return variables.getOrDefault(name, "").strip();
    }

    boolean hasAny(String... names) {
      return Stream.of(names).anyMatch(name -> !value(name).isEmpty());
    }

    private boolean areSame(String local, String all) {
      return hasAny(local) && value(local).equals(value(all));
    }

    boolean isSlurmTask() {
      // A batch script has the variables of a task, too.
      var step = value("SLURM_STEP_ID");
      boolean script =
          step.equals(BATCH_STEP)
              || step.equals(INTERACTIVE_STEP)
              || step.isEmpty() && !value("SLURM_JOB_ID").isEmpty();
      return !value("SLURM_PROCID").isEmpty() && !script;
    }

    LaunchEnvironment torchrun() {
      return of(
          Launcher.TORCHRUN,
          "RANK",
          "WORLD_SIZE",
          "LOCAL_RANK",
          localSize("LOCAL_WORLD_SIZE", Launcher.TORCHRUN),
          areSame("LOCAL_WORLD_SIZE", "WORLD_SIZE")
              ? LOOPBACK
              : required("MASTER_ADDR", Launcher.TORCHRUN),
          job("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"));
    }

    LaunchEnvironment mpirun() {
      boolean oneHost = areSame("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE");
      return of(
          Launcher.MPIRUN,
          "OMPI_COMM_WORLD_RANK",
          "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_LOCAL_RANK",
          localSize("OMPI_COMM_WORLD_LOCAL_SIZE", Launcher.MPIRUN),
          master(oneHost, "", "mpirun -x MASTER_ADDR=HOST, the host of rank 0"),
          job("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"));
    }

    LaunchEnvironment srun() {
      var step = hasAny("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
      var nodes = hasAny("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
      var list = hasAny("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
      return of(
          Launcher.SRUN,
          "SLURM_PROCID",
          step,
          "SLURM_LOCALID",
          tasksHere(step),
          master(value(nodes).equals("1"), firstNode(value(list)), "MASTER_ADDR=HOST"),
          job("SLURM_JOB_ID", "SLURM_STEP_ID"));
    }

    /** A variable, and how many processes it says are on this host. */
    private record Stated(String name, int number) {}

    private Optional<Stated> localSize(String name, Launcher launcher) {
      return hasAny(name)
          ? Optional.of(new Stated(name, number(name, launcher, 1)))
          : Optional.empty();
    }

    /**
     * Reads a list as {@code 8(x3),4}: three nodes of eight tasks and one of four.
     *
     * @param size the variable with the number of tasks, of the job or of the step as the list is
     */
    private Optional<Stated> tasksHere(String size) {
      var name = size.equals("SLURM_NTASKS") ? "SLURM_TASKS_PER_NODE" : "SLURM_STEP_TASKS_PER_NODE";
      if (!hasAny(name)) {
        return Optional.empty();
      }
      var nodes = new ArrayList<Integer>();
      for (var item : Splitter.on(',').split(value(name))) {
        var match = TASKS.matcher(item);
        if (!match.matches()) {
          throw new RunException(
              "%s is '%s', which is not a list such as 8(x3),4".formatted(name, value(name)));
        }
        int times = match.group(2) == null ? 1 : Integer.parseInt(match.group(2));
        nodes.addAll(Collections.nCopies(times, Integer.parseInt(match.group(1))));
      }
      int all = nodes.stream().mapToInt(tasks -> tasks).sum();
      if (all != number(size, Launcher.SRUN, 1)) {
        throw new RunException(
            "%s is %s, which is %s, but %s is %s"
                .formatted(name, value(name), Units.count(all, "task"), size, value(size)));
      }
      if (!hasAny("SLURM_NODEID")) {
        return Optional.empty();
      }
      int node = number("SLURM_NODEID", Launcher.SRUN, 0);
      if (node >= nodes.size()) {
        throw new RunException(
            "SLURM_NODEID is %s, but %s is %s, which is %s"
                .formatted(node, name, value(name), Units.count(nodes.size(), "node")));
      }
      return Optional.of(new Stated(name, nodes.get(node)));
    }

    private String master(boolean oneHost, String first, String advice) {
      if (oneHost) {
        return LOOPBACK;
      }
      if (!value("MASTER_ADDR").isEmpty()) {
        return value("MASTER_ADDR");
      }
      if (first.isEmpty()) {
        throw new RunException(
            "the host of rank 0 is not known: set MASTER_ADDR, for example by " + advice);
      }
      return first;
    }

    private String job(String... names) {
      return Stream.of(names)
          .map(this::value)
          .filter(value -> !value.isEmpty())
          .collect(Collectors.joining("."));
    }

    private String required(String name, Launcher launcher) {
      if (value(name).isEmpty()) {
        throw new RunException(
            "%s is not set, but other variables of %s are; run --launch=single ignores them"
                .formatted(name, launcher.text()));
      }
      return value(name);
    }

    private int number(String name, Launcher launcher, int from) {
      var text = required(name, launcher);
      int number;
      try {
        number = Integer.parseInt(text);
      } catch (NumberFormatException e) {
        throw new RunException("%s is '%s', which is not a number".formatted(name, text), e);
      }
      if (number < from) {
        throw new RunException("%s is %s, less than %s".formatted(name, number, from));
      }
      return number;
    }

    private LaunchEnvironment of(
        Launcher launcher,
        String rankName,
        String sizeName,
        String local,
        Optional<Stated> localSize,
        String host,
        String job) {
      int rank = number(rankName, launcher, 0);
      int size = number(sizeName, launcher, 1);
      int localRank = number(local, launcher, 0);
      if (rank >= size) {
        throw new RunException(
            "%s is %s, but %s is %s: ranks count from 0".formatted(rankName, rank, sizeName, size));
      }
      if (localRank >= size) {
        throw new RunException(
            "%s is %s, but %s is %s: there are fewer processes in all"
                .formatted(local, localRank, sizeName, size));
      }
      localSize.ifPresent(
          here -> {
            if (localRank >= here.number() || here.number() > size) {
              throw new RunException(
                  "%s is %s and %s is %s, but %s says that this host has %s"
                      .formatted(
                          sizeName,
                          size,
                          local,
                          localRank,
                          here.name(),
                          Units.count(here.number(), "process")));
            }
          });
      return new LaunchEnvironment(
          launcher,
          rank,
          size,
          localRank,
          host,
          port(launcher),
          job,
          StoreAccess.of(variables),
          value(HOST_ID));
    }

    /** Next to {@code MASTER_PORT}, where torchrun itself listens. */
    private int port(Launcher launcher) {
      var name = hasAny(STORE_PORT) ? STORE_PORT : "MASTER_PORT";
      if (!hasAny(name)) {
        return DEFAULT_PORT;
      }
      int port = number(name, launcher, 1) + (name.equals(STORE_PORT) ? 0 : 1);
      if (port > LAST_PORT) {
        throw new RunException(
            port == LAST_PORT + 1 && !name.equals(STORE_PORT)
                ? "%s is %s, and the port after it does not exist: set %s to the port of Symplan's store"
                    .formatted(name, value(name), STORE_PORT)
                : "%s is %s, which is not a valid port".formatted(name, value(name)));
      }
      return port;
    }

    /** The first of a list as {@code gpu[03-05,9],login1}. */
    private static String firstNode(String list) {
      var first = new StringBuilder();
      boolean within = false;
      boolean skipping = false;
      for (char c : list.toCharArray()) {
        if (c == '[') {
          within = true;
        } else if (c == ']') {
          within = false;
          skipping = false;
        } else if (within && (c == '-' || c == ',')) {
          skipping = true;
        } else if (!within && c == ',') {
          break;
        } else if (!skipping) {
          first.append(c);
        }
      }
      return first.toString();
    }
  }
}
