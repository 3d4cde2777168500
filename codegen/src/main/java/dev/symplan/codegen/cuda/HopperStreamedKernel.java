package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.KernelArgument.TensorMap;
import dev.symplan.ir.DType;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Products of large matrices, such as weights, and up to 128 vectors, such as tokens, on Hopper
 * GPUs: one, or both of a {@link ProductPair} and what computes with them. The time of it is that
 * of reading the matrices, each element once.
 *
 * <p>A block has the same rows of all matrices, and all blocks run at once. Where these rows would
 * be few, they are more, and the blocks of a cluster share their columns. One of a block's warps
 * has chunks of 64 columns copied into shared memory, as soon as earlier ones are multiplied: of
 * constant matrices even before what is ahead of the launch has ended. A team of four warps
 * multiplies 64 vectors. The sums get into shared memory, where the blocks of a cluster add up
 * those of each other, in the order of the columns.
 */
final class HopperStreamedKernel {

  /** Multiprocessors of an H100; with fewer, blocks follow each other. */
  private static final int BLOCKS = 132;

  /** Vectors of a team. */
  private static final int TEAM = 64;

  /** Fewer fill one tile of a {@link StreamedProduct}. */
  private static final int MIN_VECTORS = 9;

  private static final int MAX_VECTORS = 2 * TEAM;

  /** Rows of a matrix that a block has: as many as are permuted together. */
  private static final int ROWS = 8;

  /** Rows of all matrices of a block: more are too many for an instruction. */
  private static final int MAX_ROWS = 256;

  /** Blocks that share the columns of a matrix. */
  private static final int MAX_PARTS = 2;

  /** With fewer of all matrices, blocks share columns, and have more. */
  private static final int ENOUGH_ROWS = 96;

  /** Elements of a matrix at least: with fewer, others are as fast. */
  private static final long MIN_ALONE = 1 << 23;

  /** The same for a pair that others need three launches for. */
  private static final long MIN_PAIRED = 1 << 18;

  /** Bytes of a line of a box. */
  private static final int LINE = 128;

  private static final int DEPTH = TensorMap.BOX;

  /** Chunks of vectors in shared memory, which come from the cache. */
  private static final int STAGES = 4;

  /** Chunks of matrices, which come from memory. */
  private static final int MAX_AHEAD = 8;

  private static final int SHARED_BYTES = 227 << 10;
  private static final int ALIGNMENT = 1 << 10;

  /** Tensor maps are aligned in arguments, whose size is a multiple of that. */
  private static final int POINTERS = 8;

  /** Rows of sums begin in other banks: eight floats apart, for two rows and pairs of columns. */
  private static final int BANKS = 32;

  private final MemoryArguments memory;
  private final ImmutableList<Product> products;
  private final Product product;

  /** Those whose results are stored. */
  private final ImmutableSet<Product> stored;

  /** Neighbouring rows of which a thread has the results. */
  private final int width;

  private final int parts;
  private final int rows;
  private final int teams;
  private final int ahead;

  private HopperStreamedKernel(
      MemoryArguments memory,
      ImmutableList<Product> products,
      ImmutableSet<Product> stored,
      int width) {
    this.memory = memory;
    this.products = products;
    this.stored = stored;
    this.product = products.getFirst();
    this.width = width;
    this.parts = parts(product, products.size()).orElseThrow();
    this.rows = rows(product, parts);
    this.teams = teams(product);
    int barriers = (MAX_AHEAD + 2 * STAGES) * Long.BYTES;
    this.ahead =
        Math.min(
            MAX_AHEAD,
            (SHARED_BYTES - ALIGNMENT - barriers - STAGES * vectorsBytes()) / matricesBytes());
  }

  private static int teams(Product product) {
    return Math.toIntExact(Math.ceilDiv(product.columns(), TEAM));
  }

  private static long chunks(Product product) {
    return Math.ceilDiv(product.inner(), DEPTH);
  }

  /** The fewest rows with which all blocks run at once. */
  private static int rows(Product product, int parts) {
    return Math.toIntExact(Math.ceilDiv(Math.ceilDiv(product.rows(), BLOCKS / parts), ROWS) * ROWS);
  }

  /** Blocks that share columns; empty if these, or all rows of a block, would be too many. */
  private static Optional<Integer> parts(Product product, int matrices) {
    int parts = matrices * rows(product, 1) >= ENOUGH_ROWS ? 1 : MAX_PARTS;
    return parts <= chunks(product) && matrices * rows(product, parts) <= MAX_ROWS
        ? Optional.of(parts)
        : Optional.empty();
  }

  /** {@return whether a product can be one of a pair, and is faster this way} */
  static boolean suits(Product product) {
    return isOfForm(product)
        && product.beta() == 0
        && parts(product, 2)
            .filter(parts -> isFasterPaired(product, 2 * rows(product, parts)))
            .filter(parts -> areEncodable(product, parts))
            .isPresent();
  }

