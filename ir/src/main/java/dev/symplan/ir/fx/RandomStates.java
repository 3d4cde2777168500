package dev.symplan.ir.fx;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import dev.symplan.ir.fx.FxFunction.Param;
import dev.symplan.ir.fx.FxFunction.Statement;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Takes operators apart that run with a state of a random generator. With activation checkpoints,
 * the backward graph draws again what the forward graph drew: {@code run_and_save_rng_state} gives
 * a state, a tensor, to {@code run_with_rng_state}; or {@code graphsafe_run_with_rng_state} has a
 * generator in each graph, which AOTAutograd sets to the same state before each call.
 *
 * <p>An operator that takes a generator gets the state in its place, a tensor or a name, so that it
 * draws the same numbers in both graphs. The states of any other operator are lost.
 */
final class RandomStates {

  /** Operators that draw random numbers, by how they are called with a generator. */
  private static final ImmutableMap<String, String> DRAWS =
      ImmutableMap.of(
          "torch.ops.aten.rand.default", "torch.ops.aten.rand.generator",
          "torch.ops.aten.randn.default", "torch.ops.aten.randn.generator",
          "torch.ops.aten.randint.default", "torch.ops.aten.randint.generator",
          "torch.ops.aten.randint.low", "torch.ops.aten.randint.low_generator",
          "torch.ops.aten.randperm.default", "torch.ops.aten.randperm.generator",
          "torch.ops.aten.bernoulli.default", "torch.ops.aten.bernoulli.default",
          "torch.ops.aten.bernoulli.p", "torch.ops.aten.bernoulli.p");

  private static final Pattern GENERATOR = Pattern.compile("(?:fwd|bwd)_(rng_state_[0-9]+)");

  /** The bytes of a state of a GPU's generator: its seed, and how far it is. */
  private static final int STATE_BYTES = 16;

  private static final FxType STATE =
      new FxType.Tensor(
          DType.U8,
          ImmutableList.of(new SizeExpr.Int(STATE_BYTES)),
          Optional.of(ImmutableList.of(new SizeExpr.Int(1))));

  private final StatementWriter writer;
  private final OpTargets targets;

  /** The inputs that are states. */
  private final Set<String> inputs = new HashSet<>();

  RandomStates(StatementWriter writer, OpTargets targets) {
    this.writer = writer;
    this.targets = targets;
  }

  /**
   * {@return whether the state is lost from which this operator draws}
   *
   * @param first the position of its first argument
   * @param keyword the argument that is its generator; empty if it has a state
   */
  boolean isLost(String operator, FxExpr.Call call, int first, String keyword) {
    boolean kept =
        DRAWS.containsKey(operator) && (keyword.isEmpty() || generator(call, keyword).isPresent());
    return !kept && !isWithoutDropout(operator, call, first);
  }

  /** An operator that runs with a state, which is the first argument, or with a generator. */
  void run(Statement statement, FxExpr.Call call, String operator, int first, String keyword) {
    Optional<FxExpr> state =
        keyword.isEmpty() ? Optional.of(call.args().getFirst()) : generator(call, keyword);
    if (keyword.isEmpty() && call.args().getFirst() instanceof FxExpr.Name(String name)) {
      inputs.add(name);
    }
    emit(statement, statement.name(), statement.type(), call, operator, first, keyword, state);
  }

  /** An operator that runs with the current state, which is a result, too. */
  void runAndSave(Statement statement, FxExpr.Call call, String operator) {
    var saved = writer.item(statement.name(), new FxExpr.Int(0));
    var results = writer.item(statement.name(), new FxExpr.Int(1));
    var state =
        saved.map(Statement::name).orElseGet(() -> writer.unique(statement.name() + "_state"));
    var name = results.map(Statement::name).orElse(statement.name());
    var bytes =
        saved.flatMap(Statement::type).flatMap(RandomStates::bytes).orElse((long) STATE_BYTES);
    var sizes = new FxExpr.Seq(ImmutableList.of(new FxExpr.Int(bytes)));
    boolean draws = DRAWS.containsKey(operator);
    writer.emit(
        statement,
        state,
        saved.flatMap(Statement::type),
        new FxExpr.Call(
            draws ? "torch.ops.aten.randint.default" : "torch.ops.aten.empty.memory_format",
            draws
                ? ImmutableList.of(new FxExpr.Int(1 << Byte.SIZE), sizes)
                : ImmutableList.of(sizes),
            ImmutableMap.of("dtype", new FxExpr.Name("torch.uint8")),
            call.span()));
    var type = results.flatMap(Statement::type);
    emit(statement, name, type, call, operator, 1, "", Optional.of(new FxExpr.Name(state)));
    writer
        .renaming()
        .takeApart(
            statement.name(),
            ImmutableMap.of(
                new FxExpr.Int(0),
                new FxExpr.Name(state),
                new FxExpr.Int(1),
                new FxExpr.Name(name)));
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

  private void emit(
      Statement statement,
      String name,
      Optional<FxType> type,
      FxExpr.Call call,
      String operator,
      int first,
      String keyword,
      Optional<FxExpr> state) {
    var keywords = ImmutableMap.<String, FxExpr>builder();
    call.keywords().entrySet().stream()
        .filter(entry -> !entry.getKey().equals(keyword))
        .forEach(keywords::put);
    var drawing = state.flatMap(_ -> Optional.ofNullable(DRAWS.get(operator)));
    if (drawing.isPresent()) {
      keywords.put("generator", state.orElseThrow());
    }
    writer.emit(
        statement,
        name,
        type,
        new FxExpr.Call(
            drawing.orElse(operator),
            call.args().subList(first, call.args().size()),
            keywords.buildOrThrow(),
            call.span()));
  }

  /** {@return what both graphs call the generator; empty if it is not one of AOTAutograd's} */
  private static Optional<FxExpr> generator(FxExpr.Call call, String keyword) {
    if (call.keywords().get(keyword) instanceof FxExpr.Name(String name)) {
      var matcher = GENERATOR.matcher(name);
      return matcher.matches() ? Optional.of(new FxExpr.Str(matcher.group(1))) : Optional.empty();
    }
    return Optional.empty();
  }

  /** Attention draws for its dropout only. */
  private boolean isWithoutDropout(String operator, FxExpr.Call call, int first) {
    var schema = targets.schema(operator, ImmutableSet.of("dropout_p"));
    if (schema.isEmpty()) {
      return false;
    }
    int at = first + schema.get().indexOf("dropout_p");
    @Nullable FxExpr named = call.keywords().get("dropout_p");
    var given =
        at < call.args().size() ? call.args().get(at) : named == null ? new FxExpr.Float(0) : named;
    return given.equals(new FxExpr.Float(0)) || given.equals(new FxExpr.Int(0));
  }
}
