package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.diag.Span;

/**
 * A function over tensors that one rank, or every rank, runs.
 *
 * @param ranks the ranks that run it; empty for all
 * @param outputs values, or {@code None}
 * @param valueCount one more than the largest value id
 * @param notes comments at its head
 * @param endNotes comments before its closing brace
 */
public record Graph(
    String name,
    ImmutableIntArray ranks,
    ImmutableList<Value> inputs,
    ImmutableList<Op> ops,
    ImmutableList<Arg> outputs,
    int valueCount,
    Span span,
    Notes notes,
    Notes endNotes) {

  public boolean runsOn(int rank) {
    return ranks.isEmpty() || ranks.contains(rank);
  }
}
