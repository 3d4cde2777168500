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
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Files that list hosts in the order of their ranks: on each line a name and a number of ranks. A
 * comment runs from {@code #} to the end of its line.
 */
public final class HostsFile {
  private static final Pattern LINE = Pattern.compile("(\\s*)(\\S+)(?:(\\s+)(\\S.*?))?\\s*");

  private final SourceFile file;
  private final ImmutableIntArray.Builder hosts = ImmutableIntArray.builder();
  private final Map<String, Integer> lines = new HashMap<>();
  private int ranks;

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
    var all = hosts.build();
    if (all.isEmpty()) {
      throw wrong(Span.ofFile(file), "the file lists no host");
    }
    return Hosts.filled(all);
  }

  private void line(int number, String line) {
    var match = LINE.matcher(line);
    if (!match.matches()) {
      return;
    }
    var name = match.group(2);
    int column = match.group(1).length() + 1;
    var at = new Span(file, number, column, name.length());
    @Nullable Integer before = lines.putIfAbsent(name, number);
    if (before != null) {
      throw wrong(at, "host '%s' is already on line %s".formatted(name, before));
    }
    @Nullable String text = match.group(4);
    if (text == null) {
      throw wrong(at, "host '%s' has no number of ranks".formatted(name));
    }
    int start = column + name.length() + match.group(3).length();
    var count = new Span(file, number, start, text.length());
    @Nullable Integer own = Ints.tryParse(text);
    if (own == null || own < 1) {
      throw wrong(count, "'%s' is not a number of ranks".formatted(text));
    }
    if (own > ProcessGroup.MAX_RANKS - ranks) {
      throw wrong(count, "the hosts have more than %s ranks".formatted(ProcessGroup.MAX_RANKS));
    }
    ranks += own;
    hosts.add(own);
  }

  private static CompileException wrong(Span at, String message) {
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.BAD_OPTION,
            at,
            message,
            "each line has the name of a host and its number of ranks: gpu01 8"));
  }
}
