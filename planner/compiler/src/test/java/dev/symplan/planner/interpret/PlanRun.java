package dev.symplan.planner.interpret;

import static dev.symplan.planner.interpret.Unsafe.require;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.machine.Protocol.Slice;
import dev.symplan.planner.machine.Protocol.Whose;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/**
 * Executes the steps of all ranks of a plan, in one of the orders that streams, events and barriers
 * allow: whoever may go on is drawn, and some streams are slow.
 */
final class PlanRun {
  private static final int STREAMS = StreamKind.values().length;
  private static final int SLOW = 200;

  private sealed interface Action {}

  private record Begin() implements Action {}

  private record End() implements Action {}

  private record Compute(int[] ops) implements Action {}

  private record Arrive(int k) implements Action {}

  private record Move(int k) implements Action {}

  private record Leave(int k) implements Action {}

  private record Signal(String event) implements Action {}

  private record Await(String event) implements Action {}

  /** A collective of one part of its group. */
  private static final class Meeting {
    final Set<Integer> arrived = new HashSet<>();
    final Set<Integer> moved = new HashSet<>();

    /** By tensor and rank, what is sent through buffers of the library's, or workspaces. */
    final Map<Integer, Map<Integer, Exchange.Sent>> sent = new HashMap<>();

    long digest;
  }

  private final Plan plan;
  private final Random random;
  private final List<PlannedRank> ranks = new ArrayList<>();
  private final List<Deque<Action>> threads = new ArrayList<>();
  private final int[] weights;
  private final Map<String, Meeting> meetings = new HashMap<>();
  private final Set<String> events = new HashSet<>();

