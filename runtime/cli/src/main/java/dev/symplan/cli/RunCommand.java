package dev.symplan.cli;

import com.google.common.collect.Streams;
import dev.symplan.cli.common.Backends;
import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Inputs;
import dev.symplan.cli.common.LaunchedRun;
import dev.symplan.cli.common.Outputs;
import dev.symplan.cli.common.SessionFlags;
import dev.symplan.cli.common.WeightsFlags;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Case;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.check.TruthCheck;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Launch;
import dev.symplan.runtime.launch.World;
import dev.symplan.runtime.profile.Profile;
import dev.symplan.runtime.profile.ProfileTable;
import dev.symplan.runtime.profile.ProfileTrace;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Stack;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.IParameterPreprocessor;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Run a graph, a plan or a case on all ranks, and compare the outputs.",
      "A case is a directory with a graph, rankN.inputs.safetensors and, for --check,"
          + " rankN.outputs.safetensors. A torch.export archive provides the tensors of its"
          + " parameters, buffers and constants. Other inputs are generated from the seed, and the"
          + " outputs are compared with an evaluation of the graph without a plan. A plan file has"
          + " only the graph that the compiler made of it, so that one is evaluated."
    })
final class RunCommand extends ConsoleCommand {
  private static final String TRACE = "the trace";

  @Parameters(
      paramLabel = "INPUT",
      description = "A graph, an archive, a plan, or a case directory.")
  private Path input;

  @Mixin private CompileFlags flags;

  @Mixin private SessionFlags sessions;

  @Mixin private WeightsFlags weightsFlags;

  @Option(
      names = "--backend",
      paramLabel = "NAME",
      description =
          "The backend: host runs on the CPU; cuda runs on GPUs and, unless --target is given,"
              + " plans for those of this host (default: host).",
      defaultValue = "host")
  private String backend;

  @Option(
      names = "--case",
      paramLabel = "DIR",
      description =
          "Take inputs and expected outputs from this case (default: INPUT, if it is one).")
  private Optional<Path> caseFolder = Optional.empty();

  @Option(
      names = "--check",
      description = {
        "Compare with the case's outputs. Exit with 1 if the relative L2 error is above 1e-5 (f32,"
            + " f64) or 1e-2 (bf16, f16, and f32 computed from such results), or if an integer"
            + " differs, unless the output is about as close to an evaluation in f64 as the"
            + " expected one."
      })
  private boolean check;

  @Option(
      names = "--one-by-one",
      description =
          "Run the graphs of a program one after the other, not all at once, like a caller that"
              + " works between them.")
  private boolean oneByOne;

  @Option(
      names = "--no-compare",
      description =
          "Do not evaluate the graph without a plan, and compare nothing. The command then takes"
              + " less time for large graphs.")
  private boolean noCompare;

  @Option(
      names = "--outputs",
      paramLabel = "DIR",
      description = "Write every rank's outputs to DIR/rankN.outputs.safetensors.")
  private Optional<Path> outputs = Optional.empty();

  @Option(
      names = "--print",
      paramLabel = "NAME",
      description = {
        "Print this tensor as PyTorch does; may be repeated. Inputs and outputs are those of the"
            + " run (in one process per rank, those of rank 0); other tensors are those of the"
            + " evaluation without a plan."
      })
  private List<String> printed = List.of();

  @Option(
      names = "--seed",
      paramLabel = "N",
      description = "The seed of generated inputs (default: 0).",
      defaultValue = "0")
  private long seed;

  @Option(
      names = "--timeout",
      paramLabel = "SECONDS",
      description =
          "The time limit in seconds for ranks that wait for each other, and for a run on GPUs"
              + " (default: 60 on the host, 30 on GPUs), and for the evaluation without a plan"
              + " (default: none).")
  private Optional<Double> timeout = Optional.empty();

  @Option(
      names = "--launch",
      paramLabel = "MODE",
      description =
          "Whether this process runs all ranks (single) or one of them, according to the"
              + " environment of torchrun, mpirun or srun (env); auto, the default, means env if"
              + " one of these has started several processes. Rank 0 prints for all.",
      defaultValue = "auto")
  private Launch launch;

  @Option(
      names = "--insecure",
      description =
          "Let processes of other hosts join without a secret, which SYMPLAN_TOKEN or"
              + " SYMPLAN_TOKEN_FILE gives: only in a trusted network.")
  private boolean insecure;

  @Option(
      names = "--profile",
      arity = "0..1",
      paramLabel = "FILE",
      preprocessor = AttachedOnly.class,
      description = {
        "Run once more and show when each step ran, next to the prediction; with =FILE, write a"
            + " trace of all ranks for ui.perfetto.dev to FILE (one file per process if there are"
            + " several, with the rank appended to the name)."
      })
  private Optional<String> profile = Optional.empty();

