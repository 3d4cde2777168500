package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.collect.Sets;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.graph.RankAgreement;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * Imports the text of FX graphs, as {@code GraphModule.print_readable(include_stride=True,
 * include_device=True)} and {@code TORCH_LOGS=post_grad_graphs} print it.
 *
 * <p>Unknown ops become opaque, with a warning: their graph can be planned but not run.
 */
public final class FxImporter {
  private final ImportOptions options;
  private final DiagnosticSink sink = new DiagnosticSink();
  private final OpTargets targets;

  /** The symbolic sizes of all graphs, and which of them are planned at a bound. */
  private final SortedMap<String, Long> sizes = new TreeMap<>();

  private final SortedSet<String> bounds = new TreeSet<>();

  /** The ranks that have sizes of their own. */
  private final ImmutableSortedSet<Integer> ranksWithSizes;

  private FxImporter(ImportOptions options) {
    this.options = options;
    this.ranksWithSizes =
        Sets.union(options.dims().keySet(), options.dimMax().keySet()).stream()
            .flatMapToInt(name -> Symbols.rankOf(name).stream())
            .boxed()
            .collect(ImmutableSortedSet.toImmutableSortedSet(Comparator.naturalOrder()));
    this.targets = new OpTargets(options.registry());
  }

  /**
   * {@return the program in one text: one graph for all ranks, or in the log of several ranks, the
   * graph of each}
   *
   * @throws CompileException when the text is malformed, an op rejects its arguments, or ranks do
   *     not agree on collectives
   */
  public static Program read(
      SourceFile file, ImportOptions options, Consumer<? super Diagnostic> warnings) {
    var importer = new FxImporter(options);
    var listings = FxText.listings(file, importer.sink);
    if (listings.size() == 1 && importer.ranksWithSizes.isEmpty()) {
      return importer.programOf(
          List.of(new OneText(listings.getFirst().file(), ImmutableIntArray.of())), warnings);
    }
    var ranks = new LinkedHashMap<Integer, SourceFile>();
    int world = 0;
    if (listings.size() > 1) {
      listings.forEach(listing -> ranks.put(listing.rank().orElseThrow(), listing.file()));
      int last = listings.getLast().rank().orElseThrow();
      world = importer.worldOf(file, last, "the log has graphs of rank %s");
    }
    if (!importer.ranksWithSizes.isEmpty()) {
      int last = importer.ranksWithSizes.last();
      world = Math.max(world, importer.worldOf(file, last, "a size is given for rank %s"));
    }
    for (int rank = 0; rank < world; rank++) {
      ranks.putIfAbsent(rank, listings.getFirst().file());
    }
    return importer.programOf(importer.distinct(ranks), warnings);
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
    var importer = new FxImporter(options);
    Map<SourceFile, ImmutableList<FxText.Listing>> listings = new LinkedHashMap<>();
    var texts = new LinkedHashMap<Integer, SourceFile>();
    for (int rank = 0; rank < ranks; rank++) {
      int own = rank;
      var file = ownTexts.getOrDefault(rank, common);
      var found = listings.computeIfAbsent(file, f -> FxText.listings(f, importer.sink));
      texts.put(
          rank,
          found.stream()
              .filter(listing -> listing.rank().orElse(own) == own)
              .findFirst()
              .orElse(found.getFirst())
              .file());
    }
    return importer.programOf(importer.distinct(texts), warnings);
  }

  /**
   * {@return the program of graphs that another reader found, by their names; all ranks run them}
   *
   * @throws CompileException as {@link #read(SourceFile, ImportOptions, Consumer)}
   */
  public static Program build(
      ImmutableMap<String, FxFunction> functions,
      ImportOptions options,
      Consumer<? super Diagnostic> warnings) {
    var importer = new FxImporter(options);
    var graphs = new ArrayList<Graph>();
    functions.forEach(
        (name, function) -> graphs.add(importer.graph(function, name, ImmutableIntArray.of())));
    return importer.program(graphs, warnings);
  }

  /** A text and the ranks that run it; none for all. */
  private record OneText(SourceFile file, ImmutableIntArray ranks) {}

