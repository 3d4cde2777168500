package dev.symplan.planner.interpret;

import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Executes the graphs of all ranks in their order, every storage in memory of its own. */
final class GraphRun {
  private final List<ProcessGroup> groups;
  private final long seed;
  private final List<Own> ranks = new ArrayList<>();

  /** By group and number of its collective, the ranks that have come. */
  private final Map<String, List<Own>> meetings = new HashMap<>();

  GraphRun(List<ProcessGroup> groups, List<Graph> graphOfRank, long seed) {
    this.groups = groups;
    this.seed = seed;
    for (int rank = 0; rank < graphOfRank.size(); rank++) {
      ranks.add(new Own(rank, graphOfRank.get(rank)));
    }
    boolean moved = true;
    while (moved) {
      moved = false;
      for (var rank : ranks) {
        moved |= rank.advance();
      }
    }
    for (var rank : ranks) {
      Unsafe.require(rank.next == rank.graph.ops().size(), "rank %s waits for ever", rank.number);
    }
  }

  /** {@return a number for each tensor that an op of a rank reads, all its bytes} */
  long[] found(int rank, int op) {
    return ranks.get(rank).found[op];
  }

  Rank rank(int rank) {
    return ranks.get(rank);
  }

  /** {@return the results of a rank: its outputs, and the inputs that stay the caller's} */
  static List<Value> kept(Graph graph) {
    var kept = new ArrayList<Value>();
    for (var value : graph.outputValues()) {
      if (value.isTensor()) {
        kept.add(value);
      }
    }
    for (var input : graph.inputs()) {
      if (input.isTensor() && input.tensor().space() != MemorySpace.DONATED) {
        kept.add(input);
      }
    }
    return kept;
  }

  /** {@return what the setup makes and the next run reads} */
  static Set<Value> setUp(Graph graph) {
    var made = new HashSet<Value>();
    var read = new LinkedHashSet<Value>();
    boolean ended = graph.ops().stream().noneMatch(op -> op.def().has(OpTrait.SETUP_END));
    for (var op : graph.ops()) {
      ended |= op.def().has(OpTrait.SETUP_END);
      if (ended) {
        op.operands().stream().filter(made::contains).forEach(read::add);
      } else {
        made.addAll(op.results());
      }
    }
    return read;
  }

  static boolean isView(Op op) {
    return op.def().has(OpTrait.WAIT)
        || (op.def().rule().isPresent()
            && !op.def().schema().mutates()
            && !op.def().has(OpTrait.SIDE_EFFECT)
            && !op.results().isEmpty()
            && op.infer().stream().allMatch(result -> result.view().isPresent()));
  }

  /** One rank. */
  private final class Own extends Rank {
    final Graph graph;
    final @Nullable Place[] places;
    final long[][] found;
    final Map<String, Integer> counts = new HashMap<>();
    int next;

    Own(int number, Graph graph) {
      super(number);
      this.graph = graph;
      this.places = new @Nullable Place[graph.valueCount()];
      this.found = new long[graph.ops().size()][];
      for (int i = 0; i < graph.inputs().size(); i++) {
        allocate(graph.inputs().get(i));
        bring(graph.inputs().get(i), i);
      }
    }

    @Override
    Place place(Value value) {
      return Objects.requireNonNull(places[value.id()], value.name());
    }

    @Override
    void put(Value result, Place place) {
      places[result.id()] = place;
    }

    private void allocate(Value value) {
      if (value.isTensor()) {
        long bytes = value.tensor().storageBytes();
        places[value.id()] = new Place(new Bytes(bytes), 0, 0, bytes);
      }
    }

    /** Runs up to the next collective that others have not come to. */
    boolean advance() {
      int before = next;
      while (next < graph.ops().size()) {
        var op = graph.ops().get(next);
        if (op.def().collective().isPresent()) {
          if (!meet(op)) {
            break;
          }
        } else {
          begin(op);
          carryOut(op);
          next++;
        }
      }
      return next > before;
    }

