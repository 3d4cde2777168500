package dev.symplan.planner.io;

import com.google.common.base.Joiner;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.collect.Ordering;
import com.google.common.collect.Sets;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.fx.FxImporter;
import dev.symplan.ir.fx.ImportOptions;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.hlo.HloImporter;
import dev.symplan.ir.hlo.HloReader;
import dev.symplan.ir.joint.Buckets;
import dev.symplan.ir.joint.JointGraph;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.pt2.ExportArchive;
import dev.symplan.ir.text.Declarations;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.options.CompileOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Reads every form of input into a program: {@code .graph} files, FX text, {@code torch.export}
 * archives, HLO modules, and case directories ({@code graph.fx.txt}, {@code graph.graph}, {@code
 * graph.pt2} or {@code module.hlo}; {@code graph.rankN.fx.txt}, {@code groups.json} or {@code
 * groups.rankN.json}, {@code dims.json}, {@code ops.txt} or {@code ops.rankN.txt}).
 */
public final class ProgramReader {

  /** The archive of a case directory. */
  public static final String ARCHIVE = "graph.pt2";

  /** The HLO module of a case directory. */
  private static final String MODULE = "module.hlo";

  private static final Pattern RANK_GRAPH = Pattern.compile("graph\\.rank([0-9]{1,6})\\.fx\\.txt");
  private static final Pattern RANK_TENSORS =
      Pattern.compile("rank([0-9]{1,6})\\.(?:inputs|outputs)\\.safetensors");
  private static final Pattern VERSION = Pattern.compile("graph\\s+version\\b");

  private static final Pattern OPS = Pattern.compile("ops(\\.rank[0-9]{1,6})?\\.txt");

  private final CompileOptions options;
  private final Consumer<? super Diagnostic> warnings;
  private final OpRegistry registry;

  private ProgramReader(
      CompileOptions options, Consumer<? super Diagnostic> warnings, OpRegistry registry) {
    this.options = options;
    this.warnings = warnings;
    this.registry = registry;
  }

  private static ProgramReader of(CompileOptions options, Consumer<? super Diagnostic> warnings) {
    var registry = BuiltinOps.registry();
    for (var file : options.declarations()) {
      registry = Declarations.read(SourceReader.read(file), registry);
    }
    return new ProgramReader(options, warnings, registry);
  }

  /**
   * {@return the program}
   *
   * @throws CompileException when the input cannot be read or is malformed
   */
  public static Program read(
      Path input, CompileOptions options, Consumer<? super Diagnostic> warnings) {
    var reader = of(options, warnings);
    if (Files.isDirectory(input)) {
      return new ProgramReader(options, warnings, reader.withOpsOf(input)).directory(input);
    }
    return ExportArchive.isArchive(input)
        ? reader.archive(
            input,
            reader.importOptions(
                input.toString(),
                stem(input.toString()),
                ImmutableList.of(),
                options.ranks(),
                options.dims()))
        : reader.program(SourceReader.read(input));
  }

  /**
   * {@return the program of an HLO module, with an op for each step of XLA}
   *
   * @throws CompileException when the file cannot be read or is malformed
   */
  public static Program readSteps(
      Path module, CompileOptions options, Consumer<? super Diagnostic> warnings) {
    return HloImporter.readSteps(
        SourceReader.read(module), of(options, warnings).registry, options.ranks(), warnings);
  }

  /**
   * {@return the program of all graphs of some inputs, which run one after the other}
   *
   * @param ties a file; without it, names say what one graph hands to the next
   * @throws CompileException when an input cannot be read or is malformed, or the graphs do not fit
   *     each other
   */
  public static Program readTogether(
      List<Path> inputs,
      Optional<Path> ties,
      CompileOptions options,
      Consumer<? super Diagnostic> warnings) {
    return JointGraph.of(
        inputs.stream().map(input -> read(input, options, warnings)).toList(),
        ties.map(TiesFile::read),
        warnings);
  }

  /**
   * {@return the program of all graphs of some inputs, in a version for each of a few values of a
   * symbolic size}
   *
   * @param ties a file, between inputs of different graphs
   * @param size the name of the size
   * @param values at least two, ascending
   * @throws CompileException when an input cannot be read or is malformed, or no graph has the size
   */
  public static Program readBuckets(
      List<Path> inputs,
      Optional<Path> ties,
      String size,
      List<Long> values,
      CompileOptions options,
      Consumer<? super Diagnostic> warnings) {
    if (values.size() < 2
        || !Ordering.natural().isStrictlyOrdered(values)
        || values.getFirst() < 1) {
      throw badBuckets(
          inputs.getFirst(), "%s are not two or more ascending positive sizes".formatted(values));
    }
    if (options.dims().containsKey(size) || options.dimMax().containsKey(size)) {
      throw badBuckets(
          inputs.getFirst(), "the size '%s' has another value already".formatted(size));
    }
    // Most warnings are the same for all values.
    var warned = new LinkedHashSet<Diagnostic>();
    var program =
        Buckets.of(
            size,
            ImmutableList.copyOf(values),
            value -> {
              var dims = ImmutableMap.<String, Long>builder().putAll(options.dims());
              var own = options.withDims(dims.put(size, value).buildOrThrow(), options.dimMax());
              return inputs.stream().map(input -> bucket(input, size, own, warned::add)).toList();
            },
            ties.map(TiesFile::read).orElse(ImmutableList.of()),
            warned::add);
    warned.forEach(warnings);
    return program;
  }

