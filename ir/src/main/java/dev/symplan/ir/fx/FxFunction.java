package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Notes;
import dev.symplan.ir.diag.Span;

/**
 * One FX graph as it is written, before names and types are looked up.
 *
 * @param results what it returns
 * @param notes comments at its head
 * @param endNotes comments above what it returns
 */
public record FxFunction(
    ImmutableList<Param> params,
    ImmutableList<Statement> statements,
    ImmutableList<FxExpr> results,
    Span span,
    Span returnSpan,
    Notes notes,
    Notes endNotes) {

  /**
   * An argument of the graph.
   *
   * @param annotation as between the quotes, {@code f32[8, 16][16, 1]} or {@code Sym(s77)}; empty
   *     where there is none
   */
  public record Param(String name, String annotation, Span span) {}

  /**
   * {@code name: "annotation" = value}
   *
   * @param annotation as between the quotes; empty where there is none
   */
  public record Statement(String name, String annotation, FxExpr value, Span span, Notes notes) {}
}
