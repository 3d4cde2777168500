package dev.symplan.ir.text;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Notes;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.GraphBuilder;
import java.util.Collections;
import java.util.HashSet;

/** A graph between its braces. */
final class OpenGraph {
  private final String name;
  private final ImmutableIntArray ranks;
  private final Span span;
  private final Notes notes;
  private final GraphBuilder builder;
  private final GraphScope scope;
  private Notes returnNotes = Notes.NONE;
  private boolean returned;

  OpenGraph(String name, ImmutableIntArray ranks, Span span, Notes notes, DiagnosticSink sink) {
    this.name = name;
    this.ranks = ranks;
    this.span = span;
    this.notes = notes;
    this.builder = new GraphBuilder(name, span, sink).ranks(ranks);
    this.scope = new GraphScope(builder, sink);
  }

  String name() {
    return name;
  }

  Span span() {
    return span;
  }

  GraphScope scope() {
    return scope;
  }

  boolean hasReturned() {
    return returned;
  }

  void returns(Notes at) {
    returned = true;
    returnNotes = at;
  }

  /** Graphs of one name are the versions of disjoint ranks. */
  boolean collidesWith(OpenGraph other) {
    return name.equals(other.name)
        && (ranks.isEmpty()
            || other.ranks.isEmpty()
            || !Collections.disjoint(new HashSet<>(ranks.asList()), other.ranks.asList()));
  }

  /**
   * {@return the graph, when nothing in it was wrong}
   *
   * @param atEnd the comments at the closing brace
   */
  Graph build(Notes atEnd) {
    var before = ImmutableList.<String>builder();
    before.addAll(returnNotes.before()).addAll(atEnd.before());
    if (!atEnd.after().isEmpty()) {
      before.add(atEnd.after());
    }
    return builder.notes(notes, new Notes(before.build(), returnNotes.after())).build();
  }
}
