package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.DeviceStep.Share;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import dev.symplan.ir.DType;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The product of a large matrix, such as weights, and a few vectors, such as tokens. The time of it
 * is that of reading the matrix, so every element of it is read once, straight into the registers
 * of tensor cores, and the next ones are on their way meanwhile.
 *
 * <p>One launch may have several of these, of the same vectors, and elementwise ops that follow
 * two. The results are the same to the bit as those of a launch for each.
 */
final class StreamedProduct {

  /** Vectors at most: with more, reading those takes longer than reading the matrix. */
  static final int MAX_VECTORS = 16;

  /** Elements of the matrix at least: smaller ones stay in the cache. */
  private static final long MIN_ELEMENTS = 1 << 20;

  /** All of a launch's together. */
  private static final long MAX_ROWS = 1L << 30;

  /**
   * Several rows of a thread share what is read of the vectors, but only if there are blocks for
   * all multiprocessors then.
   */
  private static final int MIN_BLOCKS = 192;

  private StreamedProduct() {}

  /** {@return whether a product is one of these; if not, BLAS is to do it} */
  static boolean suits(Product product) {
    var dtype = product.dtype();
    return (dtype == DType.BF16 || dtype == DType.F16)
        && product.scales().isEmpty()
        && product.batches() == 1
        && product.columns() <= MAX_VECTORS
        && product.inner() % StreamedKernel.INNER == 0
        && product.rows() * product.inner() >= MIN_ELEMENTS
        && product.rows() <= MAX_ROWS
        && product.left().transposed()
        && !product.right().transposed()
        && !product.result().transposed()
        && isAligned(product.left())
        && isAligned(product.right())
        // A thread reads an element of the addend right before it writes the result's.
        && (product.addend().equals(product.result())
            || StreamedKernel.addend(product).isApart(written(product)));
  }

  /** Whether all rows begin at multiples of 16 bytes. */
  private static boolean isAligned(Matrix matrix) {
    return matrix.address().isVectorAligned() && matrix.leading() % 8 == 0;
  }

  /** How many times 16 rows a block has: on this depends in which order columns are added up. */
  private static int lines(Product product) {
    return product.rows() / (2 * StreamedKernel.ROWS) >= MIN_BLOCKS ? 2 : 1;
  }

  /**
   * {@return whether a product may be in the launch of others that come right before it: it has the
   * same vectors, adds up in the same order, and none touches what another one writes}
   *
   * @param others of which this holds already
   */
  static boolean joins(List<Product> others, Product product) {
    var first = others.getFirst();
    return product.stream() == first.stream()
        && product.dtype() == first.dtype()
        && product.inner() == first.inner()
        && product.columns() == first.columns()
        && product.right().equals(first.right())
        && lines(product) == lines(first)
        && others.stream().mapToLong(Product::rows).sum() + product.rows() <= MAX_ROWS
        && others.stream().allMatch(other -> areApart(product, other));
  }

  private static boolean areApart(Product a, Product b) {
    return touched(a).allMatch(written(b)::isApart) && touched(b).allMatch(written(a)::isApart);
  }

  private static Stream<Memory> touched(Product product) {
    return Stream.concat(read(product), Stream.of(written(product)));
  }

  static Stream<Memory> read(Product product) {
    var read = Stream.<Memory>builder();
    read.add(StreamedKernel.memory(product.left(), product.rows(), product.inner()));
    read.add(StreamedKernel.memory(product.right(), product.columns(), product.inner()));
    if (product.beta() != 0) {
      read.add(StreamedKernel.addend(product));
    }
    product.bias().ifPresent(at -> read.add(StreamedKernel.bias(product, at)));
    return read.build();
  }

  static Memory written(Product product) {
    return StreamedKernel.memory(product.result(), product.columns(), product.rows());
  }

  /**
   * {@return a launch of products}
   *
   * @param products at least one; each {@linkplain #joins may join} those before it
   */
  static Launch launch(ImmutableList<Product> products, ConstantInputs constants) {
    var launch =
        StreamedKernel.ofEach(
            products,
            lines(products.getFirst()),
            products.stream().allMatch(each -> constants.contains(each.left().address())));
    return products.size() == 1
        ? launch
        : launch.with(
            products.stream().map(StreamedProduct::share).collect(ImmutableList.toImmutableList()));
  }

  static Share share(Product product) {
    return new Share(product.label(), product.rows() * product.inner() * product.dtype().bytes());
  }

  /** {@return a launch of a pair; empty if a block would have too few rows of it} */
  static Optional<Launch> launch(ProductPair pair, ConstantInputs constants) {
    // As many rows of a block, whether or not two matrices share them.
    return lines(pair.one()) == 2
        ? Optional.of(StreamedKernel.ofBoth(pair, pair.areConstant(constants)).with(pair.shares()))
        : Optional.empty();
  }
}
