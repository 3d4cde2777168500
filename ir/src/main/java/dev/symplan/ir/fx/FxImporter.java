package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Graph;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Op;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Program;
import dev.symplan.ir.RankAgreement;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Imports the text of FX graphs: what {@code GraphModule.print_readable(include_stride=True,
 * include_device=True)} and {@code TORCH_LOGS=post_grad_graphs} print.
 *
 * <p>Ops that are not known become opaque, with a warning: such a graph can be planned, not run.
 */
public final class FxImporter {
  private final ImportOptions options;
  private final DiagnosticSink sink = new DiagnosticSink();
  private final OpTargets targets;
  private final Symbols symbols;

  private FxImporter(ImportOptions options) {
    this.options = options;
    this.targets = new OpTargets(options.registry());
    this.symbols = new Symbols(options.dims(), options.dimMax());
  }

  /**
   * {@return the program in one text, the same for all ranks}
   *
   * @throws CompileException when the text is malformed or an op rejects its arguments
   */
  public static Program read(
      SourceFile file, ImportOptions options, Consumer<? super Diagnostic> warnings) {
    var importer = new FxImporter(options);
    return importer.finish(importer.graphs(file, ImmutableIntArray.of()), warnings);
  }

  /**
   * {@return the program of ranks whose texts differ}
   *
   * @param common the text of the ranks that have none of their own
   * @param ownTexts the texts of single ranks
   * @param ranks the world size
   * @throws CompileException when a text is malformed, or the ranks do not agree on collectives
   */
  public static Program read(
      SourceFile common,
      ImmutableSortedMap<Integer, SourceFile> ownTexts,
      int ranks,
      ImportOptions options,
      Consumer<? super Diagnostic> warnings) {
    var ranksOf = new LinkedHashMap<String, List<Integer>>();
    var files = new LinkedHashMap<String, SourceFile>();
    for (int rank = 0; rank < ranks; rank++) {
      var file = ownTexts.getOrDefault(rank, common);
      files.putIfAbsent(file.text(), file);
      ranksOf.computeIfAbsent(file.text(), text -> new ArrayList<>()).add(rank);
    }
    var importer = new FxImporter(options);
    var graphs = new ArrayList<Graph>();
    ranksOf.forEach(
        (text, own) -> {
          var all = files.size() == 1;
          graphs.addAll(
              importer.graphs(
                  files.getOrDefault(text, common),
                  all ? ImmutableIntArray.of() : ImmutableIntArray.copyOf(own)));
        });
    return importer.finish(graphs, warnings);
  }

  private List<Graph> graphs(SourceFile file, ImmutableIntArray ranks) {
    var functions = FxReader.read(FxText.python(file), sink);
    sink.throwIfErrors();
    if (functions.isEmpty()) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.SYNTAX,
              Span.ofFile(file),
              "there is no graph in the text: no def forward(…):",
              "print it with gm.print_readable(include_stride=True, include_device=True), or run"
                  + " with TORCH_LOGS=post_grad_graphs"));
    }
    var graphs = new ArrayList<Graph>();
    for (int i = 0; i < functions.size(); i++) {
      var name = functions.size() == 1 ? options.name() : options.name() + "_" + i;
      graphs.add(new FxGraphReader(functions.get(i), name, targets, symbols, sink).read(ranks));
    }
    return graphs;
  }

  private Program finish(List<Graph> graphs, Consumer<? super Diagnostic> warnings) {
    sink.throwIfErrors();
    targets.warn(sink);
    var program =
        new Program(groups(graphs), ImmutableList.of(), ImmutableList.copyOf(graphs), Notes.NONE);
    RankAgreement.check(program, sink);
    sink.throwIfErrors();
    sink.diagnostics().forEach(warnings);
    return program;
  }

  /** The groups that are given, and for every other name that is used, all ranks. */
  private ImmutableList<ProcessGroup> groups(List<Graph> graphs) {
    Map<String, ProcessGroup> groups = new LinkedHashMap<>();
    options.groups().forEach(group -> groups.put(group.name(), group));
    var missing = new LinkedHashMap<String, Op>();
    long implied = 0;
    for (var graph : graphs) {
      for (var op : graph.ops()) {
        if (op.def().collective().isPresent()
            && op.arg(op.def().collective().get().group()) instanceof Arg.Str(String name)
            && !groups.containsKey(name)) {
          missing.putIfAbsent(name, op);
          if (op.def().schema().hasParam("group_size")
              && op.arg("group_size") instanceof Arg.Int(long size)) {
            implied = Math.max(implied, size);
          }
        }
      }
    }
    int ranks = worldSize(graphs, implied);
    missing.forEach(
        (name, op) -> {
          if (ranks == 0) {
            sink.report(
                Diagnostic.warning(
                    DiagnosticCode.BAD_GROUP,
                    op.span(),
                    "nothing says how many ranks group '%s' has; taken for %d"
                        .formatted(name, DEFAULT_RANKS),
                    "give --ranks"));
          }
          groups.put(name, ProcessGroup.world(name, ranks == 0 ? DEFAULT_RANKS : ranks));
        });
    return ImmutableList.copyOf(groups.values());
  }

  /** The number of GPUs of the default target. */
  private static final int DEFAULT_RANKS = 4;

  private int worldSize(List<Graph> graphs, long implied) {
    if (options.ranks() > 0) {
      return options.ranks();
    }
    int own = 0;
    for (var graph : graphs) {
      own = Math.max(own, graph.ranks().stream().max().orElse(-1) + 1);
    }
    for (var group : options.groups()) {
      own = Math.max(own, group.maxRank() + 1);
    }
    return Math.max(own, Math.toIntExact(Math.min(implied, 1 << 20)));
  }
}
