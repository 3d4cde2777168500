package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.GraphBuilder;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.hlo.Devices.NeedsOwnGraphs;
import dev.symplan.ir.hlo.HloShape.Array;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.op.Permutation;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.regex.Pattern;

/** Makes programs of HLO modules that were partitioned, with a schedule or without. */
public final class HloImporter {
  /** The instructions that XLA's partitioner resolves. */
  private static final ImmutableSet<String> UNPARTITIONED =
      ImmutableSet.of(
          "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding");

  /** {@code {0}: (3, {}, may-alias)}: an output and the parameter whose memory it takes. */
  private static final Pattern ALIAS = Pattern.compile("\\{[0-9,\\s]*}:\\s*\\(([0-9]{1,9})\\s*,");

  /** {@code (3, {})}: a parameter that the caller donates. */
  private static final Pattern DONOR = Pattern.compile("\\(([0-9]{1,9})\\s*,");

  private final HloModule module;
  private final Reading reading;
  private final DiagnosticSink sink = new DiagnosticSink();

  private HloImporter(HloModule module, Reading reading) {
    this.module = module;
    this.reading = reading;
  }

  /**
   * {@return the program of a module's entry computation, which all devices run} Its fusions are
   * opened, if all that is in the module can then run.
   *
   * @param ranks how many devices there are; 0 if the module says so
   * @throws CompileException when the text is malformed or holds what cannot be planned
   */
  public static Program read(
      SourceFile file, OpRegistry registry, int ranks, Consumer<? super Diagnostic> warnings) {
    var module = module(file);
    try {
      return read(module, Reading.OPENED, registry, ranks, warnings);
    } catch (CompileException e) {
      var program = read(module, Reading.STEPS, registry, ranks, warnings);
      var reason = e.diagnostics().stream().filter(Diagnostic::isError).findFirst().orElseThrow();
      warnings.accept(
          Diagnostic.warning(
              DiagnosticCode.UNSUPPORTED,
              reason.span(),
              "the module can be planned, but not run: " + reason.message(),
              reason.hint()));
      return program;
    }
  }

  /**
   * {@return the program of a module's entry computation, with an op for each step of XLA}
   *
   * @param ranks how many devices there are; 0 if the module says so
   * @throws CompileException when the text is malformed or holds what cannot be planned
   */
  public static Program readSteps(
      SourceFile file, OpRegistry registry, int ranks, Consumer<? super Diagnostic> warnings) {
    return read(module(file), Reading.STEPS, registry, ranks, warnings);
  }

  /** Before partitioning, the first line of a module may have attributes that no reader knows. */
  private static HloModule module(SourceFile file) {
    try {
      return HloReader.read(file);
    } catch (CompileException e) {
      var text = file.text();
      int end = text.indexOf('\n');
      boolean shardy = text.substring(0, Math.max(0, end)).contains("xla.sdy.meshes");
      throw shardy ? new CompileException(unpartitioned(Span.ofFile(file))) : e;
    }
  }

  private static Program read(
      HloModule module,
      Reading reading,
      OpRegistry registry,
      int ranks,
      Consumer<? super Diagnostic> warnings) {
    var importer = new HloImporter(module, reading);
    Program program;
    try {
      program =
          importer.program(
              registry, ranks, groups -> ImmutableList.of(Devices.together(groups, reading)));
    } catch (NeedsOwnGraphs e) {
      importer = new HloImporter(module, reading);
      program = importer.program(registry, ranks, importer.each(e.instruction()));
    }
    importer.sink.throwIfErrors();
    importer.sink.diagnostics().forEach(warnings);
    return program;
  }

  private Function<Groups, ImmutableList<Devices>> each(HloInstruction needsIt) {
    return groups -> {
      if (groups.world() > Devices.MOST_GRAPHS) {
        throw failure(
            needsIt.span(),
            "'%s' depends on the number of its device: up to %s devices can have graphs of their own"
                .formatted(needsIt.name(), Devices.MOST_GRAPHS));
      }
      return Devices.each(groups);
    };
  }

