package dev.symplan.planner.verify;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.AliasInfo;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.ToIntFunction;

/**
 * In which storages the tensors of a storage may be, read off the schemas of ops without a rule: a
 * directed graph of storages, with an edge to each storage that the tensors of another may be in.
 *
 * <p>An argument whose annotation ends in {@code *} may be in the storage of every other such
 * argument afterwards. A result may be in the storage of each argument and result that shares an
 * alias set with it, and may even be that tensor; where such a result is moved later, so is the
 * tensor.
 */
final class MayAlias {
  private final ToIntFunction<Value> storageOf;
  private final Map<Integer, Set<Integer>> mayBeIn = new HashMap<>();

  /** By storage of a result, those of the tensors that the result may be. */
  private final Map<Integer, Set<Integer>> mayBe = new HashMap<>();

  private final Map<Integer, Integer> movedAt = new HashMap<>();
  private final Map<Integer, Integer> family = new HashMap<>();

  MayAlias(ToIntFunction<Value> storageOf) {
    this.storageOf = storageOf;
  }

  /** Takes in an op; its operands and results have their storages. */
  void visit(int index, Op op) {
    if (op.def().rule().isPresent()) {
      return;
    }
    var schema = op.def().schema();
    var moved = new BitSet();
    for (int i = 0; i < schema.params().size(); i++) {
      if (schema.params().get(i).alias().after().contains(AliasInfo.ANYTHING)) {
        op.args().get(i).operands().forEach(value -> reach(storageOf.applyAsInt(value), moved));
      }
    }
    int hub = moved.nextSetBit(0);
    moved.stream()
        .forEach(
            storage -> {
              movedAt.merge(storage, index, Math::min);
              edge(mayBeIn, storage, hub);
              edge(mayBeIn, hub, storage);
            });
    for (int i = 0; i < op.results().size(); i++) {
      visitResult(index, op, i);
    }
  }

  private void visitResult(int index, Op op, int i) {
    int result = storageOf.applyAsInt(op.results().get(i));
    var sets = sets(op, i);
    if (result < 0 || sets.isEmpty()) {
      return;
    }
    var sources = new ArrayList<Value>();
    for (int p = 0; p < op.args().size(); p++) {
      var alias = op.def().schema().params().get(p).alias();
      if (!Collections.disjoint(alias.before(), sets)
          || !Collections.disjoint(alias.after(), sets)) {
        sources.addAll(op.args().get(p).operands());
      }
    }
    for (int other = 0; other < op.results().size(); other++) {
      if (other != i && !Collections.disjoint(sets(op, other), sets)) {
        sources.add(op.results().get(other));
      }
    }
    for (var source : sources) {
      int storage = storageOf.applyAsInt(source);
      if (storage >= 0 && storage != result) {
        edge(mayBeIn, result, storage);
        edge(mayBe, result, storage);
        movedAt.merge(result, index, Math::min);
      }
    }
  }

  /** The alias sets of a result; where a list is spread out, those of all results. */
  private static Set<String> sets(Op op, int result) {
    var given = op.def().schema().results();
    var sets = new HashSet<String>();
    for (int i = 0; i < given.size(); i++) {
      if (i == result || given.size() != op.results().size()) {
        sets.addAll(given.get(i).alias().after());
      }
    }
    return sets;
  }

  private static void edge(Map<Integer, Set<Integer>> edges, int from, int to) {
    edges.computeIfAbsent(from, f -> new HashSet<>()).add(to);
  }

  /** Adds a storage, and those of all tensors that a tensor of it may be. */
  private void reach(int storage, BitSet found) {
    if (storage < 0 || found.get(storage)) {
      return;
    }
    found.set(storage);
    mayBe.getOrDefault(storage, Set.of()).forEach(other -> reach(other, found));
  }

  /** Finds the families: what edges connect, whichever way they lead. */
  void connect() {
    var both = new HashMap<Integer, Set<Integer>>();
    mayBeIn.forEach(
        (from, all) ->
            all.forEach(
                to -> {
                  edge(both, from, to);
                  edge(both, to, from);
                }));
    for (int start : both.keySet()) {
      var open = new ArrayDeque<>(List.of(start));
      while (!open.isEmpty()) {
        int storage = open.pop();
        if (family.putIfAbsent(storage, start) == null) {
          open.addAll(both.getOrDefault(storage, Set.of()));
        }
      }
    }
  }

  /** {@return whether tensors of several storages may be in this one} */
  boolean isShared(int storage) {
    return family.containsKey(storage);
  }

  /** {@return the number that all storages share in which one tensor may be} */
  int familyOf(int storage) {
    return family.getOrDefault(storage, storage);
  }

  /** {@return whether a tensor of a storage may be elsewhere when an op runs} */
  boolean mayHaveMoved(int storage, int op) {
    return movedAt.getOrDefault(storage, Integer.MAX_VALUE) < op;
  }

  /** Raises the last step that uses each storage to that of all tensors that may be in it. */
  void raise(int[] lastUse) {
    var open = new ArrayDeque<Integer>(mayBeIn.keySet());
    while (!open.isEmpty()) {
      int from = open.pop();
      for (int to : mayBeIn.getOrDefault(from, Set.of())) {
        if (lastUse[to] < lastUse[from]) {
          lastUse[to] = lastUse[from];
          open.push(to);
        }
      }
    }
  }
}