    private void begin(Op op) {
      found[next] =
          op.operands().stream()
              .filter(Value::isTensor)
              .mapToLong(v -> place(v).exact(v.tensor()))
              .toArray();
      var inferred = op.infer();
      for (int r = 0; r < op.results().size(); r++) {
        var result = op.results().get(r);
        var view = inferred.get(r).view();
        if (view.isEmpty() || !result.isTensor()) {
          allocate(result);
        } else {
          var base = place(view.get().of());
          long from = view.get().fromStorage() ? base.origin : base.begin;
          places[result.id()] =
              op.def().rule().isEmpty()
                  ? base
                  : base.at(from + view.get().offset() * view.get().of().tensor().dtype().bytes());
        }
      }
    }

    private void carryOut(Op op) {
      if (op.def().rule().isEmpty()) {
        UnknownOps.carryOut(op, this, seed);
      } else if (!isView(op)) {
        KnownOps.carryOut(op, this, new Random(next));
      }
    }

    private boolean meet(Op op) {
      var members = Exchange.members(groups, op, number);
      var group = members.toString();
      var meeting =
          meetings.computeIfAbsent(group + counts.getOrDefault(group, 0), key -> new ArrayList<>());
      if (!meeting.contains(this)) {
        begin(op);
        meeting.add(this);
        if (meeting.size() == members.length()) {
          exchange(meeting);
          meeting.forEach(own -> own.passes(group));
        }
        return meeting.size() == members.length();
      }
      return false;
    }

    private void passes(String group) {
      counts.merge(group, 1, Integer::sum);
      next++;
    }

    private Op current() {
      return graph.ops().get(next);
    }

    private void exchange(List<Own> meeting) {
      if (current().def().collective().orElseThrow().kind() == Kind.CUSTOM) {
        custom(meeting);
        return;
      }
      int tensors = current().collective().orElseThrow().operands().size();
      for (int i = 0; i < tensors; i++) {
        var sent = new HashMap<Integer, Exchange.Sent>();
        for (var own : meeting) {
          var operand = own.current().collective().orElseThrow().operands().get(i);
          sent.put(
              own.number,
              new Exchange.Sent(own.current(), own.place(operand).read(operand.tensor())));
        }
        for (var own : meeting) {
          own.receive(i, sent);
        }
      }
    }

    private void receive(int i, Map<Integer, Exchange.Sent> sent) {
      var op = current();
      var exchange = Exchange.of(op, Exchange.members(groups, op, number), i);
      if (ForeignCollectives.is(op)) {
        ForeignCollectives.spoil(op, this);
        var target = ForeignCollectives.target(op);
        place(target).write(target.tensor(), ForeignCollectives.result(op, exchange, number, sent));
      } else {
        var target = op.def().schema().mutates() ? op.written().get(i) : op.results().get(i);
        var parts = new ArrayList<>(exchange.result(number, sent));
        parts.sort((a, b) -> Long.compare(a.begin(), b.begin()));
        var all = new ArrayList<Piece>();
        parts.forEach(part -> all.addAll(part.pieces()));
        place(target).write(target.tensor(), all);
      }
      meet(
          op, exchange.weight() * op.collective().orElseThrow().operands().get(i).tensor().numel());
    }
  }

  /** A custom op may read what all ranks bring. */
  private static void custom(List<Own> meeting) {
    long all = 0;
    meeting.sort((a, b) -> Integer.compare(a.number, b.number));
    for (var own : meeting) {
      all = Piece.mix(all, own.digest(own.current()));
    }
    for (var own : meeting) {
      custom(own.current(), own, all);
    }
  }

  /** Writes what a custom op gives one of its ranks. */
  static void custom(Op op, Rank rank, long digest) {
    long own = Piece.mix(digest, rank.number);
    for (int i = 0; i < op.written().size(); i++) {
      var value = op.written().get(i);
      rank.place(value).fill(value.tensor(), Piece.mix(own, 1_000 + i));
    }
    for (int r = 0; r < op.results().size(); r++) {
      var result = op.results().get(r);
      if (result.isTensor() && op.infer().get(r).view().isEmpty()) {
        rank.place(result).fill(result.tensor(), Piece.mix(own, r));
      }
    }
    rank.met += Rank.key(op);
  }
}
