package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/** One op by itself, on whatever memory. */
public final class NaiveOps {
  private NaiveOps() {}

  /**
   * Computes an op's results.
   *
   * @throws RunException when it has no host implementation
   */
  public static void run(
      Op op, Function<Value, HostTensor> operands, List<Optional<HostTensor>> results) {
    var kernel =
        HostKernels.find(op.def().name())
            .orElseThrow(() -> new RunException(op.def().name() + " has no host implementation"));
    kernel.run(
        new HostCall(
            op.def().schema(),
            op.results().isEmpty() ? "" : op.results().getFirst().name(),
            op.args().stream()
                .map(arg -> value(arg, operands))
                .collect(ImmutableList.toImmutableList()),
            ImmutableList.copyOf(results),
            Optional.empty()));
  }

  /** {@return an op's results, in memory of their own; empty for those that are not tensors} */
  public static ImmutableList<Optional<HostTensor>> run(
      Op op, Function<Value, HostTensor> operands) {
    var results =
        op.results().stream()
            .map(
                value ->
                    value.type() instanceof TensorType type
                        ? Optional.of(HostTensor.allocate(type))
                        : Optional.<HostTensor>empty())
            .collect(ImmutableList.toImmutableList());
    run(op, operands, results);
    return results;
  }

  private static HostCall.Value value(Arg arg, Function<Value, HostTensor> operands) {
    return switch (arg) {
      case Arg.Ref(Value value) when value.isTensor() ->
          new HostCall.Value.Tensor(operands.apply(value));
      case Arg.Seq(ImmutableList<Arg> items)
          when items.stream().anyMatch(i -> i instanceof Arg.Ref(Value v) && v.isTensor()) ->
          new HostCall.Value.Many(
              items.stream()
                  .map(item -> value(item, operands))
                  .collect(ImmutableList.toImmutableList()));
      case Arg.Ref _, Arg.Seq _, Arg.Literal _ -> new HostCall.Value.Constant(arg);
    };
  }
}
