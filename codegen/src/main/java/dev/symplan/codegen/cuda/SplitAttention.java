package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.AttentionLowering.Problem;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import dev.symplan.ir.DType;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.GeneratedAttention;
import java.util.List;
import java.util.Optional;

/**
 * Attention of few rows that no library computes, such as one query of a text that is written: in
 * f32, without tensor cores. Its time is that of reading keys and values.
 *
 * <p>Blocks share the keys of a head, so that all multiprocessors read ("Flash-Decoding", Dao et
 * al. 2023). All rows that see the same keys, those of a group of heads too, are in one tile, if it
 * has room for them. Each warp takes 32 keys at a time: some lanes read a key together, and add up
 * its products with all rows. Then each lane has the scores of one key, and in the end some
 * features of the results. A second kernel puts the results of blocks together, in an order that
 * depends on nothing but sizes.
 */
final class SplitAttention {
  private static final int WARP = 32;
  private static final int WARPS = 4;
  private static final int THREADS = WARPS * WARP;

  /** Rows of a tile, unless their results take more registers than a thread has. */
  private static final int MAX_ROWS = 16;

  /** Results of a thread. */
  private static final int MAX_RESULTS = 64;

  /** Features of a key that a lane reads: more lanes read a key that has more. */
  private static final int MAX_FEATURES_OF_LANE = 16;

  /** Lanes that read a key together at least, so that they read 128 bytes next to each other. */
  private static final int MIN_KEY_LANES = 8;

  /** Keys whose elements a lane has at once. */
  private static final int AT_ONCE = 4;

  /** Large GPUs have so many multiprocessors. */
  private static final int MULTIPROCESSORS = 132;

  /** With fewer keys, a block would have warps without any. */
  private static final long MIN_SPLIT_KEYS = THREADS;

  /** With more tiles, or fewer keys, cuDNN's tensor cores take less time. */
  private static final long MAX_ALIKE = 32;

  private static final long MIN_LONG = 1024;

  private final Problem problem;
  private final long allRows;
  private final long heads;
  private final long groups;
  private final int features;
  private final int width;
  private final int keyUnit;
  private final int valueUnit;
  private final int keyLanes;
  private final int ofFeatures;
  private final int valueLanes;
  private final int ofWidth;
  private final int rows;
  private final long tiles;
  private final int blocksAtATime;
  private final long seen;
  private final long splitKeys;
  private final long splits;

  private SplitAttention(Problem problem) {
    this.problem = problem;
    var query = problem.query().type();
    allRows = query.size(2);
    heads = query.size(1);
    groups = problem.key().type().size(1);
    features = Math.toIntExact(query.size(3));
    width = Math.toIntExact(problem.value().type().size(3));
    keyUnit = unit(problem.key());
    valueUnit = unit(problem.value());
    int lanes = keyUnit < AT_ONCE ? WARP : MIN_KEY_LANES;
    while (lanes < WARP
        && Math.ceilDiv(features, lanes * keyUnit) * keyUnit > MAX_FEATURES_OF_LANE) {
      lanes *= 2;
    }
    keyLanes = lanes;
    ofFeatures = Math.ceilDiv(features, keyLanes * keyUnit);
    valueLanes = Math.min(WARP, powerOfTwo(Math.ceilDiv(width, valueUnit)));
    ofWidth = Math.ceilDiv(width, valueLanes * valueUnit);
    long ofGroup = allRows * problem.group();
    rows =
        Math.min(
            Math.min(MAX_ROWS, Integer.highestOneBit(MAX_RESULTS / (ofWidth * valueUnit))),
            powerOfTwo(Math.toIntExact(Math.min(ofGroup, MAX_ROWS))));
    tiles = Math.ceilDiv(ofGroup, rows);
    // More would leave a thread too few registers.
    blocksAtATime = rows > AT_ONCE ? 2 : 4;
    long keys = problem.key().type().size(2);
    seen = problem.causal() ? Math.min(keys, allRows) : keys;
    long wanted =
        Math.clamp(
            (long) MULTIPROCESSORS * blocksAtATime / alike(),
            1,
            Math.ceilDiv(seen, MIN_SPLIT_KEYS));
    splitKeys = Math.ceilDiv(Math.ceilDiv(seen, wanted), WARP) * WARP;
    splits = Math.ceilDiv(seen, splitKeys);
  }

