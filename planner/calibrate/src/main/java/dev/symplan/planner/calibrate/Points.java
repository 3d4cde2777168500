package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.calibrate.Point.Subject;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.machine.Variant;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
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
          "hosts",
          "micros",
          "min_us",
          "max_us",
          "flops",
          "compute_us",
          "transfer_us",
          "gpu",
          "date");

  private static final ImmutableList<String> REQUIRED = ImmutableList.of("kind", "micros");

  private static final String HEADER = "kind,variant,dtype,bytes,ranks,micros";

  private static final ImmutableList<String> MACHINE_KINDS =
      ImmutableList.of("copy", "gemm", "barrier", "launch", "copy_engine", "overlap");

  /** The prefix of PyTorch's collectives in {@code samples/pytorch/bench_torch.py}. */
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
    return new Points(Span.ofFile(file).shortForm(), list, reader.rows.comments());
  }

  /** {@return points that come from no file} */
  public static Points of(List<Point> list, List<String> comments) {
    return new Points("", ImmutableList.copyOf(list), ImmutableList.copyOf(comments));
  }

  /** Makes points of the rows. */
  private static final class Reader {
    private final SourceFile file;
    private final CsvReader rows;

    Reader(SourceFile file, DiagnosticSink sink) {
      this.file = file;
      this.rows = new CsvReader(file, sink, COLUMNS, REQUIRED, HEADER);
    }

    ImmutableList<Point> read() {
      return rows.read(this::point);
    }

    private Optional<Point> point() {
      var subject = subject();
      double micros = rows.positive("micros");
      double least = rows.text("min_us").isEmpty() ? micros : rows.positive("min_us");
      double most = rows.text("max_us").isEmpty() ? micros : rows.positive("max_us");
      return rows.isWrong()
          ? Optional.empty()
          : subject.map(
              s ->
                  new Point(
                      s,
                      micros,
                      least,
                      most,
                      rows.text("dtype"),
                      rows.text("gpu"),
                      rows.text("date"),
                      Span.ofFile(file).shortForm()));
    }

    private Optional<Subject> subject() {
      var word = rows.text("kind");
      return switch (word) {
        case "copy" -> Optional.of(new Subject.Copy(rows.count("bytes", Long.MAX_VALUE)));
        case "gemm" -> Optional.of(new Subject.Gemm(rows.positive("flops")));
        case "barrier" -> Optional.of(new Subject.Barrier(ranks()));
        case "launch" -> Optional.of(new Subject.Launch());
        case "copy_engine" -> Optional.of(new Subject.CopyEngineStart());
        case "overlap" ->
            Optional.of(
                new Subject.Together(
                    rows.text("variant"),
                    rows.positive("compute_us"),
                    rows.positive("transfer_us")));
        default -> collective(word);
      };
    }

    private Optional<Subject> collective(String word) {
      var kind = Kind.ofText(word);
      if (kind.isEmpty()) {
        rows.error(
            "kind",
            "unknown kind '%s'".formatted(word),
            "known: "
                + Arrays.stream(Kind.values()).map(Kind::text).collect(Collectors.joining(", "))
                + ", "
                + String.join(", ", MACHINE_KINDS));
        return Optional.empty();
      }
      if (rows.text("variant").startsWith(FOREIGN)) {
        return Optional.of(new Subject.Foreign(kind.get(), rows.text("variant"), bytes(), ranks()));
      }
      var variants = Variant.ofKind(kind.get());
      var variant = Variant.ofText(rows.text("variant")).filter(variants::contains);
      if (variant.isEmpty()) {
        rows.error(
            "variant",
            "unknown variant '%s' of %s".formatted(rows.text("variant"), word),
            "known: " + variants.stream().map(Variant::text).collect(Collectors.joining(", ")));
        return Optional.empty();
      }
      return rows.text("hosts").isEmpty() || rows.text("hosts").equals("1")
          ? Optional.of(new Subject.Collective(kind.get(), variant.get(), bytes(), ranks()))
          : betweenHosts(kind.get(), variant.get());
    }

    private Optional<Subject> betweenHosts(Kind kind, Variant variant) {
      int ranks = ranks();
      int hosts = (int) rows.count("hosts", MAX_RANKS);
      if (variant != Variant.NCCL) {
        rows.error(
            "variant",
            "%s does not run between hosts".formatted(variant.text()),
            "expected " + Variant.NCCL.text());
      } else if (ranks % hosts != 0) {
        rows.error(
            "hosts",
            "%s ranks on %s hosts".formatted(ranks, hosts),
            "expected as many ranks on each host");
      }
      return rows.isWrong()
          ? Optional.empty()
          : Optional.of(
              new Subject.BetweenHosts(kind, bytes(), new Reach(ranks, hosts, ranks / hosts)));
    }

    private long bytes() {
      return rows.count("bytes", Long.MAX_VALUE / MAX_RANKS);
    }

    private int ranks() {
      long ranks = rows.count("ranks", MAX_RANKS);
      if (ranks == 1 && !rows.isWrong()) {
        rows.error("ranks", "one rank has no peer to communicate with", "expected at least 2");
      }
      return (int) ranks;
    }
  }
}
