package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.AttentionLowering.Problem;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import dev.symplan.ir.DType;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.GeneratedAttention;
import java.util.List;
import java.util.Optional;

/**
 * Attention that no library computes: in f32, without tensor cores.
 *
 * <p>A block has a tile of rows of queries. Tiles of keys and values go by in shared memory, and
 * the softmax goes along (Milakov and Gimelshein 2018), so that scores are never in memory. A team
 * of four warps computes the products of such a tile: each of its threads those of some rows, eight
 * apart, by some keys or features, sixteen apart. While a team has values multiplied, its next keys
 * are on their way, and the other way round. Two teams of a block take tiles by turns and add up
 * their results in the end.
 *
 * <p>Products and sums are fused by name, as kernels are compiled without contraction.
 *
 * <p>Tiles behind the last key that a causal row sees are left out. Blocks with the most tiles come
 * first.
 */
final class TiledAttention {

  /** Of a team. */
  private static final int THREADS = 128;

  private static final int ROWS_APART = 8;
  private static final int LINES_APART = THREADS / ROWS_APART;

  /** Elements of a vector in shared memory. */
  private static final int FOUR = Alignment.VECTOR / Float.BYTES;

  /**
   * How a block shares its work.
   *
   * @param rows of queries
   * @param keys of a tile
   */
  private record Tile(int rows, int keys, int teams) {}

  private final Problem problem;
  private final Tile tile;
  private final MemoryArguments memory = new MemoryArguments();
  private final int features;
  private final int width;

  private TiledAttention(Problem problem, Tile tile) {
    this.problem = problem;
    this.tile = tile;
    this.features = Math.toIntExact(problem.query().type().size(3));
    this.width = Math.toIntExact(problem.value().type().size(3));
  }

  static boolean suits(Problem problem) {
    return GeneratedAttention.suits(
            problem.query().type(), problem.key().type(), problem.value().type())
        && !GeneratedAttention.hasFewRows(problem.query().type());
  }

  /**
   * {@return a launch that computes attention}
   *
   * <p>Hopper GPUs have 227 KiB of shared memory for a block, all others with these instructions
   * have 99 KiB at least.
   *
   * @param logs where the logarithm of each row's sum goes
   */
  static HopperLaunch launch(Problem problem, TensorRef out, Optional<TensorRef> logs) {
    long most = Math.max(problem.query().type().size(3), problem.value().type().size(3));
    var hopper = new Tile(64, most <= 64 ? 128 : most <= 128 ? 64 : 32, 2);
    var other =
        most <= 64 ? new Tile(64, 64, 1) : most <= 128 ? new Tile(64, 32, 1) : new Tile(32, 16, 1);
    return new HopperLaunch(
        new TiledAttention(problem, hopper).launchTile(out, logs),
        ImmutableList.of(new TiledAttention(problem, other).launchTile(out, logs)),
        false);
  }

  private Launch launchTile(TensorRef out, Optional<TensorRef> logs) {
    var query = problem.query().type();
    int unit = unit();
    int ofWidth = Math.ceilDiv(width, LINES_APART * unit);
    int valuePitch = ofWidth * LINES_APART * unit;
    int ofRows = tile.rows() / ROWS_APART;
    // A multiple of 16 that is none of 32: the two rows of a warp are in different banks.
    int weightPitch = tile.keys() + (tile.keys() % 32 == 0 ? 16 : 32);
    int ofTiles = tile.keys() * (pitch() + valuePitch) + tile.rows() * weightPitch;
    // A team's results, and the largest and the sum of each row.
    int ofResults = THREADS * ofRows * (ofWidth * unit + 2);
    int teamFloats = tile.teams() == 1 ? ofTiles : Math.max(ofTiles, ofResults);
    long rowTiles = Math.ceilDiv(query.size(2), tile.rows());
    long heads = query.size(0) * query.size(1);
    var constants = new StringBuilder("\n");
    constant(constants, "ROWS", tile.rows());
    constant(constants, "KEYS", tile.keys());
    constant(constants, "TEAMS", tile.teams());
    constant(constants, "WIDTH", width);
    constant(constants, "PADDED", padded(features));
    constant(constants, "PITCH", pitch());
    constant(constants, "VALUE_PITCH", valuePitch);
    constant(constants, "WEIGHT_PITCH", weightPitch);
    constant(constants, "TEAM_FLOATS", teamFloats);
    constant(constants, "UNIT", unit);
    constant(constants, "OF_ROWS", ofRows);
    constant(constants, "OF_KEYS", tile.keys() / LINES_APART);
    constant(constants, "OF_WIDTH", ofWidth);
    constant(constants, "ALL_ROWS", query.size(2));
    constant(constants, "ALL_KEYS", problem.key().type().size(2));
    constant(constants, "ROW_TILES", rowTiles);
    constant(constants, "HEADS", query.size(1));
    constant(constants, "ALL_HEADS", heads);
    constant(constants, "CAUSAL", problem.causal() ? 1 : 0);
    constant(constants, "BIASED", problem.bias().isPresent() ? 1 : 0);
    constants.append(
        "\nstruct alignas(%s) Unit {\n  float of[UNIT];\n};\n".formatted(unit * Float.BYTES));
    var keyHead = "h / " + problem.group();
    var loads =
        load("queries", problem.query(), "h", tile.rows(), tile.teams() * THREADS, pitch())
            + load("keys", problem.key(), keyHead, tile.keys(), THREADS, pitch())
            + load("values", problem.value(), keyHead, tile.keys(), THREADS, valuePitch);
    var type = out.type().dtype();
    boolean byVectors = unit == FOUR && width % FOUR == 0 && isByVectors(out);
    var text =
        TiledAttentionText.TEXT
            .replace("$STEPS", Integer.toString(stepsAtOnce()))
            .replace("$LOADS", loads)
            .replace("$STORE_LOG", logs.map(this::storeLog).orElse(""))
            .replace(
                "$STORE",
                byVectors ? TiledAttentionText.STORE_VECTOR : TiledAttentionText.STORE_EACH)
            .replace("$OUT", element(out, List.of("b", "h", "q", "d")))
            .replace("$NARROW", CTypes.narrow(type, "out[i][j][u]"))
            .replace("$BIAS", problem.bias().map(this::added).orElse("0"))
            .replace("$SCALE", Literals.floating(problem.scale(), false))
            .replace("$INFINITY", Literals.floating(Double.POSITIVE_INFINITY, false));
    return memory
        .launch(
            problem.stream(),
            CTypes.PRELUDE + memory.struct() + constants + text,
            rowTiles * heads,
            Integer.MAX_VALUE,
            tile.teams() * THREADS,
            problem.label())
        .withShared(Float.BYTES * (tile.rows() * pitch() + tile.teams() * teamFloats));
  }

