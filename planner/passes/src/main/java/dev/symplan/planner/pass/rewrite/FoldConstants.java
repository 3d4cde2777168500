package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Lists;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.stream.Stream;

/**
 * Finds tensors that are the same in each run, so that a session computes them once: those that
 * depend on no input, such as masks and positions, and those that depend only on inputs that the
 * caller names as weights. Their ops become the setup of the program, see {@link ProgramGraph}.
 *
 * <p>An op moves there if its result is in memory, so kernels of a run write less, and read what
 * they read. Such results stay in memory from then on, so those that need no input may take only
 * little.
 */
public final class FoldConstants extends GraphPass {
  /** How many bytes constants may take, unless the caller limits memory. */
  private static final long FEW_BYTES = 1 << 20;

  public FoldConstants() {
    super("fold_constants", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var options = context.options();
    if (!options.foldConstants() && options.foldWeights().isEmpty()) {
      return state;
    }
    var searches =
        state.analyses().stream().map(own -> new Search(own, options)).collect(toImmutableList());
    searches.forEach(Search::find);
    // All ranks of a program begin its graphs together, so all have a setup, or none.
    return searches.stream().allMatch(Search::isEmpty)
        ? state
        : state.withGraphs(searches.stream().map(Search::split).collect(toImmutableList()));
  }

  /** One graph, and what of it can be in the setup. */
  private static final class Search extends GraphSearch {
    private final Analyses own;
    private final CompileOptions options;

    /** The values that are the same in each run, by id, and those of them that need weights. */
    private final BitSet fixed = new BitSet();

    private final BitSet ofWeights = new BitSet();

    /** The storages that ops write into, or may, after they are made. */
    private final BitSet written = new BitSet();

    /** The ops that run only in the setup. */
    private final BitSet moved = new BitSet();

    Search(Analyses own, CompileOptions options) {
      super(own);
      this.own = own;
      this.options = options;
    }

    boolean isEmpty() {
      return moved.isEmpty();
    }

    void find() {
      if (options.foldWeights().isEmpty() && !own.hasOp(def -> def.has(OpTrait.CREATION))) {
        return;
      }
      ops.forEach(
          op ->
              op.written().stream()
                  .filter(Value::isTensor)
                  .forEach(v -> written.set(aliases.id(v))));
      for (var input : graph.inputs()) {
        if (options.foldsWeight(input.name())) {
          requireConstant(input);
          fixed.set(input.id());
          ofWeights.set(input.id());
        }
      }
      ops.forEach(this::findFixed);
      var unfit = new BitSet();
      do {
        move(unfit);
      } while (addUnfit(unfit));
    }

    /**
     * Moves what makes tensors that are in memory, and what nothing else needs than that.
     *
     * @param unfit storages that each run makes
     */
    private void move(BitSet unfit) {
      moved.clear();
      var readInRun = new BitSet();
      for (int i = ops.size() - 1; i >= 0; i--) {
        var op = ops.get(i);
        boolean needed = op.results().stream().anyMatch(value -> readInRun.get(value.id()));
        if (isFixed(op) && (!needed || (aliases.runs(i) && mayKeep(op, unfit)))) {
          moved.set(i);
        } else {
          op.operands().forEach(value -> readInRun.set(value.id()));
        }
      }
    }

    private boolean isFixed(Op op) {
      return !op.results().isEmpty()
          && op.results().stream().allMatch(result -> fixed.get(result.id()));
    }

    private boolean mayKeep(Op op, BitSet unfit) {
      return op.results().stream()
          .map(aliases::id)
          .noneMatch(storage -> unfit.get(storage) || own.fusion().isPassing(storage));
    }

    private void requireConstant(Value weight) {
      if (!weight.isTensor()) {
        throw wrong(weight, "is not a tensor");
      }
      if (own.spaces().input(weight) == MemorySpace.DONATED) {
        throw wrong(weight, "is donated, so it changes");
      }
      int storage = aliases.id(weight);
      if (written.get(storage) || !aliases.families().isAlone(storage)) {
        throw wrong(weight, "may change in a run");
      }
    }

    private static CompileException wrong(Value weight, String why) {
      return new CompileException(
          Diagnostic.error(
              DiagnosticCode.BAD_OPTION,
              weight.span(),
              "'%s' %s".formatted(weight.name(), why),
              "--fold-weights takes names of inputs that stay the same from run to run"));
    }

    private void findFixed(Op op) {
      if (PureOps.isPure(op)
          && !op.def().has(OpTrait.HOST_COPY)
          && !op.results().isEmpty()
          && op.operands().stream().allMatch(value -> fixed.get(value.id()))
          && op.results().stream().allMatch(this::staysAsMade)) {
        boolean needsWeights = op.operands().stream().anyMatch(v -> ofWeights.get(v.id()));
        if (needsWeights || options.foldConstants()) {
          for (var result : op.results()) {
            fixed.set(result.id());
            ofWeights.set(result.id(), needsWeights);
          }
        }
      }
    }

    private boolean staysAsMade(Value result) {
      int storage = aliases.id(result);
      return result.isTensor()
          && !written.get(storage)
          && aliases.families().isAlone(storage)
          && !own.uses().escapes(storage);
    }

    /**
     * Finds storages that runs would take from the setup, and had better make themselves: ops that
     * read them may need them elsewhere, or they are the largest of too many.
     *
     * @return whether there were any
     */
    private boolean addUnfit(BitSet unfit) {
      int before = unfit.cardinality();
      var kept = new LinkedHashSet<Aliases.Storage>();
      for (int i = 0; i < ops.size(); i++) {
        var op = ops.get(i);
        if (moved.get(i) || !aliases.runs(i)) {
          continue;
        }
        boolean leaves = PureOps.isPure(op) && !mayTake(op);
        op.operands().stream()
            .filter(Value::isTensor)
            .map(aliases::of)
            .filter(this::isMoved)
            .forEach(
                storage -> {
                  if (leaves) {
                    kept.add(storage);
                  } else {
                    unfit.set(storage.id());
                  }
                });
      }
      kept.removeIf(storage -> unfit.get(storage.id()) || ofWeights.get(storage.value().id()));
      long bytes = kept.stream().mapToLong(Aliases.Storage::bytes).sum();
      var largest = Comparator.comparingLong(Aliases.Storage::bytes).reversed();
      for (var storage : ImmutableList.sortedCopyOf(largest, kept)) {
        if (bytes > limit()) {
          unfit.set(storage.id());
          bytes -= storage.bytes();
        }
      }
      return unfit.cardinality() > before;
    }

    private boolean isMoved(Aliases.Storage storage) {
      return !storage.isInput() && moved.get(storage.def());
    }

    /** Whether an op may write its result where its operand is. */
    private static boolean mayTake(Op op) {
      return op.def().has(OpTrait.CONCATENATION)
          || op.def().has(OpTrait.UPDATES_SELF)
          || op.def().has(OpTrait.HOST_COPY)
          || !op.def().symmMemArgs().isEmpty();
    }

    /** The bytes that results which depend on no input may take. */
    private long limit() {
      return options.memoryLimit().isPresent() ? 0 : FEW_BYTES;
    }

    Graph split() {
      var copier = new GraphCopier(graph);
      var needed = needed();
      for (int i = 0; i < ops.size(); i++) {
        if (moved.get(i)) {
          copier.keep(ops.get(i));
        } else if (needed.get(i)) {
          repeat(ops.get(i), copier);
        }
      }
      copier.insert(ProgramGraph.setupEnd(weights(needed), graph.span()));
      for (int i = 0; i < ops.size(); i++) {
        if (!moved.get(i)) {
          copier.keep(ops.get(i));
        }
      }
      return Normalize.removeDeadCode(copier.finish());
    }

    /** {@return the inputs that the setup reads, by name} */
    private Stream<String> weights(BitSet needed) {
      var read = new HashSet<Value>();
      for (int i = 0; i < ops.size(); i++) {
        if (moved.get(i) || needed.get(i)) {
          read.addAll(ops.get(i).operands());
        }
      }
      return graph.inputs().stream().filter(read::contains).map(Value::name);
    }

    /** {@return the ops whose results the setup reads, and which each run needs as well} */
    private BitSet needed() {
      var needed = new BitSet();
      for (int i = ops.size() - 1; i >= 0; i--) {
        if (moved.get(i) || needed.get(i)) {
          for (var value : ops.get(i).operands()) {
            int maker = flow.maker(value);
            if (maker != DataFlow.NONE && !moved.get(maker)) {
              needed.set(maker);
            }
          }
        }
      }
      return needed;
    }

    private static void repeat(Op op, GraphCopier copier) {
      var results =
          copier.insert(
              op.def(),
              copier.now(op.args()),
              op.results().getFirst().name(),
              Lists.transform(op.results(), Value::type),
              op.span());
      for (int i = 0; i < results.size(); i++) {
        copier.replace(op.results().get(i), results.get(i));
      }
    }
  }
}
