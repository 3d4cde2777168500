package dev.symplan.planner.interpret;

import static dev.symplan.planner.interpret.Unsafe.require;

import com.google.common.collect.Iterables;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * One rank that runs its part of a plan, in the memory that this gives it. What an op finds is
 * compared with what it finds when every storage has memory of its own.
 */
final class PlannedRank extends Rank {
  private static final long SPOILED = 0x6F76657277726974L;

  final RankPlan plan;
  private final GraphRun reference;
  private final long seed;
  private final Random random;

  /** By value, where the plan has it. */
  private final @Nullable Place[] planned;

  /** By value, where it is once that is known: views may have been moved with their tensors. */
  private final @Nullable Place[] places;

  private final int[] opOf;
  private final Bytes symmetric;
  private final Bytes local;
  private final Bytes host;

  PlannedRank(Plan whole, int number, GraphRun reference, long seed, Random random) {
    super(number);
    this.plan = whole.forRank(number);
    this.reference = reference;
    this.seed = seed;
    this.random = random;
    int count = plan.graph().valueCount();
    this.planned = new @Nullable Place[count];
    this.places = new @Nullable Place[count];
    this.opOf = new int[count];
    Arrays.fill(opOf, -1);
    for (int i = 0; i < plan.graph().ops().size(); i++) {
      int op = i;
      plan.graph().ops().get(i).results().forEach(result -> opOf[result.id()] = op);
    }
    this.symmetric = new Bytes(whole.symmetric().bytes());
    this.local = new Bytes(plan.local().bytes());
    this.host = new Bytes(plan.hostBytes());
    var external = new @Nullable Bytes[plan.buffers().size()];
    for (var value : plan.graph().values()) {
      var placement = plan.placement(value);
      if (placement.exists()) {
        var buffer = plan.buffers().get(placement.buffer());
        boolean outside = buffer.arena().isExternal();
        if (outside && external[placement.buffer()] == null) {
          external[placement.buffer()] = new Bytes(buffer.bytes());
        }
        var space =
            switch (buffer.arena()) {
              case SYMMETRIC -> symmetric;
              case LOCAL -> local;
              case HOST -> host;
              case EXTERNAL_INPUT, EXTERNAL_OUTPUT ->
                  Objects.requireNonNull(external[placement.buffer()]);
            };
        long origin = outside ? 0 : buffer.offset();
        long begin = origin + placement.offset() + whole.shift(number, placement);
        long end = origin + buffer.bytes();
        planned[value.id()] =
            placement.isShard() || placement.isInRows()
                ? new Place(space, origin, begin, end, placement.stride(), pitch(whole, placement))
                : new Place(space, origin, begin, end);
      }
    }
  }

  /** Begins the program. Before, the rank may have used all its memory. */
  void begin() {
    symmetric.spoil();
    local.spoil();
    host.spoil();
    for (int i = 0; i < plan.graph().inputs().size(); i++) {
      var input = plan.graph().inputs().get(i);
      places[input.id()] = planned[input.id()] == null ? null : planned(input).copy();
      bring(input, i);
    }
  }

  /** Ends the program. Its results are the caller's then, and so is all memory. */
  void end() {
    checkKept();
    symmetric.spoil();
    local.spoil();
    host.spoil();
  }

  private long pitch(Plan whole, Placement placement) {
    if (placement.isInRows()) {
      return placement.pitch();
    }
    var collective = plan.collectives().get(placement.shardOf());
    return placement.stride() * whole.group(collective.group()).size();
  }

  /** {@return the value of that number, which a plan may have wrong} */
  Value value(int id) {
    var values = plan.graph().values();
    require(id >= 0 && id < values.size(), "there is no value %s", id);
    return values.get(id);
  }

  /** {@return where the plan has a tensor: there its peers look for it} */
  Place planned(Value value) {
    @Nullable Place place = planned[value.id()];
    require(place != null, "%s has no memory", value.name());
    return Objects.requireNonNull(place);
  }

  @Override
  Place place(Value value) {
    @Nullable Place known = places[value.id()];
    if (known == null) {
      known = view(value);
      places[value.id()] = known;
    }
    return known;
  }

  @Override
  void put(Value result, Place place) {
    places[result.id()] = place;
  }

  @Override
  long scalar(Value value) {
    // Some are known before the program runs.
    return reference.rank(number).scalar(value);
  }