  /**
   * Steps of a product that are written out. What is best was measured on an H100, and differs by
   * up to 9 %; more steps take far longer where they do not divide the loop.
   */
  private int stepsAtOnce() {
    return !problem.causal() && features > 64 && features % 64 == 0 ? 16 : 8;
  }

  private static void constant(StringBuilder to, String name, long value) {
    to.append("constexpr int %s = %s;\n".formatted(name, value));
  }

  private static int padded(int elements) {
    return Math.ceilDiv(elements, FOUR) * FOUR;
  }

  /**
   * Floats of a line of queries or keys: an odd number of vectors, so that lines differ in banks.
   */
  private int pitch() {
    return FOUR * (padded(features) / FOUR | 1);
  }

  /** Features next to each other that a thread has: many, but not where others then have none. */
  private int unit() {
    int unit = FOUR;
    while (unit > 1
        && 4 * Math.ceilDiv(width, LINES_APART * unit) * LINES_APART * unit > 5 * width) {
      unit /= 2;
    }
    return unit;
  }

  private String load(String name, TensorRef ref, String head, int count, int by, int pitch) {
    int wide = Math.toIntExact(ref.type().size(3));
    var element = element(ref, List.of("b", head, "line", "d"));
    return TiledAttentionText.LOAD
        .replace(
            "$BODY",
            isByVectors(ref) ? TiledAttentionText.LOAD_VECTORS : TiledAttentionText.LOAD_EACH)
        .replace("$NAME", name)
        .replace("$ELEMENT", element)
        .replace("$VALUE", CTypes.widen(ref.type().dtype(), element))
        .replace("$STRIDE", Long.toString(ref.type().stride(2)))
        .replace("$COUNT", Integer.toString(count))
        .replace("$WIDE", Integer.toString(wide))
        .replace("$PADDED", Integer.toString(padded(wide)))
        .replace("$PITCH", Integer.toString(pitch))
        .replace("$ALL", Long.toString(ref.type().size(2)))
        .replace("$BY", Integer.toString(by));
  }

  private String element(TensorRef ref, List<String> indices) {
    return memory.element(
        CTypes.stored(ref.type().dtype()),
        Memory.of(problem.rank(), ref),
        Indices.offset(ref.type(), indices));
  }

  /** Whether lines are floats that begin at multiples of 16 bytes. */
  private boolean isByVectors(TensorRef ref) {
    var type = ref.type();
    if (type.dtype() != DType.F32 || type.size(3) > 1 && type.stride(3) != 1) {
      return false;
    }
    for (int dim = 0; dim < 3; dim++) {
      if (type.size(dim) > 1 && type.stride(dim) % FOUR != 0) {
        return false;
      }
    }
    return Memory.of(problem.rank(), ref).address().isVectorAligned();
  }

  private String storeLog(TensorRef ref) {
    var log = "(sums[i] == 0 ? $INFINITY : most[i] + logf(sums[i]))";
    return "if (own_line == 0) {\n        %s = %s;\n      }"
        .formatted(
            element(ref, List.of("b", "h", "q", "0")), CTypes.narrow(ref.type().dtype(), log));
  }

  private String added(TensorRef ref) {
    var dtype = ref.type().dtype();
    var own = CTypes.widen(dtype, element(ref, List.of("b", "h", "q", "k")));
    return dtype == DType.BOOL ? "(%s ? 0.0f : -$INFINITY)".formatted(own) : "(float)" + own;
  }
}
