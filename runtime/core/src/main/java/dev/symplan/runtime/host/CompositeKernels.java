package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.composite.Composites;
import dev.symplan.codegen.composite.Seen;
import dev.symplan.codegen.composite.Source;
import dev.symplan.codegen.composite.Step;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/** The ops that {@link Composites} makes of steps, computed in f64; each result is rounded once. */
final class CompositeKernels {
  private CompositeKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    Composites.names().forEach(name -> table.put(name, CompositeKernels::run));
    return table.buildOrThrow();
  }

  private static void run(HostCall call) {
    var args =
        call.args().stream().map(HostCallTypes::arg).collect(ImmutableList.toImmutableList());
    var results =
        IntStream.range(0, call.resultCount())
            .mapToObj(
                i ->
                    call.hasResult(i)
                        ? Optional.of(call.result(i).type())
                        : Optional.<TensorType>empty())
            .collect(ImmutableList.toImmutableList());
    var temporaries = new HashMap<Integer, HostTensor>();
    for (var step : Composites.expand(new OpCall(call.schema(), args), results)) {
      run(call, step, temporaries);
    }
  }

  private static void run(HostCall call, Step step, Map<Integer, HostTensor> temporaries) {
    var operands = new HashMap<String, HostTensor>();
    step.operands().forEach((name, seen) -> operands.put(name, operand(call, seen, temporaries)));
    var results =
        step.results().stream()
            .map(
                seen ->
                    seen.copied()
                        ? HostTensor.allocate(seen.type())
                        : memory(call, seen, temporaries).as(seen.type()))
            .toList();
    try {
      RowsKernel.run(step, operands, results);
    } catch (IndexOutOfBoundsException e) {
      throw new HostKernelException(String.valueOf(e.getMessage()));
    }
    for (int i = 0; i < results.size(); i++) {
      if (step.results().get(i).copied()) {
        var result = memory(call, step.results().get(i), temporaries);
        result.copyFrom(results.get(i).as(result.type().contiguous()));
      }
    }
  }

  private static HostTensor operand(
      HostCall call, Seen seen, Map<Integer, HostTensor> temporaries) {
    var tensor = memory(call, seen, temporaries);
    return (seen.copied() ? tensor.contiguous() : tensor).as(seen.type());
  }

  /** {@return the tensor that is seen, as it is} */
  private static HostTensor memory(HostCall call, Seen seen, Map<Integer, HostTensor> temporaries) {
    return switch (seen.source()) {
      case Source.Argument(var param, int item) ->
          switch (call.value(param)) {
            case Value.Tensor(var tensor) -> tensor;
            case Value.Many _ -> call.tensors(param).get(item);
            case Value.Constant _ -> throw new IllegalStateException(param + " is no tensor");
          };
      case Source.Result(int index) -> call.result(index);
      case Source.Temporary(int number) ->
          temporaries.computeIfAbsent(number, _ -> HostTensor.allocate(seen.type()));
      case Source.Index _ -> indices(seen.type());
    };
  }

  private static HostTensor indices(TensorType type) {
    var indices = HostTensor.allocate(TensorType.contiguous(type.dtype(), type.numel()));
    for (long i = 0; i < type.numel(); i++) {
      indices.setLong(i, i);
    }
    return indices;
  }
}