  /** {@return whether a product suits, and is faster this way than by others} */
  static boolean suitsAlone(Product product) {
    return isOfForm(product)
        // A thread reads elements of the addend right before it writes the result's.
        && (product.addend().equals(product.result())
            || StreamedKernel.addend(product).isApart(StreamedProduct.written(product)))
        && parts(product, 1)
            .filter(parts -> isFasterAlone(product, rows(product, parts)))
            .filter(parts -> areEncodable(product, parts))
            .isPresent();
  }

  /**
   * As measured on an H200: for 16 vectors, in programs that have both forms, next to those of
   * {@link StreamedProduct}; for 32, 64 and 128, next to cuBLASLt's fastest products and a kernel
   * for what computes with them.
   *
   * @param rows of both matrices
   */
  private static boolean isFasterPaired(Product product, int rows) {
    return isFew(product)
        ? rows <= 128 && elements(product) >= MIN_ALONE
        // Otherwise, blocks read the vectors for longer than the matrices.
        : 4 * rows >= 3 * TEAM * teams(product) && elements(product) >= MIN_PAIRED;
  }

  /** As measured next to the same. */
  private static boolean isFasterAlone(Product product, int rows) {
    boolean fast =
        isFew(product)
            ? rows >= 48 && rows <= 80 && product.inner() <= 8192
            : teams(product) == 1
                ? rows >= 32 && rows <= 128
                : rows >= 48 && rows <= 80 && product.inner() >= 4096;
    return fast && elements(product) >= MIN_ALONE;
  }

  /** Whether there is another kernel for so many vectors. */
  private static boolean isFew(Product product) {
    return product.columns() <= StreamedProduct.MAX_VECTORS;
  }

  private static long elements(Product product) {
    return product.rows() * product.inner();
  }

  private static boolean isOfForm(Product product) {
    var dtype = product.dtype();
    return (dtype == DType.BF16 || dtype == DType.F16)
        && product.scales().isEmpty()
        && product.batches() == 1
        && product.columns() >= MIN_VECTORS
        && product.columns() <= MAX_VECTORS
        && product.rows() <= (long) BLOCKS * MAX_ROWS
        && product.inner() <= Integer.MAX_VALUE - DEPTH
        && product.left().transposed()
        && !product.right().transposed()
        && !product.result().transposed();
  }

  private static boolean areEncodable(Product product, int parts) {
    return map(product, product.left(), product.rows(), rows(product, parts)).isEncodable()
        && map(product, product.right(), product.columns(), TEAM).isEncodable();
  }

  private static TensorMap map(Product product, Matrix matrix, long lines, int box) {
    return new TensorMap(
        matrix.address(),
        product.inner(),
        lines,
        matrix.leading(),
        1,
        lines * matrix.leading(),
        box);
  }

  /**
   * {@return a launch of a product that {@linkplain #suitsAlone suits alone}}
   *
   * @param otherwise what does the same on other GPUs
   */
  static HopperLaunch launch(Product product, ConstantInputs constants, DeviceStep otherwise) {
    int width = ProductPair.isWide(product) ? Vectors.MAX_WIDTH : 1;
    var kernel =
        new HopperStreamedKernel(
            new MemoryArguments(), ImmutableList.of(product), ImmutableSet.of(product), width);
    boolean constant = constants.contains(product.left().address());
    return new HopperLaunch(
        kernel.launch(constant, "", "", product.label()), ImmutableList.of(otherwise), false);
  }

  /**
   * {@return a launch of a pair whose products {@linkplain #suits suit}}
   *
   * @param otherwise what does the same on other GPUs
   */
  static HopperLaunch launch(
      ProductPair pair, ConstantInputs constants, ImmutableList<DeviceStep> otherwise) {
    var products = ImmutableList.of(pair.one(), pair.other());
    var kernel =
        new HopperStreamedKernel(pair.memory(), products, pair.stored(), pair.vectors().width());
    return new HopperLaunch(
        kernel
            .launch(pair.areConstant(constants), pair.vectors().type(), pair.rest(), pair.label())
            .with(pair.shares()),
        otherwise,
        false);
  }

  private int matrixBytes() {
    return rows * LINE;
  }

  /** Columns of the product's instructions, which are rows of matrices. */
  private int right() {
    return products.size() * rows;
  }

  private int matricesBytes() {
    return products.size() * matrixBytes();
  }

  private int vectorsBytes() {
    return teams * TEAM * LINE;
  }

  /** Floats from the sums of one vector to those of the next. */
  private int pitch() {
    return right() + Math.floorMod(8 - right(), BANKS);
  }

  private int dataBytes() {
    int sums = teams * TEAM * pitch() * Float.BYTES;
    return Math.max(
        ahead * matricesBytes() + STAGES * vectorsBytes(),
        Math.ceilDiv(sums, ALIGNMENT) * ALIGNMENT);
  }

