package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Iterables;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The ops that run as one kernel: adjacent ops that go element by element, or row by row ({@link
 * Rows}). Values that they only pass on among themselves need no memory.
 *
 * <p>A row's way through the ops reads all operands that the run ends the life of, and holds all
 * results that it leaves, at once. A run that would so take more memory than op by op is cut.
 */
public final class Fusion {
  /** Longer runs save little more, and kernels have to hold what passes through them. */
  private static final int MAX_OPS = 32;

  /** So many rows keep a GPU busy, each in a thread block of its own; */
  private static final long MANY_ROWS = 16;

  /** so few elements need not. */
  private static final long FEW_ELEMENTS = 1 << 16;

  private final Graph graph;
  private final Aliases aliases;
  private final boolean enabled;
  private final int[] running;
  private final Uses uses;

  /** By storage, whether more than the value that defines it is in it, or its shape is read. */
  private final boolean[] viewed;

  private final boolean[] byCollective;
  private final boolean[] passing;
  private final ImmutableList<ImmutableIntArray> units;
  private final int[] unitOf;

  private Fusion(Graph graph, Aliases aliases, Uses uses, boolean enabled) {
    this.graph = graph;
    this.aliases = aliases;
    this.uses = uses;
    this.enabled = enabled;
    this.running = IntStream.range(0, graph.ops().size()).filter(aliases::runs).toArray();
    this.unitOf = new int[graph.ops().size()];
    Arrays.fill(unitOf, -1);
    this.viewed = new boolean[aliases.count()];
    this.byCollective = new boolean[aliases.count()];
    this.passing = new boolean[aliases.count()];
    markViewed();
    this.units = cutUnits();
  }

  /**
   * @param enabled if not, every op is a unit by itself
   */
  static Fusion of(Graph graph, Aliases aliases, Uses uses, boolean enabled) {
    return new Fusion(graph, aliases, uses, enabled);
  }

  /** {@return the units, each the indices of ops that run as one step, in the graph's order} */
  public ImmutableList<ImmutableIntArray> units() {
    return units;
  }

  /** {@return the position of the unit that an op is in; -1 for views and waits} */
  public int unitOf(int op) {
    return unitOf[op];
  }

  /** {@return whether a storage only passes from op to op of a unit, and so has no memory} */
  public boolean isPassing(int storage) {
    return passing[storage];
  }

  /** {@return the bytes of all tensors in memory that the ops of a unit read or write} */
  long bytesInMemory(ImmutableIntArray unit) {
    return bytesInMemory(unit, -1);
  }

  /**
   * {@return the same, apart from one storage}
   *
   * @param without the storage that does not count
   */
  long bytesInMemory(ImmutableIntArray unit, int without) {
    var counted = new HashSet<Integer>();
    long bytes = 0;
    for (int i = 0; i < unit.length(); i++) {
      var op = graph.ops().get(unit.get(i));
      for (var value : Iterables.concat(op.operands(), op.results())) {
        int storage = aliases.id(value);
        if (storage >= 0 && storage != without && !passing[storage] && counted.add(value.id())) {
          bytes += value.tensor().bytes();
        }
      }
    }
    return bytes;
  }

  private void mark(boolean[] storages, Value value) {
    if (aliases.id(value) >= 0) {
      storages[aliases.id(value)] = true;
    }
  }

  private void markViewed() {
    for (int i = 0; i < graph.ops().size(); i++) {
      var op = graph.ops().get(i);
      if (aliases.runs(i)) {
        if (op.def().collective().isPresent()) {
          op.results().forEach(result -> mark(byCollective, result));
        }
      } else {
        op.operands().forEach(value -> mark(viewed, value));
      }
      for (var result : op.results()) {
        if (aliases.id(result) >= 0 && !aliases.defines(result)) {
          mark(viewed, result);
        }
      }
    }
  }

  /** Whether nothing uses a storage from a position on, and the caller neither. */
  private boolean endsBefore(int storage, int position) {
    int end = position < running.length ? running[position] : graph.ops().size();
    return uses.lastOpOrCaller(storage) < end;
  }

  private Op op(int position) {
    return graph.ops().get(running[position]);
  }

  private ImmutableList<ImmutableIntArray> cutUnits() {
    var found =
        Parallel.concat(running.length, (from, to) -> cutUnits(firstAlone(from), firstAlone(to)));
    for (int u = 0; u < found.size(); u++) {
      int unit = u;
      found.get(u).forEach(op -> unitOf[op] = unit);
    }
    return found;
  }

  /** {@return the first position from one on before which a run ends, whatever comes before it} */
  private int firstAlone(int position) {
    int first = position;
    while (0 < first && first < running.length && enabled && goesByRows(op(first))) {
      first++;
    }
    return first;
  }

