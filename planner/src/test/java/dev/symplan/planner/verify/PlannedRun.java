package dev.symplan.planner.verify;

import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.Rows;
import dev.symplan.planner.Arena;
import dev.symplan.planner.CollectivePlan;
import dev.symplan.planner.Placement;
import dev.symplan.planner.Plan;
import dev.symplan.planner.RankPlan;
import dev.symplan.planner.Step;
import dev.symplan.planner.Stream;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** One execution of one rank's steps in the memory that the plan gives them. */
final class PlannedRun implements GraphModel.Memory {
  /** How many ways there are to time the side streams. */
  static final int MODES = 6;

  /** Something that shows the plan to be unsafe. */
  static final class Unsafe extends RuntimeException {
    Unsafe(String message) {
      super(message, null, false, false);
    }
  }

  private final Plan plan;
  private final int number;
  private final RankPlan rank;
  private final GraphModel model;
  private final int mode;
  private final long @Nullable [][] spaceOf;
  private final long[] begin;
  private final long[] room;
  private final Map<Stream, Deque<Integer>> queues = new EnumMap<>(Stream.class);
  private final boolean[] started;
  private final boolean[] done;

  PlannedRun(Plan plan, int number, GraphModel model, int mode) {
    this.plan = plan;
    this.number = number;
    this.rank = plan.forRank(number);
    this.model = model;
    this.mode = mode;
    this.started = new boolean[rank.collectives().size()];
    this.done = new boolean[started.length];
    for (var stream : Stream.values()) {
      queues.put(stream, new ArrayDeque<>());
    }
    var symmetric = garbage(plan.symmetric().bytes());
    var local = garbage(rank.local().bytes());
    int count = rank.placements().size();
    this.spaceOf = new long[count][];
    this.begin = new long[count];
    this.room = new long[count];
    var external = new long[rank.buffers().size()][];
    for (int id = 0; id < count; id++) {
      var placement = rank.placements().get(id);
      if (placement.exists()) {
        var buffer = rank.buffers().get(placement.buffer());
        if (buffer.arena().isExternal() && external[placement.buffer()] == null) {
          external[placement.buffer()] = garbage(buffer.bytes());
        }
        spaceOf[id] =
            switch (buffer.arena()) {
              case SYMMETRIC -> symmetric;
              case LOCAL -> local;
              case EXTERNAL_INPUT, EXTERNAL_OUTPUT -> external[placement.buffer()];
            };
        long offset = placement.offset() + shift(plan, number, placement);
        begin[id] = offset + (buffer.arena().isExternal() ? 0 : buffer.offset());
        room[id] = buffer.bytes() - offset;
      }
    }
  }

  private static long shift(Plan plan, int number, Placement placement) {
    require(
        placement.shareOf() < plan.forRank(number).collectives().size(),
        "a share of a collective that is not there");
    return plan.shift(number, placement);
  }

  static void require(boolean fact, String message) {
    if (!fact) {
      throw new Unsafe(message);
    }
  }

  /** {@return whether two values begin at the same byte of the same memory} */
  static boolean samePlace(RankPlan rank, int a, int b) {
    var arena = arena(rank, a);
    if (rank.buffers().get(rank.placements().get(a).buffer()).bytes() == 0) {
      return rank.placements().get(a).equals(rank.placements().get(b));
    }
    return arena == arena(rank, b)
        && (!arena.isExternal()
            || rank.placements().get(a).buffer() == rank.placements().get(b).buffer())
        && place(rank, a) == place(rank, b)
        && rank.placements().get(a).shareOf() == rank.placements().get(b).shareOf();
  }

  static Arena arena(RankPlan rank, int id) {
    return rank.buffers().get(rank.placements().get(id).buffer()).arena();
  }

  static long place(RankPlan rank, int id) {
    var placement = rank.placements().get(id);
    return rank.buffers().get(placement.buffer()).offset() + placement.offset();
  }

  private static long[] garbage(long bytes) {
    require(bytes < 1 << 24, "an arena of more than the program needs");
    var cells = new long[(int) ((bytes + GraphModel.CELL - 1) / GraphModel.CELL)];
    Arrays.fill(cells, 42);
    return cells;
  }

  private int index(Value value, int cell) {
    long inValue = (long) cell * GraphModel.CELL;
    require(spaceOf[value.id()] != null, "no memory");
    require(inValue + GraphModel.CELL <= room[value.id()], "outside the buffer");
    long offset = begin[value.id()] + inValue;
    require(offset % GraphModel.CELL == 0, "not aligned");
    require(offset / GraphModel.CELL < spaceOf[value.id()].length, "outside the arena");
    return (int) (offset / GraphModel.CELL);
  }

  @Override
  public long get(Value value, int cell) {
    return spaceOf[value.id()][index(value, cell)];
  }

  @Override
  public void set(Value value, int cell, long number) {
    spaceOf[value.id()][index(value, cell)] = number;
  }

  void run() {
    rank.graph().inputs().forEach(input -> model.fill(this, input));
    for (var step : rank.steps()) {
      switch (step) {
        case Step.Compute(int op) -> {
          require(
              rank.graph().ops().get(op).def().collective().isEmpty(), "nobody else takes part");
          carryOut(op, null);
        }
        case Step.Fused(var ops) -> fused(ops.toArray());
        case Step.Start(int k) -> start(k);
        case Step.Join(int k) -> {
          require(started[k], "waits for ever");
          flush(k);
        }
      }
    }
    require(model.findsKept(this), "an input or output is not what it must be");
  }

