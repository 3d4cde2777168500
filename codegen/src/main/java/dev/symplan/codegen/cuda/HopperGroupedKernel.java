package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.math.LongMath;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.GroupedProduct.Form;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import dev.symplan.codegen.cuda.KernelArgument.TensorMap;
import dev.symplan.ir.DType;
import dev.symplan.planner.machine.Alignment;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A {@link GroupedProduct} on Hopper GPUs.
 *
 * <p>A tile of the result has 128 lines of one operand, its left one, by some of the other. This is
 * the product or its transpose: tensor cores take at least 64 lines from the left, and a group may
 * have a few only.
 *
 * <p>There is one block for each multiprocessor, which takes one tile after the other. One of its
 * warps has chunks of 64 inner elements copied into shared memory, as soon as earlier ones are
 * multiplied. Two teams of four warps multiply 64 lines each, and write their sums by way of shared
 * memory, so that neighbours are written together.
 *
 * <p>A copy begins at a multiple of 16 bytes. Where elements of the dimension that groups share are
 * side by side, tiles begin there, too, and leave out what belongs to the group before.
 */
final class HopperGroupedKernel {

  /** Multiprocessors of an H100; with fewer, blocks follow each other. */
  private static final int BLOCKS = 132;

  private static final int TILE_LEFT = 128;
  private static final int TEAMS = 2;
  private static final int MULTIPLYING = TEAMS * 128;
  private static final int THREADS = MULTIPLYING + 32;

  /** Bytes of a line of a box, and elements of it. */
  private static final int LINE = 128;

  private static final int DEPTH = TensorMap.BOX;

  /** Tiles next to each other that share what they read. */
  private static final int BAND = 8;

  /** Elements of 16 bytes. */
  private static final int CHUNK = Alignment.VECTOR / 2;

  /** Tensor maps are aligned in arguments, whose size is a multiple of that. */
  private static final int POINTERS = 8;

  /** Numbers of lines and elements are 32-bit integers, and remain so when tiles are added. */
  private static final long MOST = 1L << 30;

  /**
   * How many lines of the right operand a tile has.
   *
   * @param stages chunks in shared memory
   */
  private record Tile(int right, int stages) {
    int stageBytes() {
      return (TILE_LEFT + right) * LINE;
    }
  }

  private static final Tile LARGE = new Tile(256, 4);
  private static final Tile MIDDLE = new Tile(128, 5);
  private static final Tile FLAT = new Tile(64, 8);

  /**
   * An operand of the product or of its transpose.
   *
   * @param ref with lines and inner elements as its last two dimensions, in some order
   * @param lineDim which of them are lines, counted from the last
   */
  private record Side(TensorRef ref, int lineDim) {
    long lines() {
      return ref.type().size(ref.type().rank() - 1 - lineDim);
    }

    long inner() {
      return ref.type().size(ref.type().rank() - 2 + lineDim);
    }

    boolean isByInner() {
      return GroupedProduct.stride(ref, 1 - lineDim) == 1;
    }

    /** How boxes of 64 inner elements by so many lines are copied, or of 64 lines. */
    TensorMap map(int rank, int tile) {
      boolean byInner = isByInner();
      boolean grouped = ref.type().rank() == 3;
      long pitch = GroupedProduct.stride(ref, byInner ? lineDim : 1 - lineDim);
      long far = byInner ? lines() : inner();
      return new TensorMap(
          Memory.of(rank, ref).address(),
          byInner ? inner() : lines(),
          far,
          pitch,
          grouped ? ref.type().size(0) : 1,
          grouped ? GroupedProduct.groupStride(ref) : far * pitch,
          byInner ? tile : DEPTH);
    }