  private List<ImmutableIntArray> cutUnits(int begin, int end) {
    var found = new ArrayList<ImmutableIntArray>();
    for (int from = begin, to; from < end; from = to) {
      to = enabled && goesByRows(op(from)) ? endOfRun(from) : from + 1;
      while (to - from > 1 && !joinsFit(from, to)) {
        to--;
      }
      cut(from, to, found);
    }
    return found;
  }

  private boolean goesByRows(Op op) {
    boolean elementwise = op.def().has(OpTrait.ELEMENTWISE);
    if (!elementwise && Rows.of(op) == 0
        || op.def().schema().mutates()
        || op.results().isEmpty()
        || op.isComplex()
        || !op.results().stream().allMatch(this::isMade)) {
      return false;
    }
    var shape = op.results().getFirst().tensor();
    return !elementwise
        || op.operands().stream()
            .allMatch(value -> !value.isTensor() || value.tensor().broadcastsTo(shape));
  }

  /** Whether a result is a tensor in storage of its own. */
  private boolean isMade(Value result) {
    return result.type() instanceof TensorType type && type.numel() > 0 && aliases.defines(result);
  }

  /** {@return the position after the longest run that begins at {@code from}} */
  private int endOfRun(int from) {
    var ops = new ArrayList<Op>(List.of(op(from)));
    var shapes = new HashSet<Object>();
    int to = from + 1;
    int end = to;
    boolean joined = true;
    shapes.add(shape(op(from)));
    int rows = Rows.shared(ops);
    while (to < running.length && to - from < MAX_OPS && mayJoin(from, to, shapes)) {
      ops.add(op(to));
      int before = rows;
      rows = Rows.shared(before, ops.getFirst(), op(to));
      // By the same rows as before, the others read what they did.
      var changed = rows == before ? ops.subList(to - from, ops.size()) : ops;
      if (!isWorthwhile(ops, rows) || !readOwnRows(changed, running[from], rows)) {
        return end;
      }
      joined = joins(op(to)) || joined && isRelated(from, to, shapes);
      shapes.add(shape(op(to)));
      to++;
      end = joined ? to : end;
    }
    return end;
  }

  private static boolean joins(Op op) {
    return op.def().has(OpTrait.CONCATENATION);
  }

  private static Object shape(Op op) {
    return op.results().getFirst().tensor().sizes();
  }

  /**
   * Whether a kernel can take the elements of a range's last result through all its ops: those of a
   * piece that is joined only where they become elements of the whole.
   */
  private boolean joinsFit(int from, int to) {
    var ops = IntStream.range(from, to).mapToObj(this::op).toList();
    if (ops.stream().noneMatch(Fusion::joins)) {
      return true;
    }
    var whole = shape(ops.getLast());
    var pieces = new HashSet<Value>();
    for (var op : ops) {
      boolean joins = joins(op);
      var result = op.results().getFirst();
      boolean fits =
          op.results().size() == 1
              && (joins || op.def().has(OpTrait.ELEMENTWISE))
              // Pieces could be written where a result lies that is in memory.
              && (passes(result, to) || !joins && shape(op).equals(whole));
      for (var value : op.operands()) {
        fits &= !joins || value.tensor().numel() > 0 && isOfType(value, result);
        fits &= joins || !pieces.contains(value) || value.tensor().sizes().equals(shape(op));
      }
      if (!fits) {
        return false;
      }
      if (!shape(op).equals(whole)) {
        pieces.add(result);
      }
    }
    return true;
  }

  private static boolean isOfType(Value value, Value other) {
    return value.tensor().dtype() == other.tensor().dtype();
  }

  /**
   * Whether the op at {@code to} can follow those from {@code from} on, whatever their rows.
   *
   * @param shapes the shapes of the results before it
   */
  private boolean mayJoin(int from, int to, HashSet<Object> shapes) {
    var op = op(to);
    if (!goesByRows(op)) {
      return false;
    }
    boolean fits = true;
    for (var value : op.operands()) {
      int storage = aliases.id(value);
      if (storage >= 0) {
        // Waiting for a collective must not hold up the ops before.
        fits &= !byCollective[storage];
        // Another view of what is just being made would be read in other rows.
        fits &= aliases.storage(storage).def() < running[from] || !viewed[storage];
      }
    }
    return fits && (isRelated(from, to, shapes) || isPiece(op, shapes));
  }

  /** Whether an op reads what those before it make, or makes something of a shape of theirs. */
  private boolean isRelated(int from, int to, HashSet<Object> shapes) {
    var op = op(to);
    if (shapes.contains(shape(op))) {
      return true;
    }
    for (var value : op.operands()) {
      int storage = aliases.id(value);
      if (storage >= 0 && aliases.storage(storage).def() >= running[from]) {
        return true;
      }
    }
    return false;
  }

