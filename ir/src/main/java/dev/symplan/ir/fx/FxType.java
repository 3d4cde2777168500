package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.DType;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A type that torch.fx writes after a name. */
public sealed interface FxType {

  /**
   * {@code f32[8, s77][16, 1]}
   *
   * @param strides absent if none are written
   */
  record Tensor(
      DType dtype, ImmutableList<SizeExpr> sizes, Optional<ImmutableList<SizeExpr>> strides)
      implements FxType {}

  /** {@code Sym(4*s77)}: a plain number, or a condition. */
  record Symbolic(SizeExpr value) implements FxType {}

  /** {@code None} */
  enum None implements FxType {
    NONE
  }

  /** A text where a type should be, why it is not one, and what to do. */
  record Malformed(String text, String message, String hint) implements FxType {
    static final String HINT = "types look like \"f32[8, 16][16, 1]cuda:0\"";

    Malformed(String text, String message) {
      this(text, message, HINT);
    }
  }

  /** {@return whether the symbol is in it} */
  default boolean mentions(String symbol) {
    return switch (this) {
      case Tensor(_, var sizes, var strides) ->
          Stream.concat(sizes.stream(), strides.stream().flatMap(ImmutableList::stream))
              .anyMatch(size -> size.mentions(symbol));
      case Symbolic(SizeExpr value) -> value.mentions(symbol);
      case None _, Malformed _ -> false;
    };
  }

  /** {@return the type as torch.fx writes it} */
  default String text() {
    return switch (this) {
      case Tensor(DType dtype, var sizes, var strides) ->
          dtype.shortName() + text(sizes) + strides.map(FxType::text).orElse("");
      case Symbolic(SizeExpr value) -> "Sym(" + value.text() + ")";
      case None _ -> "None";
      case Malformed(String text, _, _) -> text;
    };
  }

  private static String text(ImmutableList<SizeExpr> sizes) {
    return sizes.stream().map(SizeExpr::text).collect(Collectors.joining(", ", "[", "]"));
  }
}
