package dev.symplan.ir.hlo;

import static java.util.stream.Collectors.toSet;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.text.SourceReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** XLA's own memory plan of a module: the file {@code *-buffer-assignment.txt} of a dump. */
public record BufferAssignment(ImmutableList<Allocation> allocations) {

  /** The purpose of an allocation. */
  public enum Kind {
    /** The caller's argument. */
    PARAMETER,
    /** The caller's argument, whose memory holds an output afterwards. */
    DONATED,
    OUTPUT,
    TEMPORARY,
    CONSTANT,
    /** Memory that one kernel has for itself: not on the heap. */
    THREAD_LOCAL
  }

  /**
   * A stretch of memory.
   *
   * @param bytes its size
   * @param space XLA's memory space; 0 is the device's, others are for collectives
   */
  public record Allocation(
      int index, long bytes, int space, Kind kind, ImmutableList<Held> values) {}

  /**
   * A value in an allocation.
   *
   * @param name of its instruction, with the part of a tuple: {@code custom-call.4{1}}
   * @param bytes its size
   * @param isTuple whether it is the table of a tuple's addresses
   */
  public record Held(String name, long bytes, long offset, boolean isTuple) {}

  /** The first line of the file. */
  public static final String HEAD = "BufferAssignment:";

  private static final Pattern ALLOCATION =
      Pattern.compile("allocation ([0-9]{1,9}): size ([0-9]{1,18})((?:,.*)?):");
  private static final Pattern VALUE =
      Pattern.compile(
          " *value: <[0-9]+ (.+) @[0-9]+> \\(size=([0-9]{1,18}),offset=([0-9]{1,18})\\): (.*)");
  private static final Pattern WORD = Pattern.compile("[\\w.-]++");
  private static final Pattern COLOR = Pattern.compile(", color ([0-9]{1,6})\\b");
  private static final Pattern PARAMETER = Pattern.compile(", parameter [0-9]");

  /**
   * {@return the assignment in a file}
   *
   * @throws CompileException when it cannot be read, is none, or is malformed
   */
  public static BufferAssignment read(Path file) {
    return read(SourceReader.read(file));
  }

  /**
   * {@return the assignment in a text that was read already}
   *
   * @throws CompileException when it is none, or malformed
   */
  public static BufferAssignment read(SourceFile file) {
    var allocations = ImmutableList.<Allocation>builder();
    var values = ImmutableList.<Held>builder();
    @Nullable Matcher open = null;
    int number = 0;
    for (var line : (Iterable<String>) file.text().lines()::iterator) {
      number++;
      if (number == 1) {
        if (!line.strip().equals(HEAD)) {
          throw wrong(file, number, line, "expected '%s' as the first line".formatted(HEAD));
        }
        continue;
      }
      if (!line.startsWith("allocation ") && !line.strip().startsWith("value:")) {
        // After the allocations stand the sums, and who uses which value.
        break;
      }
      var head = ALLOCATION.matcher(line);
      var value = VALUE.matcher(line);
      if (head.matches()) {
        if (open != null) {
          allocations.add(allocation(open, values.build()));
        }
        open = head;
        values = ImmutableList.builder();
      } else if (value.matches() && open != null) {
        values.add(
            new Held(
                value.group(1),
                Long.parseLong(value.group(2)),
                Long.parseLong(value.group(3)),
                value.group(4).startsWith("(")));
      } else {
        throw wrong(file, number, line, "expected an allocation or a value in one");
      }
    }
    if (open == null) {
      throw wrong(file, Math.max(1, number), "", "the file has no allocations");
    }
    allocations.add(allocation(open, values.build()));
    return new BufferAssignment(allocations.build());
  }

  private static Allocation allocation(Matcher head, ImmutableList<Held> values) {
    var about = head.group(3);
    var color = COLOR.matcher(about);
    return new Allocation(
        Integer.parseInt(head.group(1)),
        Long.parseLong(head.group(2)),
        color.find() ? Integer.parseInt(color.group(1)) : 0,
        kind(about),
        values);
  }

  private static Kind kind(String about) {
    boolean liveOut = about.contains(", maybe-live-out") || about.contains(", output shape");
    if (PARAMETER.matcher(about).find()) {
      return liveOut ? Kind.DONATED : Kind.PARAMETER;
    }
    if (about.contains(", thread-local")) {
      return Kind.THREAD_LOCAL;
    }
    if (about.contains(", constant")) {
      return Kind.CONSTANT;
    }
    return liveOut ? Kind.OUTPUT : Kind.TEMPORARY;
  }

  private static CompileException wrong(SourceFile file, int line, String text, String message) {
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.SYNTAX,
            new Span(file, line, 1, Math.max(1, text.length())),
            message,
            "XLA_FLAGS=--xla_dump_to=DIR writes *-buffer-assignment.txt beside the module"));
  }

  /**
   * Checks that this is the assignment of a module: that the module has every instruction that the
   * assignment places.
   *
   * @throws CompileException when the file cannot be read, or is not this module
   */
  public void requireOf(Path module) {
    requireOf(SourceReader.read(module));
  }

  void requireOf(SourceFile module) {
    if (!HloReader.isModule(module.text())) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED,
              Span.ofFile(module),
              "this is not an HLO module",
              "give the file *_after_optimizations.txt of the same dump"));
    }
    var words = WORD.matcher(module.text()).results().map(MatchResult::group).collect(toSet());
    var names =
        allocations.stream()
            .flatMap(allocation -> allocation.values().stream())
            .map(held -> held.name().replaceFirst("\\{.*", ""))
            .distinct()
            .toList();
    var missing = names.stream().filter(name -> !words.contains(name)).toList();
    // Texts leave out computations that only wrap what "all-to-all-start" and others start.
    boolean wraps = words.stream().anyMatch(word -> word.endsWith("-start"));
    if (wraps && missing.size() * 4 < names.size()) {
      return;
    }
    missing.stream()
        .findFirst()
        .ifPresent(
            name -> {
              throw new CompileException(
                  Diagnostic.error(
                      DiagnosticCode.BAD_OPTION,
                      Span.ofFile(module),
                      "the module has no instruction '%s', but the assignment places it"
                          .formatted(name),
                      "give the assignment of the same dump"));
            });
  }

  /** {@return the bytes of all allocations of these kinds} */
  public long bytes(List<Kind> kinds) {
    return of(kinds).stream().mapToLong(Allocation::bytes).sum();
  }

  /** {@return the allocations of these kinds} */
  public ImmutableList<Allocation> of(List<Kind> kinds) {
    var found = new ArrayList<Allocation>();
    for (var allocation : allocations) {
      if (kinds.contains(allocation.kind())) {
        found.add(allocation);
      }
    }
    return ImmutableList.copyOf(found);
  }
}