  /** A view is where the plan says, unless its tensor is elsewhere. */
  private Place view(Value value) {
    int index = opOf[value.id()];
    require(index >= 0, "%s has no memory", value.name());
    var op = plan.graph().ops().get(index);
    var view = op.infer().get(op.results().indexOf(value)).view();
    require(GraphRun.isView(op) && view.isPresent(), "%s is read before it is made", value.name());
    return viewOf(
        value,
        view.orElseThrow().of(),
        view.orElseThrow().offset(),
        view.orElseThrow().fromStorage());
  }

  private Place viewOf(Value value, Value of, long offset, boolean fromStorage) {
    var base = place(of);
    if (!isElsewhere(of)) {
      return planned(value).copy();
    }
    return base.at((fromStorage ? base.origin : base.begin) + offset * of.tensor().dtype().bytes());
  }

  private boolean isElsewhere(Value value) {
    @Nullable Place own = planned[value.id()];
    return own == null || !place(value).isAt(own);
  }

  /** Gives the results of an op that is about to run their places. */
  void make(Op op) {
    var inferred = op.infer();
    for (int r = 0; r < op.results().size(); r++) {
      var result = op.results().get(r);
      var view = inferred.get(r).view();
      if (!result.isTensor()) {
        continue;
      }
      if (view.isEmpty()) {
        if (places[result.id()] == null) {
          places[result.id()] = planned(result).copy();
        }
      } else if (op.def().rule().isEmpty()) {
        places[result.id()] = place(view.get().of());
      } else {
        places[result.id()] =
            viewOf(result, view.get().of(), view.get().offset(), view.get().fromStorage());
      }
    }
  }

  /** An op must find the contents that it reads without a plan. */
  void checkOperands(int index) {
    var op = plan.graph().ops().get(index);
    var found = reference.found(number, index);
    int i = 0;
    for (var operand : op.operands()) {
      if (operand.isTensor()) {
        require(
            place(operand).exact(operand.tensor()) == found[i++],
            "rank %s: %s of %s is not what it must be",
            number,
            operand.name(),
            op.label());
      }
    }
  }

  void compute(int index) {
    var op = plan.graph().ops().get(index);
    require(op.def().collective().isEmpty(), "%s is not started", op.label());
    if (GraphRun.isView(op)) {
      return;
    }
    if (op.def().rule().isEmpty()) {
      takeViewsBefore(index);
      make(op);
      checkOperands(index);
      UnknownOps.carryOut(op, this, seed);
      return;
    }
    make(op);
    if (KnownOps.joinsRows(op)) {
      KnownOps.spoilBetween(op, this, SPOILED);
    } else if (!KnownOps.copiesPieces(op)) {
      spoilResults(List.of(op));
    }
    checkOperands(index);
    KnownOps.carryOut(op, this, random);
  }

  /** Views that were taken before an op moves their tensors stay where they are. */
  private void takeViewsBefore(int index) {
    for (int i = 0; i < index; i++) {
      var op = plan.graph().ops().get(i);
      if (GraphRun.isView(op)) {
        for (var result : op.results()) {
          if (isMade(result)) {
            place(result);
          }
        }
      }
    }
  }

  private boolean isMade(Value value) {
    if (places[value.id()] != null) {
      return true;
    }
    int index = opOf[value.id()];
    if (index < 0 || !GraphRun.isView(plan.graph().ops().get(index))) {
      return false;
    }
    var op = plan.graph().ops().get(index);
    var view = op.infer().get(op.results().indexOf(value)).view();
    return value.isTensor() && view.isPresent() && isMade(view.get().of());
  }

  void fused(int[] indices) {
    var ops = Arrays.stream(indices).mapToObj(plan.graph().ops()::get).toList();
    var passing = new HashSet<Value>();
    for (var op : ops) {
      require(
          op.def().rule().isPresent()
              && !op.def().schema().mutates()
              && !op.results().isEmpty()
              && op.results().stream().allMatch(Value::isTensor),
          "%s cannot be part of a kernel",
          op.label());
      for (var result : op.results()) {
        if (planned[result.id()] == null) {
          long bytes = result.tensor().storageBytes();
          places[result.id()] = new Place(new Bytes(bytes), 0, 0, bytes);
          passing.add(result);
        }
      }
      make(op);
    }
    checkRows(ops);
    spoilResults(ops);
    for (int index : indices) {
      checkOperands(index);
      KnownOps.carryOut(plan.graph().ops().get(index), this, random);
    }
    passing.forEach(value -> places[value.id()] = null);
  }