  static boolean suits(Problem problem) {
    return GeneratedAttention.suits(
            problem.query().type(), problem.key().type(), problem.value().type())
        && GeneratedAttention.hasFewRows(problem.query().type());
  }

  /**
   * {@return whether cuDNN takes longer} It divides the keys of single rows only, so that several
   * rows of few heads leave most multiprocessors idle.
   */
  static boolean isFaster(Problem problem) {
    if (!suits(problem) || problem.query().type().size(2) == 1) {
      return false;
    }
    var attention = new SplitAttention(problem);
    return attention.alike() <= MAX_ALIKE && attention.seen >= MIN_LONG;
  }

  /**
   * {@return the launches that compute attention}
   *
   * @param logs where the logarithm of each row's sum goes
   */
  static ImmutableList<DeviceStep> launches(
      Problem problem, TensorRef out, Optional<TensorRef> logs) {
    var attention = new SplitAttention(problem);
    return attention.splits == 1
        ? ImmutableList.of(attention.whole(out, logs))
        : ImmutableList.of(attention.parts(), attention.merge(out, logs));
  }

  private Launch whole(TensorRef out, Optional<TensorRef> logs) {
    var memory = new MemoryArguments();
    return parts(memory, store(memory, out, logs));
  }

  private Launch parts() {
    return parts(new MemoryArguments(), SplitAttentionText.STORE_PART);
  }

  private Launch parts(MemoryArguments memory, String store) {
    var constants = constants(THREADS);
    constant(constants, "WARPS", WARPS);
    constant(constants, "BLOCKS_AT_A_TIME", blocksAtATime);
    constant(constants, "ROWS", rows);
    constant(constants, "PITCH", pitch());
    constant(constants, "SHARED", Math.max(rows * (pitch() + THREADS), WARPS * rows * width));
    constant(constants, "TILES", tiles);
    constant(constants, "GROUPS", groups);
    constant(constants, "HEADS_OF_GROUP", problem.group());
    constant(constants, "ROWS_OF_GROUP", allRows * problem.group());
    constant(constants, "SPLIT_KEYS", splitKeys);
    constant(constants, "SEEN", seen);
    constant(constants, "CAUSAL", problem.causal() ? 1 : 0);
    constant(constants, "FEATURES", features);
    constant(constants, "KEY_UNIT", keyUnit);
    constant(constants, "KEY_LANES", keyLanes);
    constant(constants, "OF_FEATURES", ofFeatures);
    constant(constants, "AT_ONCE", AT_ONCE);
    constant(constants, "VALUE_UNIT", valueUnit);
    constant(constants, "VALUE_LANES", valueLanes);
    constant(constants, "OF_WIDTH", ofWidth);
    var key = problem.key().type().dtype();
    var value = problem.value().type().dtype();
    var bias =
        problem
            .bias()
            .map(
                ref ->
                    ";\n                  const int h = g * HEADS_OF_GROUP + row / ALL_ROWS;"
                        + "\n                  score += "
                        + added(memory, ref))
            .orElse("");
    var text =
        SplitAttentionText.PARTS
            .replace("$STORE", store)
            .replace("$BIAS", bias)
            .replace("$QUERY", value(memory, problem.query(), "b", "h", "q", "d"))
            .replace("$KEY_BYTES", Integer.toString(keyUnit * key.bytes()))
            .replace("$KEY_TYPE", CTypes.stored(key))
            .replace("$KEY_ELEMENT", CTypes.widen(key, "keys[i].of[u]"))
            .replace("$KEY", element(memory, problem.key(), "b", "g", "k", "d"))
            .replace("$VALUE_BYTES", Integer.toString(valueUnit * value.bytes()))
            .replace("$VALUE_TYPE", CTypes.stored(value))
            .replace("$VALUE_ELEMENT", CTypes.widen(value, "values[s].of[u]"))
            .replace("$VALUE", element(memory, problem.value(), "b", "g", "k", "d"))
            .replace("$SCALE", Literals.floating(problem.scale(), false));
    return launch(memory, constants + text, alike() * splits, THREADS);
  }

  private Launch merge(TensorRef out, Optional<TensorRef> logs) {
    var memory = new MemoryArguments();
    int threads = Math.min(2 * THREADS, Math.ceilDiv(width, WARP) * WARP);
    var text = SplitAttentionText.MERGE.replace("$STORE", store(memory, out, logs));
    return launch(memory, constants(threads) + text, rowsOfAllHeads(), threads);
  }

