package dev.symplan.cli.bench;

import com.google.common.base.Ascii;
import com.google.common.base.Splitter;
import dev.symplan.cli.common.Backends;
import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Heading;
import dev.symplan.cli.common.LaunchedRun;
import dev.symplan.cli.common.Outputs;
import dev.symplan.ir.DType;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.calibrate.Point;
import dev.symplan.planner.calibrate.PointWriter;
import dev.symplan.planner.calibrate.Points;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Variant;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.bench.Bench;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Launch;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.World;
import dev.symplan.runtime.tensor.Elements;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The options that all measurements share, and where what they find goes. */
@Heading("Measuring")
final class BenchFlags {
  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Option(
      names = "--backend",
      paramLabel = "NAME",
      description = "The backend: cuda (the default) or host.",
      defaultValue = "cuda")
  private String backend;

  @Option(
      names = "--ranks",
      paramLabel = "N",
      description = "The number of ranks (default: the number of GPUs; 4 on the host).")
  private Optional<Integer> givenRanks = Optional.empty();

  @Option(
      names = "--target",
      paramLabel = "NAME|FILE",
      description =
          "The target whose picks and predictions are shown (default: host for backend host,"
              + " otherwise as many H200s as ranks).")
  private Optional<String> target = Optional.empty();

  @Option(
      names = "--dtypes",
      split = ",",
      paramLabel = "TYPE",
      description = "Element types, separated by commas (default: ${DEFAULT-VALUE}).",
      defaultValue = "bf16")
  private List<String> dtypes = new ArrayList<>();

  @Option(
      names = "--variants",
      split = ",",
      paramLabel = "NAME",
      description = "Measure only these variants (default: all that the target has).")
  private List<String> variants = new ArrayList<>();

  @Option(
      names = "--measurements",
      paramLabel = "N",
      description =
          "The number of measurements of each time; their median counts (default:"
              + " ${DEFAULT-VALUE}).",
      defaultValue = "7")
  private int measurements;

  @Option(
      names = "--csv",
      paramLabel = "FILE",
      description =
          "Write each time to this file as soon as it is known, in the format of calibrate.")
  private Optional<Path> csv = Optional.empty();

  /** A command that measures; its output file is open. */
  final class Run {
    private final Console console;
    private final List<String> header;
    private final Optional<LineFile> file;
    private final List<Point> points = new ArrayList<>();
    private final Bench bench;

    private Run(
        BenchDevice device,
        SessionOptions options,
        Target planned,
        Hosts hosts,
        Console console,
        Optional<LineFile> file) {
      this.console = console;
      this.file = file;
      header = device.header(spec.root());
      bench =
          new Bench(
              device.backend(),
              options,
              planned,
              hosts,
              measurements,
              device.name(),
              LocalDate.now(ZoneOffset.UTC).toString(),
              this::found,
              (what, why) -> {
                if (options.world().isPresent()) {
                  // The others wait for this process, or have failed with it.
                  throw why;
                }
                console.progress("%s: %s".formatted(what, why.getMessage()));
              });
      header.forEach(line -> console.print("# " + line + "\n"));
      file.ifPresent(f -> f.append(PointWriter.header(header)));
    }

    /** Prints what was found, where this process speaks for all. */
    void print(String text) {
      console.print(text);
    }

    /** {@return the bench, which writes each time down at once} */
    Bench bench() {
      return bench;
    }

    private void found(Point point) {
      var row = PointWriter.row(point);
      points.add(point);
      file.ifPresent(f -> f.append(row));
      console.progress(row.strip());
    }

    /** {@return the points found so far} */
    Points points() {
      return Points.of(points, header);
    }

    /** {@return the exit code of a command that should have found something} */
    int code() {
      if (points.isEmpty()) {
        console.progress("error: nothing could be measured");
        return ExitCode.RUNTIME;
      }
      return ExitCode.OK;
    }
  }

  /**
   * Measures on the backend that is asked for.
   *
   * @return the exit code of {@code work}, or the one that says that the backend cannot be used
   *     here
   * @throws ParameterException when an option is wrong
   */
  int measure(Console console, ToIntFunction<Run> work) {
    return measure(console, Optional.empty(), work);
  }

  /**
   * The same in the processes that a launcher has started, one for each rank, if it has. Rank 0
   * writes for all.
   *
   * @param insecure whether processes of other hosts may join without a secret
   */
  int measureLaunched(Console console, boolean insecure, ToIntFunction<Run> work) {
    return measure(
        console,
        Launch.AUTO
            .environment(System.getenv())
            .map(known -> known.withAccess(known.access().withInsecure(insecure))),
        work);
  }

  private int measure(
      Console console, Optional<LaunchEnvironment> launched, ToIntFunction<Run> work) {
    if (givenRanks.isPresent() && givenRanks.get() < 2) {
      throw usage("--ranks must be at least 2: one rank has no peer to communicate with");
    }
    if (givenRanks.isPresent() && givenRanks.get() > ProcessGroup.MAX_RANKS) {
      throw usage("--ranks must be at most " + ProcessGroup.MAX_RANKS);
    }
    if (measurements < 1) {
      throw usage("--measurements must be at least 1");
    }
    var chosen = Backends.named(backend, spec);
    if (launched.isEmpty()) {
      Backends.requireOneProcess("bench", System.getenv());
    }
    if (!Backends.isUsable(chosen, console)) {
      return ExitCode.NO_DEVICE;
    }
    var device = BenchDevice.of(chosen);
    if (launched.isPresent()) {
      return LaunchedRun.call(
          launched.get(),
          SessionOptions.DEFAULT,
          console,
          (joined, own) -> measure(device, joined, joined.world().orElseThrow(), own, work));
    }
    int ranks = givenRanks.orElseGet(device::ranks);
    if (ranks < 2) {
      throw usage(
          "this machine has only one GPU, which has no peer to communicate with; --backend host"
              + " needs no GPU");
    }
    var planned = target(device, ranks);
    return measure(
        device,
        SessionOptions.DEFAULT,
        planned,
        Topology.of(ranks, planned).placement(),
        console,
        csv,
        work);
  }