    String load(String name, int tile) {
      var group = ref.type().rank() == 3 ? "walk.group" : "0";
      return isByInner()
          ? "        load(%1$s, &args.%1$s, k, first_%1$s, %2$s, barrier);\n".formatted(name, group)
          : IntStream.range(0, tile / TensorMap.BOX)
              .mapToObj(
                  i ->
                      "        load(%1$s + %2$s, &args.%1$s, first_%1$s + %3$s, k, %4$s, barrier);\n"
                          .formatted(name, i * TensorMap.BOX * LINE, i * TensorMap.BOX, group))
              .collect(Collectors.joining());
    }
  }

  private final GroupedProduct product;
  private final Tile tile;
  private final boolean flipped;
  private final Side left;
  private final Side right;
  private final MemoryArguments memory = new MemoryArguments();
  private final int rank;

  private HopperGroupedKernel(int rank, GroupedProduct product) {
    this.rank = rank;
    this.product = product;
    long lines = Math.ceilDiv(product.shared(), product.groups());
    boolean inner = product.form() == Form.INNER;
    this.tile = inner || lines > MIDDLE.right() ? LARGE : lines > FLAT.right() ? MIDDLE : FLAT;
    boolean sharedAtRight = tile == FLAT;
    this.flipped = !inner && sharedAtRight == (product.form() == Form.ROWS);
    var rows = new Side(product.left(), 1);
    var columns = new Side(product.right(), 0);
    this.left = flipped ? columns : rows;
    this.right = flipped ? rows : columns;
  }

  /** {@return whether there is a kernel for a product that tensor cores can compute} */
  static boolean suits(GroupedProduct product) {
    var kernel = new HopperGroupedKernel(0, product);
    long tiles =
        LongMath.saturatedMultiply(
            kernel.nearTiles(),
            LongMath.saturatedMultiply(kernel.farTiles(), product.groups() + 1));
    return (kernel.isByRight() || kernel.resultStride(true) == 1)
        && kernel.left.map(0, TILE_LEFT).isEncodable()
        && kernel.right.map(0, kernel.tile.right()).isEncodable()
        && Math.max(product.rows(), product.columns()) <= MOST
        && product.inner() <= MOST
        && tiles <= MOST * BLOCKS;
  }

  static HopperLaunch launch(
      int rank, OpArguments arguments, GroupedProduct product, Launch otherwise) {
    return new HopperGroupedKernel(rank, product).launch(arguments, otherwise);
  }

  /** Whether elements of the result along lines of the right operand are side by side. */
  private boolean isByRight() {
    return resultStride(false) == 1;
  }

  private long resultStride(boolean alongLeft) {
    return GroupedProduct.stride(product.result(), alongLeft != flipped ? 1 : 0);
  }

  private boolean isSharedAtLeft() {
    return tile != FLAT;
  }

  private long nearTiles() {
    return Math.ceilDiv(
            isSharedAtLeft() ? left.lines() : right.lines(),
            isSharedAtLeft() ? TILE_LEFT : tile.right())
        + 2;
  }

  private long farTiles() {
    return isSharedAtLeft()
        ? Math.ceilDiv(right.lines(), tile.right())
        : Math.ceilDiv(left.lines(), TILE_LEFT);
  }

