package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.expr.Binding;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.Loops;

/** An elementwise op with one result that an expression defines. */
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
    long elements = result.type().numel();
    var binding = Binding.of(ImmutableList.of(expr), new HostCallTypes(call, elements));
    var program = new BlockProgram(binding);
    var tensors =
        program.params().stream().map(call::tensor).collect(ImmutableList.toImmutableList());
    int size = (int) Math.min(Loops.CHUNK, elements);
    if (binding.isFloat()) {
      var type = binding.computedIn();
      return () -> Pointwise.run(result, program.doubles(size), tensors, size, type);
    }
    return () -> {
      try {
        Pointwise.run(result, program.longs(size), tensors, size);
      } catch (ArithmeticException e) {
        throw new HostKernelException(e.getMessage());
      }
    };
  }
}
