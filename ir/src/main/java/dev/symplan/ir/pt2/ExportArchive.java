package dev.symplan.ir.pt2;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.fx.FxFunction;
import dev.symplan.ir.fx.FxImporter;
import dev.symplan.ir.fx.ImportOptions;
import dev.symplan.ir.graph.Program;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * An archive that {@code torch.export.save} wrote: one or several exported programs with the
 * tensors of their modules. The layout is that of {@code torch.export.pt2_archive}.
 *
 * <p>Parameters, buffers and constants are inputs of the graph, in the archive's order, under the
 * names that PyTorch gives them ({@code p_l_weight}); {@link #weights} has their tensors. Buffers
 * that the program changes have their new values among the outputs, as in the archive.
 */
public final class ExportArchive {
  private static final String MODELS = "models/";
  private static final String JSON = ".json";

  private final ArchiveFile archive;
  private final ImmutableSortedMap<String, Model> models;

  private ExportArchive(ArchiveFile archive, ImmutableSortedMap<String, Model> models) {
    this.archive = archive;
    this.models = models;
  }

  /** {@return whether a file is an archive by its name or its first bytes} */
  public static boolean isArchive(Path file) {
    if (!Files.isRegularFile(file)) {
      return false;
    }
    if (file.toString().endsWith(".pt2")) {
      return true;
    }
    try (var in = Files.newInputStream(file)) {
      return Arrays.equals(in.readNBytes(4), new byte[] {'P', 'K', 3, 4});
    } catch (IOException e) {
      return false;
    }
  }

  /**
   * {@return the archive, read except for its tensors}
   *
   * @throws CompileException when the file cannot be read, is not such an archive, or uses
   *     something not supported
   */
  public static ExportArchive open(Path file) {
    var archive = ArchiveFile.open(file);
    checkLayout(archive);
    var models = ImmutableSortedMap.<String, Model>naturalOrder();
    for (var entry : archive.names()) {
      if (entry.startsWith(MODELS) && entry.endsWith(JSON)) {
        var name = entry.substring(MODELS.length(), entry.length() - JSON.length());
        models.put(name, ModelReader.read(archive.source(), EntryErrors.read(archive, entry)));
      }
    }
    return new ExportArchive(archive, models.buildOrThrow());
  }

  private static void checkLayout(ArchiveFile archive) {
    if (archive.has("serialized_exported_program.json")) {
      throw archive.wrong(
          DiagnosticCode.UNSUPPORTED_VERSION,
          "the archive has the layout of an older PyTorch",
          "load it with torch.export.load, and save it again with PyTorch 2.11 to 2.13");
    }
    if (!archive.hasRoot()
        || !archive.has("archive_format")
        || !text(archive, "archive_format").equals("pt2")) {
      throw archive.wrong(
          archive.has("data.pkl")
              ? "this is a file of torch.save, not of torch.export"
              : "this is not an archive of torch.export: its archive_format is missing or not pt2",
          "write it with torch.export.save(torch.export.export(model, args), path)");
    }
    if (!text(archive, "archive_version").equals("0")) {
      throw archive.wrong(
          DiagnosticCode.UNSUPPORTED_VERSION,
          "the archive has version '%s', not 0".formatted(text(archive, "archive_version")),
          "save it with PyTorch 2.11 to 2.13");
    }
    if (archive.has("byteorder") && !text(archive, "byteorder").equals("little")) {
      throw archive.wrong(
          DiagnosticCode.UNSUPPORTED,
          "the archive's byte order is '%s', not little".formatted(text(archive, "byteorder")),
          "save it on a machine of little byte order");
    }
    if (archive.names().stream().noneMatch(n -> n.startsWith(MODELS) && n.endsWith(JSON))) {
      throw archive.wrong(
          "the archive has no exported program in models/",
          "was it saved to its end? Packages that AOTInductor compiled have none");
    }
  }

  private static String text(ArchiveFile archive, String entry) {
    return new String(archive.read(entry), StandardCharsets.UTF_8).strip();
  }

  /**
   * {@return the program; an archive of several has a graph of each, under its name}
   *
   * @throws CompileException when a graph is malformed, an op rejects its arguments, or a size that
   *     the options give is out of the range that the archive has for it
   */
  public Program program(ImportOptions options, Consumer<? super Diagnostic> warnings) {
    for (var model : models.values()) {
      checkRange(model, options.dims(), "--dim");
      checkRange(model, options.dimMax(), "--dim-max");
    }
    var functions = ImmutableMap.<String, FxFunction>builder();
    models.forEach(
        (name, model) ->
            functions.put(models.size() == 1 ? options.name() : name, model.function()));
    return FxImporter.build(functions.buildOrThrow(), options, warnings);
  }

  /** As PyTorch, which takes a smallest size of 2 for what it met, not for a bound. */
  private void checkRange(Model model, Map<String, Long> sizes, String option) {
    model
        .ranges()
        .forEach(
            (symbol, range) -> {
              @Nullable Long size = sizes.get(symbol);
              long min = range.min().orElse(0) <= 2 ? 0 : range.min().getAsLong();
              if (size != null && (size < min || size > range.max().orElse(Long.MAX_VALUE))) {
                throw archive.wrong(
                    DiagnosticCode.BAD_OPTION,
                    "%s %s=%s is out of range: the program was exported for sizes from %s%s"
                        .formatted(
                            option,
                            symbol,
                            size,
                            min,
                            range.max().isPresent() ? " to " + range.max().getAsLong() : ""),
                    "");
              }
            });
  }

  /** {@return the names of the exported programs} */
  public ImmutableSet<String> models() {
    return models.keySet();
  }

  /**
   * {@return the tensors that the archive holds for a graph's inputs, in the order of the inputs}
   *
   * @param graph the graph's name; of an archive with one program, any
   * @throws CompileException when a tensor is missing, damaged or pickled
   */
  public ImmutableList<Weight> weights(String graph) {
    var name = models.size() == 1 ? models.firstKey() : graph;
    @Nullable Model model = models.get(name);
    if (model == null) {
      throw archive.wrong(
          DiagnosticCode.BAD_OPTION,
          graph.isEmpty()
              ? "it has several programs: " + models.keySet()
              : "it has no program '%s'; it has %s".formatted(graph, models.keySet()),
          "choose one: --graph NAME");
    }
    return new WeightReader(archive, name).read(model.stored());
  }
}
