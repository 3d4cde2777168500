package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.Span;

/** An expression of an FX graph's Python text. */
public sealed interface FxExpr {

  /** A value's name, or a constant's path, as {@code torch.float32}. */
  record Name(String text) implements FxExpr {}

  record Int(long value) implements FxExpr {}

  record Float(double value) implements FxExpr {}

  record Str(String value) implements FxExpr {}

  record Bool(boolean value) implements FxExpr {}

  record Seq(ImmutableList<FxExpr> items) implements FxExpr {}

  /** {@code of[index]} */
  record Index(FxExpr of, FxExpr index) implements FxExpr {}

  /** Arithmetic on sizes, or a comparison of them. */
  record Binary(SizeExpr.Operator operator, FxExpr left, FxExpr right) implements FxExpr {}

  record Negative(FxExpr operand) implements FxExpr {}

  record Call(
      String target, ImmutableList<FxExpr> args, ImmutableMap<String, FxExpr> keywords, Span span)
      implements FxExpr {

    /** {@return a keyword argument; {@code None} if it is not given} */
    FxExpr keyword(String name) {
      return keywords.getOrDefault(name, None.NONE);
    }
  }

  /** A dict, whose keys are strings and numbers. */
  record Dict(ImmutableList<FxExpr> keys, ImmutableList<FxExpr> values) implements FxExpr {}

  /** {@code None} */
  enum None implements FxExpr {
    NONE
  }
}
