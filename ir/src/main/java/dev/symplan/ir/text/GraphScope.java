package dev.symplan.ir.text;

import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Suggestions;
import dev.symplan.ir.graph.GraphBuilder;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The values of a graph that is being read, and the names whose definition was wrong: their uses
 * are not reported again.
 */
final class GraphScope {
  private final GraphBuilder builder;
  private final DiagnosticSink sink;
  private final Set<String> names = new LinkedHashSet<>();
  private final Set<String> lost = new HashSet<>();

  GraphScope(GraphBuilder builder, DiagnosticSink sink) {
    this.builder = builder;
    this.sink = sink;
  }

  GraphBuilder builder() {
    return builder;
  }

  void define(String name) {
    if (!name.isEmpty()) {
      names.add(name);
    }
  }

  /** Takes a name as defined, by a statement that was wrong. */
  void lose(String name) {
    if (!name.isEmpty() && builder.find(name).isEmpty()) {
      lost.add(name);
    }
  }

  /** Takes a name as defined by a statement that was wrong but says of which type the value is. */
  void loseTyped(String name, Type type, Span span) {
    if (!name.isEmpty() && builder.find(name).isEmpty()) {
      builder.input(name, type, span);
      names.add(name);
    }
  }

  /**
   * Takes a name as defined by an op that was wrong, if it is not another value's.
   *
   * @param result the value of the name; null if the op does not give such a result
   */
  void loseResult(String name, @Nullable Value result) {
    if (!name.isEmpty() && builder.find(name).orElse(null) == result) {
      lost.add(name);
    }
  }

  /** {@return the value; empty if none exists, which is reported once} */
  Optional<Value> use(String name, Span span) {
    if (lost.contains(name)) {
      return Optional.empty();
    }
    var value = builder.find(name);
    if (value.isEmpty()) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.UNKNOWN_VALUE,
              span,
              "no value '%s' is defined above".formatted(name),
              Suggestions.hint(name, names)));
      lost.add(name);
    }
    return value;
  }
}
