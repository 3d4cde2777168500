package dev.symplan.planner.pass.analysis;

import com.google.common.collect.LinkedHashMultimap;
import com.google.common.collect.SetMultimap;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.function.ToIntFunction;

/**
 * The storages that a tensor may be in besides its own: ops without a rule may leave their
 * arguments and results as views of each other.
 *
 * <p>Arguments that such an op may move end up in one class: each may be in the storage of each. A
 * result is tied to the storages that it may be a view of; these live as long as the result, but
 * not the reverse, until another op may move the result. As the result may be the very tensor that
 * went in, that tensor is then moved, too. A family is what ties and classes connect.
 */
public final class Families {

  private final ToIntFunction<Value> storageOf;
  private int[] classParent = new int[0];
  private int[] familyParent = new int[0];
  private int[] movedAt = new int[0];
  private boolean[] shared = new boolean[0];

  /** By a result's storage, those that the result may be a view of. */
  private final SetMultimap<Integer, Integer> ties = LinkedHashMultimap.create();

  /**
   * @param storageOf the number of a tensor's storage, -1 for what has none
   */
  public Families(ToIntFunction<Value> storageOf) {
    this.storageOf = storageOf;
  }

  /** Takes in an op whose results have their storages. */
  public void visit(Op op, int index, int storages) {
    if (op.def().rule().isPresent()) {
      return;
    }
    grow(storages);
    var moved = new LinkedHashSet<Integer>();
    op.moved().forEach(value -> move(storageOf.applyAsInt(value), index, moved));
    for (int storage : moved) {
      join(moved.getFirst(), storage);
    }
    for (int i = 0; i < op.results().size(); i++) {
      int result = storageOf.applyAsInt(op.results().get(i));
      op.sources(i).forEach(source -> tie(result, storageOf.applyAsInt(source), index));
    }
  }

  private void grow(int count) {
    int old = movedAt.length;
    if (count <= old) {
      return;
    }
    int size = Math.max(count, 2 * old);
    classParent = Arrays.copyOf(classParent, size);
    familyParent = Arrays.copyOf(familyParent, size);
    movedAt = Arrays.copyOf(movedAt, size);
    shared = Arrays.copyOf(shared, size);
    for (int i = old; i < size; i++) {
      classParent[i] = i;
      familyParent[i] = i;
      movedAt[i] = Integer.MAX_VALUE;
    }
  }

  /** Moves a tensor, what it may be, and what that may be in turn. */
  private void move(int first, int index, Set<Integer> moved) {
    var waiting = new ArrayDeque<Integer>();
    waiting.add(first);
    while (!waiting.isEmpty()) {
      int storage = waiting.remove();
      if (storage >= 0 && moved.add(storage)) {
        movedAt[storage] = Math.min(movedAt[storage], index);
        shared[storage] = true;
        waiting.addAll(ties.get(storage));
      }
    }
  }

  private void join(int a, int b) {
    union(classParent, a, b);
    union(familyParent, a, b);
  }

  private void tie(int result, int source, int index) {
    if (result >= 0 && source >= 0 && result != source) {
      movedAt[result] = Math.min(movedAt[result], index);
      shared[result] = true;
      shared[source] = true;
      ties.put(result, source);
      union(familyParent, result, source);
    }
  }

  private static void union(int[] parent, int a, int b) {
    parent[root(parent, a)] = root(parent, b);
  }

  private static int root(int[] parent, int i) {
    while (parent[i] != i) {
      parent[i] = parent[parent[i]];
      i = parent[i];
    }
    return i;
  }

  /** {@return a number that all storages have in common which a tensor of one may be in} */
  public int of(int storage) {
    return storage >= 0 && storage < familyParent.length ? root(familyParent, storage) : storage;
  }

  /** {@return whether no other tensors may be in a storage, and its own not elsewhere} */
  public boolean isAlone(int storage) {
    return storage >= shared.length || !shared[storage];
  }

  /** {@return whether the tensors of a storage are known to be in it before an op} */
  public boolean isLocationKnown(int storage, int op) {
    return storage >= movedAt.length || movedAt[storage] >= op;
  }

  /** Lets each storage be used as long as any tensor that may be in it. */
  public void extend(int[] last) {
    int count = Math.min(last.length, classParent.length);
    for (int storage = 0; storage < count; storage++) {
      int root = root(classParent, storage);
      last[root] = Math.max(last[root], last[storage]);
    }
    boolean changed = true;
    while (changed) {
      changed = false;
      for (var tie : ties.entries()) {
        int from = root(classParent, tie.getKey());
        int to = root(classParent, tie.getValue());
        changed |= last[from] > last[to];
        last[to] = Math.max(last[to], last[from]);
      }
    }
    for (int storage = 0; storage < count; storage++) {
      last[storage] = last[root(classParent, storage)];
    }
  }
}
