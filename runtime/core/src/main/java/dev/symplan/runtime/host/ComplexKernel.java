package dev.symplan.runtime.host;

import dev.symplan.codegen.composite.Composites;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.runtime.tensor.HostTensor;

/**
 * A built-in op, whose complex numbers are computed by their parts.
 *
 * @param others computes, or moves, everything else
 */
record ComplexKernel(HostKernel others) implements HostKernel {

  @Override
  public void run(HostCall call) {
    kernel(call).run(call);
  }

  @Override
  public Runnable prepare(HostCall call) {
    return kernel(call).prepare(call);
  }

  private HostKernel kernel(HostCall call) {
    var def = BuiltinOps.registry().get(call.schema().name().toString());
    return Composites.isComplex(def, call.tensors().map(HostTensor::type))
        ? CompositeKernels.KERNEL
        : others;
  }
}
