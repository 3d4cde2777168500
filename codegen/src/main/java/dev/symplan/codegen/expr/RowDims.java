package dev.symplan.codegen.expr;

import dev.symplan.ir.Arg;
import java.util.List;
import java.util.stream.IntStream;

/** The dimensions of its operands that make the rows that an op folds, scans or normalizes. */
public final class RowDims {
  private RowDims() {}

  /**
   * {@return the dimensions within a row, of an operand of so many}
   *
   * @param overload that of the op
   */
  public static List<Integer> of(Call call, String overload, int rank) {
    var shape = constant(call, "normalized_shape");
    if (shape instanceof Arg.Seq(var sizes)) {
      return IntStream.range(rank - sizes.size(), rank).boxed().toList();
    }
    return switch (constant(call, "dim")) {
      case Arg.Int(long dim) -> rank == 0 ? List.of() : List.of(wrap(dim, rank));
      case Arg.Seq(var items) when !items.isEmpty() && rank > 0 ->
          items.stream()
              .map(item -> item instanceof Arg.Int(long dim) ? wrap(dim, rank) : 0)
              .toList();
      // Here, but nowhere else, an empty list of dimensions reduces none.
      case Arg.Seq _ when overload.equals("dims") -> List.of();
      case Arg.Seq _, Arg.Ref _, Arg.Literal _ -> IntStream.range(0, rank).boxed().toList();
    };
  }

  private static Arg constant(Call call, String param) {
    return call.hasParam(param) && call.tensor(param).isEmpty()
        ? call.constant(param)
        : Arg.None.NONE;
  }

  private static int wrap(long dim, int rank) {
    return Math.toIntExact(dim < 0 ? dim + rank : dim);
  }
}