  private Program program(
      OpRegistry registry, int ranks, Function<Groups, ImmutableList<Devices>> ofGraphs) {
    refuseUnpartitioned();
    var groups = groups(ranks);
    var graphs =
        ofGraphs.apply(groups).stream()
            .map(devices -> graph(registry, groups, devices))
            .collect(ImmutableList.toImmutableList());
    return new Program(used(groups, graphs.getFirst()), ImmutableList.of(), graphs, Notes.NONE);
  }

  private Graph graph(OpRegistry registry, Groups groups, Devices devices) {
    var entry = module.entry();
    var builder = new GraphBuilder(graphName(), entry.span(), sink).ranks(devices.ranks());
    var emitter =
        new GraphEmitter(builder, registry, module.sources(), sink, reading, module.isScheduled());
    var donated = donated();
    var hosts = new HostArrays(emitter, module);
    var layout = EntryLayout.of(module);
    var arguments = new ArrayList<Bound>();
    for (var parameter : entry.parameters()) {
      if (Integer.parseInt(parameter.literal()) != arguments.size()) {
        throw failure(parameter.span(), "parameters are numbered from 0 without gaps");
      }
      arguments.add(
          argument(
              parameter,
              layout.parameter(arguments.size()).orElse(parameter.shape()),
              emitter,
              donated.contains(arguments.size())));
    }
    var given =
        new ComputationReader(module, emitter, hosts, groups, devices).read(entry, arguments);
    output(given, layout.result().orElse(entry.root().shape()), emitter, hosts, "output");
    sink.throwIfErrors();
    return builder.build();
  }

  /** A module without collectives runs on all devices, too. */
  private static ImmutableList<ProcessGroup> used(Groups groups, Graph graph) {
    var used = groups.used();
    boolean all = used.stream().anyMatch(group -> group.maxRank() == groups.world() - 1);
    return all || groups.world() == 1 || !graph.ranks().isEmpty()
        ? used
        : ImmutableList.<ProcessGroup>builder()
            .addAll(used)
            .add(ProcessGroup.world("devices", groups.world()))
            .build();
  }

  private String graphName() {
    var word = module.name().replaceAll("[^A-Za-z0-9_]", "_");
    return word.isEmpty() || Character.isDigit(word.charAt(0)) ? "_" + word : word;
  }

  private Groups groups(int ranks) {
    long replicas = module.attributes().integer("replica_count").orElse(1L);
    long partitions = module.attributes().integer("num_partitions").orElse(1L);
    long named = replicas == 1 && partitions == 1 ? Math.max(ranks, devicesNamed()) : 0;
    if (named > 1) {
      partitions = named;
    }
    if (replicas < 1
        || partitions < 1
        || replicas > ProcessGroup.MAX_RANKS
        || partitions > ProcessGroup.MAX_RANKS
        || replicas * partitions > ProcessGroup.MAX_RANKS) {
      throw failure(
          Span.ofFile(module.entry().span().file()),
          "the module is for %s replicas of %s partitions; 1 to %s devices are possible"
              .formatted(replicas, partitions, ProcessGroup.MAX_RANKS));
    }
    return new Groups((int) replicas, (int) partitions);
  }

  /** Modules without a number of partitions name their devices in groups and pairs. */
  private int devicesNamed() {
    int most = 1;
    for (var computation : module.computations().values()) {
      for (var instruction : computation.notable()) {
        if (Fusions.isCollective(instruction.opcode())) {
          most = Math.max(most, devicesNamed(instruction));
        }
      }
    }
    return most;
  }

  private static int devicesNamed(HloInstruction instruction) {
    try {
      var attributes = instruction.attributes();
      int inGroups =
          attributes.text("replica_groups").map(ReplicaGroups::read).stream()
              .flatMap(List::stream)
              .flatMapToInt(ImmutableIntArray::stream)
              .max()
              .orElse(0);
      int inPairs =
          attributes
              .text("source_target_pairs")
              .map(ReplicaGroups::pairs)
              .map(Permutation::maxRank)
              .orElse(0);
      return 1 + Math.max(inGroups, inPairs);
    } catch (IllegalArgumentException e) {
      // The collective itself is reported where it is read.
      return 1;
    }
  }