  /** Whether the work of a side stream is put off as long as the steps allow. */
  private boolean late(int k) {
    return switch (mode) {
      case 0 -> false;
      case 1 -> true;
      case 2 -> rank.collectives().get(k).stream() == Stream.COMM;
      case 3 -> rank.collectives().get(k).stream() == Stream.COPY;
      default -> (k + mode) % 2 == 0;
    };
  }

  private void start(int k) {
    require(!started[k], "started twice");
    started[k] = true;
    var collective = rank.collectives().get(k);
    if (!collective.isAsync()) {
      carryOut(collective.op(), collective);
      done[k] = true;
      return;
    }
    queues.get(collective.stream()).add(k);
    if (!late(k)) {
      flush(k);
    } else if (!collective.inPlace()) {
      // A peer may have begun to write already.
      var results = rank.graph().ops().get(collective.op()).results();
      for (int r = 0; r < results.size(); r++) {
        if (!holdsShare(collective, r)) {
          model.spoil(this, results.get(r));
        }
      }
    }
  }

  /** Whether an operand, or a result, is just the part of the other that no peer touches. */
  private boolean holdsShare(CollectivePlan collective, int r) {
    if (!collective.variant().allowsShareInWhole(collective.kind())) {
      return false;
    }
    boolean gathers = collective.kind() == Kind.ALL_GATHER;
    int operand = collective.operands().get(r);
    int result = collective.results().get(r);
    int part = gathers ? operand : result;
    int whole = gathers ? result : operand;
    var group = plan.group(collective.group());
    int position = group.members().get(group.partOf(number).orElseThrow()).indexOf(number);
    long bytes = rank.graph().values().get(part).tensor().storageBytes();
    return spaceOf[part] == spaceOf[whole] && begin[part] == begin[whole] + position * bytes;
  }

  private void flush(int k) {
    var queue = queues.get(rank.collectives().get(k).stream());
    while (!done[k]) {
      int next = Objects.requireNonNull(queue.poll());
      carryOut(rank.collectives().get(next).op(), rank.collectives().get(next));
      done[next] = true;
    }
  }

  private void fused(int[] indices) {
    var ops = Arrays.stream(indices).mapToObj(rank.graph().ops()::get).toList();
    require(
        ops.stream().allMatch(op -> op.results().stream().allMatch(Value::isTensor)),
        "not a kernel");
    int rows = Rows.shared(ops);
    var made = new HashSet<Value>();
    for (var op : ops) {
      boolean byRows = rows > 0 || op.results().getFirst().tensor().rank() == 0;
      require(byRows && Rows.of(op) >= rows && !op.def().schema().mutates(), "not one kernel");
      op.forEachOperand(
          v -> require(!made.contains(v) || Rows.carries(op, v, rows), "reads other rows"));
      made.addAll(op.results());
    }
    for (var value : made) {
      if (!rank.placements().get(value.id()).exists()) {
        spaceOf[value.id()] = garbage(value.tensor().storageBytes());
        begin[value.id()] = 0;
        room[value.id()] = value.tensor().storageBytes();
      }
    }
    model.byRows(this, mode % 2 == 1, rows, indices);
    for (int index : indices) {
      require(model.findsResults(index, this), "a result is not what it must be");
    }
    for (var value : made) {
      if (!rank.placements().get(value.id()).exists()) {
        spaceOf[value.id()] = null;
      }
    }
  }

  private void carryOut(int op, @Nullable CollectivePlan collective) {
    if (model.isView(op)) {
      return;
    }
    require(model.findsOperands(op, this), "an operand is not what it must be");
    boolean joins = rank.graph().ops().get(op).def().has(OpTrait.CONCATENATION) && leavesPieces(op);
    model.carryOut(
        op,
        this,
        mode % 2 == 1,
        r ->
            joins
                || collective != null
                    && (holdsShare(collective, r)
                        || collective.inPlace()
                            && samePlace(
                                rank, collective.operands().get(r), collective.results().get(r))));
    require(model.findsResults(op, this), "a result is not what it must be");
  }

  /** Whether a concatenation writes nothing over an operand, but for the same bytes in place. */
  private boolean leavesPieces(int index) {
    var op = rank.graph().ops().get(index);
    var result = op.result();
    int[] next = {0};
    boolean[] apart = {true};
    op.args()
        .getFirst()
        .forEachValue(
            piece -> {
              boolean sameSpace = spaceOf[piece.id()] == spaceOf[result.id()];
              long from = begin[piece.id()];
              long at = begin[result.id()] + next[0];
              long end = begin[result.id()] + result.tensor().storageBytes();
              boolean inPlace = from == at && op.arg("dim").equals(new Arg.Int(0));
              boolean overlaps =
                  from < end && from + piece.tensor().storageBytes() > begin[result.id()];
              apart[0] &= !sameSpace || inPlace || !overlaps;
              next[0] += Math.toIntExact(piece.tensor().storageBytes());
            });
    return apart[0];
  }
}
