package dev.symplan.planner.calibrate;

import com.google.common.base.CharMatcher;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.Doubles;
import com.google.common.primitives.Longs;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.calibrate.Point.Subject;
import dev.symplan.planner.machine.Variant;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Measured points as CSV: {@code docs/targets.md} describes the columns.
 *
 * @param name the files', without folders
 * @param comments the files' lines that begin with {@code #}, without it
 */
public record Points(String name, ImmutableList<Point> list, ImmutableList<String> comments) {

  private static final ImmutableList<String> COLUMNS =
      ImmutableList.of(
          "kind",
          "variant",
          "dtype",
          "bytes",
          "ranks",
          "micros",
          "min_us",
          "max_us",
          "flops",
          "compute_us",
          "transfer_us",
          "gpu",
          "date");

  private static final ImmutableList<String> REQUIRED = ImmutableList.of("kind", "micros");

  private static final ImmutableList<String> MACHINE_KINDS =
      ImmutableList.of("copy", "gemm", "barrier", "launch", "copy_engine", "overlap");

  /** What PyTorch's collectives are called in {@code samples/pytorch/bench_torch.py}. */
  private static final String FOREIGN = "torch_";

  private static final long MAX_RANKS = 1 << 20;

  /**
   * {@return the points in a file}
   *
   * @throws dev.symplan.ir.diag.CompileException when it cannot be read or is wrong
   */
  public static Points read(Path file) {
    return read(SourceReader.read(file));
  }

  /**
   * {@return the points in several files}
   *
   * @throws dev.symplan.ir.diag.CompileException when one cannot be read or is wrong
   */
  public static Points read(List<Path> files) {
    var all = files.stream().map(Points::read).toList();
    return new Points(
        all.stream().map(Points::name).distinct().collect(Collectors.joining(", ")),
        all.stream().flatMap(p -> p.list().stream()).collect(ImmutableList.toImmutableList()),
        all.stream().flatMap(p -> p.comments().stream()).collect(ImmutableList.toImmutableList()));
  }

  /**
   * {@return the points of a file}
   *
   * @throws CompileException with a diagnostic for each field that is wrong
   */
  public static Points read(SourceFile file) {
    var sink = new DiagnosticSink();
    var reader = new Reader(file, sink);
    var list = reader.read();
    sink.throwIfErrors();
    return new Points(Span.ofFile(file).shortForm(), list, ImmutableList.copyOf(reader.comments));
  }

  /** {@return points that come from no file} */
  public static Points of(List<Point> list, List<String> comments) {
    return new Points("", ImmutableList.copyOf(list), ImmutableList.copyOf(comments));
  }

  /** Reads one text, line by line. */
  private static final class Reader {
    private final SourceFile file;
    private final DiagnosticSink sink;
    private final Map<String, Integer> columns = new HashMap<>();
    private final List<String> comments = new ArrayList<>();
    private List<String> fields = List.of();
    private int line;
    private boolean wrong;

    Reader(SourceFile file, DiagnosticSink sink) {
      this.file = file;
      this.sink = sink;
    }

    ImmutableList<Point> read() {
      var points = ImmutableList.<Point>builder();
      for (var text : Splitter.on('\n').split(file.text())) {
        line++;
        var trimmed = CharMatcher.whitespace().trimTrailingFrom(text);
        if (trimmed.startsWith("#")) {
          comments.add(trimmed.substring(1).strip());
          continue;
        }
        if (trimmed.isEmpty()) {
          continue;
        }
        fields = Splitter.on(',').splitToList(trimmed);
        if (columns.isEmpty()) {
          readHeader();
          sink.throwIfErrors();
        } else if (fields.size() != columns.size()) {
          error(
              new Span(file, line, 1, trimmed.length()),
              "%d fields, but the header names %d".formatted(fields.size(), columns.size()),
              "write one field for each column of the header");
        } else {
          wrong = false;
          point().ifPresent(points::add);
        }
      }
      var built = points.build();
      if (built.isEmpty() && !sink.hasErrors()) {
        error(Span.ofFile(file), "the file has no points", "expected the header " + header());
      }
      return built;
    }

    private static String header() {
      return "'kind,variant,dtype,bytes,ranks,micros'";
    }

    private void readHeader() {
      for (int i = 0; i < fields.size(); i++) {
        var name = fields.get(i).strip();
        if (!COLUMNS.contains(name)) {
          error(
              location(i),
              "there is no column '%s'".formatted(name),
              "known: " + String.join(", ", COLUMNS));
        } else if (columns.putIfAbsent(name, i) != null) {
          error(location(i), "a second column '%s'".formatted(name), "leave one of them out");
        }
      }
      for (var name : REQUIRED) {
        if (!columns.containsKey(name)) {
          error(location(0), "there is no column '%s'".formatted(name), "expected " + header());
        }
      }
    }