  /** A kernel takes row after row, through all its ops. */
  private static void checkRows(List<Op> ops) {
    int rows = Rows.shared(ops);
    var made = new HashSet<Value>();
    for (var op : ops) {
      var first = op.results().getFirst().tensor();
      require(rows > 0 || first.rank() == 0, "%s has no rows", op.label());
      for (var operand : op.operands()) {
        require(
            !made.contains(operand) || Rows.carries(op, operand, rows),
            "%s reads other rows of %s",
            op.label(),
            operand.name());
      }
      made.addAll(op.results());
    }
  }

  /**
   * Writes something wrong into the results of a kernel, as it may write any element before it
   * reads others. Only what takes an operand's place element by element, or row by row, is left.
   */
  private void spoilResults(List<Op> ops) {
    var made = new HashSet<Value>();
    ops.forEach(op -> made.addAll(op.results()));
    for (var op : ops) {
      for (int r = 0; r < op.results().size(); r++) {
        var result = op.results().get(r);
        if (result.isTensor() && op.infer().get(r).view().isEmpty()) {
          if (!ops.stream().allMatch(reader -> mayBeReplaced(reader, result, made, ops))) {
            place(result).fill(result.tensor(), SPOILED);
          }
        }
      }
    }
  }

  private boolean mayBeReplaced(Op reader, Value result, Set<Value> made, List<Op> ops) {
    boolean any = false;
    for (var operand : reader.operands()) {
      if (operand.isTensor()
          && !made.contains(operand)
          && place(operand).overlaps(operand.tensor(), place(result), result.tensor())) {
        any = true;
        if (!(place(operand).isSame(operand.tensor(), place(result), result.tensor())
            && readsAsItWrites(reader, operand, ops))) {
          return false;
        }
      }
    }
    return any || ops.size() > 1;
  }

  private static boolean readsAsItWrites(Op reader, Value operand, List<Op> ops) {
    TensorType type = operand.tensor();
    if (ops.size() > 1) {
      return Rows.carries(reader, operand, Rows.shared(ops));
    }
    if (reader.def().has(OpTrait.ELEMENTWISE)) {
      return type.sizes().equals(reader.results().getFirst().tensor().sizes());
    }
    return reader.def().has(OpTrait.UPDATES_SELF)
        && reader.operands().getFirst().equals(operand)
        && reader.operands().stream().filter(operand::equals).count() == 1;
  }

  /**
   * {@return an operand's bytes as they lie, on this rank or as a peer finds them; in the order of
   * the elements where they are not one run, and the result does not lie like them}
   *
   * @param spec the variant that moves them
   */
  static List<Piece> flat(Place place, Value value, Value result, VariantSpec spec) {
    var type = value.tensor();
    if (type.isContiguous()
        || (type.isDense() && type.strides().equals(result.tensor().strides()))) {
      return place.bytes(0, type.storageBytes());
    }
    require(
        type.rowsApart().filter(spec::reads).isPresent() && result.tensor().isContiguous(),
        "%s is not dense",
        value.name());
    return place.read(type);
  }

  /** Writes something wrong into all of a buffer. */
  void spoilBuffer(int index) {
    var buffer = plan.buffers().get(index);
    require(buffer.arena() == ArenaKind.SYMMETRIC, "peers cannot reach %s", buffer.name());
    symmetric.write(buffer.offset(), new Piece(SPOILED, 0, buffer.bytes()));
  }

  /** The program must leave the contents that it leaves without a plan. */
  private void checkKept() {
    for (var value : Iterables.concat(GraphRun.kept(plan.graph()), GraphRun.setUp(plan.graph()))) {
      require(
          place(value).exact(value.tensor())
              == reference.rank(number).place(value).exact(value.tensor()),
          "rank %s: %s is not what it must be",
          number,
          value.name());
    }
    for (var value : plan.graph().outputValues()) {
      require(!value.isTensor() || !isElsewhere(value), "%s is elsewhere", value.name());
    }
  }

  void spoil(Value value) {
    place(value).fill(value.tensor(), SPOILED);
  }
}
