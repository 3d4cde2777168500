package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Notes;
import dev.symplan.ir.diag.Span;

/**
 * The text of one FX graph.
 *
 * @param results what it returns
 */
record FxFunction(
    ImmutableList<Param> params,
    ImmutableList<Statement> statements,
    ImmutableList<FxExpr> results,
    Span span,
    Span returnSpan) {

  /**
   * An argument of the graph.
   *
   * @param annotation as between the quotes; empty where there is none
   */
  record Param(String name, String annotation, Span span) {}

  /** {@code name: "annotation" = value} */
  record Statement(String name, String annotation, FxExpr value, Span span, Notes notes) {}
}
