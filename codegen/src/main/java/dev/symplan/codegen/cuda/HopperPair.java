package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import dev.symplan.codegen.cuda.KernelArgument.TensorMap;
import dev.symplan.ir.DType;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * A {@link ProductPair} of two large matrices, such as weights, and up to 128 vectors, such as
 * tokens, on Hopper GPUs. The time of it is that of reading the matrices, each element once.
 *
 * <p>A block has the same rows of both matrices, and all blocks run at once. One of its warps has
 * chunks of 64 columns copied into shared memory, as soon as earlier ones are multiplied: of
 * constant matrices even before what is ahead of the launch has ended. A team of four warps
 * multiplies 64 vectors. The sums get into shared memory, where a thread finds those of both
 * products for an element, and computes with them.
 */
final class HopperPair {

  /** Multiprocessors of an H100; with fewer, blocks follow each other. */
  private static final int BLOCKS = 132;

  /** Vectors of a team. */
  private static final int TEAM = 64;

  private static final int MAX_VECTORS = 2 * TEAM;

  /** Rows of a matrix that a block has: as many as are permuted together. */
  private static final int ROWS = 8;

  /** With more, the rows of both matrices are too many for an instruction. */
  private static final int MAX_ROWS = 128;

  /** Elements of a matrix at least: smaller ones stay in the cache. */
  private static final long MIN_ELEMENTS = 1 << 18;

  /** Bytes of a line of a box. */
  private static final int LINE = 128;

  private static final int DEPTH = TensorMap.BOX;
  private static final int MAX_STAGES = 8;
  private static final int SHARED_BYTES = 227 << 10;
  private static final int ALIGNMENT = 1 << 10;

  /** Tensor maps are aligned in arguments, whose size is a multiple of that. */
  private static final int POINTERS = 8;

  /** Rows of sums begin in other banks: eight floats apart, for two rows and pairs of columns. */
  private static final int BANKS = 32;

  private final ProductPair pair;
  private final Product product;
  private final int rows;
  private final int teams;
  private final int stages;

  private HopperPair(ProductPair pair) {
    this.pair = pair;
    this.product = pair.one();
    this.rows = rows(product);
    this.teams = teams(product);
    this.stages =
        Math.min(
            MAX_STAGES, (SHARED_BYTES - ALIGNMENT - 2 * MAX_STAGES * Long.BYTES) / stageBytes());
  }

  private static int teams(Product product) {
    return Math.toIntExact(Math.ceilDiv(product.columns(), TEAM));
  }

  /** The fewest rows with which all blocks run at once. */
  private static int rows(Product product) {
    return Math.toIntExact(Math.ceilDiv(Math.ceilDiv(product.rows(), BLOCKS), ROWS) * ROWS);
  }