  /** Errors say for which value of the size they are, as other values may be right. */
  private static Program bucket(
      Path input, String size, CompileOptions options, Consumer<? super Diagnostic> warnings) {
    try {
      return read(input, options, warnings);
    } catch (CompileException e) {
      var which =
          badBuckets(
              input, "the errors above are for %s = %s".formatted(size, options.dims().get(size)));
      throw new CompileException(
          Stream.concat(e.diagnostics().stream(), which.diagnostics().stream()).toList());
    }
  }

  private static CompileException badBuckets(Path input, String message) {
    return CompileException.ofFile(
        DiagnosticCode.BAD_OPTION,
        input,
        "--buckets: " + message,
        "for example --buckets s77=128,1024,4096");
  }

  private Program archive(Path file, ImportOptions imported) {
    return ExportArchive.open(file).program(imported, warnings);
  }

  /** {@return the program in a text that was read already} */
  public static Program read(
      SourceFile file, CompileOptions options, Consumer<? super Diagnostic> warnings) {
    return of(options, warnings).program(file);
  }

  /**
   * {@return the program of FX texts that were read already}
   *
   * @param texts one for each rank
   * @param groups the process groups that each rank knows: their names, and their ranks in order
   * @throws CompileException when a text is malformed, or the ranks do not agree on collectives
   */
  public static Program readRanks(
      List<SourceFile> texts,
      List<Json> groups,
      CompileOptions options,
      Consumer<? super Diagnostic> warnings) {
    var own = ImmutableSortedMap.<Integer, SourceFile>naturalOrder();
    for (int rank = 0; rank < texts.size(); rank++) {
      own.put(rank, texts.get(rank));
    }
    var name = texts.getFirst().name();
    var imported =
        of(options, warnings)
            .importOptions(
                name, stem(name), GroupFiles.groups(groups), texts.size(), options.dims());
    return FxImporter.read(texts.getFirst(), own.buildOrThrow(), texts.size(), imported, warnings);
  }

