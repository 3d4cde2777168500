package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.expr.Binding;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.List;

/**
 * An elementwise op with one result that an expression defines.
 *
 * <p>Floats are computed in double and rounded once to f32, then to the result's type, which is
 * PyTorch's result for its own computation in f32 or a neighbour of it; integers and bools in 64
 * bits. Operands of a wider type than the op computes in are rounded to that first.
 */
record ElementwiseKernel(Expr expr) implements HostKernel {

  @Override
  public void run(HostCall call) {
    prepare(call).run();
  }

  @Override
  public Runnable prepare(HostCall call) {
    var result = call.result();
    // Types without arithmetic can be copied, too.
    if (expr instanceof Expr.Param(var name)
        && call.value(name) instanceof Value.Tensor(var tensor)) {
      return () -> result.copyFrom(Views.expand(tensor, result.type().sizes()));
    }
    var types = new HostCallTypes(call, result.type().numel());
    var program = new BlockProgram(Binding.of(ImmutableList.of(expr), types));
    var tensors =
        program.params().stream().map(call::tensor).collect(ImmutableList.toImmutableList());
    return () -> {
      try {
        run(program, tensors, result);
      } catch (ArithmeticException e) {
        throw new HostKernelException(String.valueOf(e.getMessage()));
      }
    };
  }

  private static void run(BlockProgram program, List<HostTensor> tensors, HostTensor result) {
    var values = program.memory(1, (int) Math.min(Loops.CHUNK, result.type().numel()));
    var loads = program.loads();
    var steps = program.steps();
    int count = tensors.size();
    Pointwise.forEach(
        tensors,
        result,
        (offsets, strides, n) -> {
          for (int i = 0; i < count; i++) {
            values.load(loads.get(i), 0, tensors.get(i), offsets[i], strides[i], n);
          }
          for (int i = 0; i < steps.size(); i++) {
            steps.get(i).run(values, n);
          }
          values.store(program.results().getFirst(), 0, result, offsets[count], strides[count], n);
        });
  }
}
