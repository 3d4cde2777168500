package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Graph;
import dev.symplan.ir.Op;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What runs as one kernel: runs of elementwise ops of one shape that stand next to each other. What
 * they only pass on among themselves needs no memory.
 *
 * <p>An element's way through the ops reads all operands that the run ends the life of, and holds
 * all results that it leaves, at once. A run that would so take more memory than op by op is cut.
 */
final class Fusion {
  /** Longer runs save little more, and kernels have to hold what passes through them. */
  private static final int LONGEST = 32;

  private final Graph graph;
  private final Aliases aliases;
  private final boolean enabled;
  private final int[] running;

  /** By storage, the position of the last running op that uses it; beyond all if it escapes. */
  private final int[] lastUse;

  /** By storage, whether more than the value that defines it is in it, or its shape is read. */
  private final boolean[] viewed;

  private final boolean[] byCollective;
  private final boolean[] passing;
  private final List<ImmutableIntArray> units = new ArrayList<>();

  private Fusion(Graph graph, Aliases aliases, boolean enabled) {
    this.graph = graph;
    this.aliases = aliases;
    this.enabled = enabled;
    this.running = IntStream.range(0, graph.ops().size()).filter(this::isRunning).toArray();
    this.lastUse = new int[aliases.count()];
    this.viewed = new boolean[aliases.count()];
    this.byCollective = new boolean[aliases.count()];
    this.passing = new boolean[aliases.count()];
    Arrays.fill(lastUse, -1);
  }

  /**
   * @param enabled if not, every op is a unit by itself
   */
  static Fusion of(Graph graph, Aliases aliases, boolean enabled) {
    var fusion = new Fusion(graph, aliases, enabled);
    fusion.collectUses();
    fusion.cutUnits();
    return fusion;
  }

  /** {@return the units, each the indices of ops that run as one step, in the graph's order} */
  ImmutableList<ImmutableIntArray> units() {
    return ImmutableList.copyOf(units);
  }

  /** {@return whether a storage only passes from op to op of a unit, and so has no memory} */
  boolean isPassing(int storage) {
    return passing[storage];
  }

  private boolean isRunning(int op) {
    return !aliases.isView(op) && !graph.ops().get(op).def().has(OpTrait.WAIT);
  }

  private void mark(boolean[] storages, Value value) {
    if (aliases.id(value) >= 0) {
      storages[aliases.id(value)] = true;
    }
  }

  private void collectUses() {
    for (int i = 0; i < graph.ops().size(); i++) {
      var op = graph.ops().get(i);
      if (isRunning(i)) {
        if (op.def().collective().isPresent()) {
          op.results().forEach(result -> mark(byCollective, result));
        }
      } else {
        op.forEachOperand(value -> mark(viewed, value));
      }
      for (var result : op.results()) {
        if (aliases.id(result) >= 0 && aliases.of(result).value().id() != result.id()) {
          mark(viewed, result);
        }
      }
    }
    for (int p = 0; p < running.length; p++) {
      int position = p;
      op(p).forEachOperand(value -> use(value, position));
      op(p).results().forEach(value -> use(value, position));
    }
    graph.outputs().forEach(output -> output.forEachValue(v -> use(v, Integer.MAX_VALUE)));
    graph.inputs().forEach(input -> use(input, Integer.MAX_VALUE));
  }

  private void use(Value value, int position) {
    int storage = aliases.id(value);
    if (storage >= 0) {
      lastUse[storage] = Math.max(lastUse[storage], position);
    }
  }

  private Op op(int position) {
    return graph.ops().get(running[position]);
  }

  private void cutUnits() {
    int from = 0;
    while (from < running.length) {
      int to = from + 1;
      if (enabled && isElementwise(op(from))) {
        while (to < running.length && to - from < LONGEST && joins(from, to)) {
          to++;
        }
      }
      cut(from, to);
      from = to;
    }
  }

