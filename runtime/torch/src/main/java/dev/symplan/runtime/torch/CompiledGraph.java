package dev.symplan.runtime.torch;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.page.HtmlRenderer;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.CallerMemory;
import dev.symplan.runtime.CallerMemory.Stretches;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.doctor.Diagnosis;
import dev.symplan.runtime.doctor.MachineProbe;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Launch;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;

/** A graph of PyTorch's that is ready to run; any thread may run it, one at a time. */
final class CompiledGraph implements AutoCloseable {
  /** Alone in its process, whatever a launcher has started. */
  private static final SessionOptions OPTIONS =
      SessionOptions.DEFAULT.withLaunch(Launch.SINGLE).withCallerMemory(true);

  private final Plan plan;
  private final Backend backend;
  private Session session;
  private boolean failed;

  private CompiledGraph(Plan plan, Backend backend) {
    this.plan = plan;
    this.backend = backend;
    this.session = Session.open(plan, backend, OPTIONS);
  }

  /**
   * {@return the graph of a request, planned and with its memory}
   *
   * @throws dev.symplan.ir.diag.CompileException when the graph is wrong
   * @throws RunException when it cannot run here
   */
  static CompiledGraph of(Request request) {
    var backend =
        Backend.ofName(request.backend())
            .orElseThrow(
                () ->
                    new RunException(
                        "unknown backend '%s'; choose from %s"
                            .formatted(
                                request.backend(), Backend.all().map(Backend::name).toList())));
    if (request.ranks() != 1) {
      throw new RunException(
          "a graph of %s ranks: within PyTorch, only graphs of one rank can run"
              .formatted(request.ranks()));
    }
    var options =
        CompileOptions.DEFAULT
            .withRanks(request.ranks())
            .withDims(request.dims(), ImmutableMap.of())
            .withBackend(backend.variants(false))
            .withInputs(MemorySpace.EXTERNAL);
    var warnings = new ArrayList<Diagnostic>();
    var program = ProgramReader.read(request.graph(), options, warnings::add);
    var plan =
        compiler(backend)
            .with(options.withSpaces(outputSpaces(program)))
            .compile(program, warnings);
    request
        .page()
        .ifPresent(
            file -> AtomicFile.write(file, HtmlRenderer.render(PlanReport.of(plan)), "the page"));
    return new CompiledGraph(plan, backend);
  }

  private static Compiler compiler(Backend backend) {
    if (backend.name().equals(Backend.HOST) || backend.unavailable().isPresent()) {
      return Compiler.forDefaultTarget();
    }
    return Diagnosis.of(MachineProbe.ofThisMachine(), backend.variants(false))
        .target()
        .map(Compiler::forTarget)
        .orElseGet(Compiler::forDefaultTarget);
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

  /** {@return what the graph takes and gives, and what runs do with the memory of each, as JSON} */
  synchronized String describe() {
    return SignatureJson.print(session.signature(0), session.alignment());
  }

  /** {@return how many inputs and outputs there are} */
  synchronized int tensors() {
    var signature = session.signature(0);
    return signature.inputs().size() + signature.outputs().size();
  }

  /**
   * Runs once.
   *
   * @param words for each input and then for each output, its address and how many bytes are there
   * @throws IllegalArgumentException when the memory does not fit
   * @throws RunException when the run fails; the next one starts anew
   */
  synchronized void run(long[] words, long stream) {
    if (failed) {
      session.close();
      session = Session.open(plan, backend, OPTIONS);
      failed = false;
    }
    int inputs = session.signature(0).inputs().size();
    session.bind(
        0,
        new CallerMemory(stretches(words, 0, inputs), stretches(words, inputs, words.length / 2)));
    try {
      session.runIn(stream);
    } catch (RunException e) {
      failed = true;
      throw e;
    }
  }

  private static Stretches stretches(long[] words, int from, int to) {
    var addresses = ImmutableLongArray.builder(to - from);
    var bytes = ImmutableLongArray.builder(to - from);
    for (int i = from; i < to; i++) {
      addresses.add(words[2 * i]);
      bytes.add(words[2 * i + 1]);
    }
    return new Stretches(addresses.build(), bytes.build());
  }

  @Override
  public synchronized void close() {
    session.close();
  }
}
