package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.Arg;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The order that ops of a graph must keep.
 *
 * <p>An op stays after the ops that make its operands. An op that writes into old memory stays
 * after all ops that used that memory before, and before all that use it later. Collectives stay in
 * their order, on which the ranks agree, and so do ops that draw random numbers or have another
 * effect. Ops that may do anything keep their positions in both orders. Nothing crosses the border
 * between two graphs of a program.
 */
public final class Precedence {
  private static final int NONE = -1;
  private static final OpDef DROPOUT = BuiltinOps.registry().get("aten::dropout");

  private final Graph graph;
  private final Aliases aliases;
  private final IntLists.Builder edges;

  private Precedence(Analyses own) {
    this.graph = own.graph();
    this.aliases = own.aliases();
    var makers = own.makers();
    this.edges =
        IntLists.Builder.of(
            graph.ops().size(),
            (op, pairs) -> {
              for (var value : graph.ops().get(op).operands()) {
                before(makers.get(value.id()), op, pairs);
              }
            });
  }

  /** {@return for each op, ops that must stay before it; more follow from these} */
  public static IntLists of(Analyses own) {
    var precedence = new Precedence(own);
    precedence.byMemory();
    precedence.byEffects();
    precedence.byBorders();
    return precedence.edges.build(own.graph().ops().size());
  }

  private void byMemory() {
    var writers = Parallel.filter(graph.ops(), op -> op.def().schema().mutates());
    if (writers.isEmpty()) {
      return;
    }
    var written = new boolean[aliases.count()];
    for (var op : writers) {
      op.operands().forEach(value -> mark(written, aliases.family(value)));
    }
    var writer = new int[aliases.count()];
    Arrays.fill(writer, NONE);
    var users = new ArrayList<List<Integer>>();
    for (boolean one : written) {
      users.add(one ? new ArrayList<>() : List.of());
    }
    for (int i = 0; i < graph.ops().size(); i++) {
      var op = graph.ops().get(i);
      if ((aliases.isView(i) || op.def().has(OpTrait.WAIT)) && !mayMove(op)) {
        continue;
      }
      int index = i;
      boolean mutates = op.def().schema().mutates();
      op.operands()
          .forEach(value -> use(aliases.family(value), index, mutates, written, writer, users));
      op.results()
          .forEach(value -> use(aliases.family(value), index, false, written, writer, users));
    }
  }

  /** Whether it matters when a view is taken, as its tensor may be elsewhere before or after. */
  private boolean mayMove(Op op) {
    return op.operands().stream().anyMatch(value -> !aliases.families().isAlone(aliases.id(value)));
  }

  private void use(
      int storage,
      int op,
      boolean writes,
      boolean[] written,
      int[] writer,
      List<List<Integer>> users) {
    if (storage < 0 || !written[storage]) {
      return;
    }
    before(writer[storage], op);
    if (writes) {
      users.get(storage).forEach(user -> before(user, op));
      users.get(storage).clear();
      writer[storage] = op;
    } else {
      users.get(storage).add(op);
    }
  }

  private void byEffects() {
    int collective = NONE;
    int effect = NONE;
    for (int i :
        Parallel.where(
            graph.ops().size(),
            op -> communicates(graph.ops().get(op)) || hasEffect(graph.ops().get(op)))) {
      var op = graph.ops().get(i);
      if (communicates(op)) {
        before(collective, i);
        collective = i;
      }
      if (hasEffect(op)) {
        before(effect, i);
        effect = i;
      }
    }
  }

  private static boolean communicates(Op op) {
    return op.def().collective().isPresent() || op.def().isUnbounded();
  }

  /** Ops before a border stay before it, and ops after it stay after it. */
  private void byBorders() {
    int border = NONE;
    for (int i :
        Parallel.where(graph.ops().size(), op -> graph.ops().get(op).def().has(OpTrait.BORDER))) {
      behind(border, i);
      for (int inside = border + 1; inside < i; inside++) {
        before(inside, i);
      }
      border = i;
    }
    behind(border, graph.ops().size() - 1);
  }

  /** Keeps ops up to a last one behind a border, if there is one. */
  private void behind(int border, int last) {
    for (int i = border + 1; border != NONE && i <= last; i++) {
      before(border, i);
    }
  }

  /** {@return whether the op does more than give results, or not the same ones each time} */
  public static boolean hasEffect(Op op) {
    if (op.def().has(OpTrait.WAIT)) {
      return false;
    }
    return op.def().hasEffect() || op.results().isEmpty() || dropsOut(op);
  }

  /** Dropout and attention draw random numbers if they drop anything. */
  private static boolean dropsOut(Op op) {
    if (op.def() == DROPOUT) {
      return !(op.arg("train") instanceof Arg.Bool(boolean train) && !train);
    }
    return op.def().has(OpTrait.ATTENTION)
        && !(op.arg("dropout_p") instanceof Arg.Float(double p) && p == 0)
        && !(op.arg("dropout_p") instanceof Arg.Int(long p) && p == 0);
  }

  private void before(int first, int second) {
    before(first, second, edges);
  }

  private static void before(int first, int second, IntLists.Builder edges) {
    if (first != NONE && first != second) {
      edges.add(second, first);
    }
  }

  private static void mark(boolean[] storages, int storage) {
    if (storage >= 0) {
      storages[storage] = true;
    }
  }
}