  /** Whether what an op makes is joined, in the end, to something of these shapes. */
  private boolean isPiece(Op op, HashSet<Object> shapes) {
    int last = uses.lastOp(aliases.id(op.results().getFirst()));
    return last > 0
        && joins(graph.ops().get(last))
        && shapes.contains(shape(graph.ops().get(last)));
  }

  /** Whether ops read what the run makes row by row. */
  private boolean readOwnRows(List<Op> ops, int firstOp, int rows) {
    for (var op : ops) {
      for (var value : op.operands()) {
        int storage = aliases.id(value);
        if (storage >= 0
            && aliases.storage(storage).def() >= firstOp
            && !Rows.carries(op, value, rows)) {
          return false;
        }
      }
    }
    return true;
  }

  /** Whether a kernel that goes by so many leading dimensions has work for the whole machine. */
  private static boolean isWorthwhile(List<Op> ops, int rows) {
    long count = 1;
    long elements = 1;
    boolean byElements = true;
    for (var op : ops) {
      for (var result : op.results()) {
        byElements &= result.tensor().rank() == rows;
        elements = Math.max(elements, result.tensor().numel());
      }
    }
    var first = ops.getFirst().results().getFirst().tensor();
    for (int dim = 0; dim < rows; dim++) {
      count *= first.size(dim);
    }
    return byElements || rows > 0 && (count >= MANY_ROWS || elements <= FEW_ELEMENTS);
  }

  /** Makes a unit of the ops in a range, or of each half of it. */
  private void cut(int from, int to, List<ImmutableIntArray> found) {
    if (to - from == 1) {
      found.add(ImmutableIntArray.of(running[from]));
      return;
    }
    if (joinsFit(from, to) && bytesFused(from, to) <= bytesOneByOne(from, to)) {
      found.add(ImmutableIntArray.copyOf(Arrays.copyOfRange(running, from, to)));
      for (int p = from; p < to; p++) {
        for (var result : op(p).results()) {
          passing[aliases.id(result)] = passes(result, to);
        }
      }
      return;
    }
    int middle = (from + to) >>> 1;
    cut(from, middle, found);
    cut(middle, to, found);
  }

  /** Whether nothing after a range uses what one of its ops makes. */
  private boolean passes(Value result, int to) {
    int storage = aliases.id(result);
    return !viewed[storage] && endsBefore(storage, to);
  }

  /** The bytes that live while a range runs as one kernel, but not before and after it. */
  private long bytesFused(int from, int to) {
    var dying = dying(from, to);
    long bytes = dying.stream().mapToLong(this::bytes).sum();
    for (int p = from; p < to; p++) {
      for (var result : op(p).results()) {
        int storage = aliases.id(result);
        bytes += passes(result, to) || takesPlace(p, storage, dying) ? 0 : bytes(storage);
      }
    }
    return bytes;
  }

  /** Takes away one of the storages that end by an op, if its result can be there. */
  private boolean takesPlace(int position, int result, LinkedHashSet<Integer> dying) {
    return op(position).def().has(OpTrait.ELEMENTWISE)
        && dying.stream()
            .filter(old -> bytes(old) == bytes(result) && endsBefore(old, position + 1))
            .findFirst()
            .filter(dying::remove)
            .isPresent();
  }

  /** The most that live at once when the ops of a range run one after the other. */
  private long bytesOneByOne(int from, int to) {
    long live = dying(from, to).stream().mapToLong(this::bytes).sum();
    long most = live;
    for (int p = from; p < to; p++) {
      long made = 0;
      for (var result : op(p).results()) {
        made += bytes(aliases.id(result));
      }
      boolean inPlace = false;
      long ended = 0;
      var operands = op(p).operands();
      for (int i = 0; i < operands.size(); i++) {
        int storage = aliases.id(operands.get(i));
        if (storage >= 0
            && uses.lastOpOrCaller(storage) == running[p]
            && operands.subList(0, i).stream().noneMatch(other -> aliases.id(other) == storage)) {
          ended += bytes(storage);
          inPlace |= bytes(storage) == made && op(p).def().has(OpTrait.ELEMENTWISE);
        }
      }
      live += made;
      most = Math.max(most, live - (inPlace ? made : 0));
      live -= ended;
    }
    return most;
  }

  /** The storages that are older than a range and not used after it. */
  private LinkedHashSet<Integer> dying(int from, int to) {
    var dying = new LinkedHashSet<Integer>();
    for (int p = from; p < to; p++) {
      for (var value : op(p).operands()) {
        int storage = aliases.id(value);
        if (storage >= 0
            && endsBefore(storage, to)
            && aliases.storage(storage).def() < running[from]) {
          dying.add(storage);
        }
      }
    }
    return dying;
  }

  private long bytes(int storage) {
    return aliases.storage(storage).bytes();
  }
}
