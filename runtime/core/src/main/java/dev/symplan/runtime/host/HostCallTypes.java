package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.expr.Call;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Span;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** A call, as expressions are bound to it. */
record HostCallTypes(HostCall call, long rowElements) implements Call {

  @Override
  public boolean hasParam(String param) {
    return call.hasParam(param);
  }

  @Override
  public Optional<TensorType> tensor(String param) {
    return call.value(param) instanceof Value.Tensor(HostTensor tensor)
        ? Optional.of(tensor.type())
        : Optional.empty();
  }

  @Override
  public Arg constant(String param) {
    return call.constant(param);
  }

  @Override
  public List<DType> dtypes() {
    var dtypes = new ArrayList<DType>();
    for (var param : call.schema().params()) {
      tensor(param.name()).ifPresent(type -> dtypes.add(type.dtype()));
    }
    for (int i = 0; i < call.resultCount(); i++) {
      if (call.hasResult(i)) {
        dtypes.add(call.result(i).dtype());
      }
    }
    return dtypes;
  }

  @Override
  public DType result() {
    int first = 0;
    while (!call.hasResult(first)) {
      first++;
    }
    return call.result(first).dtype();
  }

  /** {@return the argument as rules know it} */
  static Arg arg(Value value) {
    return switch (value) {
      case Value.Tensor(HostTensor tensor) ->
          new Arg.Ref(new dev.symplan.ir.Value(0, "", tensor.type(), Span.NONE, false));
      case Value.Many(ImmutableList<Value> items) ->
          new Arg.Seq(
              items.stream().map(HostCallTypes::arg).collect(ImmutableList.toImmutableList()));
      case Value.Constant(Arg arg) -> arg;
    };
  }
}
