package dev.symplan.planner.machine;

import com.google.common.base.Splitter;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.Ints;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.text.SourceReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Files that list hosts in the order of their ranks: on each line a name and a number of ranks, as
 * {@code gpu01 8}, {@code gpu01 slots=8} (Open MPI) or {@code gpu01:8} (MPICH); or only names, one
 * line for each rank (Slurm). A comment runs from {@code #} to the end of its line.
 */
public final class HostsFile {
  private static final Pattern LINE =
      Pattern.compile("(\\s*)([^\\s:]+)(?:(\\s*:\\s*|\\s+)(\\S.*?))?\\s*");

  /** Open MPI's files may also limit the ranks that {@code mpirun --oversubscribe} starts. */
  private static final Pattern SLOTS =
      Pattern.compile("(?:slots\\s*=\\s*)?([0-9]+)(?:\\s+max[-_]slots\\s*=\\s*[0-9]+)?");

  /** A line that lists a host. */
  private record Line(String name, Span at, Optional<Span> count, int ranks) {}

  private final SourceFile file;
  private final List<Line> lines = new ArrayList<>();

  private HostsFile(SourceFile file) {
    this.file = file;
  }

  /**
   * {@return the hosts, which ranks fill in order}
   *
   * @throws CompileException when the file cannot be read, or is malformed
   */
  public static Hosts read(Path path) {
    return read(SourceReader.read(path));
  }

  /** {@return the same of a file that was read} */
  public static Hosts read(SourceFile file) {
    return new HostsFile(file).read();
  }

  private Hosts read() {
    int number = 0;
    for (var line : Splitter.on('\n').split(file.text())) {
      line(++number, line.replaceFirst("#.*", ""));
    }
    if (lines.isEmpty()) {
      throw wrong(Span.ofFile(file), "the file lists no host");
    }
    boolean counted = lines.stream().anyMatch(line -> line.count().isPresent());
    var first = new HashMap<String, Line>();
    var numbers = new HashMap<String, Integer>();
    var ofRank = ImmutableIntArray.builder();
    int ranks = 0;
    for (var line : lines) {
      var name = line.name();
      @Nullable Line before = first.putIfAbsent(name, line);
      if (counted && before != null) {
        throw wrong(
            line.at(), "host '%s' is already on line %s".formatted(name, before.at().line()));
      }
      if (counted && line.count().isEmpty()) {
        throw wrong(line.at(), "host '%s' has no number of ranks".formatted(name));
      }
      if (line.ranks() > ProcessGroup.MAX_RANKS - ranks) {
        throw wrong(
            line.count().orElse(line.at()),
            "the hosts have more than %s ranks".formatted(ProcessGroup.MAX_RANKS));
      }
      ranks += line.ranks();
      int host = numbers.computeIfAbsent(name, _ -> numbers.size());
      IntStream.range(0, line.ranks()).forEach(_ -> ofRank.add(host));
    }
    return new Hosts(ofRank.build());
  }

  private void line(int number, String line) {
    var match = LINE.matcher(line);
    if (line.isBlank()) {
      return;
    }
    if (!match.matches()) {
      int start = line.length() - line.stripLeading().length();
      throw wrong(
          new Span(file, number, start + 1, line.strip().length()),
          "'%s' is not the name of a host and a number of ranks".formatted(line.strip()));
    }
    var name = match.group(2);
    int column = match.group(1).length() + 1;
    var at = new Span(file, number, column, name.length());
    @Nullable String text = match.group(4);
    if (text == null) {
      lines.add(new Line(name, at, Optional.empty(), 1));
      return;
    }
    int start = column + name.length() + match.group(3).length();
    var count = new Span(file, number, start, text.length());
    var slots = SLOTS.matcher(text);
    @Nullable Integer own = slots.matches() ? Ints.tryParse(slots.group(1)) : null;
    if (own == null || own < 1) {
      throw wrong(count, "'%s' is not a number of ranks".formatted(text));
    }
    lines.add(new Line(name, at, Optional.of(count), own));
  }

  private static CompileException wrong(Span at, String message) {
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.BAD_OPTION,
            at,
            message,
            "each line has the name of a host and its number of ranks: gpu01 8, gpu01 slots=8 or"
                + " gpu01:8; or all lines have only names, one line for each rank"));
  }
}