  /** {@return the number of ranks, of which one is spoken of} */
  private int worldOf(SourceFile file, int rank, String what) {
    if (rank >= ProcessGroup.MAX_RANKS) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.BAD_GROUP,
              Span.ofFile(file),
              what.formatted(rank),
              "ranks are 0 to " + (ProcessGroup.MAX_RANKS - 1)));
    }
    if (options.ranks() > 0 && options.ranks() <= rank) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.BAD_OPTION,
              Span.ofFile(file),
              (what + ", but there are %s ranks").formatted(rank, options.ranks()),
              "give --ranks %s".formatted(rank + 1)));
    }
    return Math.max(rank + 1, options.ranks());
  }

  /** Ranks whose texts name other devices only share one, if no size is theirs alone. */
  private List<OneText> distinct(Map<Integer, SourceFile> texts) {
    Map<SourceFile, String> keys = new LinkedHashMap<>();
    Map<String, SourceFile> files = new LinkedHashMap<>();
    Map<String, List<Integer>> ranks = new LinkedHashMap<>();
    texts.forEach(
        (rank, file) -> {
          var text = keys.computeIfAbsent(file, f -> FxText.withoutDevices(f.text()));
          var key = ranksWithSizes.contains(rank) ? rank + "@" + text : text;
          files.putIfAbsent(key, file);
          ranks.computeIfAbsent(key, k -> new ArrayList<>()).add(rank);
        });
    var distinct = new ArrayList<OneText>();
    files.forEach(
        (key, file) ->
            distinct.add(
                new OneText(
                    file,
                    files.size() == 1
                        ? ImmutableIntArray.of()
                        : ImmutableIntArray.copyOf(ranks.getOrDefault(key, List.of())))));
    return distinct;
  }

  private Program programOf(List<OneText> texts, Consumer<? super Diagnostic> warnings) {
    var functions = new ArrayList<List<FxFunction>>();
    for (var text : texts) {
      functions.add(FxReader.read(text.file(), sink));
    }
    sink.throwIfErrors();
    checkCounts(functions);
    int count = functions.getFirst().size();
    var graphs = new ArrayList<Graph>();
    for (int i = 0; i < count; i++) {
      var name = count == 1 ? options.name() : options.name() + "_" + i;
      for (int text = 0; text < texts.size(); text++) {
        graphs.add(graph(functions.get(text).get(i), name, texts.get(text).ranks()));
      }
    }
    return program(graphs, warnings);
  }

  private Graph graph(FxFunction function, String name, ImmutableIntArray ranks) {
    var symbols = new Symbols(options.dims(), options.dimMax(), ranks);
    var plain = HigherOrder.takeApart(function, targets, sink);
    sink.throwIfErrors();
    var graph = new FxGraphReader(plain, name, targets, symbols, sink).read(ranks);
    sizes.putAll(symbols.used());
    symbols.used().keySet().stream().filter(symbols::isBound).forEach(bounds::add);
    return graph;
  }

  private Program program(List<Graph> graphs, Consumer<? super Diagnostic> warnings) {
    sink.throwIfErrors();
    targets.warn(sink);
    warnOfSizes(graphs.getFirst().span());
    var groups = UsedGroups.of(graphs, options, sink);
    var program = new Program(groups, ImmutableList.of(), ImmutableList.copyOf(graphs), Notes.NONE);
    RankAgreement.check(program, sink);
    sink.throwIfErrors();
    sink.diagnostics().forEach(warnings);
    return program;
  }

  private void warnOfSizes(Span at) {
    for (var given : Sets.union(options.dims().keySet(), options.dimMax().keySet())) {
      if (!sizes.containsKey(given)) {
        sink.report(
            Diagnostic.warning(
                DiagnosticCode.DYNAMIC_SIZE,
                at,
                "no size has the name '%s'".formatted(given),
                sizes.isEmpty()
                    ? "all sizes are fixed"
                    : "sizes: " + String.join(", ", sizes.keySet())));
      }
    }
    if (!bounds.isEmpty()) {
      sink.report(
          Diagnostic.warning(
              DiagnosticCode.DYNAMIC_SIZE,
              at,
              "planned at the largest sizes: "
                  + bounds.stream()
                      .map(name -> name + " = " + sizes.get(name))
                      .collect(Collectors.joining(", ")),
              "memory and times are for these; --dim plans a size that is known"));
    }
  }

  private void checkCounts(List<List<FxFunction>> functions) {
    var first = functions.getFirst();
    for (var other : functions) {
      if (other.size() != first.size()) {
        sink.report(
            new Diagnostic(
                Diagnostic.Severity.ERROR,
                DiagnosticCode.RANKS_DISAGREE,
                other.getLast().span(),
                "%s here, but %s on other ranks"
                    .formatted(Units.count(other.size(), "graph"), first.size()),
                "capture all ranks in one run of one program",
                ImmutableList.of("the other rank's are at " + first.getFirst().span())));
        sink.throwIfErrors();
      }
    }
  }
}
