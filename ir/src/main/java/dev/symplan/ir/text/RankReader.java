package dev.symplan.ir.text;

import com.google.common.base.Strings;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.Ints;
import dev.symplan.ir.Mesh;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.antlr.v4.runtime.Token;
import org.jspecify.annotations.Nullable;

/** Reads groups and lists of ranks. */
final class RankReader {
  private final StatementReader statements;
  private final ValueReader values;
  private final DiagnosticSink sink;

  RankReader(StatementReader statements, ValueReader values, DiagnosticSink sink) {
    this.statements = statements;
    this.values = values;
    this.sink = sink;
  }

  /** {@return a group, listed or of a mesh; empty if it is wrong, which is reported} */
  Optional<ProcessGroup> group(GraphTextParser.GroupContext context, String name) {
    boolean listed = context.meshWord == null;
    try {
      return listed ? listed(context, name) : ofMesh(context, name);
    } catch (IllegalArgumentException e) {
      var first = listed ? context.parts.getFirst().start : context.meshWord;
      sink.report(
          Diagnostic.error(
              DiagnosticCode.BAD_GROUP,
              statements.span(first, context.stop),
              Strings.nullToEmpty(e.getMessage())));
      return Optional.empty();
    }
  }

  private Optional<ProcessGroup> listed(GraphTextParser.GroupContext context, String name) {
    var members = ImmutableList.<ImmutableIntArray>builder();
    for (var part : context.parts) {
      var ranks = list(part);
      if (ranks.isEmpty()) {
        return Optional.empty();
      }
      members.add(ranks.get());
    }
    return Optional.of(new ProcessGroup(name, members.build()));
  }

  private Optional<ProcessGroup> ofMesh(GraphTextParser.GroupContext context, String name) {
    if (!isWord(context.meshWord, "mesh") || !isWord(context.dimWord, "dim")) {
      return Optional.empty();
    }
    var sizes = counts(context.sizes.values);
    var dims = counts(context.dimensions);
    return sizes.flatMap(all -> dims.map(own -> new Mesh(all, own).group(name)));
  }

  private boolean isWord(Token token, String word) {
    if (!token.getText().equals(word)) {
      values.report(
          DiagnosticCode.SYNTAX,
          token,
          "expected '%s', not '%s'".formatted(word, token.getText()),
          "group tp = mesh [2, 4] dim 1");
      return false;
    }
    return true;
  }

  /** {@return a list of ranks} */
  Optional<ImmutableIntArray> list(GraphTextParser.RankListContext context) {
    var numbers = ImmutableIntArray.builder(context.items.size());
    for (var item : context.items) {
      var ranks = slice(item);
      if (ranks.isEmpty()) {
        return Optional.empty();
      }
      ranks.get().forEach(numbers::add);
    }
    return Optional.of(numbers.build());
  }

  private Optional<IntStream> slice(GraphTextParser.RankItemContext item) {
    var first = rank(item.first);
    if (item.end == null || first.isEmpty()) {
      return first.map(IntStream::of);
    }
    @Nullable Integer end = Ints.tryParse(item.end.getText());
    @Nullable Integer step =
        item.step == null ? Integer.valueOf(1) : Ints.tryParse(item.step.getText());
    if (end == null
        || step == null
        || step < 1
        || end <= first.get()
        || end > ProcessGroup.MAX_RANKS) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.BAD_GROUP,
              statements.span(item.start, item.stop),
              "this is not a slice of ranks",
              "0:16:4 names the ranks 0, 4, 8 and 12; ranks are below " + ProcessGroup.MAX_RANKS));
      return Optional.empty();
    }
    return Optional.of(IntStream.iterate(first.get(), rank -> rank < end, rank -> rank + step));
  }

  private Optional<Integer> rank(Token token) {
    @Nullable Integer value = Ints.tryParse(token.getText());
    if (value == null || !ProcessGroup.isRank(value)) {
      values.report(
          DiagnosticCode.BAD_GROUP,
          token,
          "'%s' is not a rank".formatted(token.getText()),
          "ranks are 0 to " + (ProcessGroup.MAX_RANKS - 1));
      return Optional.empty();
    }
    return Optional.of(value);
  }

  /** {@return small numbers that are not negative, such as the sizes of a mesh} */
  private Optional<ImmutableIntArray> counts(List<Token> tokens) {
    var numbers = ImmutableIntArray.builder(tokens.size());
    for (var token : tokens) {
      @Nullable Integer value = Ints.tryParse(token.getText());
      if (value == null || value < 0) {
        values.report(
            DiagnosticCode.BAD_GROUP,
            token,
            "'%s' is not a size or dimension of a mesh".formatted(token.getText()),
            "");
        return Optional.empty();
      }
      numbers.add(value);
    }
    return Optional.of(numbers.build());
  }
}
