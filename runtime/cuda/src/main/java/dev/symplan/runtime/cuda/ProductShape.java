package dev.symplan.runtime.cuda;

import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.ir.DType;

/**
 * All of a product that decides which algorithms of cuBLASLt can compute it, and how fast. Where
 * its matrices are in memory does not count, but how they are aligned does.
 *
 * @param adds whether something is multiplied by beta and added
 * @param bias whether a number is added to each row
 */
record ProductShape(
    DType dtype,
    long rows,
    long columns,
    long inner,
    long batches,
    boolean adds,
    boolean bias,
    Operand left,
    Operand right,
    Operand addend,
    Operand result) {

  /**
   * One matrix.
   *
   * @param leading elements from one column to the next
   * @param batchStride elements from one matrix to the next
   * @param alignment in bytes
   */
  record Operand(boolean transposed, long leading, long batchStride, int alignment) {
    private static Operand of(Matrix matrix, DType dtype) {
      return new Operand(
          matrix.transposed(), matrix.leading(), matrix.batchStride(), matrix.alignment(dtype));
    }

    private String text() {
      return "%s:%s:%s:%s".formatted(transposed ? "t" : "n", leading, batchStride, alignment);
    }
  }

  static ProductShape of(Product product) {
    var dtype = product.dtype();
    return new ProductShape(
        dtype,
        product.rows(),
        product.columns(),
        product.inner(),
        product.batches(),
        product.beta() != 0,
        product.bias().isPresent(),
        Operand.of(product.left(), dtype),
        Operand.of(product.right(), dtype),
        Operand.of(product.addend(), dtype),
        Operand.of(product.result(), dtype));
  }

  /** {@return all of it in one word, which other shapes do not have} */
  String text() {
    return String.join(
        ",",
        dtype.shortName(),
        "%sx%sx%sx%s".formatted(rows, columns, inner, batches),
        (adds ? "add" : "set") + (bias ? "+bias" : ""),
        left.text(),
        right.text(),
        addend.text(),
        result.text());
  }
}
