package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.cuda.RowNode.Folded;
import dev.symplan.codegen.cuda.RowNode.Store;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * In which pass over a row's elements each value is there: one pass for each fold that needs the
 * one before, and the last for what is written of each element. What nothing written needs is in
 * none.
 */
final class RowPasses {
  private final ImmutableList<RowNode> nodes;
  private final ImmutableList<Store> stores;

  /** How many passes each value needs before it. */
  private final int[] available;

  private final Set<Integer> reachable = new HashSet<>();
  private final Map<Integer, Integer> computedIn = new HashMap<>();
  private final Set<Integer> kept = new LinkedHashSet<>();
  private final int count;

  /**
   * @param keeps whether threads keep what a later pass needs again, rather than compute it again
   */
  RowPasses(List<RowNode> nodes, List<Store> stores, boolean keeps) {
    this.nodes = ImmutableList.copyOf(nodes);
    this.stores = ImmutableList.copyOf(stores);
    this.available = new int[nodes.size()];
    for (int n = 0; n < nodes.size(); n++) {
      available[n] =
          nodes.get(n).inputs().stream().mapToInt(i -> available[i]).max().orElse(0)
              + (isFoldOverRow(n) ? 1 : 0);
    }
    stores.forEach(store -> reach(store.node()));
    this.count =
        Math.max(
            reachable.stream()
                .filter(this::isFoldOverRow)
                .mapToInt(n -> available[n])
                .max()
                .orElse(0),
            stores.stream()
                .filter(store -> isFull(store.node()))
                .mapToInt(store -> available[store.node()] + 1)
                .max()
                .orElse(0));
    for (int pass = 0; pass < count; pass++) {
      var seen = new HashSet<Integer>();
      for (int root : roots(pass)) {
        compute(root, pass, keeps, seen);
      }
    }
  }

  private boolean isFoldOverRow(int node) {
    return nodes.get(node) instanceof Folded folded && folded.overRow();
  }

  private boolean isFull(int node) {
    return nodes.get(node).full();
  }

  private void reach(int node) {
    if (reachable.add(node)) {
      nodes.get(node).inputs().forEach(this::reach);
    }
  }

  /** The values of each element that a pass is for. */
  private List<Integer> roots(int pass) {
    var roots = new ArrayList<Integer>();
    folds(pass).forEach(fold -> roots.addAll(nodes.get(fold).inputs()));
    if (isLast(pass)) {
      stores.forEach(store -> roots.add(store.node()));
    }
    return roots.stream().filter(this::isFull).distinct().toList();
  }

  private void compute(int node, int pass, boolean keeps, Set<Integer> seen) {
    if (!isFull(node) || !seen.add(node)) {
      return;
    }
    if (keeps && computedIn.containsKey(node)) {
      kept.add(node);
      return;
    }
    computedIn.put(node, pass);
    nodes.get(node).inputs().forEach(input -> compute(input, pass, keeps, seen));
  }

  int count() {
    return count;
  }

  boolean isLast(int pass) {
    return pass == count - 1;
  }

  /** {@return the folds over all elements that are complete after a pass} */
  List<Integer> folds(int pass) {
    return needed(pass + 1).filter(this::isFoldOverRow).boxed().toList();
  }

  /** {@return the values that are one for the whole row, and there before a pass} */
  List<Integer> singles(int pass) {
    return needed(pass).filter(n -> !isFull(n)).boxed().toList();
  }

  private IntStream needed(int passesBefore) {
    return IntStream.range(0, nodes.size())
        .filter(reachable::contains)
        .filter(n -> available[n] == passesBefore);
  }

  /** {@return the values of elements that threads keep from one pass to another} */
  Set<Integer> kept() {
    return Collections.unmodifiableSet(kept);
  }

  /** {@return whether a value was kept in a pass before} */
  boolean isKeptBefore(int node, int pass) {
    return kept.contains(node) && pass > computedIn.getOrDefault(node, pass);
  }
}
