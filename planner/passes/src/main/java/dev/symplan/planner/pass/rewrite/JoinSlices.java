package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.Comparator;
import java.util.Optional;

/**
 * Makes a concatenation of the sum of two tensors that are zero outside of a slice, if the slices
 * cover it: gradients of {@code cat} and of rotary position embeddings are such sums. The
 * concatenation can run in the kernels that make the slices.
 *
 * <p>Zero is still added to the elements, as -0 + 0 is 0.
 */
public final class JoinSlices extends GraphPass {
  private static final OpDef SUM = BuiltinOps.registry().get("aten::add.Tensor");
  private static final OpDef SLICE_SCATTER = BuiltinOps.registry().get("aten::slice_scatter");
  private static final OpDef FULL = BuiltinOps.registry().get("aten::full");
  private static final OpDef PLUS = BuiltinOps.registry().get("aten::add.Scalar");
  private static final OpDef CAT = BuiltinOps.registry().get("aten::cat");

  public JoinSlices() {
    super("join_slices", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return state.mapGraphs(JoinSlices::run);
  }

  private static Graph run(Analyses own) {
    return own.hasOp(def -> def == SLICE_SCATTER) ? new Search(own).run() : own.graph();
  }

  /**
   * Where a tensor is not zero.
   *
   * @param since the first op after which the graph must not write what was known
   */
  private record Slice(Value value, int dim, long start, long end, int since) {}

  private static final class Search extends GraphSearch {
    private final GraphCopier copier;

    Search(Analyses own) {
      super(own);
      this.copier = new GraphCopier(graph);
    }

    Graph run() {
      for (int i = 0; i < ops.size(); i++) {
        var slices = slices(ops.get(i), i);
        if (slices.isEmpty()) {
          copier.keep(ops.get(i));
        } else {
          join(slices, ops.get(i));
        }
      }
      var joined = copier.finish();
      return joined == graph ? graph : Normalize.removeDeadCode(joined);
    }

    /** {@return the slices that make up a sum, in order; empty if it is another op} */
    private ImmutableList<Slice> slices(Op op, int index) {
      if (op.def() != SUM
          || !op.arg("alpha").equals(new Arg.Int(1))
          // With the zero, they would become integers.
          || op.result().tensor().dtype() == DType.BOOL
          || !op.result().tensor().isContiguous()
          || op.operands().size() != 2) {
        return ImmutableList.of();
      }
      var found =
          op.operands().stream()
              .flatMap(operand -> slice(operand, op, index).stream())
              .sorted(Comparator.comparingLong(Slice::start))
              .collect(toImmutableList());
      if (found.size() != 2) {
        return ImmutableList.of();
      }
      var first = found.getFirst();
      var second = found.getLast();
      boolean covers =
          first.dim() == second.dim()
              && first.start() == 0
              && first.end() == second.start()
              && second.end() == op.result().tensor().size(first.dim());
      return covers && !flow.mayWrite(Math.min(first.since(), second.since()), index)
          ? found
          : ImmutableList.of();
    }

    private Optional<Slice> slice(Value operand, Op sum, int index) {
      int maker = flow.maker(operand);
      if (maker == DataFlow.NONE
          || ops.get(maker).def() != SLICE_SCATTER
          || !isLike(operand, sum)
          || flow.onlyReader(aliases.id(operand)) != index) {
        return Optional.empty();
      }
      var scatter = ops.get(maker);
      int zeros = flow.maker(scatter.call().value("self"));
      var value = scatter.call().value("src");
      if (zeros == DataFlow.NONE
          || !isZero(ops.get(zeros))
          || value.tensor().dtype() != operand.tensor().dtype()
          || !(scatter.arg("dim") instanceof Arg.Int(long named))
          || !scatter.arg("step").equals(new Arg.Int(1))) {
        return Optional.empty();
      }
      int dim = OpCall.wrapDim(named, operand.tensor().rank(), "dim");
      long size = operand.tensor().size(dim);
      return begin(scatter.arg("start"), size)
          .map(start -> new Slice(value, dim, start, start + value.tensor().size(dim), zeros));
    }

    private static boolean isLike(Value operand, Op sum) {
      var type = sum.result().tensor();
      return operand.tensor().sizes().equals(type.sizes())
          && operand.tensor().dtype() == type.dtype()
          && type.rank() > 0;
    }

    private static boolean isZero(Op op) {
      return op.def() == FULL
          && (op.arg("fill_value").equals(new Arg.Int(0))
              // Not -0: the sum of -0 and -0 is -0. Arguments with one and the other are not equal.
              || op.arg("fill_value").equals(new Arg.Float(0)));
    }

    /** Where a slice begins, as Python reads it. */
    private static Optional<Long> begin(Arg start, long size) {
      if (start == Arg.None.NONE) {
        return Optional.of(0L);
      }
      return start instanceof Arg.Int(long at)
          ? Optional.of(Math.clamp(at < 0 ? at + size : at, 0, size))
          : Optional.empty();
    }

    private void join(ImmutableList<Slice> slices, Op sum) {
      var pieces = slices.stream().map(slice -> plusZero(slice, sum)).collect(toImmutableList());
      var dim = new Arg.Int(slices.getFirst().dim());
      copier.emit(sum, CAT, ImmutableList.of(new Arg.Seq(pieces), dim));
    }

    private Arg plusZero(Slice slice, Op sum) {
      var args =
          ImmutableList.<Arg>of(
              new Arg.Ref(copier.now(slice.value())), new Arg.Int(0), new Arg.Int(1));
      var type = PLUS.infer(args).orElseThrow().getFirst().type();
      return new Arg.Ref(
          copier.insert(PLUS, args, slice.value().name() + "_plus_zero", type, sum.span()));
    }
  }
}
