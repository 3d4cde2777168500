package dev.symplan.ir.fx;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Maps;
import dev.symplan.ir.DType;
import dev.symplan.ir.fx.FxFunction.Param;
import dev.symplan.ir.fx.FxFunction.Statement;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Takes operators apart that run with a state of a random generator. With activation checkpoints,
 * the backward graph draws again what the forward graph drew: {@code run_and_save_rng_state} gives
 * a state, a tensor, to {@code run_with_rng_state}; or {@code graphsafe_run_with_rng_state} has a
 * generator in each graph, which AOTAutograd sets to the same state before each call.
 *
 * <p>An operator that draws gets the state as its generator, a tensor or a name, so that it draws
 * the same numbers in both graphs: see {@link RandomDraws}. One that cannot take it becomes an
 * unknown op, so that it can be planned, but not run.
 */
final class RandomStates {
  private static final Pattern GENERATOR = Pattern.compile("(?:fwd|bwd)_(rng_state_[0-9]+)");

  /** The bytes of a state of a GPU's generator: its seed, and how far it is. */
  private static final int STATE_BYTES = 16;

  private static final FxType STATE =
      new FxType.Tensor(
          DType.U8,
          ImmutableList.of(new SizeExpr.Int(STATE_BYTES)),
          Optional.of(ImmutableList.of(new SizeExpr.Int(1))));

  private final StatementWriter writer;
  private final RandomDraws draws;

  /** The inputs that are states. */
  private final Set<String> inputs = new HashSet<>();

  RandomStates(StatementWriter writer, OpTargets targets) {
    this.writer = writer;
    this.draws = new RandomDraws(writer, targets);
  }

  /**
   * An operator that runs with a state, which is the first argument, or with a generator.
   *
   * @param first the position of its first argument
   * @param keyword the argument that is its generator; empty if it has a state
   * @return whether it draws the same numbers wherever it has that state
   */
  boolean run(Statement statement, FxExpr.Call call, String operator, int first, String keyword) {
    Optional<FxExpr> state =
        keyword.isEmpty() ? Optional.of(call.args().getFirst()) : generator(call, keyword);
    if (keyword.isEmpty() && call.args().getFirst() instanceof FxExpr.Name(String name)) {
      inputs.add(name);
    }
    return emit(
        statement,
        statement.name(),
        statement.type(),
        called(call, operator, first, keyword),
        state);
  }

  /**
   * An operator that runs with the current state, which is a result, too.
   *
   * @return whether it draws the same numbers wherever it has that state
   */
  boolean runAndSave(Statement statement, FxExpr.Call call, String operator) {
    var saved = writer.item(statement.name(), new FxExpr.Int(0));
    var results = writer.item(statement.name(), new FxExpr.Int(1));
    var state =
        saved.map(Statement::name).orElseGet(() -> writer.unique(statement.name() + "_state"));
    var name =
        results.map(Statement::name).orElseGet(() -> writer.unique(statement.name() + "_results"));
    var bytes =
        saved.flatMap(Statement::type).flatMap(RandomStates::bytes).orElse((long) STATE_BYTES);
    var sizes = new FxExpr.Seq(ImmutableList.of(new FxExpr.Int(bytes)));
    var inner = called(call, operator, 1, "");
    boolean isRead = !draws.isIdle(inner);
    writer.emit(
        statement,
        state,
        saved.flatMap(Statement::type),
        new FxExpr.Call(
            isRead ? "torch.ops.aten.randint.default" : "torch.ops.aten.empty.memory_format",
            isRead
                ? ImmutableList.of(new FxExpr.Int(1 << Byte.SIZE), sizes)
                : ImmutableList.of(sizes),
            ImmutableMap.of("dtype", new FxExpr.Name("torch.uint8")),
            call.span()));
    var type = results.flatMap(Statement::type);
    boolean same = emit(statement, name, type, inner, Optional.of(new FxExpr.Name(state)));
    writer
        .renaming()
        .takeApart(
            statement.name(),
            ImmutableMap.of(
                new FxExpr.Int(0),
                new FxExpr.Name(state),
                new FxExpr.Int(1),
                new FxExpr.Name(name)));
    return same;
  }

  /** {@return whether an operator is attention, which is planned as it is} */
  boolean isAttention(String operator) {
    return draws.isAttention(operator);
  }

  /** {@return the call of the operator itself} */
  private static FxExpr.Call called(FxExpr.Call call, String operator, int first, String keyword) {
    return new FxExpr.Call(
        operator,
        call.args().subList(first, call.args().size()),
        ImmutableMap.copyOf(Maps.filterKeys(call.keywords(), key -> !key.equals(keyword))),
        call.span());
  }

  private static Optional<Long> bytes(FxType type) {
    return type instanceof FxType.Tensor(_, var sizes, _)
            && sizes.size() == 1
            && sizes.getFirst() instanceof SizeExpr.Int(long value)
        ? Optional.of(value)
        : Optional.empty();
  }

  /** {@return the inputs, of which states have the size that the text leaves open} */
  ImmutableList<Param> sized(ImmutableList<Param> params) {
    return params.stream()
        .map(
            param ->
                inputs.contains(param.name())
                        && param.type().orElse(FxType.None.NONE)
                            instanceof FxType.Tensor(DType dtype, var sizes, _)
                        && dtype == DType.U8
                        && sizes.size() == 1
                        && sizes.getFirst() instanceof SizeExpr.Symbol
                    ? new Param(param.name(), Optional.of(STATE), param.span())
                    : param)
        .collect(toImmutableList());
  }

  private boolean emit(
      Statement statement,
      String name,
      Optional<FxType> type,
      FxExpr.Call call,
      Optional<FxExpr> state) {
    if (draws.isIdle(call)) {
      writer.emit(statement, name, type, call);
      return true;
    }
    if (state.isPresent() && draws.emit(statement, name, type, call, state.get())) {
      return true;
    }
    writer.emit(
        statement, name, type, draws.isAttention(call.target()) ? call : unknown(call, state));
    return false;
  }

  /** {@return a call of an op that nothing knows, so that no run draws other numbers} */
  private static FxExpr.Call unknown(FxExpr.Call call, Optional<FxExpr> state) {
    return new FxExpr.Call(
        HigherOrder.PREFIX + "run_with_rng_state",
        ImmutableList.<FxExpr>builder()
            .addAll(state.stream().toList())
            .add(new FxExpr.Str(call.target()))
            .addAll(call.args())
            .build(),
        call.keywords(),
        call.span());
  }

  /** {@return what both graphs call the generator; empty if it is not one of AOTAutograd's} */
  private static Optional<FxExpr> generator(FxExpr.Call call, String keyword) {
    if (call.keywords().get(keyword) instanceof FxExpr.Name(String name)) {
      var matcher = GENERATOR.matcher(name);
      return matcher.matches() ? Optional.of(new FxExpr.Str(matcher.group(1))) : Optional.empty();
    }
    return Optional.empty();
  }
}