  @Option(
      names = "--measurements",
      paramLabel = "N",
      description =
          "Then measure N times how long a run takes in the steady state, and print the median and"
              + " the predicted time (default: 0). Several processes measure together.",
      defaultValue = "0")
  private int measurements;

  RunCommand(Console console) {
    super(console);
  }

  /** So that a word after the option is not taken for its value, but for the input. */
  static final class AttachedOnly implements IParameterPreprocessor {
    @Override
    public boolean preprocess(
        Stack<String> args, CommandSpec command, ArgSpec option, Map<String, Object> info) {
      if (!"=".equals(info.get("separator"))) {
        args.push("");
      }
      return false;
    }
  }

  @Override
  public Integer call() {
    var device = Backends.named(backend, spec);
    if (timeout.isPresent() && !(timeout.get() > 0 && timeout.get() < 1e6)) {
      throw usage(
          "--timeout: %s is out of range; it must be above 0 and below 1000000 seconds"
              .formatted(timeout.get()));
    }
    if (measurements < 0) {
      throw usage("--measurements must not be negative");
    }
    weightsFlags.check();
    if (check && noCompare) {
      throw usage("--check and --no-compare exclude each other");
    }
    var environment =
        launch
            .environment(System.getenv())
            .map(known -> known.withAccess(known.access().withInsecure(insecure)));
    device.begin();
    // To read a plan takes about as long as the backend needs to begin, and needs no device.
    boolean readsFirst = environment.isEmpty() && Inputs.isPlan(input);
    if (!readsFirst && !Backends.isUsable(device, console)) {
      return ExitCode.NO_DEVICE;
    }
    var trace = profile.filter(file -> !file.isEmpty()).map(Path::of);
    trace.ifPresent(this::requireNotRead);
    trace.ifPresent(file -> AtomicFile.check(file, TRACE));
    outputs.ifPresent(folder -> requireNotRead(outputsIn(folder, 0)));
    var options = sessions.options().withLaunch(launch).withMulticast(flags.multicast());
    if (timeout.isPresent()) {
      options = options.withTimeout(Duration.ofNanos(Math.round(timeout.get() * 1e9)));
    }
    if (environment.isEmpty()) {
      return new Run(device, options, console, Optional.empty()).call();
    }
    if (!device.canSpanProcesses()) {
      throw new RunException(
          "backend %s runs all ranks in one process, but this is %s: start it alone, or with --launch=single"
              .formatted(backend, environment.get()));
    }
    return LaunchedRun.call(
        environment.get(),
        options,
        console,
        (joined, own) -> new Run(device, joined, own, joined.world()).call());
  }

  private void requireNotRead(Path file) {
    Outputs.requireNotRead(
        file, Streams.concat(Stream.of(input), caseFolder.stream(), weightsFlags.files()).toList());
  }

  private static Path outputsIn(Path folder, int rank) {
    return folder.resolve("rank" + rank + ".outputs.safetensors");
  }

  /** The work of one process. */
  private final class Run {
    private final Backend device;
    private final SessionOptions options;
    private final Console console;
    private final Optional<World> world;

    Run(Backend device, SessionOptions options, Console console, Optional<World> world) {
      this.device = device;
      this.options = options;
      this.console = console;
      this.world = world;
    }

    int call() {
      var data = caseFolder.or(() -> Case.isCase(input) ? Optional.of(input) : Optional.empty());
      var plan = plan();
      if (!Backends.isUsable(device, console)) {
        return ExitCode.NO_DEVICE;
      }
      if (measurements > 0) {
        SteadyRuns.check(plan);
      }
      var weights = weightsFlags.read(input, plan);
      try (var session = Session.open(plan, device, options)) {
        var inputs = new RunInputs(plan, session, data.map(Case::new), weights, seed);
        var origin =
            weights.names().isEmpty()
                ? inputs.origin()
                : inputs.origin() + ", weights of " + weightsFlags.source(input).orElseThrow();
        int code = run(plan, session, inputs, origin);
        if (profile.isPresent()) {
          // Donated inputs are gone.
          inputs.fill();
          print(plan, session.profile(), profile.get());
        }
        if (measurements > 0) {
          console.print(SteadyRuns.text(plan, session, measurements));
        }
        return code;
      }
    }

    /** Planned again if it is for other hosts than those on which the processes are. */
    private Plan plan() {
      var options = planFor(device);
      var plan = Inputs.plan(input, options, console);
      var started = world.map(World::placement);
      if (Inputs.isPlan(input)
          || started.isEmpty()
          || started.get().equals(plan.topology().placement())
          || started.get().ranks() != plan.worldSize()) {
        return plan;
      }
      return options
          .onHosts(started.get(), plan.target())
          .map(
              own -> {
                var again = own.compiler().load(input);
                console.progress(
                    "planned for the hosts of the processes: " + again.topology().text());
                return again;
              })
          .orElse(plan);
    }