  private int measure(
      BenchDevice device,
      SessionOptions joined,
      World world,
      Console console,
      ToIntFunction<Run> work) {
    if (givenRanks.isPresent() && givenRanks.get() != world.size()) {
      throw new RunException(
          "--ranks is %s, but there are %s"
              .formatted(givenRanks.get(), Units.count(world.size(), "process")));
    }
    var hosts = world.placement();
    if (hosts.sizes().stream().distinct().count() > 1) {
      throw new RunException(
          "the hosts have different numbers of ranks (%s), for which a target has no times: start as many processes on each"
              .formatted(hosts.text()));
    }
    return measure(
        device,
        joined,
        target(device, hosts.most()),
        hosts,
        console,
        csv.filter(_ -> world.rank() == 0),
        work);
  }

  private int measure(
      BenchDevice device,
      SessionOptions options,
      Target planned,
      Hosts hosts,
      Console console,
      Optional<Path> output,
      ToIntFunction<Run> work) {
    var file = output.map(LineFile::create);
    try {
      return work.applyAsInt(new Run(device, options, planned, hosts, console, file));
    } finally {
      file.ifPresent(LineFile::close);
    }
  }

  private Target target(BenchDevice device, int ranks) {
    return target
        .map(name -> CompileFlags.target(name, "--target", spec))
        .orElseGet(() -> device.target(ranks));
  }

  /** Refuses to draw where times are written. */
  void requireNotCsv(Path svg) {
    if (csv.filter(file -> Outputs.isSame(file, svg)).isPresent()) {
      throw usage("--csv and --svg are the same file: " + svg);
    }
  }

  /**
   * {@return the types to measure}
   *
   * @throws ParameterException when the host backend has no sum of one, and a collective reduces
   */
  List<DType> dtypes(List<Kind> kinds) {
    var types = dtypes();
    if (backend.equals(Backend.HOST) && kinds.stream().anyMatch(Kind::reduces)) {
      for (var dtype : types) {
        if (!Elements.computes(dtype.real())) {
          throw usage(
              "--dtypes: backend host cannot reduce %s; use --ops to choose collectives without reduction"
                  .formatted(dtype.shortName()));
        }
      }
    }
    return types;
  }

  List<DType> dtypes() {
    return dtypes.stream()
        .map(
            name ->
                DType.ofShortName(name)
                    .orElseThrow(() -> usage("--dtypes: unknown type '%s'".formatted(name))))
        .toList();
  }

  /**
   * {@return the variants to measure}
   *
   * @throws ParameterException when none of them is of such collectives
   */
  Predicate<Variant> wanted(List<Kind> kinds) {
    var wanted = new HashSet<Variant>();
    for (var name : variants) {
      wanted.add(
          Variant.ofText(name)
              .orElseThrow(
                  () ->
                      usage(
                          "--variants: unknown variant '%s'; choose from %s"
                              .formatted(
                                  name,
                                  Arrays.stream(Variant.values())
                                      .map(Variant::text)
                                      .collect(Collectors.joining(", "))))));
    }
    if (!wanted.isEmpty()
        && wanted.stream().noneMatch(variant -> kinds.stream().anyMatch(variant::implementsKind))) {
      throw usage(
          "--variants: %s does not exist for %s"
              .formatted(
                  String.join(", ", variants),
                  kinds.stream().map(Kind::text).collect(Collectors.joining(", "))));
    }
    return variant -> wanted.isEmpty() || wanted.contains(variant);
  }

  /**
   * {@return a number of bytes, as in 65536, 64KiB, 1MiB}
   *
   * @throws ParameterException of the command, when the text of the option is none
   */
  static long bytes(CommandSpec command, String option, String text) {
    var word = Ascii.toLowerCase(text.strip());
    int shift =
        word.endsWith("kib") ? 10 : word.endsWith("mib") ? 20 : word.endsWith("gib") ? 30 : 0;
    try {
      long count = Long.parseLong(shift == 0 ? word : word.substring(0, word.length() - 3).strip());
      if (count > 0 && count <= Long.MAX_VALUE >> 20 >> shift) {
        return count << shift;
      }
    } catch (NumberFormatException _) {
      // Reported below.
    }
    throw new ParameterException(
        command.commandLine(),
        "%s: '%s' is not a size; write for example 64KiB".formatted(option, text));
  }

  /** {@return sizes, as in {@code 64KiB,1MiB} or {@code 16KiB..64MiB}, which doubles} */
  List<Long> sizes(String option, String text) {
    var sizes = new ArrayList<Long>();
    for (var part : Splitter.on(',').split(text)) {
      var ends = Splitter.on("..").splitToList(part);
      if (ends.size() > 2) {
        throw usage(
            "%s: '%s' is not a range; write for example 16KiB..64MiB".formatted(option, part));
      }
      long last = bytes(spec, option, ends.getLast());
      for (long size = bytes(spec, option, ends.getFirst()); size <= last; size *= 2) {
        sizes.add(size);
      }
    }
    if (sizes.isEmpty()) {
      throw usage("%s: '%s' contains no size".formatted(option, text));
    }
    return sizes;
  }

  ParameterException usage(String message) {
    return new ParameterException(spec.commandLine(), message);
  }
}