  private boolean isElementwise(Op op) {
    if (!op.def().has(OpTrait.ELEMENTWISE)
        || op.results().size() != 1
        || !(op.results().getFirst().type() instanceof TensorType type)
        || type.numel() == 0
        || aliases.of(op.result()).value().id() != op.result().id()) {
      return false;
    }
    boolean[] fits = {true};
    op.forEachOperand(value -> fits[0] &= !value.isTensor() || value.tensor().broadcastsTo(type));
    return fits[0];
  }

  /** Whether the op at {@code to} can follow those from {@code from} on. */
  private boolean joins(int from, int to) {
    var op = op(to);
    if (!isElementwise(op) || !sizes(op).equals(sizes(op(from)))) {
      return false;
    }
    boolean[] fits = {true};
    op.forEachOperand(
        value -> {
          int storage = aliases.id(value);
          if (storage >= 0) {
            // Waiting for a collective must not hold up the ops before.
            fits[0] &= !byCollective[storage];
            // Another view of what is just being made would be read at other elements.
            fits[0] &= !viewed[storage] || aliases.storage(storage).def() < running[from];
          }
        });
    return fits[0];
  }

  private static Object sizes(Op op) {
    return op.result().tensor().sizes();
  }

  /** Makes a unit of the ops in a range, or of each half of it. */
  private void cut(int from, int to) {
    if (to - from == 1) {
      units.add(ImmutableIntArray.of(running[from]));
      return;
    }
    if (bytesFused(from, to) <= bytesOneByOne(from, to)) {
      units.add(ImmutableIntArray.copyOf(Arrays.copyOfRange(running, from, to)));
      for (int p = from; p < to; p++) {
        if (passes(p, from, to)) {
          passing[aliases.id(op(p).result())] = true;
        }
      }
      return;
    }
    int middle = (from + to) >>> 1;
    cut(from, middle);
    cut(middle, to);
  }

  /** Whether nothing outside a range uses what the op at {@code position} makes. */
  private boolean passes(int position, int from, int to) {
    var result = op(position).result();
    int storage = aliases.id(result);
    return !viewed[storage] && lastUse[storage] < to;
  }

  /** The bytes that live while a range runs as one kernel, but not before and after it. */
  private long bytesFused(int from, int to) {
    var dying = dying(from, to);
    long bytes = dying.stream().mapToLong(this::bytes).sum();
    for (int p = from; p < to; p++) {
      if (!passes(p, from, to)) {
        int storage = aliases.id(op(p).result());
        long place = bytes(storage);
        int last = p;
        if (!dying.removeIf(old -> bytes(old) == place && lastUse[old] <= last)) {
          bytes += place;
        }
      }
    }
    return bytes;
  }

  /** The most that live at once when the ops of a range run one after the other. */
  private long bytesOneByOne(int from, int to) {
    long live = dying(from, to).stream().mapToLong(this::bytes).sum();
    long most = live;
    for (int p = from; p < to; p++) {
      var ending = new LinkedHashSet<Integer>();
      int position = p;
      op(p)
          .forEachOperand(
              value -> {
                int storage = aliases.id(value);
                if (storage >= 0 && lastUse[storage] == position) {
                  ending.add(storage);
                }
              });
      long place = bytes(aliases.id(op(p).result()));
      long inPlace = ending.stream().anyMatch(old -> bytes(old) == place) ? place : 0;
      live += place;
      most = Math.max(most, live - inPlace);
      live -= ending.stream().mapToLong(this::bytes).sum();
    }
    return most;
  }

  /** The storages that are older than a range and not used after it. */
  private LinkedHashSet<Integer> dying(int from, int to) {
    var dying = new LinkedHashSet<Integer>();
    for (int p = from; p < to; p++) {
      op(p)
          .forEachOperand(
              value -> {
                int storage = aliases.id(value);
                if (storage >= 0
                    && lastUse[storage] < to
                    && aliases.storage(storage).def() < running[from]) {
                  dying.add(storage);
                }
              });
    }
    return dying;
  }

  private long bytes(int storage) {
    return aliases.storage(storage).bytes();
  }
}
