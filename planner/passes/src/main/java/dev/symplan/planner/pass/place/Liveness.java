package dev.symplan.planner.pass.place;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Concatenation;
import dev.symplan.planner.pass.analysis.Fusion;
import dev.symplan.planner.pass.select.Realize;
import dev.symplan.planner.plan.ArenaKind;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.ToIntFunction;

/**
 * When each storage of a rank holds data, in steps, and which storages take another's place.
 *
 * <p>What an unfinished collective reads or writes is in use until its join. Peers touch a rank's
 * memory only between the barriers of a collective that the rank itself takes part in, so they need
 * no more than that. What only passes from op to op of a fused step lives nowhere.
 */
public final class Liveness {
  private final Realize.Realized graph;
  private final Aliases aliases;
  private final Fusion fusion;
  private final Schedule schedule;
  private final int[] first;
  private final int[] last;

  /** The start of the last step that uses a storage, and the end of the last one but it. */
  private final int[] lastUser;

  private final int[] lastByOthers;
  private StorageMerges places;

  private Liveness(Realize.Realized graph, Fusion fusion, Schedule schedule) {
    this.graph = graph;
    this.fusion = fusion;
    this.aliases = graph.aliases();
    this.schedule = schedule;
    int count = aliases.count();
    this.first = new int[count];
    this.last = new int[count];
    this.lastUser = new int[count];
    this.lastByOthers = new int[count];
    Arrays.fill(first, Integer.MAX_VALUE);
    Arrays.fill(last, -1);
    Arrays.fill(lastUser, -1);
    Arrays.fill(lastByOthers, -1);
    this.places = apart();
  }

  private StorageMerges apart() {
    var symmetric = new boolean[aliases.count()];
    for (int storage = 0; storage < symmetric.length; storage++) {
      symmetric[storage] = graph.arenas()[storage] == ArenaKind.SYMMETRIC;
    }
    return StorageMerges.apart(symmetric);
  }

