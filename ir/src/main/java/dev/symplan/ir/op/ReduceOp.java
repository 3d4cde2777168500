package dev.symplan.ir.op;

import com.google.common.base.Ascii;
import dev.symplan.ir.DType;
import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * The reduction of a collective over the elements of all ranks, with the names of {@code
 * torch.distributed}.
 */
public enum ReduceOp {
  SUM,
  /** The sum, divided by the number of ranks. */
  AVG,
  PRODUCT,
  MIN,
  MAX,
  BAND,
  BOR,
  BXOR;

  /** {@return the name in graphs and files, for example {@code sum}} */
  public String text() {
    return Ascii.toLowerCase(name());
  }

  /** {@return the name of a reduction; empty if nothing is reduced} */
  public static String text(Optional<ReduceOp> op) {
    return op.map(ReduceOp::text).orElse("");
  }

  /**
   * {@return the reduction of this name}
   *
   * @throws OpTypeException when none exists
   */
  public static ReduceOp ofText(String text) {
    return Arrays.stream(values())
        .filter(op -> op.text().equals(text))
        .findFirst()
        .orElseThrow(
            () ->
                new OpTypeException(
                    "unknown reduction '%s'".formatted(text),
                    Arrays.stream(values())
                        .map(ReduceOp::text)
                        .collect(Collectors.joining(", ", "reductions: ", ""))));
  }

  /** {@return whether it combines the bits of integers} */
  public boolean isBitwise() {
    return this == BAND || this == BOR || this == BXOR;
  }

  /** {@return whether it is defined on elements of this type} */
  public boolean isDefinedOn(DType dtype) {
    return switch (this) {
      case SUM -> true;
      case AVG -> dtype.isFloat() || dtype.kind() == DType.Kind.COMPLEX;
      case PRODUCT, MIN, MAX -> dtype.kind() != DType.Kind.COMPLEX;
      case BAND, BOR, BXOR -> dtype.kind() == DType.Kind.INTEGER || dtype.kind() == DType.Kind.BOOL;
    };
  }

  @Override
  public String toString() {
    return text();
  }
}