  private Launch launch(MemoryArguments memory, String text, long blocks, int threads) {
    boolean inParts = splits > 1;
    long stride = width + 2L;
    var struct =
        "\nstruct Args {\n%s%s};\n".formatted(memory.member(), inParts ? "  float* parts;\n" : "");
    var words = ImmutableList.<KernelArgument>builder().addAll(memory.words());
    if (inParts) {
      words.add(
          new KernelArgument.Memory(
              Address.scratch(problem.rank(), 0),
              rowsOfAllHeads() * splits * stride * Float.BYTES));
    }
    return new Launch(
        problem.stream(),
        new Kernel(
            CTypes.PRELUDE
                + struct
                + text.replace("$PARTIAL_OUT", "args.parts[at * %s + d]".formatted(stride))
                    .replace("$PARTIAL_MOST", "args.parts[at * %s + WIDTH]".formatted(stride))
                    .replace("$PARTIAL_SUM", "args.parts[at * %s + WIDTH + 1]".formatted(stride))
                    .replace("$INFINITY", Literals.floating(Double.POSITIVE_INFINITY, false))),
        Math.toIntExact(blocks),
        threads,
        words.build(),
        problem.label());
  }

  private StringBuilder constants(int threads) {
    var constants = new StringBuilder("\n");
    constant(constants, "THREADS", threads);
    constant(constants, "ALL_ROWS", allRows);
    constant(constants, "HEADS", heads);
    constant(constants, "WIDTH", width);
    constant(constants, "SPLITS", splits);
    return constants;
  }

  private static void constant(StringBuilder to, String name, long value) {
    to.append("constexpr int %s = %s;\n".formatted(name, value));
  }

  private long rowsOfAllHeads() {
    return problem.query().type().size(0) * heads * allRows;
  }

  /** Floats of a query, with zeros for lanes without features. */
  private int pitch() {
    return keyLanes * keyUnit * ofFeatures;
  }

  /** Blocks that have the same keys, in other heads or for other rows. */
  private long alike() {
    return problem.query().type().size(0) * groups * tiles;
  }

  private static int powerOfTwo(int atLeast) {
    return atLeast <= 1 ? 1 : 2 * Integer.highestOneBit(atLeast - 1);
  }

  /** Elements next to each other that a lane reads at once: 16 bytes, or fewer, or one. */
  private static int unit(TensorRef ref) {
    var type = ref.type();
    int unit = Alignment.VECTOR / type.dtype().bytes();
    while (unit > 1 && !isByUnits(ref, unit)) {
      unit /= 2;
    }
    return unit;
  }

  /** Whether all lines begin at a multiple of so many elements, and have such a number. */
  private static boolean isByUnits(TensorRef ref, int unit) {
    var type = ref.type();
    boolean apart = true;
    for (int dim = 0; dim < 3; dim++) {
      apart &= type.size(dim) == 1 || type.stride(dim) % unit == 0;
    }
    return apart
        && type.size(3) % unit == 0
        && type.stride(3) == 1
        && ref.offset() % ((long) unit * type.dtype().bytes()) == 0;
  }

  private String element(MemoryArguments memory, TensorRef ref, String... indices) {
    return memory.element(
        CTypes.stored(ref.type().dtype()),
        Memory.of(problem.rank(), ref),
        Indices.offset(ref.type(), List.of(indices)));
  }

  private String value(MemoryArguments memory, TensorRef ref, String... indices) {
    return CTypes.widen(ref.type().dtype(), element(memory, ref, indices));
  }

  private String added(MemoryArguments memory, TensorRef ref) {
    var own = value(memory, ref, "b", "h", "q", "k");
    return ref.type().dtype() == DType.BOOL
        ? "(%s ? 0.0f : -$INFINITY)".formatted(own)
        : "(float)" + own;
  }

  private String store(MemoryArguments memory, TensorRef out, Optional<TensorRef> logs) {
    var result = CTypes.narrow(out.type().dtype(), "(sum == 0 ? 0 : part / sum)");
    var text = "%s = %s;".formatted(element(memory, out, "b", "h", "q", "d"), result);
    return logs.map(
            ref ->
                "%s\n    if (d == 0) {\n      %s = %s;\n    }"
                    .formatted(
                        text,
                        element(memory, ref, "b", "h", "q", "0"),
                        CTypes.narrow(
                            ref.type().dtype(), "(sum == 0 ? $INFINITY : most + logf(sum))")))
        .orElse(text);
  }
}
