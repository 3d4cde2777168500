package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.op.Permutation;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.List;
import java.util.Optional;
import java.util.function.ToIntFunction;

/**
 * Writes built-in ops instead of another op.
 *
 * @param at where people find them, and what errors are about
 * @param groupSize the number of ranks in each part of a group
 */
record OpEmitter(GraphCopier copier, Op at, ToIntFunction<String> groupSize) {
  private static final String FUNCTIONAL = "_c10d_functional::";

  /**
   * The result of an op that is emitted.
   *
   * @param old the value that it stands for from here on; empty for a new one
   * @param name of a new one
   */
  record Target(Optional<Value> old, String name) {
    static Target of(Value old) {
      return new Target(Optional.of(old), old.name());
    }

    /** The value that stands for a result of the op; a new one where nothing reads that. */
    static Target of(Value old, String name) {
      return old.isTensor() ? of(old) : of(name);
    }

    static Target of(String name) {
      return new Target(Optional.empty(), name);
    }

    private Target before(String suffix) {
      return of(name + suffix);
    }
  }

  /** Emits an op with one result; arguments that are left out have their defaults. */
  Value emit(Target target, String op, Arg... args) {
    return emit(target, BuiltinOps.registry().get(op), args);
  }

  private Value emit(Target target, OpDef def, Arg... args) {
    var bound = bound(def, args);
    var type = type(def, bound);
    return target
        .old()
        .map(old -> copier.emit(List.of(old), def, bound, at, List.of(type)).result())
        .orElseGet(() -> copier.insert(def, bound, target.name(), type, at.span()));
  }

  /** Emits an op whose result replaces an old one, in the same layout and space. */
  Value emitAs(Value old, String op, Arg... args) {
    var def = BuiltinOps.registry().get(op);
    return copier.emit(List.of(old), def, bound(def, args), at, List.of(old.type())).result();
  }

  /** Emits an op whose new result has a layout of its own. */
  Value emitAs(String name, Type type, String op, Arg... args) {
    var def = BuiltinOps.registry().get(op);
    return copier.insert(def, bound(def, args), name, type, at.span());
  }

  /** Ends the run with an error where an element is 0. */
  void require(Value condition, String message) {
    var def = BuiltinOps.registry().get("aten::_assert_async.msg");
    var args = bound(def, new Arg.Ref(condition), new Arg.Str(message));
    copier.emit(ImmutableList.of(), def, args, at);
  }

  private static ImmutableList<Arg> bound(OpDef def, Arg... args) {
    var all = ImmutableList.<Arg>builder().add(args);
    def.schema().params().stream()
        .skip(args.length)
        .forEach(param -> all.add(param.defaultValue().orElseThrow()));
    return all.build();
  }

  /** Emits an op with several new results; arguments that are left out have their defaults. */
  ImmutableList<Value> emitAll(String name, OpDef def, ImmutableList<Arg> args) {
    var all = bound(def, args.toArray(Arg[]::new));
    return copier.insert(def, all, name, types(def, all), at.span());
  }

  private Type type(OpDef def, ImmutableList<Arg> args) {
    return types(def, args).getFirst();
  }

  private List<Type> types(OpDef def, ImmutableList<Arg> args) {
    try {
      return def.infer(args).orElseThrow().stream().map(OpResult::type).toList();
    } catch (OpTypeException e) {
      throw error(String.valueOf(e.getMessage()));
    }
  }

  /** {@return the reduction of this name; an error at the op where there is none} */
  ReduceOp reduceOp(String text) {
    try {
      return ReduceOp.ofText(text);
    } catch (OpTypeException e) {
      throw error(String.valueOf(e.getMessage()));
    }
  }

  /** The collective, which demands what the op at its place does. */
  private OpDef functional(String name) {
    return BuiltinOps.registry().get(FUNCTIONAL + name).demandingAs(at.def());
  }

