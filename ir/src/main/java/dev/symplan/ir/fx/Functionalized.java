package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.fx.FxFunction.Statement;
import dev.symplan.ir.op.OpSchema;
import dev.symplan.ir.op.Param;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Takes {@code auto_functionalized} and its second version apart: copies of what the operator
 * writes, the operator, which writes the copies, and the copies as results after the operator's.
 *
 * <p>The second version ({@code _all_bases}) copies the tensors whose views are written, and says
 * which view each argument is.
 */
final class Functionalized {
  private static final String BASES = "_all_bases";
  private static final String ONLY_TENSORS = "_only_clone_these_tensors";
  private static final String ONLY_BASES = "_only_clone_these_bases";

  /** Something whose meaning here is not known. */
  private static final class Unknown extends Exception {
    private static final long serialVersionUID = 1L;

    Unknown() {
      super("unknown", null, false, false);
    }
  }

  private final StatementWriter writer;
  private final Statement statement;
  private final FxExpr.Call call;
  private final OpSchema schema;
  private final Map<String, FxExpr> keywords;

  private Functionalized(
      StatementWriter writer, Statement statement, FxExpr.Call call, OpSchema schema) {
    this.writer = writer;
    this.statement = statement;
    this.call = call;
    this.schema = schema;
    this.keywords = new LinkedHashMap<>(call.keywords());
  }

  /**
   * {@return whether the statement was taken apart; if not, nothing is added} It is not where the
   * operator has no schema that says what it writes.
   */
  static boolean takeApart(
      StatementWriter writer, OpTargets targets, Statement statement, FxExpr.Call call) {
    var op = HigherOrder.operator(call, 0);
    var schema = op.flatMap(target -> targets.schema(target, given(call)));
    if (schema.isEmpty() || schema.get().isUnbounded()) {
      return false;
    }
    var one = new Functionalized(writer, statement, call, schema.get());
    try {
      if (!call.keywords().containsKey(BASES)) {
        one.first(op.get());
      } else if (one.isOut()) {
        one.out(op.get());
      } else {
        one.second(op.get());
      }
      return true;
    } catch (Unknown e) {
      return false;
    }
  }

  /** The operator's own arguments, without what describes views. */
  private static ImmutableSet<String> given(FxExpr.Call call) {
    return call.keywords().keySet().stream()
        .filter(key -> !key.startsWith("_"))
        .collect(ImmutableSet.toImmutableSet());
  }

  private ImmutableList<Param> written() {
    return schema.params().stream()
        .filter(param -> param.alias().write())
        .collect(ImmutableList.toImmutableList());
  }

  private static FxExpr at(long index) {
    return new FxExpr.Int(index);
  }

  /** The operator's results come first; one without results gives None. */
  private int resultSlots() {
    return Math.max(1, schema.results().size());
  }

  private void first(String op) {
    var only = Optional.ofNullable(keywords.remove(ONLY_TENSORS));
    var copies = ImmutableMap.<FxExpr, FxExpr>builder();
    int slot = resultSlots();
    for (var param : written()) {
      var value = keywords.getOrDefault(param.name(), FxExpr.None.NONE);
      boolean copied = names(only, new FxExpr.Str(param.name()));
      var copy = copied ? writer.copied(statement, value, at(slot), param.name()) : value;
      if (keywords.containsKey(param.name())) {
        keywords.put(param.name(), copy);
      }
      copies.put(at(slot++), copy);
    }
    callOp(op, copies);
  }

  private static boolean names(Optional<FxExpr> only, FxExpr one) {
    return !(only.orElse(FxExpr.None.NONE) instanceof FxExpr.Seq(var items)) || items.contains(one);
  }

  private void second(String op) throws Unknown {
    if (!(keywords.remove(BASES) instanceof FxExpr.Seq(var bases))) {
      throw new Unknown();
    }
    for (var param : written()) {
      check("_" + param.name(), bases);
    }
    var only = Optional.ofNullable(keywords.remove(ONLY_BASES));
    var copies = ImmutableMap.<FxExpr, FxExpr>builder();
    var copyOf = ImmutableList.<FxExpr>builder();
    for (int i = 0; i < bases.size(); i++) {
      var slot = at(resultSlots() + i);
      var copy =
          names(only, at(i))
              ? writer.copied(statement, bases.get(i), slot, "base_" + i)
              : bases.get(i);
      copies.put(slot, copy);
      copyOf.add(copy);
    }
    var made = copyOf.build();
    for (var param : written()) {
      var prefix = "_" + param.name();
      if (keywords.containsKey(prefix + "_length")) {
        keywords.put(param.name(), list(prefix, made));
      } else {
        keywords.put(param.name(), view(prefix, made));
      }
    }
    keywords.keySet().removeIf(key -> !schema.hasParam(key));
    callOp(op, copies);
  }

