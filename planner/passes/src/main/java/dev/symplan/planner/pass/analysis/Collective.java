package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableCollection;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Eligibility;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * A collective as its op's registration describes it.
 *
 * @param index the op's position in the graph
 * @param operands the tensors sent; for a custom op, those registered as symmetric
 * @param results the tensors received; for a custom op, those registered as symmetric
 * @param root the group rank that a broadcast comes from; -1 if none exists
 */
public record Collective(
    int index,
    Op op,
    Kind kind,
    String group,
    Optional<ReduceOp> reduceOp,
    int root,
    ImmutableList<Value> operands,
    ImmutableList<Value> results) {

  /** {@return the collective that an op is, if it is one} */
  public static Optional<Collective> of(Op op, int index) {
    return op.collective()
        .map(
            call ->
                new Collective(
                    index,
                    op,
                    call.kind(),
                    call.group(),
                    call.reduceOp(),
                    call.root().orElse(-1),
                    operands(op, call),
                    results(op, call.kind())));
  }

  /** {@return the collectives of a graph, in its order} */
  public static ImmutableList<Collective> allOf(ImmutableList<Op> ops) {
    return Parallel.concat(
        ops.size(),
        (from, to) ->
            IntStream.range(from, to)
                .filter(i -> ops.get(i).def().collective().isPresent())
                .mapToObj(i -> of(ops.get(i), i).orElseThrow())
                .toList());
  }

  private static ImmutableList<Value> operands(Op op, CollectiveCall call) {
    return operandParams(op, call.kind()).stream()
        .flatMap(param -> op.arg(param).operands().stream())
        .collect(ImmutableList.toImmutableList());
  }

  private static ImmutableCollection<String> operandParams(Op op, Kind kind) {
    return kind == Kind.CUSTOM
        ? op.def().symmMemArgs()
        : ImmutableList.of(op.def().collective().orElseThrow().operand());
  }

  /**
   * {@return arguments of the op that send other tensors, each where its operand is}
   *
   * @param args the arguments of all parameters
   * @param sent one for each operand
   */
  public ImmutableList<Arg> argsWith(ImmutableList<Arg> args, List<Value> sent) {
    var changed = new ArrayList<>(args);
    var next = sent.iterator();
    for (var param : operandParams(op, kind)) {
      int at = op.def().schema().indexOf(param);
      changed.set(at, substitute(args.get(at), next));
    }
    return changed.equals(args) ? args : ImmutableList.copyOf(changed);
  }

  private static Arg substitute(Arg arg, Iterator<Value> next) {
    return switch (arg) {
      case Arg.Ref _ -> new Arg.Ref(next.next());
      case Arg.Seq(var items) ->
          new Arg.Seq(
              items.stream()
                  .map(item -> substitute(item, next))
                  .collect(ImmutableList.toImmutableList()));
      case Arg.Literal literal -> literal;
    };
  }

  private static ImmutableList<Value> results(Op op, Kind kind) {
    if (kind != Kind.CUSTOM) {
      return op.results();
    }
    var schema = op.def().schema().results();
    var values = ImmutableList.<Value>builder();
    for (int i = 0; i < Math.min(schema.size(), op.results().size()); i++) {
      boolean registered =
          op.def().symmMemResults().contains(Integer.toString(i))
              || op.def().symmMemResults().contains(schema.get(i).name());
      if (registered && op.results().get(i).isTensor()) {
        values.add(op.results().get(i));
      }
    }
    return values.build();
  }

  /** {@return its name in the plan: its first result, or its op} */
  public String name() {
    return op.label();
  }

  /** {@return the algorithm that the op names} */
  public Optional<String> algorithm() {
    return op.collective().flatMap(CollectiveCall::algorithm);
  }

  /** {@return the bytes of all operands of one rank} */
  public long bytes() {
    return request().bytes();
  }

  /** {@return the facts that decide which variants can carry it out} */
  public Eligibility.Request request() {
    return new Eligibility.Request(op, kind, reduceOp, operands);
  }

  public DType dtype() {
    return request().dtype();
  }
}
