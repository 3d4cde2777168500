package dev.symplan.planner.pass.order;

import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Fusion;
import dev.symplan.planner.pass.analysis.IntLists;
import dev.symplan.planner.pass.analysis.Precedence;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * The units that move when ops are reordered, and the memory that each takes and gives back. A unit
 * is the ops that run as one step, with the views of its results. A unit's number is its position
 * in the given order.
 *
 * <p>Memory is predicted before anything is placed: storages are whole, those of inputs and of the
 * caller's outputs count nothing, and elementwise results take the memory of operands that end.
 */
public final class WorkUnits {
  private final Graph graph;
  private final IntLists ops;
  private final IntLists before;
  private final IntLists after;
  private final boolean[] elementwise;

  /** Units that no other unit may cross if collectives are to keep the compute beside them. */
  private final boolean[] bounds;

  private final IntLists makes;
  private final IntLists reads;
  private final IntLists readers;
  private final int[] maker;
  private final long[] bytes;
  private final boolean[] escapes;

  /** How often each storage is read, once more if the caller reads it in the end. */
  private final int[] uses;

  private WorkUnits(Analyses ranked, boolean fused) {
    this.graph = ranked.graph();
    var fusion = ranked.fusion();
    var aliases = ranked.aliases();
    var unitOf = new int[graph.ops().size()];
    var precedence = Precedence.of(ranked);
    this.ops = group(fusion, fused, unitOf, precedence);
    int count = ops.owners();
    this.before =
        IntLists.Builder.of(
                unitOf.length,
                (op, edges) -> {
                  for (int k = 0; k < precedence.size(op); k++) {
                    int first = unitOf[precedence.get(op, k)];
                    if (first != unitOf[op]) {
                      edges.add(unitOf[op], first);
                    }
                  }
                })
            .build(count);
    this.after = before.inverse(count);

    this.elementwise = new boolean[count];
    this.bounds = new boolean[count];
    this.bytes = new long[aliases.count()];
    this.escapes = new boolean[aliases.count()];
    for (var storage : aliases.storages()) {
      boolean counts =
          !storage.isInput()
              && storage.value().tensor().space() != MemorySpace.HOST
              && !fusion.isPassing(storage.id())
              && !ranked.externalOutputs().isDirect(storage.id());
      escapes[storage.id()] = ranked.uses().escapes(storage.id());
      bytes[storage.id()] = counts ? Alignment.roundUp(storage.bytes()) : 0;
    }
    this.maker = new int[aliases.count()];
    Arrays.fill(maker, -1);
    var made = new IntLists.Builder();
    var read = new IntLists.Builder();
    var lastReader = new int[aliases.count()];
    Arrays.fill(lastReader, -1);
    for (int u = 0; u < count; u++) {
      int unit = u;
      for (int i = 0; i < ops.size(u); i++) {
        int index = ops.get(u, i);
        var op = graph.ops().get(index);
        if (!aliases.runs(index)) {
          continue;
        }
        elementwise[u] =
            (op.def().has(OpTrait.ELEMENTWISE) || op.def().has(OpTrait.UPDATES_SELF))
                && op.results().size() == 1;
        for (var value : op.operands()) {
          int storage = aliases.id(value);
          if (storage >= 0
              && bytes[storage] > 0
              && maker[storage] != unit
              && lastReader[storage] != unit) {
            lastReader[storage] = unit;
            read.add(unit, storage);
          }
        }
        for (var result : op.results()) {
          int storage = aliases.id(result);
          if (storage >= 0 && bytes[storage] > 0 && maker[storage] < 0) {
            maker[storage] = unit;
            made.add(unit, storage);
          }
        }
      }
    }
    this.makes = made.build(count);
    this.reads = read.build(count);
    this.readers = reads.inverse(aliases.count());
    this.uses = new int[aliases.count()];
    Arrays.setAll(uses, s -> readers.size(s) + (escapes[s] ? 1 : 0));
    markBounds(ranked, unitOf);
  }

  public static WorkUnits of(Analyses ranked) {
    var fused = new WorkUnits(ranked, true);
    return fused.isOrdered() ? fused : new WorkUnits(ranked, false);
  }

  /** Whether the given order is one of the units; ops between those of a unit may forbid it. */
  private boolean isOrdered() {
    for (int u = 0; u < count(); u++) {
      for (int k = 0; k < before.size(u); k++) {
        if (before.get(u, k) > u) {
          return false;
        }
      }
    }
    return true;
  }

