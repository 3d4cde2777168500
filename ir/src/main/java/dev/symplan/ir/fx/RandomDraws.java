package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.fx.FxFunction.Statement;
import java.util.Optional;

/**
 * Operators that draw random numbers, as calls that take a generator. Dropout has no such form in
 * PyTorch, and becomes a comparison of numbers that are drawn first.
 */
final class RandomDraws {
  private static final String ATEN = "torch.ops.aten.";
  private static final String NATIVE_DROPOUT = ATEN + "native_dropout.default";
  private static final String DROPOUT = ATEN + "dropout.default";

  /** Operators without a generator, by those that are the same with one. */
  private static final ImmutableMap<String, String> WITH_GENERATOR =
      ImmutableMap.<String, String>builder()
          .put(ATEN + "rand.default", ATEN + "rand.generator")
          .put(ATEN + "randn.default", ATEN + "randn.generator")
          .put(ATEN + "randint.default", ATEN + "randint.generator")
          .put(ATEN + "randint.low", ATEN + "randint.low_generator")
          .put(ATEN + "randperm.default", ATEN + "randperm.generator")
          .put(ATEN + "rand_like.default", ATEN + "rand_like.generator")
          .put(ATEN + "randn_like.default", ATEN + "randn_like.generator")
          .put(ATEN + "randint_like.default", ATEN + "randint_like.generator")
          .put(ATEN + "randint_like.low_dtype", ATEN + "randint_like.low_generator_dtype")
          .buildOrThrow();

  private final StatementWriter writer;
  private final OpTargets targets;

  RandomDraws(StatementWriter writer, OpTargets targets) {
    this.writer = writer;
    this.targets = targets;
  }

  /** {@return whether a call draws nothing, as it drops nothing out} */
  boolean isIdle(FxExpr.Call call) {
    return isDropout(call)
        ? argument(call, "train").equals(Optional.of(new FxExpr.Bool(false)))
        : isAttention(call.target())
            && argument(call, "dropout_p").map(p -> number(p).orElse(Double.NaN)).orElse(0.0) == 0;
  }

  /** {@return whether an operator is attention; where that drops something out, none runs it} */
  boolean isAttention(String operator) {
    return targets.schema(operator, ImmutableSet.of("dropout_p")).isPresent();
  }

  /**
   * Adds the call of an operator that draws from a generator.
   *
   * @param name of its result, or of the list of its results
   * @return whether the operator can; if not, nothing is added
   */
  boolean emit(
      Statement source, String name, Optional<FxType> type, FxExpr.Call call, FxExpr generator) {
    if (isDropout(call)) {
      var input = argument(call, "input");
      var p = argument(call, "p").flatMap(RandomDraws::number);
      if (input.isEmpty() || p.isEmpty()) {
        return false;
      }
      dropOut(source, name, type, call, input.get(), p.get(), generator);
      return true;
    }
    boolean takes = targets.schema(call.target(), ImmutableSet.of("generator")).isPresent();
    var target = takes ? call.target() : WITH_GENERATOR.getOrDefault(call.target(), "");
    if (target.isEmpty()) {
      return false;
    }
    writer.emit(source, name, type, drawing(call, target, call.args(), call.keywords(), generator));
    return true;
  }

  /** An element is kept if its number is not below p, and then scaled up. */
  private void dropOut(
      Statement source,
      String name,
      Optional<FxType> type,
      FxExpr.Call call,
      FxExpr input,
      double p,
      FxExpr generator) {
    boolean several = call.target().equals(NATIVE_DROPOUT);
    var first = writer.item(name, new FxExpr.Int(0)).filter(_ -> several);
    var second = writer.item(name, new FxExpr.Int(1)).filter(_ -> several);
    var drawn = writer.unique(name + "_drawn");
    var kept = second.map(Statement::name).orElseGet(() -> writer.unique(name + "_kept"));
    var left = writer.unique(name + "_left");
    var result =
        first
            .map(Statement::name)
            .orElseGet(() -> several ? writer.unique(name + "_scaled") : name);
    writer.emit(
        source,
        drawn,
        Optional.empty(),
        drawing(
            call,
            ATEN + "rand_like.generator",
            ImmutableList.of(input),
            ImmutableMap.of("dtype", new FxExpr.Name("torch.float32")),
            generator));
    writer.emit(
        source,
        kept,
        second.flatMap(Statement::type),
        ATEN + "ge.Scalar",
        new FxExpr.Name(drawn),
        new FxExpr.Float(p));
    writer.emit(source, left, Optional.empty(), ATEN + "mul.Tensor", input, new FxExpr.Name(kept));
    writer.emit(
        source,
        result,
        several ? first.flatMap(Statement::type) : type,
        ATEN + "mul.Tensor",
        new FxExpr.Name(left),
        new FxExpr.Float(p == 1 ? 0 : 1 / (1 - p)));
    if (several) {
      writer
          .renaming()
          .takeApart(
              name,
              ImmutableMap.of(
                  new FxExpr.Int(0),
                  new FxExpr.Name(result),
                  new FxExpr.Int(1),
                  new FxExpr.Name(kept)));
    }
  }

  private static FxExpr.Call drawing(
      FxExpr.Call source,
      String target,
      ImmutableList<FxExpr> args,
      ImmutableMap<String, FxExpr> keywords,
      FxExpr generator) {
    return new FxExpr.Call(
        target,
        args,
        ImmutableMap.<String, FxExpr>builder()
            .putAll(keywords)
            .put("generator", generator)
            .buildKeepingLast(),
        source.span());
  }

  private static boolean isDropout(FxExpr.Call call) {
    return call.target().equals(NATIVE_DROPOUT) || call.target().equals(DROPOUT);
  }

  /** {@return an argument that is given, by position or by name} */
  private Optional<FxExpr> argument(FxExpr.Call call, String param) {
    if (call.keywords().containsKey(param)) {
      return Optional.ofNullable(call.keywords().get(param));
    }
    return targets
        .schema(call.target(), ImmutableSet.of(param))
        .map(schema -> schema.indexOf(param))
        .filter(at -> at < call.args().size())
        .map(call.args()::get);
  }

  private static Optional<Double> number(FxExpr value) {
    return switch (value) {
      case FxExpr.Int(long number) -> Optional.of((double) number);
      case FxExpr.Float(double number) -> Optional.of(number);
      default -> Optional.empty();
    };
  }
}
