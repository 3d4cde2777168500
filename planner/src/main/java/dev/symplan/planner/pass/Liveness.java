package dev.symplan.planner.pass;

import dev.symplan.ir.Arg;
import dev.symplan.ir.Op;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.Arena;
import dev.symplan.planner.Variant;
import java.util.Arrays;

/**
 * When each storage of a rank holds data, in steps, and which storages take another's place.
 *
 * <p>What an unfinished collective reads or writes is in use until its join. Peers touch a rank's
 * memory only between the barriers of a collective that the rank itself takes part in, so they need
 * no more than that.
 */
final class Liveness {
  private final Realize.Realized graph;
  private final Aliases aliases;
  private final Schedule schedule;
  private final int[] first;
  private final int[] last;
  private final int[] lastOp;
  private final int[] lastByOthers;
  private final int[] parent;

  /** Where a storage begins in its parent's place, in bytes. */
  private final long[] shift;

  /** Whether peers need a storage, or what takes its place, at the same offset; for roots. */
  private final boolean[] symmetric;

  private Liveness(Realize.Realized graph, Schedule schedule) {
    this.graph = graph;
    this.aliases = graph.aliases();
    this.schedule = schedule;
    int count = aliases.count();
    this.first = new int[count];
    this.last = new int[count];
    this.lastOp = new int[count];
    this.lastByOthers = new int[count];
    this.parent = new int[count];
    this.shift = new long[count];
    this.symmetric = new boolean[count];
    Arrays.fill(first, Integer.MAX_VALUE);
    Arrays.fill(last, -1);
    Arrays.fill(lastOp, -1);
    Arrays.fill(lastByOthers, -1);
    Arrays.setAll(parent, i -> i);
    for (int storage = 0; storage < count; storage++) {
      symmetric[storage] = graph.arenas()[storage] == Arena.SYMMETRIC;
    }
  }

  static Liveness of(Realize.Realized graph, Schedule schedule) {
    var liveness = new Liveness(graph, schedule);
    liveness.collect();
    return liveness;
  }

  private void collect() {
    int end = schedule.steps().size();
    for (int storage = 0; storage < aliases.count(); storage++) {
      if (graph.given()[storage]) {
        touch(storage, -1, -1, graph.pinned()[storage] ? end : -1);
      }
    }
    int k = 0;
    var ops = graph.graph().ops();
    for (int i = 0; i < ops.size(); i++) {
      if (schedule.stepOfOp()[i] < 0) {
        continue;
      }
      boolean collective =
          k < graph.collectives().size() && graph.collectives().get(k).index() == i;
      int from = schedule.stepOfOp()[i];
      int to = collective ? schedule.endStep()[k++] : from;
      int op = i;
      ops.get(i).forEachOperand(value -> touch(aliases.id(value), op, from, to));
      ops.get(i).results().forEach(value -> touch(aliases.id(value), op, from, to));
    }
    for (Arg output : graph.graph().outputs()) {
      output.forEachValue(value -> touch(aliases.id(value), -1, end, end));
    }
  }

  private void touch(int storage, int op, int from, int to) {
    if (storage < 0) {
      return;
    }
    first[storage] = Math.min(first[storage], from);
    if (to > last[storage]) {
      if (op != lastOp[storage]) {
        lastByOthers[storage] = last[storage];
      }
      last[storage] = to;
      lastOp[storage] = op;
    } else if (op != lastOp[storage]) {
      lastByOthers[storage] = Math.max(lastByOthers[storage], to);
    }
  }

  /** {@return whether the results of a collective can take the places of its operands} */
  boolean canBeInPlace(int k, Variant variant) {
    var collective = graph.collectives().get(k);
    if (!variant.allowsInPlace(collective.kind())) {
      return false;
    }
    for (int i = 0; i < collective.operands().size(); i++) {
      var operand = collective.operands().get(i);
      var result = collective.results().get(i);
      int from = aliases.id(operand);
      if (!diesIn(operand, collective.index(), schedule.startStep()[k])
          || !aliases.isWhole(operand)
          || operand.tensor().storageBytes() != result.tensor().storageBytes()
          || graph.arenas()[from] != graph.arenas()[aliases.id(result)]
          || collective.operands().stream().filter(v -> aliases.id(v) == from).count() > 1) {
        return false;
      }
    }
    return true;
  }

  void mergeCollective(int k) {
    var collective = graph.collectives().get(k);
    for (int i = 0; i < collective.operands().size(); i++) {
      merge(collective.operands().get(i), collective.results().get(i));
    }
  }

  /**
   * Lets elementwise results take the place of an operand that nothing reads later, also where only
   * one of the two is symmetric: then both are.
   *
   * @param symmetricToo whether two symmetric storages may become one, which all ranks must do
   *     alike
   */
  void mergeElementwise(boolean symmetricToo) {
    for (int i = 0; i < graph.graph().ops().size(); i++) {
      var op = graph.graph().ops().get(i);
      if (schedule.stepOfOp()[i] >= 0
          && op.def().has(OpTrait.ELEMENTWISE)
          && op.results().size() == 1
          && op.results().getFirst().isTensor()) {
        mergeOne(op, i, symmetricToo);
      }
    }
  }