  /** Refuses descriptions that this class does not know, before anything is added. */
  private void check(String prefix, ImmutableList<FxExpr> bases) throws Unknown {
    if (keywords.get(prefix + "_length") instanceof FxExpr.Int(long length)) {
      for (long i = 0; i < length; i++) {
        checkOne(prefix + "_" + i, bases);
      }
    } else if (!(keywords.get(prefix + "_length") instanceof FxExpr.None)) {
      checkOne(prefix, bases);
    }
  }

  private void checkOne(String prefix, ImmutableList<FxExpr> bases) throws Unknown {
    var index = Optional.ofNullable(keywords.get(prefix + "_base_index"));
    if (index.isPresent() && index.get() instanceof FxExpr.None) {
      return;
    }
    if (index.isEmpty()
        || !(index.get() instanceof FxExpr.Int(long i))
        || i < 0
        || i >= bases.size()) {
      throw new Unknown();
    }
    // The offset counts from the start of the base's storage, where its copy may not begin.
    if (keywords.containsKey(prefix + "_storage_offset")
        && !(bases.get((int) i) instanceof FxExpr.Name(String base) && startsItsStorage(base))) {
      throw new Unknown();
    }
  }

  private boolean startsItsStorage(String base) {
    return writer.isFresh(base) || writer.isInput(base);
  }

  private FxExpr list(String prefix, ImmutableList<FxExpr> bases) {
    if (!(keywords.get(prefix + "_length") instanceof FxExpr.Int(long length))) {
      return FxExpr.None.NONE;
    }
    var views = ImmutableList.<FxExpr>builder();
    for (long i = 0; i < length; i++) {
      views.add(view(prefix + "_" + i, bases));
    }
    return new FxExpr.Seq(views.build());
  }

  private FxExpr view(String prefix, ImmutableList<FxExpr> bases) {
    if (!(keywords.get(prefix + "_base_index") instanceof FxExpr.Int(long i))) {
      return FxExpr.None.NONE;
    }
    var base = bases.get((int) i);
    if (keywords.containsKey(prefix + "_storage_offset")) {
      return view(
          prefix,
          "torch.ops.aten.as_strided.default",
          base,
          keyword(prefix + "_size"),
          keyword(prefix + "_stride"),
          keyword(prefix + "_storage_offset"));
    }
    return keywords.containsKey(prefix + "_slice_dim")
        ? view(
            prefix,
            "torch.ops.aten.slice.Tensor",
            base,
            keyword(prefix + "_slice_dim"),
            keyword(prefix + "_slice_start"),
            keyword(prefix + "_slice_end"))
        : base;
  }

  private FxExpr view(String prefix, String target, FxExpr... args) {
    var name = writer.unique(statement.name() + prefix);
    writer.emit(statement, name, Optional.empty(), target, args);
    return new FxExpr.Name(name);
  }

  private FxExpr keyword(String key) {
    return keywords.getOrDefault(key, FxExpr.None.NONE);
  }

  /** An operator that only writes {@code out}: what it writes is described, and made here. */
  private boolean isOut() {
    return !written().isEmpty()
        && written().stream().allMatch(p -> keywords.containsKey("_" + p.name() + "_dtype"));
  }

  private void out(String op) {
    for (var param : written()) {
      var prefix = "_" + param.name();
      var name = writer.unique(statement.name() + prefix);
      writer.emit(
          statement,
          name,
          schema.results().size() == 1 ? statement.type() : Optional.empty(),
          new FxExpr.Call(
              "torch.ops.aten.empty_strided.default",
              ImmutableList.of(keyword(prefix + "_size"), keyword(prefix + "_stride")),
              ImmutableMap.of(
                  "dtype", keyword(prefix + "_dtype"), "device", keyword(prefix + "_device")),
              call.span()));
      keywords.put(param.name(), new FxExpr.Name(name));
    }
    keywords.keySet().removeIf(key -> !schema.hasParam(key));
    writer.emit(
        statement,
        statement.name(),
        statement.type(),
        new FxExpr.Call(op, ImmutableList.of(), ImmutableMap.copyOf(keywords), call.span()));
  }

  private void callOp(String op, ImmutableMap.Builder<FxExpr, FxExpr> results) {
    boolean one = schema.results().size() == 1;
    var item = writer.item(statement.name(), at(0)).filter(found -> one);
    var name = item.map(Statement::name).orElse(statement.name());
    for (int i = 0; i < resultSlots(); i++) {
      results.put(
          at(i),
          schema.results().isEmpty()
              ? FxExpr.None.NONE
              : one ? new FxExpr.Name(name) : new FxExpr.Index(new FxExpr.Name(name), at(i)));
    }
    writer.emit(
        statement,
        name,
        item.flatMap(Statement::type),
        new FxExpr.Call(op, ImmutableList.of(), ImmutableMap.copyOf(keywords), call.span()));
    writer.renaming().takeApart(statement.name(), results.buildOrThrow());
  }
}
