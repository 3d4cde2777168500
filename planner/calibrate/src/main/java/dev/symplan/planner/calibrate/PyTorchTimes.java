package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.text.SourceReader;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * PyTorch's times and memory for whole programs, as {@code samples/pytorch/bench_programs.py}
 * prints them.
 *
 * @param rows one for each program, mode and number of ranks
 * @param comments the file's lines that begin with {@code #}, without it
 */
public record PyTorchTimes(Path file, ImmutableList<Row> rows, ImmutableList<String> comments) {

  private static final ImmutableList<String> COLUMNS =
      ImmutableList.of(
          "program",
          "graphs",
          "mode",
          "ranks",
          "micros",
          "min_us",
          "max_us",
          "peak_allocated",
          "peak_reserved",
          "in_use",
          "gpu",
          "date");

  private static final int MAX_COUNT = 1 << 20;

  /**
   * One program, compiled in one of {@code torch.compile}'s modes.
   *
   * @param graphs how many graphs the program was compiled to; the times are of all together
   * @param micros microseconds of a call: the median of several measurements
   * @param least the shortest of them
   * @param most the longest of them
   * @param peakAllocated the most bytes that tensors of one GPU took, inputs and weights included
   * @param peakReserved the most bytes that PyTorch's allocator took from the driver for one GPU
   * @param inUse bytes of one GPU's memory that the process came to use, by the driver's count
   */
  public record Row(
      String program,
      int graphs,
      String mode,
      int ranks,
      double micros,
      double least,
      double most,
      long peakAllocated,
      long peakReserved,
      long inUse,
      String gpu,
      String date) {}

  /**
   * {@return the rows of a file}
   *
   * @throws CompileException when it cannot be read or is wrong
   */
  public static PyTorchTimes read(Path path) {
    var sink = new DiagnosticSink();
    var reader =
        new CsvReader(SourceReader.read(path), sink, COLUMNS, COLUMNS, String.join(",", COLUMNS));
    var rows = reader.read(() -> row(reader));
    sink.throwIfErrors();
    return new PyTorchTimes(path, rows, reader.comments());
  }

  private static Optional<Row> row(CsvReader reader) {
    var row =
        new Row(
            reader.text("program"),
            (int) reader.count("graphs", MAX_COUNT),
            reader.text("mode"),
            (int) reader.count("ranks", MAX_COUNT),
            reader.positive("micros"),
            reader.positive("min_us"),
            reader.positive("max_us"),
            reader.count("peak_allocated", Long.MAX_VALUE),
            reader.count("peak_reserved", Long.MAX_VALUE),
            reader.count("in_use", Long.MAX_VALUE),
            reader.text("gpu"),
            reader.text("date"));
    return reader.isWrong() ? Optional.empty() : Optional.of(row);
  }

  /**
   * {@return the rows of one program, or of the only one if the file has just one}
   *
   * @throws CompileException when there are several, none of which is called so, or when the rows
   *     are for another number of ranks
   */
  public ImmutableList<Row> of(String program, int ranks) {
    var programs = rows.stream().map(Row::program).distinct().toList();
    var wanted = programs.size() == 1 ? programs.getFirst() : program;
    var found = rows.stream().filter(row -> row.program().equals(wanted)).toList();
    if (found.isEmpty()) {
      throw wrong(
          "the file has no times of '%s'".formatted(program),
          "the file has times of " + String.join(", ", programs));
    }
    var same = found.stream().filter(row -> row.ranks() == ranks).toList();
    if (same.isEmpty()) {
      throw wrong(
          "the times of '%s' are for %s ranks, but the plan is for %s"
              .formatted(wanted, ranksOf(found), ranks),
          "measure both on as many GPUs");
    }
    return ImmutableList.copyOf(same);
  }

  private static String ranksOf(List<Row> rows) {
    return rows.stream()
        .map(row -> Integer.toString(row.ranks()))
        .distinct()
        .collect(Collectors.joining(" and "));
  }

  private CompileException wrong(String message, String hint) {
    return CompileException.ofFile(DiagnosticCode.BAD_POINTS, file, message, hint);
  }
}