  private void mergeOne(Op op, int index, boolean symmetricToo) {
    var result = op.result();
    int to = aliases.id(result);
    if (graph.arenas()[to].isExternal()) {
      return;
    }
    for (var arg : op.args()) {
      if (arg instanceof Arg.Ref(Value operand)
          && operand.isTensor()
          && !graph.arenas()[aliases.id(operand)].isExternal()
          && (symmetricToo || !isSymmetric(aliases.id(operand)) || !isSymmetric(to))
          && aliases.isWhole(operand)
          && aliases.of(result).value().id() == result.id()
          && sameLayout(operand.tensor(), result.tensor())
          && diesIn(operand, index, schedule.stepOfOp()[index])
          && (symmetricToo || !isSymmetric(aliases.id(operand)) || offset(to) == 0)
          && readsOnlyAs(op, operand)) {
        merge(operand, result);
        return;
      }
    }
  }

  /** Whether the op reads the storage through this layout only, so element by element. */
  private boolean readsOnlyAs(Op op, Value operand) {
    boolean[] only = {true};
    op.forEachOperand(
        value -> {
          if (aliases.id(value) == aliases.id(operand)) {
            only[0] &= aliases.isWhole(value) && sameLayout(value.tensor(), operand.tensor());
          }
        });
    return only[0];
  }

  private static boolean sameLayout(TensorType a, TensorType b) {
    return a.sizes().equals(b.sizes())
        && a.strides().equals(b.strides())
        && a.dtype().bytes() == b.dtype().bytes()
        && a.isDense();
  }

  /** Whether an op is the last to use a storage, which nobody else uses from {@code step} on. */
  private boolean diesIn(Value value, int op, int step) {
    int storage = aliases.id(value);
    return !graph.pinned()[storage]
        && lastOp[storage] == op
        && lastByOthers[storage] < step
        && last[storage] < schedule.steps().size();
  }

  /**
   * Has what a concatenation joins written where it is joined: pieces that nothing else reads later
   * become parts of the result. All of the result is in use from its first piece on, so where that
   * would take more memory, the pieces are copied.
   *
   * @param symmetricToo whether a symmetric piece may move into the result, which all ranks must do
   *     alike
   */
  void mergeConcatenations(boolean symmetricToo) {
    long before = mostLive();
    for (int i = 0; i < graph.graph().ops().size(); i++) {
      var op = graph.graph().ops().get(i);
      if (schedule.stepOfOp()[i] >= 0 && op.def().has(OpTrait.CONCATENATION)) {
        mergePieces(op, i, symmetricToo);
      }
    }
    if (mostLive() > before) {
      Arrays.setAll(parent, i -> i);
      Arrays.fill(shift, 0);
      for (int storage = 0; storage < parent.length; storage++) {
        symmetric[storage] = graph.arenas()[storage] == Arena.SYMMETRIC;
      }
    }
  }

  /** {@return the most bytes of the rank's own memory that are in use at one step} */
  private long mostLive() {
    int count = parent.length;
    var bytes = new long[count];
    var from = first.clone();
    var to = last.clone();
    for (int storage = 0; storage < count; storage++) {
      int root = root(storage);
      bytes[root] = Math.max(bytes[root], offset(storage) + aliases.storage(storage).bytes());
      from[root] = Math.min(from[root], first[storage]);
      to[root] = Math.max(to[root], last[storage]);
    }
    var change = new long[schedule.steps().size() + 3];
    for (int storage = 0; storage < count; storage++) {
      if (root(storage) == storage
          && to[storage] >= from[storage]
          && !graph.arenas()[storage].isExternal()) {
        change[from[storage] + 1] += bytes[storage];
        change[to[storage] + 2] -= bytes[storage];
      }
    }
    long live = 0;
    long most = 0;
    for (long delta : change) {
      live += delta;
      most = Math.max(most, live);
    }
    return most;
  }

  private void mergePieces(Op op, int index, boolean symmetricToo) {
    int to = aliases.id(op.result());
    if (graph.arenas()[to].isExternal()) {
      return;
    }
    var pieces = Concatenation.of(op);
    for (var piece : pieces) {
      int from = aliases.id(piece.value());
      if (piece.offset() % Slots.VECTOR == 0
          && !graph.given()[from]
          && !graph.arenas()[from].isExternal()
          && (symmetricToo || !isSymmetric(from))
          && aliases.isWhole(piece.value())
          && diesIn(piece.value(), index, schedule.stepOfOp()[index])
          && pieces.stream().filter(p -> aliases.id(p.value()) == from).count() == 1) {
        join(from, to, piece.offset());
      }
    }
  }

  private void merge(Value operand, Value result) {
    join(aliases.id(result), aliases.id(operand), 0);
  }

  /** Puts one storage into the place of another, some bytes behind its beginning. */
  private void join(int part, int whole, long offset) {
    int from = root(part);
    int to = root(whole);
    if (from == to) {
      return;
    }
    long distance = offset(whole) + offset - offset(part);
    if (distance < 0) {
      int other = from;
      from = to;
      to = other;
    }
    parent[from] = to;
    shift[from] = Math.abs(distance);
    symmetric[to] |= symmetric[from];
  }

  /** {@return where a storage begins in the place of its {@link #root}, in bytes} */
  long offset(int storage) {
    long sum = 0;
    for (int i = storage; parent[i] != i; i = parent[i]) {
      sum += shift[i];
    }
    return sum;
  }

  /** {@return whether peers need what lies in a storage's place at the same offset} */
  boolean isSymmetric(int storage) {
    return symmetric[root(storage)];
  }

  /** {@return the storage whose place this one takes} */
  int root(int storage) {
    int root = storage;
    while (parent[root] != root) {
      root = parent[root];
    }
    return root;
  }

  /** {@return the first step that uses a storage; -1 where it holds data from the start} */
  int first(int storage) {
    return first[storage];
  }

  /** {@return the last step that uses it; the number of steps where the caller reads it} */
  int last(int storage) {
    return last[storage];
  }
}
