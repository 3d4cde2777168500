package dev.symplan.ir.fx;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Notes;
import dev.symplan.ir.fx.FxFunction.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Writes the statements that take the place of a function's. */
final class StatementWriter {
  private static final String CLONE = "torch.ops.aten.clone.default";

  private final OpTargets targets;
  private final List<Statement> out = new ArrayList<>();
  private final Set<String> names = new HashSet<>();
  private final Set<String> inputs = new HashSet<>();
  private final Map<String, FxType> types = new HashMap<>();
  private final Map<String, List<Statement>> items = new HashMap<>();
  private final Map<String, Integer> uses = new HashMap<>();

  /** The last number that a wanted name got. */
  private final Map<String, Integer> numbers = new HashMap<>();

  /** Tensors in storage of their own, from its start, whose uses are all counted. */
  private final Set<String> fresh = new HashSet<>();

  private final Renaming renaming = new Renaming();
  private @Nullable Statement last;

  StatementWriter(FxFunction function, OpTargets targets) {
    this.targets = targets;
    for (var param : function.params()) {
      inputs.add(param.name());
      param.type().ifPresent(type -> types.put(param.name(), type));
    }
    names.addAll(inputs);
    for (var statement : function.statements()) {
      names.add(statement.name());
      statement.type().ifPresent(type -> types.put(statement.name(), type));
      count(statement.value());
      if (statement.value() instanceof FxExpr.Index(FxExpr.Name(String root), _)) {
        items.computeIfAbsent(root, r -> new ArrayList<>()).add(statement);
      }
    }
    function.results().forEach(this::count);
  }

  private void count(FxExpr expr) {
    switch (expr) {
      case FxExpr.Name(String name) -> uses.merge(name, 1, Integer::sum);
      case FxExpr.Seq(var list) -> list.forEach(this::count);
      case FxExpr.Index(FxExpr of, FxExpr index) -> {
        count(of);
        count(index);
      }
      case FxExpr.Binary(_, FxExpr left, FxExpr right) -> {
        count(left);
        count(right);
      }
      case FxExpr.Negative(FxExpr operand) -> count(operand);
      case FxExpr.Call(_, var args, var keywords, _) -> {
        args.forEach(this::count);
        keywords.values().forEach(this::count);
      }
      case FxExpr.Dict(_, var values) -> values.forEach(this::count);
      case FxExpr.Int _, FxExpr.Float _, FxExpr.Str _, FxExpr.Bool _, FxExpr.None _ -> {}
    }
  }

  Renaming renaming() {
    return renaming;
  }

  boolean isDefined(String name) {
    return names.contains(name);
  }

  int size() {
    return out.size();
  }

  ImmutableList<Statement> statements() {
    return ImmutableList.copyOf(out);
  }

  /** {@return a name that nothing has yet: the wanted one, or with a number} */
  String unique(String wanted) {
    var name = wanted;
    while (!names.add(name)) {
      name = wanted + "_" + numbers.merge(wanted, 1, Integer::sum);
    }
    return name;
  }

  /** {@return the statements that take results out of a value} */
  ImmutableList<Statement> items(String name) {
    return ImmutableList.copyOf(items.getOrDefault(name, List.of()));
  }

  /** {@return the first statement that takes this result out of a value} */
  Optional<Statement> item(String name, FxExpr index) {
    return items.getOrDefault(name, List.of()).stream()
        .filter(item -> item.value() instanceof FxExpr.Index(_, FxExpr of) && of.equals(index))
        .findFirst();
  }

  /** Keeps a statement, whose value is {@link Renaming#resolved}. */
  void keep(Statement statement, FxExpr value) {
    emit(statement, statement.name(), statement.type(), value);
    if (value instanceof FxExpr.Call call && targets.givesFreshTensor(call.target())) {
      fresh.add(statement.name());
    }
  }

  /** Adds a statement in the place of another, whose comments the first of them gets. */
  void emit(Statement source, String name, Optional<FxType> type, FxExpr value) {
    var notes = source == last ? Notes.NONE : source.notes();
    out.add(new Statement(name, type, value, source.span(), notes));
    last = source;
  }

  /** Drops a statement: its name stands for a value, which is {@link Renaming#resolved}. */
  void alias(Statement statement, FxExpr value) {
    if (!value.equals(new FxExpr.Name(statement.name()))) {
      renaming.rename(statement.name(), value);
    }
  }

  /** Adds a statement of a subgraph. */
  void emitInner(Statement statement) {
    out.add(statement);
  }

  void emit(Statement source, String name, Optional<FxType> type, String target, FxExpr... args) {
    emit(
        source,
        name,
        type,
        new FxExpr.Call(target, ImmutableList.copyOf(args), ImmutableMap.of(), source.span()));
  }

  /**
   * Copies what an op is going to write, unless only this op reads it.
   *
   * @param index the expression that takes the written value out of the op's results
   * @param param names the copy if nothing takes it out
   * @return the tensor to write, or a list of them
   */
  FxExpr copied(Statement op, FxExpr value, FxExpr index, String param) {
    return switch (value) {
      case FxExpr.Seq(var tensors) ->
          new FxExpr.Seq(
              tensors.stream()
                  .map(tensor -> copied(op, tensor, Optional.empty(), param))
                  .collect(toImmutableList()));
      case FxExpr.None _ -> value;
      default -> copied(op, value, item(op.name(), index), param);
    };
  }

  private FxExpr copied(Statement op, FxExpr value, Optional<Statement> item, String param) {
    if (value instanceof FxExpr.None
        || (value instanceof FxExpr.Name(String name)
            && isFresh(name)
            && uses.getOrDefault(name, 0) == 1
            && !renaming.hasAlias(name))) {
      return value;
    }
    var copy = item.map(Statement::name).orElseGet(() -> unique(op.name() + "_" + param));
    // A copy lies as the original does, also where that has gaps.
    var type =
        item.flatMap(Statement::type)
            .or(
                () ->
                    value instanceof FxExpr.Name(String of)
                        ? Optional.ofNullable(types.get(of))
                        : Optional.empty());
    emit(op, copy, type, CLONE, value);
    type.ifPresent(known -> types.put(copy, known));
    fresh.add(copy);
    return new FxExpr.Name(copy);
  }

  /** {@return whether a tensor is known to have storage of its own, from its start} */
  boolean isFresh(String name) {
    return fresh.contains(name);
  }

  boolean isInput(String name) {
    return inputs.contains(name);
  }
}