  private HopperLaunch launch(OpArguments arguments, Launch otherwise) {
    boolean inner = product.form() == Form.INNER;
    var result = product.result();
    int bytes = result.type().dtype().bytes();
    int piece = LINE / bytes;
    int pieceLines = isByRight() ? TILE_LEFT / TEAMS : piece;
    int pieceElements = isByRight() ? piece : TILE_LEFT / TEAMS;
    int pitch = pieceElements * bytes + Alignment.VECTOR;
    // Multiples of 128 bytes.
    int pieceBytes = Math.ceilDiv(pieceLines * pitch, LINE) * LINE;
    int vector = isWrittenByVectors() ? Alignment.VECTOR / bytes : 1;
    var near = isSharedAtLeft() ? left : right;
    long nearTile = isSharedAtLeft() ? TILE_LEFT : tile.right();
    long skew = inner || near.isByInner() ? 0 : CHUNK - 1;
    var type = CTypes.stored(result.type().dtype());
    // Longer names first, as some begin like others.
    var text =
        HopperGroupedText.KERNEL
            .replace(
                "$PLACE\n", inner ? HopperGroupedText.PLACE_INNER : HopperGroupedText.PLACE_NEAR)
            .replace("$LOAD\n", left.load("left", TILE_LEFT) + right.load("right", tile.right()))
            .replace("$CLEAR\n", inner ? HopperGroupedText.CLEAR : "")
            .replace("$STAGE_SUMS\n", stageSums(pitch, bytes, type))
            .replace("$NEAR_TILES", inner ? number(nearTiles() - 2) : sharedTiles(skew, nearTile))
            .replace("$NEAR_TILE", number(nearTile))
            .replace("$NEAR", isSharedAtLeft() ? "left" : "right")
            .replace("$FAR_TILES", number(farTiles()))
            .replace("$FAR_TILE", number(isSharedAtLeft() ? tile.right() : TILE_LEFT))
            .replace("$FAR_LINES", number((isSharedAtLeft() ? right : left).lines()))
            .replace("$FAR", isSharedAtLeft() ? "right" : "left")
            .replace("$SKEW", number(skew))
            .replace("$ALL_CHUNKS", number(Math.ceilDiv(product.inner(), DEPTH)))
            .replace("$LAST_GROUP", number(product.groups() - (inner ? 1 : 0)))
            .replace(
                "$NEXT_END",
                inner
                    ? "$END(group)"
                    : "group < $GROUPS ? $END(group) : %s".formatted(product.shared()))
            .replaceAll(
                "\\$END\\(([^)]*)\\)",
                "((const int*)%s)[($1) * %s]"
                    .formatted(
                        memory.pointer(Memory.of(rank, product.ends())),
                        GroupedProduct.stride(product.ends(), 0)))
            .replace("$VECTOR_TYPE", vector > 1 ? "Eight" : type)
            .replace("$VECTOR", number(vector))
            .replace("$PIECE_LINES", number(pieceLines))
            .replace("$PIECE_ELEMENTS", number(pieceElements))
            .replace("$PIECE_BYTES", number(pieceBytes))
            .replace("$PIECE", number(piece))
            .replace("$PITCH", number(pitch))
            .replace("$ELEMENT_BYTES", number(bytes))
            .replace("$AT_LEFT", isByRight() ? "line" : "element")
            .replace("$AT_RIGHT", isByRight() ? "element" : "line")
            .replace("$LEFT_STRIDE", number(resultStride(true)))
            .replace("$RIGHT_STRIDE", number(resultStride(false)))
            .replace("$OF_RESULT", inner ? "walk.group" : "0")
            .replace("$RESULT_TYPE", type)
            .replace("$RESULT_GROUP", number(GroupedProduct.groupStride(result)))
            .replace("$RESULT", memory.pointer(Memory.of(rank, result)))
            .replace("$LEFT_NAME", number(tile.right() / 2))
            .replace("$RIGHT_NAME", number(tile.right() / 2 + 1))
            .replace("$NAMES", sums("%%%s"))
            .replace("$SUMS", sums("\"+f\"(sums[%s])"))
            .replace("$LEFT_ACROSS", left.isByInner() ? "0" : "1")
            .replace("$RIGHT_ACROSS", right.isByInner() ? "0" : "1")
            .replace("$LEFT_STEP", number(left.isByInner() ? 16 * 2 : 16 * LINE))
            .replace("$RIGHT_STEP", number(right.isByInner() ? 16 * 2 : 16 * LINE))
            .replace("$LEFT_LINES", number(left.lines()))
            .replace("$RIGHT_LINES", number(right.lines()))
            .replace("$LEFT_BYTES", number(TILE_LEFT * LINE))
            .replace("$TILE_LEFT", number(TILE_LEFT))
            .replace("$RIGHT", number(tile.right()))
            .replace("$TYPE", product.left().type().dtype() == DType.BF16 ? "bf16" : "f16")
            .replace("$STAGE_BYTES", number(tile.stageBytes()))
            .replace("$STAGES", number(tile.stages()))
            .replace("$BOX_BYTES", number(TensorMap.BOX * LINE))
            .replace("$BAND", number(BAND))
            .replace("$LINE", number(LINE))
            .replace("$DEPTH", number(DEPTH))
            .replace("$TEAMS", number(TEAMS))
            .replace("$MULTIPLYING", number(MULTIPLYING))
            .replace("$THREADS", number(THREADS))
            .replace("$POINTERS", number(POINTERS))
            .replace("$GROUPS", number(product.groups()))
            .replace("$SHARED", number(product.shared()));
    var words =
        ImmutableList.<KernelArgument>builder()
            .add(left.map(rank, TILE_LEFT), right.map(rank, tile.right()))
            .addAll(memory.words());
    for (int i = memory.words().size(); i < POINTERS; i++) {
      words.add(new KernelArgument.Number(0));
    }
    long tiles = nearTiles() * farTiles() * (product.groups() + 1);
    int shared = 1024 + tile.stages() * (tile.stageBytes() + 2 * Long.BYTES) + TEAMS * pieceBytes;
    var launch =
        new Launch(
            arguments.op().stream(),
            new Kernel(CTypes.PRELUDE + text),
            (int) Math.min(BLOCKS, tiles),
            THREADS,
            words.build(),
            arguments.op().name());
    return new HopperLaunch(launch.withShared(shared), ImmutableList.of(otherwise), true);
  }

