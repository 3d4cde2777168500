package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.composite.ByParts;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Optional;

/**
 * An op that does the same to both parts of complex numbers.
 *
 * @param others does it to real ones
 */
record PartsKernel(HostKernel others) implements HostKernel {

  @Override
  public void run(HostCall call) {
    var def = BuiltinOps.registry().get(call.schema().name().toString());
    if (!ByParts.suits(def, call.tensors().map(HostTensor::type))) {
      others.run(call);
      return;
    }
    others.run(part(call, 0));
    var made = call.schema().mutates() ? call.tensor("self") : call.result();
    if (!isComplex(made)) {
      return;
    } else if (ByParts.isReal(def)) {
      CreationKernels.fill(made.part(1), 0);
    } else {
      others.run(part(call, 1));
    }
  }

  private static HostCall part(HostCall call, int part) {
    var args = ImmutableList.<Value>builder();
    for (int i = 0; i < call.args().size(); i++) {
      var param = call.schema().params().get(i).name();
      args.add(
          switch (call.args().get(i)) {
            case Value.Tensor(var tensor) -> new Value.Tensor(part(param, tensor, part));
            case Value.Constant(Arg arg) -> new Value.Constant(ByParts.constant(param, arg, part));
            case Value.Many many -> many;
          });
    }
    var results = ImmutableList.<Optional<HostTensor>>builder();
    for (int i = 0; i < call.resultCount(); i++) {
      results.add(
          call.hasResult(i) ? Optional.of(part("", call.result(i), part)) : Optional.empty());
    }
    return new HostCall(
        call.schema(), call.name(), args.build(), results.build(), Optional.empty());
  }

  private static HostTensor part(String param, HostTensor tensor, int part) {
    if (isComplex(tensor)) {
      return tensor.part(part);
    }
    return part == 1 && ByParts.hasElements(param) ? HostTensor.allocate(tensor.type()) : tensor;
  }

  private static boolean isComplex(HostTensor tensor) {
    return tensor.dtype().kind() == DType.Kind.COMPLEX;
  }
}
