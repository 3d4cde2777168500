package dev.symplan.runtime.torch;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.page.HtmlRenderer;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.doctor.Diagnosis;
import dev.symplan.runtime.doctor.MachineProbe;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.World;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;

/** Makes the plan of a request, alone or with the processes of the other ranks. */
final class Planning {
  private final Request request;
  private final Backend backend;
  private final Optional<Target> machine;

  private Planning(Request request, Backend backend) {
    this.request = request;
    this.backend = backend;
    this.machine = machine(backend);
  }

  /**
   * {@return the plan of a graph of one rank}
   *
   * @throws CompileException when the graph is wrong
   */
  static Plan alone(Request request, Backend backend) {
    var planning = new Planning(request, backend);
    var options = planning.options(1, request.graph().dims());
    var warnings = new ArrayList<Diagnostic>();
    var program = ProgramReader.read(request.graph().text(), options, warnings::add);
    return planning.plan(program, options, planning.machine, warnings, true);
  }

  /**
   * {@return the plan of the graphs of all ranks, which all processes make}
   *
   * @throws RunException when the graph of any rank cannot be planned, on all ranks
   */
  static Plan together(Request request, Backend backend, World world) {
    var graphs =
        world.gather("the graph", request.graph().toBytes()).stream()
            .map(RankGraph::ofBytes)
            .toList();
    for (int rank = 0; rank < graphs.size(); rank++) {
      graphs.get(rank).requireNotRefused(rank);
    }
    requireOneBackend(graphs);
    var planning = new Planning(request, backend);
    var target = planning.agreedTarget(world);
    Optional<Plan> plan = Optional.empty();
    var problem = "";
    try {
      plan = Optional.of(planning.together(graphs, target, world));
      backend.requireOps(Lowering.lower(plan.get()));
    } catch (CompileException | RunException e) {
      problem = String.valueOf(e.getMessage());
    }
    var problems = world.gather("the plan", problem.getBytes(StandardCharsets.UTF_8));
    for (int rank = 0; rank < problems.size(); rank++) {
      if (problems.get(rank).length > 0) {
        throw new RunException(
            "rank %s: %s".formatted(rank, new String(problems.get(rank), StandardCharsets.UTF_8)));
      }
    }
    return plan.orElseThrow();
  }

  private Plan together(List<RankGraph> graphs, Optional<Target> target, World world) {
    var warnings = new ArrayList<Diagnostic>();
    var options = options(graphs.size(), dims(graphs));
    if (fits(world.placement(), target)) {
      options = options.withHosts(world.placement());
    }
    var program =
        ProgramReader.readRanks(
            graphs.stream().map(RankGraph::text).toList(),
            graphs.stream().flatMap(graph -> graph.groups().stream()).toList(),
            options,
            warnings::add);
    return plan(program, options, target, warnings, world.rank() == 0);
  }

  private static boolean fits(Hosts hosts, Optional<Target> target) {
    return target.map(Target::gpus).orElse(Integer.MAX_VALUE) >= hosts.most();
  }

  /** Ranks of one plan may see different GPUs, but must have the same plan. */
  private Optional<Target> agreedTarget(World world) {
    var own = machine.map(Target::toString).orElse("").getBytes(StandardCharsets.UTF_8);
    return world.gather("the target", own).stream().distinct().count() == 1
        ? machine
        : Optional.empty();
  }

  private static void requireOneBackend(List<RankGraph> graphs) {
    var backends = graphs.stream().map(RankGraph::backend).distinct().toList();
    if (backends.size() > 1) {
      throw new RunException("the ranks have tensors for different backends: " + backends);
    }
  }

  /** A size that differs has a value for each rank. */
  private static ImmutableMap<String, Long> dims(List<RankGraph> graphs) {
    var dims = new LinkedHashMap<String, Long>();
    for (int rank = 0; rank < graphs.size(); rank++) {
      for (var dim : graphs.get(rank).dims().entrySet()) {
        boolean same =
            graphs.stream()
                .allMatch(other -> dim.getValue().equals(other.dims().get(dim.getKey())));
        dims.put(same ? dim.getKey() : dim.getKey() + "@" + rank, dim.getValue());
      }
    }
    return ImmutableMap.copyOf(dims);
  }

  private CompileOptions options(int ranks, ImmutableMap<String, Long> dims) {
    return CompileOptions.DEFAULT
        .withRanks(ranks)
        .withDims(dims, ImmutableMap.of())
        .withBackend(backend.variants(false))
        .withInputs(MemorySpace.EXTERNAL);
  }

  private Plan plan(
      Program program,
      CompileOptions options,
      Optional<Target> target,
      List<Diagnostic> warnings,
      boolean writesPage) {
    var plan =
        compiler(target).with(options.withSpaces(outputSpaces(program))).compile(program, warnings);
    request
        .page()
        .filter(_ -> writesPage)
        .ifPresent(
            file -> AtomicFile.write(file, HtmlRenderer.render(PlanReport.of(plan)), "the page"));
    return plan;
  }

  private static Compiler compiler(Optional<Target> target) {
    return target.map(Compiler::forTarget).orElseGet(Compiler::forDefaultTarget);
  }

  private static Optional<Target> machine(Backend backend) {
    return backend.name().equals(Backend.HOST) || backend.unavailable().isPresent()
        ? Optional.empty()
        : Diagnosis.of(MachineProbe.ofThisMachine(), backend.variants(false)).target();
  }

  /**
   * Has ops write outputs into the caller's memory, but for those that lie in an input or in
   * another output: AOTAutograd saves many views for the backward graph, which need no copies.
   */
  private static ImmutableMap<String, MemorySpace> outputSpaces(Program program) {
    var spaces = new LinkedHashMap<String, MemorySpace>();
    for (var graph : program.graphs()) {
      var aliases = Aliases.of(graph);
      var own =
          graph.outputs().stream()
              .flatMap(output -> output.operands().stream())
              .filter(value -> value.isTensor() && !aliases.of(value).isInput())
              .toList();
      var wholes = new HashSet<Integer>();
      for (var value : own) {
        if (aliases.isWhole(value) && value.tensor().isDense() && wholes.add(aliases.id(value))) {
          spaces.put(value.name(), MemorySpace.EXTERNAL);
        }
      }
      own.stream()
          .filter(value -> !wholes.contains(aliases.id(value)))
          .forEach(value -> spaces.put(value.name(), MemorySpace.EXTERNAL));
    }
    return ImmutableMap.copyOf(spaces);
  }
}