  private Launch launch(boolean constant, String types, String rest, String label) {
    boolean bfloat = product.dtype() == DType.BF16;
    int read = Math.min(width, 4);
    // Longer names first, as some begin like others.
    var text =
        HopperStreamedText.KERNEL
            .replace("$RESULTS", results(rest))
            .replace("$AWAIT", constant ? "  %s\n".formatted(Kernel.AWAIT_BEFORE) : "")
            .replace("$CLUSTER", parts == 1 ? "" : "__cluster_dims__(%s, 1, 1) ".formatted(parts))
            .replace("$NARROW", bfloat ? "to_bf16" : "to_f16")
            .replace("$WIDEN", bfloat ? "from_bf16" : "from_f16")
            .replace("$LEFT_NAME", number(right() / 2))
            .replace("$RIGHT_NAME", number(right() / 2 + 1))
            .replace("$NAMES", list(right() / 2, "%%%s"))
            .replace("$SUMS", list(right() / 2, "\"+f\"(sums[%s])"))
            .replace("$LEFT_ACROSS", "0")
            .replace("$RIGHT_ACROSS", "0")
            .replace("$RIGHT", number(right()))
            .replace("$READ_TYPE", read == 1 ? ".f32" : ".v%s.f32".formatted(read))
            .replace("$READ_NAMES", list(read, "%%%s"))
            .replace("$READ_SUMS", list(read, "\"=f\"(to[%s])"))
            .replace("$READ", number(read))
            .replace("$TYPE", bfloat ? "bf16" : "f16")
            .replace("$DATA_BYTES", number(dataBytes()))
            .replace("$MATRICES_BYTES", number(matricesBytes()))
            .replace("$COPIED_BYTES", number((long) copied() * LINE))
            .replace("$VECTORS_BYTES", number(vectorsBytes()))
            .replace("$AHEAD", number(ahead))
            .replace("$STAGES", number(STAGES))
            .replace("$MATRIX_BYTES", number(matrixBytes()))
            .replace("$BOX_BYTES", number(TensorMap.BOX * LINE))
            .replace("$PART_CHUNKS", number(Math.ceilDiv(chunks(product), parts)))
            .replace("$CHUNKS", number(chunks(product)))
            .replace("$PARTS", number(parts))
            .replace("$PRODUCTS", number(products.size()))
            .replace("$DEPTH", number(DEPTH))
            .replace("$LINE", number(LINE))
            .replace("$BLOCK_ROWS", number(rows))
            .replace("$WIDTH", number(width))
            .replace("$PITCH", number(pitch()))
            .replace("$ROWS", number(product.rows()))
            .replace("$VECTORS", number(product.columns()))
            .replace("$TEAMS", number(teams))
            .replace("$MULTIPLYING", number(teams * 128L))
            .replace("$THREADS", number(threads()));
    int pointers = Math.ceilDiv(memory.words().size(), POINTERS) * POINTERS;
    text = text.replace("$POINTERS", number(pointers));
    var words = ImmutableList.<KernelArgument>builder();
    products.forEach(each -> words.add(map(each, each.left(), each.rows(), rows)));
    words.add(map(product, product.right(), product.columns(), copied()));
    words.addAll(memory.words());
    for (int i = memory.words().size(); i < pointers; i++) {
      words.add(new KernelArgument.Number(0));
    }
    return new Launch(
            product.stream(),
            new Kernel(CTypes.PRELUDE + types + text),
            Math.toIntExact(Math.ceilDiv(product.rows(), rows)) * parts,
            threads(),
            words.build(),
            label)
        .withShared(ALIGNMENT + dataBytes() + (ahead + 2 * STAGES) * Long.BYTES)
        .streaming(
            products.stream()
                .map(each -> StreamedKernel.memory(each.left(), each.rows(), each.inner()))
                .collect(ImmutableList.toImmutableList()));
  }

  /** Vectors that are copied: what a team multiplies besides does not matter. */
  private int copied() {
    return Math.toIntExact(Math.ceilDiv(product.columns(), ROWS) * ROWS);
  }

  private int threads() {
    return teams * 128 + 32;
  }

  /** Statements that write a thread's results, and compute with them. */
  private String results(String rest) {
    var text = new StringBuilder();
    for (int p = 0; p < products.size(); p++) {
      var each = products.get(p);
      var result = HopperStreamedText.RESULT;
      if (stored.contains(each)) {
        result +=
            HopperStreamedText.STORE
                .replace("$RESULT", memory.pointer(StreamedProduct.written(each)))
                .replace("$LEADING", number(each.result().leading()));
      }
      text.append(
          result
              .replace("$P", number(p))
              .replace("$SUM", StreamedKernel.computed(memory, each, "sum[%s][e]".formatted(p))));
    }
    if (!rest.isEmpty()) {
      text.append(
          "        const long long i = ((long long)vector * $ROWS + first + row) / $WIDTH;\n");
    }
    return text.append(rest.indent(4)).toString();
  }

  private static String list(int count, String each) {
    return IntStream.range(0, count).mapToObj(each::formatted).collect(Collectors.joining(", "));
  }

  private static String number(long value) {
    return Long.toString(value);
  }
}
