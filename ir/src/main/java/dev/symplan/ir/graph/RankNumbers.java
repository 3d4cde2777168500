package dev.symplan.ir.graph;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import java.util.OptionalInt;

/**
 * The op {@code symplan::rank_number}, with which ranks run one graph though some number is another
 * one on each of them. On a rank it is {@code aten::full}, so no backend knows it.
 */
public final class RankNumbers {
  private static final OpDef OP = BuiltinOps.registry().get("symplan::rank_number");
  private static final OpDef FULL = BuiltinOps.registry().get("aten::full");

  private RankNumbers() {}

  /** {@return the op's name} */
  public static OpName name() {
    return OP.name();
  }

  /** {@return an op as one rank runs it} */
  public static Op on(Op op, int rank) {
    if (!op.def().name().equals(OP.name())) {
      return op;
    }
    var args = ImmutableList.<Arg>builder();
    args.add(Arg.Seq.of(), new Arg.Int(numbers(op).get(rank)), op.arg("dtype"));
    var params = FULL.schema().params();
    for (var param : params.subList(3, params.size())) {
      args.add(param.defaultValue().orElse(Arg.None.NONE));
    }
    return new Op(FULL, args.build(), op.results(), op.span(), op.notes());
  }

  /** {@return how many numbers an op has; empty if it is another op} */
  public static OptionalInt count(Op op) {
    return op.def().name().equals(OP.name())
        ? OptionalInt.of(numbers(op).length())
        : OptionalInt.empty();
  }

  /** Reports numbers that are not as many as the ranks. */
  public static void check(Graph graph, int ranks, DiagnosticSink sink) {
    for (var op : Parallel.filter(graph.ops(), own -> count(own).isPresent())) {
      var count = count(op);
      if (count.getAsInt() != ranks) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.BAD_ARGUMENT,
                op.span(),
                "'%s' has %s, but there are %s"
                    .formatted(
                        op.results().stream().map(Value::name).findFirst().orElse(""),
                        Units.count(count.getAsInt(), "number"),
                        Units.count(ranks, "rank")),
                "give one number for each rank, rank 0 first"));
      }
    }
  }

  private static ImmutableLongArray numbers(Op op) {
    return op.arg("numbers").integers().orElseThrow();
  }
}
