package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.composite.ComplexNumbers.Operands;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import java.util.Optional;

/**
 * Products of complex matrices and vectors: rows of the left one, columns of the right one, a row
 * of products for each element.
 */
final class ComplexProducts {
  /** The dimensions of a step: batches, then these. */
  private static final int OF_MATRICES = 3;

  /**
   * The parameters of a product.
   *
   * @param added what the product is added to
   */
  private record Params(String left, String right, Optional<String> added) {}

  private ComplexProducts() {}

  private static Params params(String op) {
    return switch (op) {
      case "mm", "bmm" -> new Params("self", "mat2", Optional.empty());
      case "mv" -> new Params("self", "vec", Optional.empty());
      case "dot" -> new Params("self", "tensor", Optional.empty());
      case "vdot", "matmul" -> new Params("self", "other", Optional.empty());
      case "outer" -> new Params("self", "vec2", Optional.empty());
      case "linear" -> new Params("input", "weight", Optional.of("bias"));
      case "addmm" -> new Params("mat1", "mat2", Optional.of("self"));
      case "addmv" -> new Params("mat", "vec", Optional.of("self"));
      case "baddbmm", "addbmm" -> new Params("batch1", "batch2", Optional.of("self"));
      default -> throw new IllegalArgumentException(op);
    };
  }

  static ImmutableList<Step> expand(Expansion call) {
    var op = call.call().schema().name().name();
    var params = params(op);
    var left = call.call().tensor(params.left());
    var right = call.call().tensor(params.right());
    boolean outer = op.equals("outer");
    if (op.equals("linear")) {
      right = right.rank() == 1 ? right : turned(right);
    }
    boolean noRows = !outer && left.rank() == 1;
    boolean noColumns = !outer && right.rank() == 1;
    // Rows and what is summed over; what is summed over and columns.
    var rows = outer ? ComplexNumbers.inserted(left, 1) : noRows ? inFront(left) : left;
    var columns = outer ? inFront(right) : noColumns ? ComplexNumbers.inserted(right, 1) : right;
    int batches = Math.max(rows.rank(), columns.rank()) - 2;
    rows = ComplexNumbers.inserted(withBatches(rows, batches), batches + 1);
    columns = ComplexNumbers.inserted(withBatches(turned(columns), batches), batches);
    var sizes = new long[batches + OF_MATRICES];
    for (int dim = 0; dim < sizes.length; dim++) {
      sizes[dim] = rows.size(dim) == 1 ? columns.size(dim) : rows.size(dim);
    }
    var operands = new Operands(call);
    operands.add("left", new Source.Argument(params.left(), 0), rows);
    operands.add("right", new Source.Argument(params.right(), 0), columns);
    params
        .added()
        .ifPresent(
            name -> {
              if (call.isTensor(name)) {
                operands.add(
                    "added",
                    new Source.Argument(name, 0),
                    added(call.call().tensor(name), noRows, noColumns, batches));
              } else {
                operands.add("added", Arg.None.NONE);
              }
            });
    boolean sum = op.equals("addbmm");
    var step = ImmutableLongArray.copyOf(sizes);
    var row = sum ? ImmutableSet.of(0, batches + 2) : ImmutableSet.of(batches + 2);
    return ComplexNumbers.step(
        call, ComplexNumbers.exprs(call), step, row, operands, Expansion.without(step, row));
  }

  /** {@return what a product is added to, with the dimensions of the step} */
  private static TensorType added(TensorType type, boolean noRows, boolean noColumns, int batches) {
    var added = noColumns ? ComplexNumbers.inserted(type, type.rank()) : type;
    added = noRows ? ComplexNumbers.inserted(added, added.rank() - 1) : added;
    added = withBatches(added, batches);
    return ComplexNumbers.inserted(added, added.rank());
  }

  private static TensorType inFront(TensorType type) {
    return ComplexNumbers.inserted(type, 0);
  }

  private static TensorType withBatches(TensorType type, int batches) {
    var all = type;
    while (all.rank() < batches + 2) {
      all = inFront(all);
    }
    return all;
  }

  /** {@return matrices with rows as columns} */
  private static TensorType turned(TensorType type) {
    int first = type.rank() - 2;
    return new TensorType(
        type.dtype(),
        swapped(type.sizes(), first),
        swapped(type.strides(), first),
        MemorySpace.ANY);
  }

  private static ImmutableLongArray swapped(ImmutableLongArray list, int first) {
    var swapped = list.toArray();
    swapped[first] = list.get(first + 1);
    swapped[first + 1] = list.get(first);
    return ImmutableLongArray.copyOf(swapped);
  }
}