    private Optional<Point> point() {
      var subject = subject();
      double micros = positive("micros");
      double least = text("min_us").isEmpty() ? micros : positive("min_us");
      double most = text("max_us").isEmpty() ? micros : positive("max_us");
      return wrong
          ? Optional.empty()
          : subject.map(
              s ->
                  new Point(
                      s,
                      micros,
                      least,
                      most,
                      text("dtype"),
                      text("gpu"),
                      text("date"),
                      Span.ofFile(file).shortForm()));
    }

    private Optional<Subject> subject() {
      var word = text("kind");
      return switch (word) {
        case "copy" -> Optional.of(new Subject.Copy(count("bytes", Long.MAX_VALUE)));
        case "gemm" -> Optional.of(new Subject.Gemm(positive("flops")));
        case "barrier" -> Optional.of(new Subject.Barrier(ranks()));
        case "launch" -> Optional.of(new Subject.Launch());
        case "copy_engine" -> Optional.of(new Subject.CopyEngineStart());
        case "overlap" ->
            Optional.of(
                new Subject.Together(
                    text("variant"), positive("compute_us"), positive("transfer_us")));
        default -> collective(word);
      };
    }

    private Optional<Subject> collective(String word) {
      var kind = Kind.ofText(word);
      if (kind.isEmpty()) {
        error(
            location("kind"),
            "there is no kind '%s'".formatted(word),
            "known: "
                + Arrays.stream(Kind.values()).map(Kind::text).collect(Collectors.joining(", "))
                + ", "
                + String.join(", ", MACHINE_KINDS));
        return Optional.empty();
      }
      if (text("variant").startsWith(FOREIGN)) {
        return Optional.of(new Subject.Foreign(kind.get(), text("variant"), bytes(), ranks()));
      }
      var variants = Variant.ofKind(kind.get());
      var variant = Variant.ofText(text("variant")).filter(variants::contains);
      if (variant.isEmpty()) {
        error(
            location("variant"),
            "there is no variant '%s' of %s".formatted(text("variant"), word),
            "known: " + variants.stream().map(Variant::text).collect(Collectors.joining(", ")));
        return Optional.empty();
      }
      return Optional.of(new Subject.Collective(kind.get(), variant.get(), bytes(), ranks()));
    }

    private long bytes() {
      return count("bytes", Long.MAX_VALUE / MAX_RANKS);
    }

    private int ranks() {
      long ranks = count("ranks", MAX_RANKS);
      if (ranks == 1 && !wrong) {
        error(location("ranks"), "one rank has no peer to communicate with", "expected at least 2");
      }
      return (int) ranks;
    }

    private boolean isMissing(String column) {
      if (columns.containsKey(column)) {
        return false;
      }
      error(
          location("kind"),
          "there is no column '%s', which %s requires".formatted(column, text("kind")),
          "add it to the header");
      return true;
    }

    private String text(String column) {
      var index = columns.get(column);
      return index == null ? "" : fields.get(index).strip();
    }

    private long count(String column, long max) {
      if (isMissing(column)) {
        return 1;
      }
      var value =
          Optional.ofNullable(Longs.tryParse(text(column)))
              .filter(number -> number >= 1 && number <= max);
      if (value.isEmpty()) {
        error(
            location(column),
            "'%s' is not a valid number of %s".formatted(text(column), column),
            "expected a whole number from 1");
        return 1;
      }
      return value.get();
    }

    private double positive(String column) {
      if (isMissing(column)) {
        return 1;
      }
      var value =
          Optional.ofNullable(Doubles.tryParse(text(column)))
              .filter(number -> number > 0 && number < Double.POSITIVE_INFINITY);
      if (value.isEmpty()) {
        error(
            location(column),
            "'%s' is not a valid %s".formatted(text(column), column),
            "expected a number above 0");
        return 1;
      }
      return value.get();
    }

    private Span location(String column) {
      return location(columns.getOrDefault(column, 0));
    }

    private Span location(int index) {
      int at = 1;
      for (int i = 0; i < index; i++) {
        at += fields.get(i).length() + 1;
      }
      return new Span(file, line, at, Math.max(1, fields.get(index).length()));
    }

    private void error(Span span, String message, String hint) {
      wrong = true;
      sink.report(Diagnostic.error(DiagnosticCode.BAD_POINTS, span, message, hint));
    }
  }
}