  /** {@return whether a product can be one of a pair} */
  static boolean suits(Product product) {
    var dtype = product.dtype();
    return (dtype == DType.BF16 || dtype == DType.F16)
        && product.scales().isEmpty()
        && product.batches() == 1
        && product.columns() > StreamedProduct.MAX_VECTORS
        && product.columns() <= MAX_VECTORS
        && product.beta() == 0
        && product.rows() <= (long) BLOCKS * MAX_ROWS
        // Otherwise, blocks read the vectors for longer than the matrices.
        && 4 * 2 * rows(product) >= 3 * TEAM * teams(product)
        && product.rows() * product.inner() >= MIN_ELEMENTS
        && product.inner() <= Integer.MAX_VALUE - DEPTH
        && product.left().transposed()
        && !product.right().transposed()
        && !product.result().transposed()
        && map(product, product.left(), product.rows(), rows(product)).isEncodable()
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
   * {@return a launch of a pair whose products {@linkplain #suits suit}}
   *
   * @param fused the steps of the ops alone
   */
  static HopperLaunch launch(
      ProductPair pair, ConstantInputs constants, ImmutableList<DeviceStep> fused) {
    var otherwise =
        ImmutableList.<DeviceStep>builder().add(pair.one(), pair.other()).addAll(fused).build();
    return new HopperLaunch(
        new HopperPair(pair).launch(pair.areConstant(constants)), otherwise, false);
  }

  private int matrixBytes() {
    return rows * LINE;
  }

  private int stageBytes() {
    return 2 * matrixBytes() + teams * TEAM * LINE;
  }

  /** Floats from the sums of one vector to those of the next. */
  private int pitch() {
    return 2 * rows + Math.floorMod(8 - 2 * rows, BANKS);
  }

  private int dataBytes() {
    int sums = teams * TEAM * pitch() * Float.BYTES;
    return Math.max(stages * stageBytes(), Math.ceilDiv(sums, ALIGNMENT) * ALIGNMENT);
  }

  private Launch launch(boolean constant) {
    var memory = pair.memory();
    boolean bfloat = product.dtype() == DType.BF16;
    // Longer names first, as some begin like others.
    var text =
        HopperPairText.KERNEL
            .replace("$REST", pair.rest().indent(2))
            .replace("$AWAIT", constant ? "  %s\n".formatted(Kernel.AWAIT_BEFORE) : "")
            .replace("$RESULT0", result(pair.one()))
            .replace("$RESULT1", result(pair.other()))
            .replace("$SUM0", StreamedKernel.computed(memory, pair.one(), "sum0"))
            .replace("$SUM1", StreamedKernel.computed(memory, pair.other(), "sum1"))
            .replace("$NARROW", bfloat ? "to_bf16" : "to_f16")
            .replace("$WIDEN", bfloat ? "from_bf16" : "from_f16")
            .replace("$LEFT_NAME", number(rows))
            .replace("$RIGHT_NAME", number(rows + 1))
            .replace("$NAMES", sums("%%%s"))
            .replace("$SUMS", sums("\"+f\"(sums[%s])"))
            .replace("$LEFT_ACROSS", "0")
            .replace("$RIGHT_ACROSS", "0")
            .replace("$RIGHT", number(2L * rows))
            .replace("$TYPE", bfloat ? "bf16" : "f16")
            .replace("$DATA_BYTES", number(dataBytes()))
            .replace("$STAGE_BYTES", number(stageBytes()))
            .replace("$STAGES", number(stages))
            .replace("$MATRIX_BYTES", number(matrixBytes()))
            .replace("$BOX_BYTES", number(TensorMap.BOX * LINE))
            .replace("$CHUNKS", number(Math.ceilDiv(product.inner(), DEPTH)))
            .replace("$DEPTH", number(DEPTH))
            .replace("$LINE", number(LINE))
            .replace("$BLOCK_ROWS", number(rows))
            .replace("$PITCH", number(pitch()))
            .replace("$ROWS", number(product.rows()))
            .replace("$VECTORS", number(product.columns()))
            .replace("$TEAMS", number(teams))
            .replace("$MULTIPLYING", number(teams * 128L))
            .replace("$THREADS", number(threads()));
    int pointers = Math.ceilDiv(memory.words().size(), POINTERS) * POINTERS;
    text = text.replace("$POINTERS", number(pointers));
    var words =
        ImmutableList.<KernelArgument>builder()
            .add(
                map(product, pair.one().left(), product.rows(), rows),
                map(product, pair.other().left(), product.rows(), rows),
                map(product, product.right(), product.columns(), teams * TEAM))
            .addAll(memory.words());
    for (int i = memory.words().size(); i < pointers; i++) {
      words.add(new KernelArgument.Number(0));
    }
    return new Launch(
            product.stream(),
            new Kernel(CTypes.PRELUDE + text),
            Math.toIntExact(Math.ceilDiv(product.rows(), rows)),
            threads(),
            words.build(),
            pair.label())
        .withShared(ALIGNMENT + dataBytes() + 2 * stages * Long.BYTES)
        .streaming(
            Stream.of(pair.one(), pair.other())
                .map(each -> StreamedKernel.memory(each.left(), each.rows(), each.inner()))
                .collect(ImmutableList.toImmutableList()))
        .with(pair.shares());
  }

  private int threads() {
    return teams * 128 + 32;
  }

  private String result(Product each) {
    Memory memory = StreamedProduct.written(each);
    return pair.memory().pointer(memory);
  }

  private String sums(String each) {
    return IntStream.range(0, rows).mapToObj(each::formatted).collect(Collectors.joining(", "));
  }

  private static String number(long value) {
    return Long.toString(value);
  }
}