  /**
   * @param reference of the plan's own graphs
   * @param seed of what unknown ops do
   * @param order of the steps of different streams and ranks
   */
  PlanRun(Plan plan, GraphRun reference, long seed, long order) {
    this.plan = plan;
    this.random = new Random(order);
    this.weights = new int[plan.worldSize() * STREAMS];
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      ranks.add(new PlannedRank(plan, rank, reference, seed, random));
      for (int s = 0; s < STREAMS; s++) {
        threads.add(new ArrayDeque<>());
        weights[rank * STREAMS + s] = random.nextBoolean() ? 1 : SLOW;
      }
      actions(rank);
    }
  }

  private Deque<Action> thread(int rank, StreamKind stream) {
    return threads.get(rank * STREAMS + stream.ordinal());
  }

  private void actions(int rank) {
    var own = plan.forRank(rank);
    var compute = thread(rank, StreamKind.COMPUTE);
    compute.add(new Begin());
    for (var step : own.steps()) {
      switch (step) {
        case Step.Compute(int op) -> compute(rank, op);
        case Step.Fused(var ops) -> compute.add(new Compute(ops.toArray()));
        case Step.Join(int k) -> compute.add(new Await("done " + rank + " " + k));
        case Step.Start(int k) -> {
          var stream = own.collectives().get(k).stream();
          if (stream != StreamKind.COMPUTE) {
            compute.add(new Signal("start " + rank + " " + k));
            thread(rank, stream).add(new Await("start " + rank + " " + k));
          }
          thread(rank, stream).addAll(List.of(new Arrive(k), new Move(k), new Leave(k)));
          if (stream != StreamKind.COMPUTE) {
            thread(rank, stream).add(new Signal("done " + rank + " " + k));
          }
        }
      }
    }
    compute.add(new End());
  }

  /** Copies between device and host memory run in a stream of their own. */
  private void compute(int rank, int index) {
    var op = plan.forRank(rank).graph().ops().get(index);
    var compute = thread(rank, StreamKind.COMPUTE);
    if (op.def().has(OpTrait.HOST_COPY_END)) {
      compute.add(new Await("copied " + rank + " " + op.operands().getLast().id()));
      return;
    }
    var run = new Compute(new int[] {index});
    if (op.def().has(OpTrait.HOST_COPY)) {
      compute.add(new Signal("copy " + rank + " " + index));
      thread(rank, StreamKind.COPY).add(new Await("copy " + rank + " " + index));
      thread(rank, StreamKind.COPY).add(run);
      thread(rank, StreamKind.COPY).add(new Signal("copied " + rank + " " + op.result().id()));
    } else {
      compute.add(run);
    }
  }

  void run() {
    while (threads.stream().anyMatch(thread -> !thread.isEmpty())) {
      int sum = 0;
      var ready = new ArrayList<Integer>();
      for (int t = 0; t < threads.size(); t++) {
        if (!threads.get(t).isEmpty() && mayGoOn(t / STREAMS, threads.get(t).getFirst())) {
          ready.add(t);
          sum += weights[t];
        }
      }
      require(!ready.isEmpty(), "the ranks wait for ever");
      int drawn = random.nextInt(sum);
      for (int t : ready) {
        drawn -= weights[t];
        if (drawn < 0) {
          act(t / STREAMS, threads.get(t).removeFirst());
          break;
        }
      }
    }
  }

  private CollectivePlan collective(int rank, int k) {
    return plan.forRank(rank).collectives().get(k);
  }

  private ImmutableIntArray members(int rank, int k) {
    var group = plan.group(collective(rank, k).group());
    return group.members().get(group.partOf(rank).orElseThrow());
  }

  private Meeting meeting(int rank, int k) {
    return meetings.computeIfAbsent(k + " " + members(rank, k), key -> new Meeting());
  }

  /** Whether the ranks meet in the collective itself, whatever the plan says. */
  private static boolean meets(CollectivePlan collective) {
    return collective.variant() == Variant.NCCL_SYMM
        || collective.variant() == Variant.NCCL_CE
        || collective.variant() == Variant.CUSTOM;
  }

  /** Whether each rank touches only its own tensors, and data shows its arrival. */
  private static boolean sends(CollectivePlan collective) {
    var protocol = collective.spec().protocol();
    return protocol.readsOf() == Whose.OWN && protocol.writesOf() == Whose.OWN;
  }

  private static boolean waitsToMove(CollectivePlan collective) {
    return sends(collective) || meets(collective) || collective.startBarrier();
  }

  private boolean mayGoOn(int rank, Action action) {
    return switch (action) {
      case Begin _, End _, Compute _, Arrive _, Signal _ -> true;
      case Await(var event) -> events.contains(event);
      case Move(int k) -> {
        var own = collective(rank, k);
        yield !waitsToMove(own) || meeting(rank, k).arrived.size() == members(rank, k).length();
      }
      case Leave(int k) -> {
        var own = collective(rank, k);
        boolean waits = !sends(own) && (meets(own) || own.endBarrier());
        yield !waits || meeting(rank, k).moved.size() == members(rank, k).length();
      }
    };
  }

  private void act(int rank, Action action) {
    switch (action) {
      case Begin _ -> ranks.get(rank).begin();
      case End _ -> ranks.get(rank).end();
      case Compute(int[] ops) -> {
        if (ops.length == 1) {
          ranks.get(rank).compute(ops[0]);
        } else {
          ranks.get(rank).fused(ops);
        }
      }
      case Arrive(int k) -> arrive(rank, k);
      case Move(int k) -> {
        move(rank, k);
        meeting(rank, k).moved.add(rank);
      }
      case Leave _ -> {}
      case Signal(var event) -> events.add(event);
      case Await _ -> {}
    }
  }

  private void arrive(int rank, int k) {
    var own = ranks.get(rank);
    var collective = collective(rank, k);
    var op = own.plan.graph().ops().get(collective.op());
    var meeting = meeting(rank, k);
    own.make(op);
    meeting.arrived.add(rank);
    if (sends(collective)) {
      own.checkOperands(collective.op());
    } else if (waitsToMove(collective) && meeting.arrived.size() == members(rank, k).length()) {
      // Before, the collective before may write operands; later, this one may, in place.
      meeting.arrived.forEach(peer -> ranks.get(peer).checkOperands(collective(peer, k).op()));
    }
    if (collective.kind() == Kind.CUSTOM) {
      meeting.digest = 0;
      return;
    }
    if (collective.workspace() != CollectivePlan.NO_WORKSPACE) {
      members(rank, k)
          .forEach(peer -> ranks.get(peer).spoilBuffer(collective(peer, k).workspace()));
    }
    for (int i = 0; sends(collective) && i < collective.operands().size(); i++) {
      var operand = own.value(collective.operands().get(i));
      var result = own.value(collective.results().get(i));
      boolean inPlace =
          own.place(operand).overlaps(operand.tensor(), own.place(result), result.tensor());
      if (!inPlace || !mayShare(rank, k, i)) {
        own.spoil(result);
      }
      meeting
          .sent
          .computeIfAbsent(i, key -> new HashMap<>())
          .put(
              rank,
              new Exchange.Sent(
                  op,
                  PlannedRank.flat(
                      own.place(operand), operand, op.results().get(i), collective.spec())));
    }
  }

  /** Whether a result may lie over its operand as it does. */
  private boolean mayShare(int rank, int k, int i) {
    var own = ranks.get(rank);
    var collective = collective(rank, k);
    var operand = own.value(collective.operands().get(i));
    var result = own.value(collective.results().get(i));
    var from = own.place(operand);
    var to = own.place(result);
    int position = members(rank, k).indexOf(rank);
    return switch (collective.kind()) {
      case ALL_REDUCE -> collective.spec().allowsInPlace() && from.isAt(to);
      case ALL_GATHER -> isShard(collective, own, from, operand, to, result, position);
      case REDUCE_SCATTER -> isShard(collective, own, to, result, from, operand, position);
      case ALL_TO_ALL, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM -> false;
    };
  }

  /** Whether one place is just the rank's part of another one. */
  private static boolean isShard(
      CollectivePlan collective,
      PlannedRank rank,
      Place shard,
      Value part,
      Place place,
      Value whole,
      int position) {
    var dims = rank.plan.graph().ops().get(collective.op()).collective().orElseThrow().sliceDims();
    int dim = collective.kind() == Kind.ALL_GATHER ? dims.result() : dims.operand();
    long bytes = part.tensor().storageBytes();
    long row = bytes / Math.max(1, SliceDims.rows(whole.tensor(), dim));
    return collective.spec().allowsShardInPlace()
        && Math.min(shard.row, bytes) == row
        && shard.begin == place.begin + position * row;
  }

  private void move(int rank, int k) {
    var own = ranks.get(rank);
    var collective = collective(rank, k);
    var op = own.plan.graph().ops().get(collective.op());
    if (collective.kind() == Kind.CUSTOM) {
      GraphRun.custom(op, own, customDigest(rank, k));
      return;
    }
    var meeting = meeting(rank, k);
    for (int i = 0; i < collective.operands().size(); i++) {
      var exchange = Exchange.of(op, collective, members(rank, k), i);
      own.meet(op, exchange.weight() * own.value(collective.operands().get(i)).tensor().numel());
      if (sends(collective)) {
        write(rank, k, exchange, rank, meeting.sent.get(i), false);
        continue;
      }
      var protocol = collective.spec().protocol();
      if (protocol.rootOnly() && exchange.root() != rank) {
        continue;
      }
      var found = read(rank, k, exchange);
      if (protocol.writesOf() == Whose.OWN) {
        if (!mayShare(rank, k, i)) {
          own.spoil(own.value(collective.results().get(i)));
        }
        write(rank, k, exchange, rank, read(rank, k, exchange), false);
      } else if (protocol.writesOf() == Whose.TARGET) {
        int position = exchange.members().indexOf(rank);
        var permutation = exchange.permutation();
        if (permutation.sourceOf(position).isEmpty()) {
          write(rank, k, exchange, rank, found, false);
        }
        permutation
            .targetOf(position)
            .ifPresent(
                to -> {
                  require(to < exchange.members().length(), "%s is in no group", to);
                  write(rank, k, exchange, exchange.members().get(to), found, false);
                });
      } else {
        boolean slice = protocol.writes() == Slice.MINE;
        members(rank, k).forEach(target -> write(rank, k, exchange, target, found, slice));
      }
    }
  }

  /** The tensors that all ranks bring to a custom op, at the same time. */
  private long customDigest(int rank, int k) {
    var meeting = meeting(rank, k);
    if (meeting.moved.isEmpty()) {
      var members = members(rank, k);
      for (int peer : members.asList()) {
        var one = ranks.get(peer);
        meeting.digest =
            Piece.mix(
                meeting.digest, one.digest(one.plan.graph().ops().get(collective(peer, k).op())));
      }
    }
    return meeting.digest;
  }

  /**
   * The contents that a rank finds in the operands that it reads, at the places that the plan says.
   */
  private Map<Integer, Exchange.Sent> read(int rank, int k, Exchange exchange) {
    var found = new HashMap<Integer, Exchange.Sent>();
    var whose = collective(rank, k).spec().protocol().readsOf();
    members(rank, k)
        .forEach(
            peer -> {
              boolean reads =
                  switch (whose) {
                    case OWN -> peer == rank;
                    case EVERY -> true;
                    case ROOT -> peer == exchange.root();
                    case SOURCE -> isSource(exchange, exchange.members().indexOf(peer), rank);
                    case TARGET -> throw new IllegalStateException("nobody reads a target");
                  };
              if (reads) {
                var one = ranks.get(peer);
                var theirs = collective(peer, k);
                var operand = one.value(theirs.operands().get(exchange.index()));
                var place = peer == rank ? one.place(operand) : one.planned(operand);
                found.put(
                    peer,
                    new Exchange.Sent(
                        one.plan.graph().ops().get(theirs.op()),
                        PlannedRank.flat(
                            place,
                            operand,
                            one.value(theirs.results().get(exchange.index())),
                            theirs.spec())));
              }
            });
    return found;
  }

  private static boolean isSource(Exchange exchange, int position, int rank) {
    var targeted = exchange.permutation().targetOf(position);
    return targeted.isPresent()
        && targeted.getAsInt() < exchange.members().length()
        && exchange.members().get(targeted.getAsInt()) == rank;
  }

  /** Writes what a rank has into a result, all of it or only the rank's slice. */
  private void write(
      int rank,
      int k,
      Exchange exchange,
      int target,
      Map<Integer, Exchange.Sent> found,
      boolean slice) {
    var one = ranks.get(target);
    var theirs = collective(target, k);
    var result = one.value(theirs.results().get(exchange.index()));
    var place = target == rank ? one.place(result) : one.planned(result);
    require(result.tensor().isDense(), "%s is not dense", result.name());
    var op = one.plan.graph().ops().get(theirs.op());
    boolean reduced = exchange.kind() == Kind.ALL_REDUCE || exchange.kind() == Kind.BROADCAST;
    for (var part :
        Exchange.of(op, theirs, exchange.members(), exchange.index()).result(target, found)) {
      long from = 0;
      long to = Piece.length(part.pieces());
      if (slice && reduced) {
        from = bound(rank, exchange, to, 0);
        to = bound(rank, exchange, to, 1);
      }
      require(place.holds(part.begin() + to), "%s is outside its buffer", result.name());
      place.put(part.begin() + from, Piece.part(part.pieces(), from, to - from));
    }
  }

  /** Where the slice of a rank begins, or ends; in a broadcast, the root has none. */
  private static long bound(int rank, Exchange exchange, long bytes, int end) {
    boolean broadcast = exchange.kind() == Kind.BROADCAST;
    int root = exchange.members().indexOf(exchange.root());
    int position = exchange.members().indexOf(rank);
    int count = exchange.members().length() - (broadcast ? 1 : 0);
    if (broadcast && position == root) {
      return 0;
    }
    int index = broadcast && position > root ? position - 1 : position;
    // Elements have at most 16 bytes.
    return (index + end) == count ? bytes : bytes / 16 * (index + end) / count * 16;
  }
}
