package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.List;

/**
 * A collective of another library as a functional one, with copies around it where ranks' parts do
 * not lie along the first dimension.
 */
final class ForeignCollective {
  private static final OpDef SLICE = BuiltinOps.registry().get("aten::slice.Tensor");
  private static final OpDef CAT = BuiltinOps.registry().get("aten::cat");

  private final GraphCopier copier;
  private final Op op;
  private final CollectiveCall call;

  ForeignCollective(GraphCopier copier, Op op) {
    this.copier = copier;
    this.op = op;
    this.call = op.collective().orElseThrow();
  }

  /**
   * {@return what the collective gives}
   *
   * @param result the type of that
   */
  Value emit(TensorType result) {
    var operand = copier.now(call.operands().getFirst());
    int dim = call.dim(result.rank());
    long ranks = ranks(operand.tensor(), result, dim);
    boolean rows = dim == 0;
    if (!rows && call.kind() == Kind.REDUCE_SCATTER) {
      var slices = slices(operand, dim, ranks);
      operand = insert(CAT, ImmutableList.of(slices, new Arg.Int(0)), "_rows");
    }
    var def = BuiltinOps.registry().get("_c10d_functional::" + functionalName());
    var args = args(def, operand, ranks);
    if (rows || call.kind() != Kind.ALL_GATHER) {
      return result(def, args);
    }
    var slices = slices(insert(def, args, "_rows"), 0, ranks);
    return result(CAT, ImmutableList.of(slices, new Arg.Int(dim)));
  }

  private String functionalName() {
    return switch (call.kind()) {
      case ALL_REDUCE -> "all_reduce";
      case ALL_GATHER -> "all_gather_into_tensor";
      case REDUCE_SCATTER -> "reduce_scatter_tensor";
      case ALL_TO_ALL, BROADCAST, CUSTOM ->
          throw new IllegalStateException(op.def().name() + " has no functional form");
    };
  }

  private long ranks(TensorType operand, TensorType result, int dim) {
    if (call.kind() == Kind.ALL_REDUCE) {
      return 1;
    }
    boolean gathers = call.kind() == Kind.ALL_GATHER;
    var whole = gathers ? result : operand;
    var part = gathers ? operand : result;
    if (dim >= whole.rank()
        || dim >= part.rank()
        || part.size(dim) == 0
        || whole.size(dim) % part.size(dim) != 0) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.TYPE_MISMATCH,
              op.span(),
              "%s takes %s, and cannot give %s".formatted(op.def().name(), operand, result)));
    }
    return whole.size(dim) / part.size(dim);
  }

  private ImmutableList<Arg> args(OpDef def, Value operand, long ranks) {
    var args = ImmutableList.<Arg>builder();
    for (var param : def.schema().params()) {
      args.add(
          switch (def.collective().orElseThrow().role(param.name())) {
            case OPERAND -> new Arg.Ref(operand);
            case GROUP -> new Arg.Str(call.group());
            case REDUCE_OP -> new Arg.Str(call.reduceOp().orElseThrow().text());
            case GROUP_SIZE -> new Arg.Int(ranks);
            case ALGORITHM -> call.algorithm().<Arg>map(Arg.Str::new).orElse(Arg.None.NONE);
            case ROOT, INPUT_SPLIT_SIZES, OUTPUT_SPLIT_SIZES ->
                throw new IllegalStateException(param.name());
          });
    }
    return args.build();
  }

  /** {@return as many pieces of a tensor as there are ranks} */
  private Arg slices(Value value, int dim, long ranks) {
    long size = value.tensor().size(dim) / ranks;
    var pieces = ImmutableList.<Arg>builder();
    for (long i = 0; i < ranks; i++) {
      pieces.add(
          new Arg.Ref(
              insert(
                  SLICE,
                  ImmutableList.of(
                      new Arg.Ref(value),
                      new Arg.Int(dim),
                      new Arg.Int(i * size),
                      new Arg.Int((i + 1) * size),
                      new Arg.Int(1)),
                  "_part")));
    }
    return new Arg.Seq(pieces.build());
  }

  /** What is called as the op's result is; an op without one, as the tensor that it writes. */
  private Value result(OpDef def, ImmutableList<Arg> args) {
    if (op.results().isEmpty()) {
      return insert(def, args, "_" + call.kind().text());
    }
    return copier.emit(op, def, args, List.of(type(def, args))).result();
  }

  private Value insert(OpDef def, ImmutableList<Arg> args, String suffix) {
    var base = op.results().isEmpty() ? call.target().orElseThrow() : op.result();
    return copier.insert(def, args, base.name() + suffix, type(def, args), op.span());
  }

  private Type type(OpDef def, ImmutableList<Arg> args) {
    try {
      return def.infer(args).orElseThrow().getFirst().type();
    } catch (OpTypeException e) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.TYPE_MISMATCH, op.span(), op.def().name() + ": " + e.getMessage()));
    }
  }
}