  private void refuseUnpartitioned() {
    boolean collective = false;
    for (var computation : module.computations().values()) {
      for (var instruction : computation.notable()) {
        collective |= Fusions.isCollective(instruction.opcode());
        if (instruction.opcode().equals("custom-call")
            && UNPARTITIONED.contains(instruction.attributes().string("custom_call_target"))) {
          throw unpartitioned(instruction);
        }
      }
    }
    if (collective || module.attributes().integer("num_partitions").orElse(1L) == 1) {
      return;
    }
    for (var instruction : module.entry().instructions()) {
      var sharding = instruction.attributes().text("sharding").orElse("");
      boolean own =
          !instruction.opcode().equals("parameter")
              && instruction != module.entry().root()
              && (sharding.contains("devices=") || sharding.contains("mesh["));
      if (own && !sharding.contains("replicated}")) {
        throw unpartitioned(instruction);
      }
    }
  }

  private CompileException unpartitioned(HloInstruction instruction) {
    sink.report(unpartitioned(instruction.span()));
    return new CompileException(sink.diagnostics());
  }

  private static Diagnostic unpartitioned(Span at) {
    return Diagnostic.error(
        DiagnosticCode.UNSUPPORTED,
        at,
        "this module was dumped before XLA partitioned it: it has shardings, not collectives",
        "dump with XLA_FLAGS=--xla_dump_to=DIR and take the file *_gpu_after_optimizations.txt,"
            + " or use jax.jit(f).lower(…).compile().as_text()");
  }

  private Set<Integer> donated() {
    var found = new HashSet<Integer>();
    module
        .attributes()
        .text("input_output_alias")
        .ifPresent(
            text ->
                ALIAS
                    .matcher(text)
                    .results()
                    .forEach(hit -> found.add(Integer.parseInt(hit.group(1)))));
    module
        .attributes()
        .text("buffer_donor")
        .ifPresent(
            text ->
                DONOR
                    .matcher(text)
                    .results()
                    .forEach(hit -> found.add(Integer.parseInt(hit.group(1)))));
    return found;
  }

  private static Bound argument(
      HloInstruction parameter, HloShape shape, GraphEmitter emitter, boolean donated) {
    return switch (shape) {
      case Array array -> {
        boolean inHost = array.space() == Array.HOST;
        var space = inHost ? MemorySpace.HOST : donated ? MemorySpace.DONATED : MemorySpace.ANY;
        var input =
            emitter
                .builder()
                .input(
                    emitter.name(parameter.name()),
                    array.tensor().withSpace(space),
                    parameter.span());
        yield inHost ? Bound.Hosted.of(array, input) : new Bound.Tensor(input);
      }
      case HloShape.Tuple(ImmutableList<HloShape> parts) ->
          new Bound.Tuple(
              parts.stream()
                  .map(part -> argument(parameter, part, emitter, donated))
                  .collect(ImmutableList.toImmutableList()));
      case HloShape.Token _ -> Bound.Nothing.NOTHING;
    };
  }

  private void output(
      Bound given, HloShape shape, GraphEmitter emitter, HostArrays hosts, String name) {
    switch (given) {
      case Bound.Tuple(ImmutableList<Bound> parts) -> {
        var shapes =
            shape instanceof HloShape.Tuple(ImmutableList<HloShape> all)
                ? all
                : List.<HloShape>of();
        for (int i = 0; i < parts.size(); i++) {
          output(
              parts.get(i),
              i < shapes.size() ? shapes.get(i) : new HloShape.Token(""),
              emitter,
              hosts,
              name + "." + i);
        }
      }
      case Bound.Nothing _ -> {}
      case Bound.Tensor _,
          Bound.Splat _,
          Bound.ByRank _,
          Bound.Table _,
          Bound.Hosted _,
          Bound.Pending _ ->
          emitter
              .builder()
              .output(
                  new Arg.Ref(
                      shape instanceof Array array
                          ? hosts.output(given, array, module.entry().root(), name)
                          : emitter.value(given, name)));
    }
  }

  private CompileException failure(Span at, String message) {
    sink.report(Diagnostic.error(DiagnosticCode.TYPE_MISMATCH, at, message, ""));
    return new CompileException(sink.diagnostics());
  }
}
