package dev.symplan.planner.io;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Program;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.fx.FxImporter;
import dev.symplan.ir.fx.ImportOptions;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.CompileOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/**
 * Reads every form of input into a program: {@code .graph} files, FX text, and case directories
 * ({@code graph.fx.txt} or {@code graph.graph}, {@code graph.rankN.fx.txt}, and {@code groups.json}
 * or {@code groups.rankN.json}).
 */
public final class ProgramReader {
  private static final Pattern RANK_GRAPH = Pattern.compile("graph\\.rank([0-9]{1,6})\\.fx\\.txt");
  private static final Pattern RANK_TENSORS =
      Pattern.compile("rank([0-9]{1,6})\\.(?:inputs|outputs)\\.safetensors");
  private static final Pattern VERSION_LINE =
      Pattern.compile("\\A(?:\\s*(?:#[^\\n]*)?\\n)*\\s*graph\\s+version\\b");

  private final CompileOptions options;
  private final Consumer<? super Diagnostic> warnings;

  private ProgramReader(CompileOptions options, Consumer<? super Diagnostic> warnings) {
    this.options = options;
    this.warnings = warnings;
  }

  /**
   * {@return the program}
   *
   * @throws CompileException when the input cannot be read or is malformed
   */
  public static Program read(
      Path input, CompileOptions options, Consumer<? super Diagnostic> warnings) {
    var reader = new ProgramReader(options, warnings);
    return Files.isDirectory(input)
        ? reader.directory(input)
        : reader.program(SourceReader.read(input));
  }

  /** {@return the program in a text that was read already} */
  public static Program read(
      SourceFile file, CompileOptions options, Consumer<? super Diagnostic> warnings) {
    return new ProgramReader(options, warnings).program(file);
  }

  private Program program(SourceFile file) {
    boolean graph = file.name().endsWith(".graph") || VERSION_LINE.matcher(file.text()).find();
    return graph
        ? GraphParser.parse(file)
        : FxImporter.read(
            file, importOptions(stem(file.name()), ImmutableList.of(), options.ranks()), warnings);
  }

  private ImportOptions importOptions(String name, ImmutableList<ProcessGroup> groups, int ranks) {
    return new ImportOptions(
        name, groups, ranks, options.dims(), options.dimMax(), OpRegistry.global());
  }

  /** The file's name up to its first dot, as a name of the graph language. */
  private static String stem(String fileName) {
    var path = fileName.replace('\\', '/');
    var name = path.substring(path.lastIndexOf('/') + 1);
    int dot = name.indexOf('.', 1);
    var word = (dot < 0 ? name : name.substring(0, dot)).replaceAll("[^A-Za-z0-9_]", "_");
    return word.isEmpty() || Character.isDigit(word.charAt(0)) ? "_" + word : word;
  }

  private Program directory(Path folder) {
    if (Files.exists(folder.resolve("graph.graph"))) {
      return GraphParser.parse(SourceReader.read(folder.resolve("graph.graph")));
    }
    var common = folder.resolve("graph.fx.txt");
    var own = ImmutableSortedMap.<Integer, SourceFile>naturalOrder();
    int ranks = options.ranks();
    int found = 0;
    try (var files = Files.list(folder)) {
      for (var file : files.sorted().toList()) {
        var name = String.valueOf(file.getFileName());
        var graph = RANK_GRAPH.matcher(name);
        var tensors = RANK_TENSORS.matcher(name);
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
    var ownTexts = own.buildOrThrow();
    if (!Files.exists(common) && ownTexts.isEmpty()) {
      throw wrong(
          folder,
          DiagnosticCode.UNREADABLE_FILE,
          "the directory is no case: it has neither graph.fx.txt nor graph.graph",
          "a case has graph.fx.txt, groups.json where groups are smaller than the world, and"
              + " rankN.inputs.safetensors");
    }
    var first =
        Files.exists(common) ? SourceReader.read(common) : ownTexts.values().iterator().next();
    int world = ranks > 0 ? ranks : found;
    var importOptions =
        importOptions(
            stem(String.valueOf(folder.toAbsolutePath().normalize().getFileName())),
            GroupFiles.read(folder),
            world);
    return world == 0 || ownTexts.isEmpty()
        ? FxImporter.read(first, importOptions, warnings)
        : FxImporter.read(first, ownTexts, world, importOptions, warnings);
  }

  private static CompileException wrong(
      Path file, DiagnosticCode code, String message, String hint) {
    return new CompileException(
        Diagnostic.error(code, Span.ofFile(new SourceFile(file.toString(), "")), message, hint));
  }
}