  /** {@return the number of tiles of the group of a walk} */
  private static String sharedTiles(long skew, long nearTile) {
    return "(end > begin ? (end - (begin & ~%s) + %s) / %s : 0)"
        .formatted(skew, nearTile - 1, nearTile);
  }

  private String sums(String each) {
    return IntStream.range(0, tile.right() / 2)
        .mapToObj(each::formatted)
        .collect(Collectors.joining(", "));
  }

  /** A lane has neighbours along the right, in two lines of the left. */
  private String stageSums(int pitch, int bytes, String type) {
    var dtype = product.result().type().dtype();
    boolean pairs = isByRight() && bytes == 2;
    return IntStream.range(0, 4)
        .filter(i -> !pairs || i % 2 == 0)
        .mapToObj(
            i -> {
              var row = i < 2 ? "row" : "(row + 8)";
              var column = i % 2 == 0 ? "column" : "(column + 1)";
              var value = CTypes.narrow(dtype, "four[%s]".formatted(i));
              var next = CTypes.narrow(dtype, "four[%s]".formatted(i + 1));
              return "        *(%s*)(piece + %s * %s + %s * %s) = %s;\n"
                  .formatted(
                      pairs ? "unsigned" : type,
                      isByRight() ? row : column,
                      pitch,
                      isByRight() ? column : row,
                      bytes,
                      pairs ? "(unsigned)%s | (unsigned)%s << 16".formatted(value, next) : value);
            })
        .collect(Collectors.joining());
  }

  /** Whether all pieces' lines are vectors of 16 bytes in the result, too. */
  private boolean isWrittenByVectors() {
    var result = product.result();
    long unit = Alignment.VECTOR / result.type().dtype().bytes();
    long elements = isByRight() ? right.lines() : left.lines();
    boolean shared = product.form() != Form.INNER && isByRight() != isSharedAtLeft();
    return !shared
        && elements % unit == 0
        && resultStride(isByRight()) % unit == 0
        && GroupedProduct.groupStride(result) % unit == 0
        && Memory.of(rank, result).address().isVectorAligned();
  }

  private static String number(long value) {
    return Long.toString(value);
  }
}
