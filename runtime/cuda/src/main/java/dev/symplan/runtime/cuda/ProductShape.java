package dev.symplan.runtime.cuda;

import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.DeviceStep.Scales;
import dev.symplan.ir.DType;

/**
 * All of a product that decides which algorithms of cuBLASLt can compute it, and how fast. Where
 * its matrices are in memory does not count, but how they are aligned does.
 *
 * @param adds whether something is multiplied by beta and added
 * @param bias whether a number is added to each row
 * @param scaling whether and how operands have factors
 */
record ProductShape(
    long rows,
    long columns,
    long inner,
    long batches,
    boolean adds,
    boolean bias,
    Scaling scaling,
    Operand left,
    Operand right,
    Operand addend,
    Operand result) {

  /** The factors of operands. */
  enum Scaling {
    NONE(""),
    BY_TENSOR("+scale"),
    BY_TENSOR_FAST("+scale/fast"),
    BY_LINE("+scales"),
    BY_LINE_FAST("+scales/fast");

    private final String text;

    Scaling(String text) {
      this.text = text;
    }

    private static Scaling of(Scales scales) {
      return scales.byLine()
          ? scales.fast() ? BY_LINE_FAST : BY_LINE
          : scales.fast() ? BY_TENSOR_FAST : BY_TENSOR;
    }
  }

  /**
   * One matrix.
   *
   * @param leading elements from one column to the next
   * @param batchStride elements from one matrix to the next
   * @param alignment in bytes
   */
  record Operand(DType dtype, boolean transposed, long leading, long batchStride, int alignment) {
    private static Operand of(Matrix matrix) {
      return new Operand(
          matrix.dtype(),
          matrix.transposed(),
          matrix.leading(),
          matrix.batchStride(),
          matrix.alignment());
    }

    private String text() {
      return "%s:%s:%s:%s".formatted(transposed ? "t" : "n", leading, batchStride, alignment);
    }
  }

  static ProductShape of(Product product) {
    return new ProductShape(
        product.rows(),
        product.columns(),
        product.inner(),
        product.batches(),
        product.beta() != 0,
        product.bias().isPresent(),
        product.scales().map(Scaling::of).orElse(Scaling.NONE),
        Operand.of(product.left()),
        Operand.of(product.right()),
        Operand.of(product.addend()),
        Operand.of(product.result()));
  }

  /** {@return all of it in one word, which other shapes do not have} */
  String text() {
    return String.join(
        ",",
        types(),
        "%sx%sx%sx%s".formatted(rows, columns, inner, batches),
        (adds ? "add" : "set") + (bias ? "+bias" : "") + scaling.text,
        left.text(),
        right.text(),
        addend.text(),
        result.text());
  }

  /** Only operands with factors have other types than the result. */
  private String types() {
    var type = result.dtype().shortName();
    return scaling == Scaling.NONE
        ? type
        : "%s*%s>%s".formatted(left.dtype().shortName(), right.dtype().shortName(), type);
  }
}