    /** Processes of one launch may see different GPUs, but must have the same plan. */
    private CompileFlags planFor(Backend device) {
      var forBackend = flags.toRunOn(device);
      return world.isEmpty()
          ? Backends.machine(device, flags.multicast())
              .map(forBackend::forMachine)
              .orElse(forBackend)
          : forBackend;
    }

    private void print(Plan plan, Profile measured, String file) {
      console.print("\n" + ProfileTable.print(plan, measured));
      if (!file.isEmpty()) {
        var own = world.map(w -> "%s.rank%s".formatted(file, w.rank())).orElse(file);
        AtomicFile.write(Path.of(own), ProfileTrace.toJson(plan, measured), TRACE);
        console.progress("trace written to " + own);
      }
    }

    private int run(Plan plan, Session session, RunInputs inputs, String origin) {
      inputs.fill();
      var data = inputs.data();
      if (check && (data.isEmpty() || !data.get().hasOutputs())) {
        throw CompileException.ofFile(
            DiagnosticCode.BAD_TENSORS,
            caseFolder.orElse(input),
            "no expected outputs were found to check against",
            "--check needs a case with rankN.outputs.safetensors");
      }
      boolean compare = check || (data.isEmpty() && !noCompare);
      var values = new PrintedValues(plan, printed, input);
      values.keepInputs(session);
      var given =
          check
              ? fromCase(plan, session, data.orElseThrow())
              : List.<List<Optional<HostTensor>>>of();
      // Before work whose results would be lost, and after all that may be wrong.
      outputs.ifPresent(AtomicFile::folder);
      var expected =
          check || !compare
              ? given
              : Evaluation.of(
                  Inputs.graphs(input, planFor(device), plan),
                  plan.groups(),
                  inputs,
                  options,
                  console);
      values.evaluate(inputs, options, console);
      if (oneByOne) {
        session.graphs().forEach(graph -> session.run(graph.name()));
      } else {
        session.run();
      }
      var report = new RunReport(plan, console);
      report.describe(backend, origin);
      values.print(session, console);
      outputs.ifPresent(folder -> write(session, folder));
      if (expected.isEmpty()) {
        report.uncompared(
            compare
                ? "custom ops have no reference implementation"
                : noCompare ? "not requested (--no-compare)" : "not requested (--check)");
        return ExitCode.OK;
      }
      var own = report.compare(session, expected);
      if (check && own.wrong() > 0 && world.isEmpty() && !Inputs.isPlan(input)) {
        own = report.judged(own, truth(session, inputs, expected));
      }
      var all = ofAllProcesses(own);
      report.compared(all, check ? "the case's outputs" : Inputs.evaluation(input));
      return all.wrong() == 0 ? ExitCode.OK : ExitCode.FAILED;
    }

    private TruthCheck.Outcome truth(
        Session session, RunInputs inputs, List<List<Optional<HostTensor>>> expected) {
      console.progress("evaluating in f64, as outputs differ by more than the tolerance");
      var compiler = planFor(device).compiler();
      return TruthCheck.of(
          ProgramReader.read(input, compiler.options(), _ -> {}),
          compiler,
          device,
          options,
          (other, otherPlan) ->
              new RunInputs(otherPlan, other, inputs.data(), inputs.weights(), seed).fill(),
          session.localRanks().stream()
              .map(
                  rank ->
                      IntStream.range(0, session.outputCount(rank))
                          .mapToObj(i -> session.output(rank, i))
                          .toList())
              .toList(),
          expected);
    }

    private Compared ofAllProcesses(Compared own) {
      return world
          .map(
              others ->
                  others.gather("how outputs compare", own.toBytes()).stream()
                      .map(Compared::of)
                      .reduce(Compared.NOTHING, Compared::plus))
          .orElse(own);
    }

    private static List<List<Optional<HostTensor>>> fromCase(
        Plan plan, Session session, Case data) {
      data.checkRanks(plan);
      var expected = new ArrayList<List<Optional<HostTensor>>>();
      for (int rank = 0; rank < plan.worldSize(); rank++) {
        expected.add(
            session.localRanks().contains(rank)
                ? data.expected(rank, plan.forRank(rank).graph())
                : List.of());
      }
      return expected;
    }

    private void write(Session session, Path folder) {
      for (int rank : session.localRanks()) {
        Safetensors.write(outputsIn(folder, rank), Case.outputs(session, rank));
      }
      console.progress("outputs written to " + folder);
    }
  }
}
