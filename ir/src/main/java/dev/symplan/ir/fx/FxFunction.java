package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Notes;
import dev.symplan.ir.diag.Span;
import java.util.Optional;

/**
 * One FX graph as it is written, before names and types are looked up.
 *
 * @param results the values that it returns
 * @param notes comments at its head
 * @param endNotes comments above its return
 * @param subgraphs the graphs that it calls, by the names of its attributes
 */
public record FxFunction(
    ImmutableList<Param> params,
    ImmutableList<Statement> statements,
    ImmutableList<FxExpr> results,
    Span span,
    Span returnSpan,
    Notes notes,
    Notes endNotes,
    ImmutableMap<String, FxFunction> subgraphs) {

  /** {@return a graph that calls no other} */
  public static FxFunction of(
      ImmutableList<Param> params,
      ImmutableList<Statement> statements,
      ImmutableList<FxExpr> results,
      Span span,
      Span returnSpan,
      Notes notes,
      Notes endNotes) {
    return new FxFunction(
        params, statements, results, span, returnSpan, notes, endNotes, ImmutableMap.of());
  }

  FxFunction withSubgraphs(ImmutableMap<String, FxFunction> newSubgraphs) {
    return new FxFunction(
        params, statements, results, span, returnSpan, notes, endNotes, newSubgraphs);
  }

  FxFunction with(
      ImmutableList<Param> newParams,
      ImmutableList<Statement> newStatements,
      ImmutableList<FxExpr> newResults) {
    return of(newParams, newStatements, newResults, span, returnSpan, notes, endNotes);
  }

  /**
   * An argument of the graph.
   *
   * @param type absent if none is written
   */
  public record Param(String name, Optional<FxType> type, Span span) {}

  /**
   * {@code name: "type" = value}
   *
   * @param type absent if none is written
   */
  public record Statement(
      String name, Optional<FxType> type, FxExpr value, Span span, Notes notes) {}
}