  /** Views go with what they are views of, unless they need more than that. */
  private static IntLists group(Fusion fusion, boolean fused, int[] unitOf, IntLists precedence) {
    Arrays.fill(unitOf, -1);
    for (var unit : fusion.units()) {
      for (int i = 0; i < unit.length(); i++) {
        unitOf[unit.get(i)] = unit.get(fused ? 0 : i);
      }
    }
    var numberOf = new int[unitOf.length];
    int next = 0;
    for (int i = 0; i < unitOf.length; i++) {
      if (unitOf[i] < 0) {
        int only = precedence.size(i) == 0 ? -1 : unitOf[precedence.get(i, 0)];
        for (int k = 1; k < precedence.size(i); k++) {
          only = unitOf[precedence.get(i, k)] == only ? only : -1;
        }
        unitOf[i] = only < 0 ? i : only;
      }
      if (unitOf[i] == i) {
        numberOf[i] = next++;
      }
    }
    for (int i = 0; i < unitOf.length; i++) {
      unitOf[i] = numberOf[unitOf[i]];
    }
    return IntLists.Builder.of(unitOf.length, (op, members) -> members.add(unitOf[op], op))
        .build(next);
  }

  /** Collectives, what makes their operands ready, and what reads their results first. */
  private void markBounds(Analyses ranked, int[] unitOf) {
    for (var collective : ranked.collectives()) {
      int unit = unitOf[collective.index()];
      bounds[unit] = true;
      int ready = -1;
      for (int k = 0; k < before.size(unit); k++) {
        ready = Math.max(ready, before.get(unit, k));
      }
      if (ready >= 0) {
        bounds[ready] = true;
      }
      int needed = count();
      for (int k = 0; k < after.size(unit); k++) {
        needed = Math.min(needed, after.get(unit, k));
      }
      if (needed < count()) {
        bounds[needed] = true;
      }
    }
  }

  /**
   * {@return the units, none of which crosses a collective, or anything that the collective waits
   * for or that waits for it}
   */
  public WorkUnits withinWindows() {
    var edges = new IntLists.Builder();
    int bound = -1;
    for (int u = 0; u < count(); u++) {
      for (int k = 0; k < before.size(u); k++) {
        edges.add(u, before.get(u, k));
      }
      if (bound >= 0) {
        edges.add(u, bound);
      }
      if (bounds[u]) {
        for (int v = bound + 1; v < u; v++) {
          edges.add(u, v);
        }
        bound = u;
      }
    }
    return new WorkUnits(this, edges.build(count()));
  }

  private WorkUnits(WorkUnits other, IntLists before) {
    this.graph = other.graph;
    this.ops = other.ops;
    this.before = before;
    this.after = before.inverse(other.count());
    this.elementwise = other.elementwise;
    this.bounds = other.bounds;
    this.makes = other.makes;
    this.reads = other.reads;
    this.readers = other.readers;
    this.maker = other.maker;
    this.bytes = other.bytes;
    this.escapes = other.escapes;
    this.uses = other.uses;
  }

  public int count() {
    return ops.owners();
  }

  public int storages() {
    return bytes.length;
  }

  /** {@return the op of a unit that comes first} */
  public int firstOp(int unit) {
    return ops.get(unit, 0);
  }

  /** {@return the ops of a unit, in the graph's order} */
  IntStream ops(int unit) {
    return IntStream.range(0, ops.size(unit)).map(i -> ops.get(unit, i));
  }

  /** {@return the units that must come before one} */
  public IntLists before() {
    return before;
  }

  /** {@return the units that must come after one} */
  public IntLists after() {
    return after;
  }

  /** {@return the storages that a unit makes} */
  public IntLists makes() {
    return makes;
  }

  /** {@return the storages that a unit uses and another one makes} */
  public IntLists reads() {
    return reads;
  }

  /** {@return the units that use a storage which another one makes} */
  public IntLists readers() {
    return readers;
  }

  /** {@return the unit that makes a storage; -1 if its bytes do not count} */
  public int maker(int storage) {
    return maker[storage];
  }

  public long bytes(int storage) {
    return bytes[storage];
  }

  /** {@return how many uses each storage has, that of the caller in the end counted; a copy} */
  int[] uses() {
    return uses.clone();
  }

  /** {@return whether the caller reads the storage in the end} */
  public boolean escapes(int storage) {
    return escapes[storage];
  }

  /** {@return whether what a unit makes can take the memory of what ends with it} */
  public boolean isElementwise(int unit) {
    return elementwise[unit];
  }

  /** {@return the given order} */
  public int[] given() {
    var order = new int[count()];
    Arrays.setAll(order, u -> u);
    return order;
  }

  /** {@return the graph with its ops in the order of these units} */
  public Graph inOrder(int[] order) {
    var reordered = new ArrayList<Op>(graph.ops().size());
    for (int unit : order) {
      for (int i = 0; i < ops.size(unit); i++) {
        reordered.add(graph.ops().get(ops.get(unit, i)));
      }
    }
    return graph.withOps(reordered);
  }
}
