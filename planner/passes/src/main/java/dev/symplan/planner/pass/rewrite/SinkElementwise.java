package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ArrayListMultimap;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ListMultimap;
import com.google.common.collect.MultimapBuilder;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Moves elementwise ops down to the one elementwise op that reads what they make, so that all of
 * them run as one kernel: {@code silu(x · gate)} to its product with {@code x · up}, which is
 * computed between. A concatenation moves, too, and what makes its pieces.
 *
 * <p>Ops move over others without effects only, and not over collectives, which they may hide. They
 * move only if what they read takes no more memory meanwhile than what they make would, and if they
 * do not leave a kernel to which they belong where they are.
 */
public final class SinkElementwise extends GraphPass {

  private static final int NONE = -1;
  private static final int SEVERAL = -2;

  public SinkElementwise() {
    super("sink_elementwise", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    if (!context.options().fusion()) {
      return state;
    }
    return state.mapGraphs(own -> new Sinking(own).run());
  }

  private static final class Sinking {
    private final Graph graph;
    private final ImmutableList<Op> ops;
    private final Aliases aliases;
    private final Analyses own;

    /** By op, whether it could move, and whether others could move to it. */
    private final boolean[] movable;

    private final boolean[] elementwise;

    /** By op, the op to which it moves; {@link #NONE} for one that stays. */
    private final int[] target;

    /** By value, the one op that all its readers are, or move to. */
    private final int[] reader;

    private final boolean[] returned;

    /** By value, whether it becomes a piece of what a concatenation that moves joins. */
    private final boolean[] piece;

    Sinking(Analyses own) {
      this.own = own;
      this.graph = own.graph();
      this.ops = graph.ops();
      this.aliases = own.aliases();
      this.movable = new boolean[ops.size()];
      this.elementwise = new boolean[ops.size()];
      this.target = new int[ops.size()];
      Arrays.fill(target, NONE);
      this.returned = new boolean[graph.valueCount()];
      graph.outputValues().forEach(value -> returned[value.id()] = true);
      this.piece = new boolean[graph.valueCount()];
      this.reader = new int[graph.valueCount()];
      Arrays.fill(reader, NONE);
    }

    private void look(int from, int to) {
      for (int i = from; i < to; i++) {
        var op = ops.get(i);
        boolean made = isMade(op);
        elementwise[i] = made && op.def().has(OpTrait.ELEMENTWISE);
        movable[i] = (elementwise[i] || made && joins(op)) && !returned[op.result().id()];
      }
    }

    Graph run() {
      Parallel.forEach(ops.size(), this::look);
      for (int i = ops.size() - 1; i >= 0; i--) {
        target[i] = targetOf(i);
        int root = target[i] == NONE ? i : target[i];
        for (var value : ops.get(i).operands()) {
          int before = reader[value.id()];
          reader[value.id()] = before == NONE || before == root ? root : SEVERAL;
          piece[value.id()] |= target[i] != NONE && makesPieces(ops.get(i), value);
        }
      }
      ListMultimap<Integer, Integer> groups = MultimapBuilder.treeKeys().arrayListValues().build();
      for (int i = 0; i < ops.size(); i++) {
        if (target[i] != NONE) {
          groups.put(target[i], i);
        }
      }
      ListMultimap<Integer, Integer> moving = ArrayListMultimap.create();
      int barrier = NONE;
      int next = 0;
      for (int root : groups.keySet()) {
        for (; next < root; next++) {
          barrier = PureOps.isPure(ops.get(next)) ? barrier : next;
        }
        int last = barrier;
        var group = groups.get(root).stream().filter(i -> i > last).toList();
        if (!group.isEmpty() && passes(group, root) && isWorthIt(group, root)) {
          moving.putAll(root, group);
        }
      }
      return moving.isEmpty() ? graph : moved(moving);
    }

    /** {@return the op that all readers are, or move to} */
    private int targetOf(int index) {
      if (!movable[index]) {
        return NONE;
      }
      var op = ops.get(index);
      int found = reader[op.result().id()];
      return found >= 0
              && elementwise[found]
              && (piece[op.result().id()] || sameSizes(ops.get(found).result(), op.result()))
          ? found
          : NONE;
    }

    /** Whether a value that an op reads becomes a piece, if what the op makes moves. */
    private boolean makesPieces(Op op, Value value) {
      return joins(op) || piece[op.result().id()] && sameSizes(value, op.result());
    }

    private static boolean joins(Op op) {
      return op.def().has(OpTrait.CONCATENATION) && Rows.of(op) > 0;
    }

    private static boolean sameSizes(Value a, Value b) {
      return a.isTensor() && b.isTensor() && a.tensor().sizes().equals(b.tensor().sizes());
    }

    private boolean isMade(Op op) {
      return op.results().size() == 1
          && op.result().isTensor()
          && PureOps.isPure(op)
          && aliases.defines(op.result());
    }

    /** Whether some other op that runs stands between. */
    private boolean passes(List<Integer> group, int root) {
      int next = 0;
      for (int i = group.getFirst(); i < root; i++) {
        if (next < group.size() && group.get(next) == i) {
          next++;
        } else if (aliases.runs(i)) {
          return true;
        }
      }
      return false;
    }

    private boolean isWorthIt(List<Integer> members, int root) {
      var group = Set.copyOf(members);
      var dying = new LinkedHashSet<Integer>();
      long made = 0;
      for (int i : group) {
        var op = ops.get(i);
        boolean direct = ops.get(root).operands().contains(op.result());
        made += direct ? op.result().tensor().bytes() : 0;
        for (var value : op.operands()) {
          if (isOlder(value, group) && own.uses().lastOpOrCaller(aliases.id(value)) < root) {
            dying.add(aliases.id(value));
          }
        }
      }
      long kept = dying.stream().mapToLong(id -> aliases.storage(id).bytes()).sum();
      // An op outside the kernel that made its operand reads the operand from memory.
      return kept < made
          || kept == made && dying.stream().noneMatch(id -> goesByRows(aliases.storage(id).def()));
    }

    private boolean isOlder(Value value, Set<Integer> group) {
      return aliases.id(value) >= 0 && !group.contains(aliases.of(value).def());
    }

    private boolean goesByRows(int index) {
      return index >= 0
          && (ops.get(index).def().has(OpTrait.ELEMENTWISE) || Rows.of(ops.get(index)) > 0);
    }

    private Graph moved(ListMultimap<Integer, Integer> moving) {
      var moves = new boolean[ops.size()];
      var isRoot = new boolean[ops.size()];
      moving.forEach(
          (root, member) -> {
            isRoot[root] = true;
            moves[member] = true;
          });
      var moved = new ArrayList<Op>(ops.size());
      for (int i = 0; i < ops.size(); i++) {
        if (isRoot[i]) {
          moving.get(i).forEach(member -> moved.add(ops.get(member)));
        }
        if (!moves[i]) {
          moved.add(ops.get(i));
        }
      }
      return graph.withOps(moved);
    }
  }
}