  private Program program(SourceFile file) {
    if (PlanFile.isPlan(file.text())) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED,
              Span.ofFile(file),
              "this is a plan, not a graph",
              "run, dump, explain and verify take plans"));
    }
    if (HloReader.isModule(file.text())) {
      return HloImporter.read(file, registry, options.ranks(), warnings);
    }
    boolean graph = file.name().endsWith(".graph") || startsWithVersion(file.text());
    return graph
        ? graph(file)
        : FxImporter.read(
            file,
            importOptions(
                file.name(),
                stem(file.name()),
                ImmutableList.of(),
                options.ranks(),
                options.dims()),
            warnings);
  }

  private Program graph(SourceFile file) {
    for (var given : Sets.union(options.dims().keySet(), options.dimMax().keySet())) {
      warnings.accept(
          Diagnostic.warning(
              DiagnosticCode.DYNAMIC_SIZE,
              Span.ofFile(file),
              "no size has the name '%s'".formatted(given),
              "all sizes of the graph language are fixed"));
    }
    var sink = new DiagnosticSink();
    var program = GraphParser.parse(file, registry, sink);
    sink.throwIfErrors();
    if (program.graphs().isEmpty()) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.SYNTAX,
              Span.ofFile(file),
              "the file contains no graph",
              "add one: graph name(x: f32[4]) { … }"));
    }
    return program;
  }

  /** Whether a text, after comments, says which version of the graph language it is in. */
  private static boolean startsWithVersion(String text) {
    int at = 0;
    while (at < text.length()) {
      if (text.charAt(at) == '#') {
        int end = text.indexOf('\n', at);
        at = end < 0 ? text.length() : end;
      } else if (Character.isWhitespace(text.charAt(at))) {
        at++;
      } else {
        return VERSION.matcher(text).region(at, text.length()).lookingAt();
      }
    }
    return false;
  }

  private ImportOptions importOptions(
      String source,
      String name,
      ImmutableList<ProcessGroup> groups,
      int ranks,
      ImmutableMap<String, Long> dims) {
    var bounds = SizeBounds.ofEach(dims, options.dimMax());
    if (!bounds.keySet().equals(options.dimMax().keySet())) {
      warnings.accept(
          Diagnostic.warning(
              DiagnosticCode.DYNAMIC_SIZE,
              Span.ofFile(new SourceFile(source, "")),
              "sizes that are bounded together have even parts: "
                  + Joiner.on(", ").withKeyValueSeparator(" = ").join(bounds),
              "a rank that gets more rows than its part needs more memory than the plan has"));
    }
    return new ImportOptions(name, groups, ranks, dims, bounds, registry);
  }

  /** The file's name up to its first dot, as a name of the graph language. */
  private static String stem(String fileName) {
    var path = fileName.replace('\\', '/');
    var name = path.substring(path.lastIndexOf('/') + 1);
    int dot = name.indexOf('.', 1);
    var word = (dot < 0 ? name : name.substring(0, dot)).replaceAll("[^A-Za-z0-9_]", "_");
    return word.isEmpty() || Character.isDigit(word.charAt(0)) ? "_" + word : word;
  }

  /** The ops that the capture of a case found outside PyTorch's own. */
  private OpRegistry withOpsOf(Path folder) {
    var known = registry;
    try (var files = Files.list(folder)) {
      for (var file : files.sorted().toList()) {
        if (OPS.matcher(String.valueOf(file.getFileName())).matches()) {
          known = Declarations.readCaptured(SourceReader.read(file), known);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return known;
  }

  private Program directory(Path folder) {
    if (Files.exists(folder.resolve("graph.graph"))) {
      return graph(SourceReader.read(folder.resolve("graph.graph")));
    }
    if (Files.exists(folder.resolve(MODULE))) {
      return program(SourceReader.read(folder.resolve(MODULE)));
    }
    var name = stem(String.valueOf(folder.toAbsolutePath().normalize().getFileName()));
    var common = folder.resolve("graph.fx.txt");
    var own = ImmutableSortedMap.<Integer, SourceFile>naturalOrder();
    int ranks = options.ranks();
    int found = 0;
    try (var files = Files.list(folder)) {
      for (var file : files.sorted().toList()) {
        var fileName = String.valueOf(file.getFileName());
        var graph = RANK_GRAPH.matcher(fileName);
        var tensors = RANK_TENSORS.matcher(fileName);
        if (graph.matches()) {
          own.put(Integer.parseInt(graph.group(1)), SourceReader.read(file));
          found = Math.max(found, Integer.parseInt(graph.group(1)) + 1);
        } else if (tensors.matches()) {
          found = Math.max(found, Integer.parseInt(tensors.group(1)) + 1);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    int world = ranks > 0 ? ranks : found;
    if (world > ProcessGroup.MAX_RANKS) {
      throw CompileException.ofFile(
          DiagnosticCode.BAD_GROUP,
          folder,
          "a file is named for rank %s".formatted(world - 1),
          "ranks are 0 to " + (ProcessGroup.MAX_RANKS - 1));
    }
    var importOptions =
        importOptions(folder.toString(), name, GroupFiles.read(folder), world, dims(folder));
    if (Files.exists(folder.resolve(ARCHIVE))) {
      return archive(folder.resolve(ARCHIVE), importOptions);
    }
    var ownTexts = own.buildOrThrow();
    if (!Files.exists(common) && ownTexts.isEmpty()) {
      throw CompileException.ofFile(
          DiagnosticCode.UNREADABLE_FILE,
          folder,
          "the directory is not a case: it contains none of graph.fx.txt, graph.graph, graph.pt2"
              + " and module.hlo",
          "a case has graph.fx.txt, groups.json if groups are smaller than the world, and"
              + " rankN.inputs.safetensors");
    }
    var first =
        Files.exists(common) ? SourceReader.read(common) : ownTexts.values().iterator().next();
    return world == 0 || ownTexts.isEmpty()
        ? FxImporter.read(first, importOptions, warnings)
        : FxImporter.read(first, ownTexts, world, importOptions, warnings);
  }

  /**
   * The sizes that a case was captured with, for the symbolic sizes that no option speaks of:
   * {@code dims.json}.
   */
  private ImmutableMap<String, Long> dims(Path folder) {
    var file = folder.resolve("dims.json");
    var dims = new LinkedHashMap<String, Long>();
    if (Files.exists(file)) {
      Json.parse(SourceReader.read(file), new JsonErrors(DiagnosticCode.DYNAMIC_SIZE))
          .fields()
          .forEach((size, value) -> dims.put(size, value.integer()));
    }
    options.dimMax().keySet().forEach(sizes -> dims.keySet().removeAll(SizeBounds.names(sizes)));
    dims.putAll(options.dims());
    return ImmutableMap.copyOf(dims);
  }
}
