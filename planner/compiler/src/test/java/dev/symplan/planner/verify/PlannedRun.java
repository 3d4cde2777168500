package dev.symplan.planner.verify;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
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
  private final @Nullable Place[] places;

  /**
   * By value, whether its op has run; views are taken then, or when an op may move their tensors.
   */
  private final boolean[] taken;

  /** By value, whether an op gave it in other memory than the plan's. */
  private final boolean[] elsewhere;

  private final int[] opOf;
  private long state;
  private final Map<StreamKind, Deque<Integer>> queues = new EnumMap<>(StreamKind.class);
  private final boolean[] started;
  private final boolean[] done;

  /** Where a tensor is: another object for each tensor, which ops may move. */
  private static final class Place {
    private long[] space;
    private long begin;
    private long room;
    private boolean moved;

    /** Bytes of a row, and from one row to the next. */
    private final long row;

    private final long pitch;

    Place(long[] space, long begin, long room) {
      this(space, begin, room, Long.MAX_VALUE, 0);
    }

    long inRows(long offset) {
      if (offset < row) {
        return offset;
      }
      require(row > 0, "rows of nothing");
      return offset / row * pitch + offset % row;
    }

    Place(long[] space, long begin, long room, long row, long pitch) {
      this.space = space;
      this.begin = begin;
      this.room = room;
      this.row = row;
      this.pitch = pitch;
    }
  }

  PlannedRun(Plan plan, int number, GraphModel model, int mode) {
    this.plan = plan;
    this.number = number;
    this.rank = plan.forRank(number);
    this.model = model;
    this.mode = mode;
    this.started = new boolean[rank.collectives().size()];
    this.done = new boolean[started.length];
    for (var stream : StreamKind.values()) {
      queues.put(stream, new ArrayDeque<>());
    }
    var symmetric = garbage(plan.symmetric().bytes());
    var local = garbage(rank.local().bytes());
    var host = garbage(rank.hostBytes());
    int count = rank.placements().size();
    this.places = new @Nullable Place[count];
    this.taken = new boolean[count];
    this.elsewhere = new boolean[count];
    this.opOf = new int[count];
    Arrays.fill(opOf, -1);
    for (int i = 0; i < rank.graph().ops().size(); i++) {
      int op = i;
      rank.graph().ops().get(i).results().forEach(result -> opOf[result.id()] = op);
    }
    var external = new long[rank.buffers().size()][];
    for (int id = 0; id < count; id++) {
      var placement = rank.placements().get(id);
      if (placement.exists()) {
        var buffer = rank.buffers().get(placement.buffer());
        if (buffer.arena().isExternal() && external[placement.buffer()] == null) {
          external[placement.buffer()] = garbage(buffer.bytes());
        }
        var space =
            switch (buffer.arena()) {
              case SYMMETRIC -> symmetric;
              case LOCAL -> local;
              case HOST -> host;
              case EXTERNAL_INPUT, EXTERNAL_OUTPUT -> external[placement.buffer()];
            };
        long offset = placement.offset() + shift(plan, number, placement);
        long begin = offset + (buffer.arena().isExternal() ? 0 : buffer.offset());
        long room = buffer.bytes() - offset;
        places[id] =
            placement.isShard() || placement.isInRows()
                ? new Place(space, begin, room, placement.stride(), pitch(placement))
                : new Place(space, begin, room);
      }
    }
  }

  private long pitch(Placement placement) {
    if (placement.isInRows()) {
      return placement.pitch();
    }
    var collective = rank.collectives().get(placement.shardOf());
    return placement.stride() * plan.group(collective.group()).size();
  }

  private static long shift(Plan plan, int number, Placement placement) {
    require(
        placement.shardOf() < plan.forRank(number).collectives().size(),
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
    if (rank.graph().values().get(a).tensor().numel() == 0) {
      return rank.placements().get(a).equals(rank.placements().get(b));
    }
    return arena == arena(rank, b)
        && (!arena.isExternal()
            || rank.placements().get(a).buffer() == rank.placements().get(b).buffer())
        && place(rank, a) == place(rank, b)
        && rank.placements().get(a).shardOf() == rank.placements().get(b).shardOf()
        && rank.placements().get(a).pitch() == rank.placements().get(b).pitch();
  }

  static ArenaKind arena(RankPlan rank, int id) {
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

  private int index(Place place, int cell) {
    long inValue = place.inRows((long) cell * GraphModel.CELL);
    require(inValue + GraphModel.CELL <= place.room, "outside the buffer");
    long offset = place.begin + inValue;
    require(offset % GraphModel.CELL == 0, "not aligned");
    require(offset / GraphModel.CELL < place.space.length, "outside the arena");
    return (int) (offset / GraphModel.CELL);
  }

  private Place place(Value value) {
    @Nullable Place place = places[value.id()];
    require(place != null, "no memory");
    return Objects.requireNonNull(place);
  }

  private boolean isElsewhere(Value value) {
    return elsewhere[value.id()] || place(value).moved;
  }

  @Override
  public long get(Value value, int cell) {
    take(value);
    var place = place(value);
    return place.space[index(place, cell)];
  }

  @Override
  public void set(Value value, int cell, long number) {
    take(value);
    var place = place(value);
    place.space[index(place, cell)] = number;
  }

  /** A view is where the plan says, unless its tensor was moved before. */
  private void take(Value value) {
    int op = opOf[value.id()];
    if (taken[value.id()] || op < 0 || !value.isTensor()) {
      return;
    }
    var graphOp = rank.graph().ops().get(op);
    var view = graphOp.infer().get(graphOp.results().indexOf(value)).view();
    if (!model.isView(op) || view.isEmpty()) {
      return;
    }
    var base = view.get().of();
    take(base);
    if (opOf[base.id()] < 0 || taken[base.id()]) {
      taken[value.id()] = true;
      follow(value, base, view.get().offset());
    }
  }

  /** Puts a view where its tensor is, if that is not where the plan says. */
  private void follow(Value view, Value base, long offset) {
    @Nullable Place of = places[base.id()];
    if (of != null && isElsewhere(base)) {
      long bytes = offset * GraphModel.CELL;
      places[view.id()] = new Place(of.space, of.begin + bytes, of.room - bytes);
      elsewhere[view.id()] = true;
    }
  }

  @Override
  public void share(Value result, Value argument) {
    places[result.id()] = place(argument);
    elsewhere[result.id()] = true;
  }

  @Override
  public void view(Value result, Value argument) {
    var of = place(argument);
    places[result.id()] = new Place(of.space, of.begin, of.room);
    elsewhere[result.id()] = true;
  }

  @Override
  public void move(Value argument, Value other) {
    var place = place(argument);
    var to = place(other);
    place.space = to.space;
    place.begin = to.begin;
    place.room = to.room;
    place.moved = true;
  }

  @Override
  public long state() {
    return state;
  }

  @Override
  public void setState(long newState) {
    state = newState;
  }

  void run() {
    rank.graph().inputs().forEach(input -> model.fill(this, input));
    for (var step : rank.steps()) {
      switch (step) {
        case Step.Compute(int op) -> {
          require(
              rank.graph().ops().get(op).def().collective().isEmpty(), "nobody else takes part");
          if (rank.graph().ops().get(op).def().has(OpTrait.BORDER)) {
            fill(op);
          }
          compute(op);
        }
        case Step.Fused(var ops) -> fused(ops.toArray());
        case Step.Start(int k) -> start(k);
        case Step.Join(int k) -> {
          require(started[k], "waits for ever");
          flush(k);
        }
      }
    }
    rank.graph()
        .outputValues()
        .forEach(value -> require(!isElsewhere(value), "an output is elsewhere"));
    require(model.findsKept(this), "an input or output is not what it must be");
    checkSetup();
  }

  /** The next run does what this one did if it finds what this one found. */
  private void checkSetup() {
    var setup = BorderOracle.setup(rank);
    var readLater = new HashSet<Value>();
    for (var op : rank.graph().ops().subList(setup.size(), rank.graph().ops().size())) {
      readLater.addAll(op.operands());
    }
    for (int op = 0; op < setup.size(); op++) {
      require(
          !readLater.containsAll(setup.get(op).results()) || model.findsResults(op, this),
          "what the setup made is not there for the next run");
    }
  }

  /** The caller may fill what a graph of the program takes when that is to begin, in any run. */
  private void fill(int border) {
    var ops = rank.graph().ops();
    var inputs = rank.graph().inputs();
    boolean first = !BorderOracle.isBorder(ops.get(border));
    int from = first ? 0 : (int) ops.get(border).call().integer("inputs");
    int to = inputs.size();
    for (int op = ops.size() - 1; op > border; op--) {
      if (BorderOracle.isBorder(ops.get(op))) {
        to = (int) ops.get(op).call().integer("inputs");
      }
    }
    require(0 <= from && from <= to && to <= inputs.size(), "inputs that are not there");
    inputs.subList(from, to).forEach(input -> model.fill(this, input));
  }

  /** Whether the work of a side stream is put off as long as the steps allow. */
  private boolean late(StreamKind stream, int number) {
    return switch (mode) {
      case 0 -> false;
      case 1 -> true;
      case 2 -> stream == StreamKind.COMM;
      case 3 -> stream == StreamKind.COPY;
      default -> (number + mode) % 2 == 0;
    };
  }

  /** A copy between device and host memory runs until something waits for it. */
  private void compute(int op) {
    var graphOp = rank.graph().ops().get(op);
    if (graphOp.def().has(OpTrait.HOST_COPY)) {
      var queue = queues.get(StreamKind.COPY);
      queue.add(~op);
      if (late(StreamKind.COPY, op)) {
        // A copy over another tensor takes that as an operand, which is compared.
        if (!graphOp.def().schema().mutates()) {
          model.spoil(this, graphOp.result());
        }
      } else {
        flush(queue, ~op);
      }
      return;
    }
    if (graphOp.def().has(OpTrait.HOST_COPY_END)) {
      int begun = opOf[graphOp.operands().getLast().id()];
      var queue = queues.get(StreamKind.COPY);
      if (queue.contains(~begun)) {
        flush(queue, ~begun);
      }
    }
    carryOut(op, null);
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
    if (!late(collective.stream(), k)) {
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
    if (!collective.spec().allowsShardInPlace()) {
      return false;
    }
    boolean gathers = collective.kind() == Kind.ALL_GATHER;
    int operand = collective.operands().get(r);
    int result = collective.results().get(r);
    int part = gathers ? operand : result;
    int whole = gathers ? result : operand;
    var group = plan.group(collective.group());
    int position = group.members().get(group.partOf(number).orElseThrow()).indexOf(number);
    var values = rank.graph().values();
    var dims = rank.graph().ops().get(collective.op()).collective().orElseThrow().sliceDims();
    int dim = gathers ? dims.result() : dims.operand();
    long bytes = values.get(part).tensor().storageBytes();
    long row = bytes / Math.max(1, SliceDims.rows(values.get(whole).tensor(), dim));
    @Nullable Place inner = places[part];
    @Nullable Place outer = places[whole];
    return inner != null
        && outer != null
        && inner.space == outer.space
        && Math.min(inner.row, bytes) == row
        && inner.begin == outer.begin + position * row;
  }

  private void flush(int k) {
    if (!done[k]) {
      flush(queues.get(rank.collectives().get(k).stream()), k);
    }
  }

  /** Carries out what a stream has up to a collective, or a copy: its op's complement. */
  private void flush(Deque<Integer> queue, int until) {
    int next;
    do {
      next = Objects.requireNonNull(queue.poll());
      if (next < 0) {
        carryOut(~next, null);
      } else {
        carryOut(rank.collectives().get(next).op(), rank.collectives().get(next));
        done[next] = true;
      }
    } while (next != until);
  }

  private void fused(int[] indices) {
    var ops = Arrays.stream(indices).mapToObj(rank.graph().ops()::get).toList();
    require(
        ops.stream()
            .allMatch(
                op ->
                    op.def().rule().isPresent()
                        && !op.results().isEmpty()
                        && op.results().stream().allMatch(Value::isTensor)),
        "not a kernel");
    int rows = Rows.shared(ops);
    var made = new HashSet<Value>();
    for (var op : ops) {
      boolean byRows = rows > 0 || op.results().getFirst().tensor().rank() == 0;
      require(byRows && Rows.of(op) >= rows && !op.def().schema().mutates(), "not one kernel");
      op.operands()
          .forEach(
              v -> require(!made.contains(v) || Rows.carries(op, v, rows), "reads other rows"));
      made.addAll(op.results());
    }
    for (var value : made) {
      if (!rank.placements().get(value.id()).exists()) {
        long bytes = value.tensor().storageBytes();
        places[value.id()] = new Place(garbage(bytes), 0, bytes);
      }
    }
    model.byRows(this, mode % 2 == 1, rows, indices);
    made.forEach(value -> taken[value.id()] = true);
    for (int index : indices) {
      require(model.findsResults(index, this), "a result is not what it must be");
    }
    for (var value : made) {
      if (!rank.placements().get(value.id()).exists()) {
        places[value.id()] = null;
      }
    }
  }

  private void carryOut(int op, @Nullable CollectivePlan collective) {
    if (model.isView(op)) {
      return;
    }
    var graphOp = rank.graph().ops().get(op);
    takeResults(graphOp, op);
    if (collective != null) {
      checkPlaces(collective);
    }
    require(model.findsOperands(op, this), "an operand is not what it must be");
    graphOp.results().forEach(result -> taken[result.id()] = true);
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

  /** Takes the views that an op may move the tensors of, and results that are arguments. */
  private void takeResults(Op op, int index) {
    boolean unruled = op.def().rule().isEmpty();
    for (int i = 0; unruled && i < index; i++) {
      rank.graph().ops().get(i).results().forEach(this::take);
    }
    var inferred = op.infer();
    for (int r = 0; r < op.results().size(); r++) {
      var result = op.results().get(r);
      var view = inferred.get(r).view();
      if (view.isPresent()) {
        take(view.get().of());
        if (unruled) {
          places[result.id()] = place(view.get().of());
          elsewhere[result.id()] = elsewhere[view.get().of().id()];
        } else {
          follow(result, view.get().of(), view.get().offset());
        }
      }
    }
  }

  private void checkPlaces(CollectivePlan collective) {
    var values = rank.graph().values();
    for (int id : collective.operands()) {
      take(values.get(id));
      require(
          !PlanOracle.symmetric(collective, false) || !isElsewhere(values.get(id)),
          "an operand is elsewhere");
    }
  }

  /** Whether a concatenation writes nothing over an operand, but for the same bytes in place. */
  private boolean leavesPieces(int index) {
    var op = rank.graph().ops().get(index);
    var result = op.result();
    var whole = place(result);
    long rows = 1;
    long dim = op.call().integer("dim");
    for (int i = 0; i < (dim < 0 ? dim + result.tensor().rank() : dim); i++) {
      rows *= result.tensor().size(i);
    }
    long next = whole.begin;
    boolean apart = true;
    for (var piece : op.args().getFirst().operands()) {
      var own = place(piece);
      long bytes = piece.tensor().numel() * GraphModel.CELL / Math.max(1, rows);
      boolean inPlace =
          own.begin == next
              && (rows == 1
                  ? own.row == Long.MAX_VALUE
                  : own.row == bytes && own.pitch == result.tensor().bytes() / rows);
      long extent = own.inRows(piece.tensor().storageBytes() - 1) + 1;
      boolean overlaps =
          own.begin < whole.begin + result.tensor().storageBytes()
              && own.begin + extent > whole.begin;
      apart &= own.space != whole.space || inPlace || !overlaps;
      next += bytes;
    }
    return apart;
  }
}
