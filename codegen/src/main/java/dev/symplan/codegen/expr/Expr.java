package dev.symplan.codegen.expr;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;

/**
 * A computation for one element. Truth is a number, 1 or 0; every number except 0 is true.
 *
 * <p>Equal expressions have equal values, so an existing one is not computed again.
 */
public sealed interface Expr {

  /** An operand, by the name of its parameter. */
  record Param(String name) implements Expr {}

  record Int(long value) implements Expr {}

  record Float(double value) implements Expr {}

  /** The value of a parameter that is a string; there is nothing but to compare it. */
  record Text(String value) implements Expr {}

  /** A primitive of the values of others. */
  record Apply(Primitive primitive, ImmutableList<Expr> args) implements Expr {
    public Apply {
      if (args.size() != primitive.arity()) {
        throw new IllegalArgumentException(
            "%s takes %s arguments, not %s".formatted(primitive, primitive.arity(), args.size()));
      }
    }
  }

  static Expr of(Primitive primitive, Expr... args) {
    return new Apply(primitive, ImmutableList.copyOf(args));
  }

  /** {@return this, with other expressions for parameters} */
  default Expr with(ImmutableMap<String, Expr> values) {
    return switch (this) {
      case Param(var name) -> values.getOrDefault(name, this);
      case Int _, Float _, Text _ -> this;
      case Apply(var primitive, var args) ->
          new Apply(
              primitive,
              args.stream().map(arg -> arg.with(values)).collect(ImmutableList.toImmutableList()));
    };
  }
}