  public static Liveness of(Realize.Realized graph, Fusion fusion, Schedule schedule) {
    var liveness = new Liveness(graph, fusion, schedule);
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
      ops.get(i).operands().forEach(value -> touch(aliases.id(value), from, from, to));
      ops.get(i).results().forEach(value -> touch(aliases.id(value), from, from, to));
    }
    graph.graph().outputValues().forEach(value -> touch(aliases.id(value), -1, end, end));
    aliases.families().extend(last);
  }

  private void touch(int storage, int user, int from, int to) {
    if (storage < 0 || fusion.isPassing(storage)) {
      return;
    }
    first[storage] = Math.min(first[storage], from);
    if (to > last[storage]) {
      if (user != lastUser[storage]) {
        lastByOthers[storage] = last[storage];
      }
      last[storage] = to;
      lastUser[storage] = user;
    } else if (user != lastUser[storage]) {
      lastByOthers[storage] = Math.max(lastByOthers[storage], to);
    }
  }

  /** {@return whether the results of a collective can take the places of its operands} */
  public boolean canBeInPlace(int k, Variant variant) {
    var collective = graph.collectives().get(k);
    if (!variant.allowsInPlace(collective.kind())) {
      return false;
    }
    var sources = new HashSet<Integer>();
    for (int i = 0; i < collective.operands().size(); i++) {
      var operand = collective.operands().get(i);
      var result = collective.results().get(i);
      int from = aliases.id(operand);
      if (!diesIn(operand, schedule.startStep()[k])
          || !aliases.isWhole(operand)
          || operand.tensor().storageBytes() != result.tensor().storageBytes()
          || graph.arenas()[from] != graph.arenas()[aliases.id(result)]
          || !sources.add(from)) {
        return false;
      }
    }
    return true;
  }

  public void mergeCollective(int k) {
    var collective = graph.collectives().get(k);
    for (int i = 0; i < collective.operands().size(); i++) {
      merge(collective.operands().get(i), collective.results().get(i));
    }
  }

  /**
   * Lets elementwise results take the place of an operand that nothing reads later, and updated
   * copies that of what they are copies of, also where only one of the two is symmetric: then both
   * are.
   *
   * @param symmetricToo whether two symmetric storages may become one, which all ranks must do
   *     alike
   */
  public void mergeLocal(boolean symmetricToo) {
    for (var unit : fusion.units()) {
      var taken = new HashSet<Integer>();
      for (int i = 0; i < unit.length(); i++) {
        var op = graph.graph().ops().get(unit.get(i));
        if ((op.def().has(OpTrait.ELEMENTWISE) || op.def().has(OpTrait.UPDATES_SELF))
            && op.results().size() == 1
            && op.results().getFirst().isTensor()
            && !fusion.isPassing(aliases.id(op.result()))) {
          mergeOne(unit, i, symmetricToo, taken);
        }
      }
    }
  }

  /** Merges the result of the op at {@code position} with what it or one before it reads. */
  private void mergeOne(
      ImmutableIntArray unit, int position, boolean symmetricToo, Set<Integer> taken) {
    var result = graph.graph().ops().get(unit.get(position)).result();
    if (graph.arenas()[aliases.id(result)].isExternal()
        || places.isShare(aliases.id(result))
        || aliases.of(result).value().id() != result.id()) {
      return;
    }
    for (int i = position; i >= 0; i--) {
      for (var arg : replaceable(graph.graph().ops().get(unit.get(i)))) {
        if (arg instanceof Arg.Ref(Value operand)
            && operand.isTensor()
            && !taken.contains(aliases.id(operand))
            && canReplace(unit, position, operand, result, symmetricToo)) {
          taken.add(aliases.id(operand));
          merge(operand, result);
          return;
        }
      }
    }
  }

  /** The arguments whose places an op's result may take. */
  private List<Arg> replaceable(Op op) {
    if (!op.def().has(OpTrait.UPDATES_SELF)) {
      return op.args();
    }
    if (!(op.arg("self") instanceof Arg.Ref(Value self))) {
      return List.of();
    }
    // What else the op reads of that memory, through a view, it reads when self is updated already.
    long mentions =
        op.operands().stream().filter(value -> aliases.id(value) == aliases.id(self)).count();
    return mentions == 1 ? List.of(op.arg("self")) : List.of();
  }

  private boolean canReplace(
      ImmutableIntArray unit, int position, Value operand, Value result, boolean symmetricToo) {
    int from = aliases.id(operand);
    return !fusion.isPassing(from)
        && !places.isShare(from)
        && aliases.storage(from).def() < unit.get(0)
        && !graph.arenas()[from].isExternal()
        && (symmetricToo || !places.isSymmetric(from) || mayBeMoved(aliases.id(result)))
        && aliases.isWhole(operand)
        && sameLayout(operand.tensor(), result.tensor())
        && diesIn(operand, schedule.stepOfOp()[unit.get(0)])
        && readOnlyAs(unit, position, operand);
  }

  /** Whether a storage is where no other rank has to have it too. */
  private boolean mayBeMoved(int storage) {
    return !places.isSymmetric(storage) && places.offset(storage) == 0;
  }

  /** Whether the ops up to a position, and only they, read a storage, and in this layout only. */
  private boolean readOnlyAs(ImmutableIntArray unit, int position, Value operand) {
    boolean only = true;
    int rows = Rows.shared(ops(unit));
    for (int i = 0; i < unit.length(); i++) {
      boolean before = i <= position;
      var op = graph.graph().ops().get(unit.get(i));
      for (var value : op.operands()) {
        if (aliases.id(value) == aliases.id(operand)) {
          only &=
              before
                  && aliases.isWhole(value)
                  && Rows.carries(op, value, rows)
                  && sameLayout(value.tensor(), operand.tensor());
        }
      }
    }
    return only;
  }

  private ImmutableList<Op> ops(ImmutableIntArray unit) {
    return unit.stream()
        .mapToObj(graph.graph().ops()::get)
        .collect(ImmutableList.toImmutableList());
  }

  private static boolean sameLayout(TensorType a, TensorType b) {
    return a.sizes().equals(b.sizes())
        && a.strides().equals(b.strides())
        && a.dtype().bytes() == b.dtype().bytes()
        && a.isDense();
  }

  /** Whether a step is the last to use a storage, which nobody else uses from its start on. */
  public boolean diesIn(Value value, int step) {
    int storage = aliases.id(value);
    return !graph.pinned()[storage]
        && aliases.families().isAlone(storage)
        && lastUser[storage] == step
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
  public void mergeConcatenations(boolean symmetricToo) {
    long before = peakBytes();
    for (int i = 0; i < graph.graph().ops().size(); i++) {
      var op = graph.graph().ops().get(i);
      if (schedule.stepOfOp()[i] >= 0 && op.def().has(OpTrait.CONCATENATION)) {
        mergePieces(op, i, symmetricToo);
      }
    }
    if (peakBytes() > before) {
      places = apart();
    }
  }

  private void mergePieces(Op op, int index, boolean symmetricToo) {
    int to = aliases.id(op.result());
    if (graph.arenas()[to].isExternal()) {
      return;
    }
    var pieces = Concatenation.of(op);
    for (var piece : pieces) {
      int from = aliases.id(piece.value());
      if (piece.offset() % Alignment.VECTOR == 0
          && !graph.given()[from]
          && !graph.arenas()[from].isExternal()
          && (symmetricToo || !places.isSymmetric(from))
          && aliases.isWhole(piece.value())
          && diesIn(piece.value(), schedule.stepOfOp()[index])
          && pieces.stream().filter(p -> aliases.id(p.value()) == from).count() == 1) {
        places.join(from, to, piece.offset());
      }
    }
  }

  private void merge(Value operand, Value result) {
    places.join(aliases.id(result), aliases.id(operand), 0);
  }

  /**
   * Has what the rank brings to all_gathers written where their results have it, and leaves what it
   * gets from reduce_scatters where their operands have it. Each takes a share's memory less while
   * the collective runs, but the whole's for longer: so only if it lowers the peak, either that of
   * all such collectives or that of those next to what makes, or uses, the share.
   *
   * @param groupSize the number of ranks in a group
   */
  public void mergeShares(ImmutableList<Variant> variants, ToIntFunction<String> groupSize) {
    var shares = new ShardsInPlace(graph, schedule, this, variants, groupSize);
    if (shares.isEmpty()) {
      return;
    }
    long before = peakBytes();
    var apart = places.copy();
    for (boolean all : new boolean[] {true, false}) {
      if (shares.join(all, places) && peakBytes() < before) {
        return;
      }
      places = apart.copy();
    }
  }

  /** {@return how the storages lie in each other's places} */
  public StorageMerges places() {
    return places;
  }

  /** {@return whether a storage lives at all: it is more than what a step passes on} */
  public boolean hasMemory(int storage) {
    return !fusion.isPassing(storage);
  }

  /** {@return the most bytes of the rank's own memory that are live at one step} */
  public long peakBytes() {
    var from = first.clone();
    var to = last.clone();
    var bytes = new long[first.length];
    for (int storage = 0; storage < first.length; storage++) {
      int root = places.root(storage);
      if (!fusion.isPassing(storage)) {
        long end = places.offset(storage) + aliases.storage(storage).bytes();
        bytes[root] = Math.max(bytes[root], Alignment.roundUp(end));
        from[root] = Math.min(from[root], first[storage]);
        to[root] = Math.max(to[root], last[storage]);
      }
    }
    var change = new long[schedule.steps().size() + 3];
    for (int storage = 0; storage < first.length; storage++) {
      if (bytes[storage] > 0
          && (places.isSymmetric(storage) || !graph.arenas()[storage].isExternal())) {
        change[from[storage] + 1] += bytes[storage];
        change[to[storage] + 2] -= bytes[storage];
      }
    }
    long live = 0;
    long peak = 0;
    for (long delta : change) {
      live += delta;
      peak = Math.max(peak, live);
    }
    return peak;
  }

  /** {@return the first step that uses a storage; -1 where it holds data from the start} */
  public int first(int storage) {
    return first[storage];
  }

  /** {@return the last step that uses it; the number of steps where the caller reads it} */
  public int last(int storage) {
    return last[storage];
  }
}