  Value allReduce(Target target, Value operand, ReduceOp reduceOp, String group, Arg algorithm) {
    return emit(
        target,
        functional("all_reduce"),
        new Arg.Ref(operand),
        new Arg.Str(reduceOp.text()),
        new Arg.Str(group),
        algorithm);
  }

  /** The functional collective gathers along the first dimension. */
  Value allGather(Target target, Value operand, int dim, String group, Arg algorithm) {
    int ranks = groupSize.applyAsInt(group);
    var rows =
        emit(
            dim == 0 ? target : target.before("_rows"),
            functional("all_gather_into_tensor"),
            new Arg.Ref(operand),
            new Arg.Int(ranks),
            new Arg.Str(group),
            algorithm);
    return dim == 0 ? rows : emit(target, "aten::cat", slices(rows, 0, ranks), new Arg.Int(dim));
  }

  /** The functional collective scatters along the first dimension. */
  Value reduceScatter(
      Target target, Value operand, int dim, ReduceOp reduceOp, String group, Arg algorithm) {
    int ranks = groupSize.applyAsInt(group);
    var sizes = operand.tensor().sizes();
    if (dim >= sizes.length() || sizes.get(dim) % ranks != 0) {
      throw error(
          "%s cannot be divided evenly among %s along dimension %s"
              .formatted(operand.type(), Units.count(ranks, "rank"), dim));
    }
    var rows =
        dim == 0
            ? operand
            : emit(
                target.before("_rows"), "aten::cat", slices(operand, dim, ranks), new Arg.Int(0));
    return emit(
        target,
        functional("reduce_scatter_tensor"),
        new Arg.Ref(rows),
        new Arg.Str(reduceOp.text()),
        new Arg.Int(ranks),
        new Arg.Str(group),
        algorithm);
  }

  Value allToAll(Target target, Value operand, Arg resultRows, Arg operandRows, String group) {
    return emit(
        target,
        functional("all_to_all_single"),
        new Arg.Ref(operand),
        resultRows,
        operandRows,
        new Arg.Str(group));
  }

  Value broadcast(Target target, Value operand, int root, String group) {
    return emit(
        target,
        functional("broadcast"),
        new Arg.Ref(operand),
        new Arg.Int(root),
        new Arg.Str(group));
  }

  Value permute(
      Target target, Value operand, Permutation permutation, String group, Arg algorithm) {
    return emit(
        target,
        BuiltinOps.registry().get("symplan::collective_permute").demandingAs(at.def()),
        new Arg.Ref(operand),
        permutation.arg(),
        new Arg.Str(group),
        algorithm);
  }

  private Arg slices(Value value, int dim, long ranks) {
    long size = value.tensor().size(dim) / ranks;
    var slices = ImmutableList.<Arg>builder();
    for (long i = 0; i < ranks; i++) {
      slices.add(
          new Arg.Ref(
              emit(
                  Target.of(value.name() + "_part"),
                  "aten::slice.Tensor",
                  new Arg.Ref(value),
                  new Arg.Int(dim),
                  new Arg.Int(i * size),
                  new Arg.Int((i + 1) * size))));
    }
    return new Arg.Seq(slices.build());
  }

  /**
   * Goes on with a value that later ops, if there are any, read as the op's result.
   *
   * @throws CompileException when it is not what they were written for
   */
  void checkType(Value made, Value read, boolean strides) {
    if (!read.isTensor()) {
      return;
    }
    var type = made.tensor();
    var wanted = read.tensor();
    if (type.dtype() != wanted.dtype()
        || !type.sizes().equals(wanted.sizes())
        || (strides && !type.strides().equals(wanted.strides()))) {
      throw error(
          "gives %s, not %s"
              .formatted(type.withSpace(MemorySpace.ANY), wanted.withSpace(MemorySpace.ANY)));
    }
  }

  CompileException error(String message) {
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.TYPE_MISMATCH, at.span(), at.def().name() + ": " + message));
  }
}
