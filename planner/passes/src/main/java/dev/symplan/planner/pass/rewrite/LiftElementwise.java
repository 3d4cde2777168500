package dev.symplan.planner.pass.rewrite;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.Iterables;
import com.google.common.collect.ListMultimap;
import com.google.common.collect.MultimapBuilder;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Fusion;
import dev.symplan.planner.pass.analysis.IntLists;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * Moves elementwise ops up to the kernel that makes what they read, so that both run as one: the
 * gradient of {@code silu} to the ops that compute its sigmoid again, from which products separate
 * it. What one passes to the other is then in no memory.
 *
 * <p>Ops move over others without effects only, and not over collectives, which they may hide. They
 * move only if kernels read and write less then, and if at no point between, what they make takes
 * more memory than what they read would have.
 */
public final class LiftElementwise extends GraphPass {

  private static final int NONE = -1;

  public LiftElementwise() {
    super("lift_elementwise", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    // Where memory is short, what is lifted may wait across the peak: that is decided there.
    return context.options().memoryLimit().isPresent() ? state : lifted(state, context);
  }

  /** {@return the state with ops lifted} */
  public static GraphState lifted(GraphState state, PassContext context) {
    return context.options().fusion() ? state.mapGraphs(own -> new Lifting(own).run()) : state;
  }

  private static final class Lifting {
    private final Graph graph;
    private final ImmutableList<Op> ops;
    private final Analyses own;
    private final Aliases aliases;
    private final Fusion fusion;
    private final ImmutableIntArray makers;

    /** By storage, the ops that use it, ascending. Few graphs have ops to lift. */
    private final Supplier<IntLists> users = Suppliers.memoize(this::users);

    /** By storage, whether views of it are read. */
    private final boolean[] viewed;

    /** By op, the op behind which it could be: itself, if it stays. */
    private final int[] behind;

    private final boolean[] moves;

    Lifting(Analyses own) {
      this.own = own;
      this.graph = own.graph();
      this.ops = graph.ops();
      this.aliases = own.aliases();
      this.fusion = own.fusion();
      this.makers = own.makers();
      this.viewed = new boolean[aliases.count()];
      this.behind = new int[ops.size()];
      this.moves = new boolean[ops.size()];
      for (int i : Parallel.where(ops.size(), op -> !aliases.runs(op))) {
        view(ops.get(i).operands());
        view(ops.get(i).results());
      }
    }

    private void view(ImmutableList<Value> values) {
      for (var value : values) {
        int storage = aliases.id(value);
        if (storage >= 0) {
          viewed[storage] = true;
        }
      }
    }

    private IntLists users() {
      return IntLists.Builder.of(
              ops.size(),
              (op, found) -> {
                if (aliases.runs(op)) {
                  use(ops.get(op).operands(), op, found);
                  use(ops.get(op).results(), op, found);
                }
              })
          .build(aliases.count());
    }

    private void use(ImmutableList<Value> values, int op, IntLists.Builder found) {
      for (var value : values) {
        int storage = aliases.id(value);
        if (storage >= 0) {
          found.add(storage, op);
        }
      }
    }

    Graph run() {
      ListMultimap<Integer, Integer> groups = MultimapBuilder.treeKeys().arrayListValues().build();
      int barrier = NONE;
      for (int i = 0; i < ops.size(); i++) {
        behind[i] = i;
        if (!PureOps.isPure(ops.get(i))) {
          barrier = i;
          continue;
        }
        int first = NONE;
        for (var value : ops.get(i).operands()) {
          int made = makers.get(value.id());
          first = made == NONE ? first : Math.max(first, behind[made]);
        }
        if (!aliases.runs(i) || first > barrier && fits(i, first)) {
          behind[i] = first;
        }
        if (aliases.runs(i) && behind[i] != i) {
          groups.put(fusion.unitOf(first), i);
        }
      }
      ListMultimap<Integer, Integer> moving = MultimapBuilder.treeKeys().arrayListValues().build();
      for (int unit : groups.keySet()) {
        int end = end(unit);
        var group = ready(groups.get(unit), end);
        if (!group.isEmpty() && savesTraffic(group, unit) && savesMemory(group, end)) {
          group.forEach(op -> moves[op] = true);
          moving.putAll(end, group);
        }
      }
      return moving.isEmpty() ? graph : moved(moving);
    }

    /** Whether an op can be in the kernel of an earlier one. */
    private boolean fits(int index, int first) {
      return isElementwise(index)
          && isElementwise(first)
          && ops.get(index)
              .result()
              .tensor()
              .sizes()
              .equals(ops.get(first).result().tensor().sizes())
          && fusion.unitOf(index) != fusion.unitOf(first)
          && ops.get(index).operands().stream().noneMatch(value -> isView(value, first));
    }

    /** Whether a value is in memory that the kernel of an op makes, and is not alone there. */
    private boolean isView(Value value, int first) {
      int storage = aliases.id(value);
      if (storage < 0 || !viewed[storage]) {
        return false;
      }
      int def = aliases.storage(storage).def();
      return def >= 0 && (behind[def] != def || fusion.unitOf(def) == fusion.unitOf(first));
    }

    private boolean isElementwise(int index) {
      return PureOps.isElementwise(ops.get(index), aliases);
    }

    private int end(int unit) {
      var members = fusion.units().get(unit);
      return members.get(members.length() - 1);
    }

    /** {@return the ops whose operands are there behind an op, if those before them move} */
    private ImmutableList<Integer> ready(List<Integer> group, int end) {
      var ready = new LinkedHashSet<Integer>();
      for (int op : group) {
        if (makers(op).allMatch(made -> made <= end || moves[made] || ready.contains(made))) {
          ready.add(op);
        }
      }
      return ImmutableList.copyOf(ready);
    }

    /** {@return the ops that run and give what an op reads, or views of} */
    private IntStream makers(int op) {
      return ops.get(op).operands().stream()
          .mapToInt(value -> makers.get(value.id()))
          .filter(made -> made != NONE)
          .flatMap(made -> aliases.runs(made) ? IntStream.of(made) : makers(made));
    }

    private boolean savesTraffic(ImmutableList<Integer> group, int unit) {
      var kernel = members(unit);
      long before = traffic(kernel);
      kernel.addAll(group);
      long after = traffic(kernel);
      for (int left : group.stream().mapToInt(fusion::unitOf).distinct().toArray()) {
        var rest = members(left);
        before += traffic(rest);
        group.forEach(rest::remove);
        after += traffic(rest);
      }
      return after < before;
    }

    private Set<Integer> members(int unit) {
      var members = new LinkedHashSet<Integer>();
      fusion.units().get(unit).forEach(members::add);
      return members;
    }

    /** {@return the bytes in memory that a kernel reads and writes} */
    private long traffic(Set<Integer> kernel) {
      var counted = new HashSet<Integer>();
      long bytes = 0;
      for (int op : kernel) {
        for (var value : Iterables.concat(ops.get(op).operands(), ops.get(op).results())) {
          int storage = aliases.id(value);
          if (storage >= 0 && counted.add(value.id()) && !passes(storage, kernel)) {
            bytes += value.tensor().bytes();
          }
        }
      }
      return bytes;
    }

    /** Whether only a kernel makes and uses a storage. */
    private boolean passes(int storage, Set<Integer> kernel) {
      return kernel.contains(aliases.storage(storage).def())
          && !own.uses().escapes(storage)
          && lastUseOutside(storage, kernel) == NONE;
    }

    private int lastUseOutside(int storage, Set<Integer> kernel) {
      var all = users.get();
      for (int i = all.size(storage) - 1; i >= 0; i--) {
        if (!kernel.contains(all.get(storage, i))) {
          return all.get(storage, i);
        }
      }
      return NONE;
    }

    /** A storage that lives longer, or shorter, in all kernels between two. */
    private record Change(int from, int to, long bytes) {
      boolean isAt(int kernel) {
        return from < kernel && kernel < to;
      }
    }

    /** Whether no more is live at any kernel that the group moves over. */
    private boolean savesMemory(ImmutableList<Integer> group, int end) {
      var members = Set.copyOf(group);
      var longer = new ArrayList<Change>();
      var shorter = new ArrayList<Change>();
      var seen = new HashSet<Integer>();
      int unit = fusion.unitOf(end);
      for (int op : group) {
        int result = aliases.id(ops.get(op).result());
        if (!passes(result, members)) {
          longer.add(new Change(unit, fusion.unitOf(op), aliases.storage(result).bytes()));
        }
        for (var value : ops.get(op).operands()) {
          int storage = aliases.id(value);
          if (storage >= 0 && seen.add(storage) && isOlder(storage, end)) {
            int last = own.uses().lastOpOrCaller(storage);
            if (members.contains(last)) {
              int left = Math.max(end, lastUseOutside(storage, members));
              shorter.add(
                  new Change(
                      fusion.unitOf(left), fusion.unitOf(last), aliases.storage(storage).bytes()));
            }
          }
        }
      }
      return IntStream.concat(IntStream.of(unit + 1), shorter.stream().mapToInt(Change::to))
          .map(kernel -> left(kernel, members))
          .allMatch(kernel -> bytes(longer, kernel) <= bytes(shorter, kernel));
    }

    /** {@return the first kernel from one on that has ops besides those that move} */
    private int left(int kernel, Set<Integer> moved) {
      var units = fusion.units();
      int left = kernel;
      while (left < units.size() && units.get(left).stream().allMatch(moved::contains)) {
        left++;
      }
      return left;
    }

    private boolean isOlder(int storage, int end) {
      return aliases.storage(storage).def() <= end;
    }

    private static long bytes(List<Change> changes, int kernel) {
      return changes.stream().filter(change -> change.isAt(kernel)).mapToLong(Change::bytes).sum();
    }

    private Graph moved(ListMultimap<Integer, Integer> moving) {
      var order = new LinkedHashSet<Integer>();
      for (int i = 0; i < ops.size(); i++) {
        if (!moves[i]) {
          order.add(i);
        }
        moving.get(i).forEach(op -> addWithViews(order, op));
      }
      return graph.withOps(order.stream().map(ops::get).toList());
    }

    /** Adds an op, and first the views that it reads. */
    private void addWithViews(Set<Integer> order, int op) {
      for (var value : ops.get(op).operands()) {
        int made = makers.get(value.id());
        if (made != NONE && !order.contains(made)) {
          addWithViews(order, made);
        }
      }
      order.add(op);
    }
  }
}
