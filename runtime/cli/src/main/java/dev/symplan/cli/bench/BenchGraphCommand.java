package dev.symplan.cli.bench;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import dev.symplan.cli.common.Backends;
import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Inputs;
import dev.symplan.cli.common.Outputs;
import dev.symplan.cli.common.SessionFlags;
import dev.symplan.planner.calibrate.PyTorchTimes;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Case;
import dev.symplan.runtime.Weights;
import dev.symplan.runtime.bench.GraphBench;
import dev.symplan.runtime.bench.GraphChart;
import dev.symplan.runtime.bench.GraphCsv;
import dev.symplan.runtime.bench.GraphReport;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    name = "graph",
    description = {
      "Measure a graph from end to end, and each of its steps next to the highest rates measured on"
          + " this GPU.",
      "The inputs are those of the case, and the weights those of the archive. All others are made"
          + " up."
    })
final class BenchGraphCommand extends ConsoleCommand {
  private static final String TIMES = "the file of times";
  private static final String DRAWING = "the plot";

  @Parameters(
      paramLabel = "INPUT",
      description = "A graph, an archive, a plan, or a case directory.")
  private Path input;

  @Mixin private CompileFlags flags;

  @Mixin private SessionFlags sessions;

  @Option(
      names = "--backend",
      paramLabel = "NAME",
      description =
          "The backend: cuda (the default) runs on the GPUs of this host and, unless --target is"
              + " given, plans for them; host runs on the CPU.",
      defaultValue = "cuda")
  private String backend;

  @Option(
      names = "--measurements",
      paramLabel = "N",
      description =
          "The number of measurements of each time; their median counts (default:"
              + " ${DEFAULT-VALUE}).",
      defaultValue = "7")
  private int measurements;

  @Mixin private Workload workload;

  @Option(
      names = "--pytorch",
      paramLabel = "FILE",
      description =
          "Also show PyTorch's times for the same program, from this CSV file of bench_programs.py."
              + " If the file has several programs, the name is that of INPUT up to the first dot.")
  private Optional<Path> pytorch = Optional.empty();

  @Option(
      names = "--csv",
      paramLabel = "FILE",
      description = "Write all times to this file, with the steps of all ranks.")
  private Optional<Path> csv = Optional.empty();

  @Option(
      names = "--svg",
      paramLabel = "FILE",
      description = "Draw the times of a run and of the kinds of steps to this file.")
  private Optional<Path> svg = Optional.empty();

  BenchGraphCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    if (measurements < 1) {
      throw usage("--measurements must be at least 1");
    }
    var chosen = Backends.named(backend, spec);
    boolean onHost = chosen.name().equals(Backend.HOST);
    int product = workload.product(onHost ? 512 : Workload.PRODUCT);
    long copied = workload.bytes(onHost ? "64MiB" : Workload.COPIED);
    checkOutputs();
    Backends.requireOneProcess("bench", System.getenv());
    if (!Backends.isUsable(chosen, console)) {
      return ExitCode.NO_DEVICE;
    }
    var plan = Inputs.plan(input, planFor(chosen), console);
    GraphBench.donated(plan)
        .ifPresent(
            name -> {
              throw usage(
                  "'%s' is donated, so its contents are lost after the first of many runs; plan without donating it"
                      .formatted(name));
            });
    var rows =
        pytorch
            .map(file -> PyTorchTimes.read(file).of(program(), plan.worldSize()))
            .orElse(ImmutableList.of());
    var header = BenchDevice.of(chosen).header(spec.root());
    header.forEach(line -> console.print("# " + line + "\n"));
    var times =
        new GraphBench(
                chosen,
                sessions.options().withMulticast(flags.multicast()),
                plan,
                Case.isCase(input) ? Optional.of(new Case(input)) : Optional.empty(),
                weights(plan),
                measurements,
                (what, why) -> console.progress("%s: %s".formatted(what, why.getMessage())))
            .measure(product, copied);
    csv.ifPresent(file -> AtomicFile.write(file, GraphCsv.print(header, times, rows), TIMES));
    svg.ifPresent(file -> AtomicFile.write(file, GraphChart.svg(header, times, rows), DRAWING));
    console.print(GraphReport.print(times, rows));
    return ExitCode.OK;
  }

  private void checkOutputs() {
    if (csv.isPresent() && svg.isPresent() && Outputs.isSame(csv.get(), svg.get())) {
      throw usage("--csv and --svg are the same file: " + svg.get());
    }
    var read =
        Stream.of(Stream.of(input), pytorch.stream(), flags.read().stream())
            .flatMap(files -> files)
            .toList();
    csv.ifPresent(
        file -> {
          Outputs.requireNotRead(file, read);
          AtomicFile.check(file, TIMES);
        });
    svg.ifPresent(
        file -> {
          Outputs.requireNotRead(file, read);
          AtomicFile.check(file, DRAWING);
        });
  }

  private CompileFlags planFor(Backend device) {
    var forBackend = flags.toRunOn(device);
    return Backends.machine(device, flags.multicast())
        .map(forBackend::forMachine)
        .orElse(forBackend);
  }

  private Weights weights(Plan plan) {
    return Weights.archiveOf(input).map(file -> Weights.read(file, plan)).orElse(Weights.NONE);
  }

  private String program() {
    var name = input.toAbsolutePath().normalize().getFileName();
    return name == null ? "" : Splitter.on('.').split(name.toString()).iterator().next();
  }
}
