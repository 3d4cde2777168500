package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;

/** Ops whose result depends on no tensor's elements. */
final class CreationKernels {
  private CreationKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : List.of("aten::full", "aten::full_like", "aten::new_full")) {
      table.put(name, call -> fill(call, "fill_value"));
    }
    table.put("aten::scalar_tensor", call -> fill(call, "s"));
    for (var name :
        List.of(
            "aten::zeros",
            "aten::zeros_like",
            "aten::new_zeros",
            // Memory that is not initialised would differ from run to run.
            "aten::empty.memory_format",
            "aten::empty_strided",
            "aten::empty_permuted",
            "aten::empty_like",
            "aten::new_empty",
            "aten::new_empty_strided")) {
      table.put(name, call -> fill(call.result(), 0));
    }
    for (var name : List.of("aten::ones", "aten::ones_like", "aten::new_ones")) {
      table.put(name, call -> fill(call.result(), 1));
    }
    for (var name : List.of("aten::eye", "aten::eye.m")) {
      table.put(
          name,
          call -> {
            fill(call.result(), 0);
            fill(ArrangementKernels.diagonal(call.result(), 0, 0, 1), 1);
          });
    }
    table.put("prims::iota", call -> range(call, "start", "step"));
    table.put("aten::arange", call -> range(call, "", ""));
    table.put("aten::arange.start", call -> range(call, "start", ""));
    table.put("aten::arange.start_step", call -> range(call, "start", "step"));
    table.put("aten::linspace", CreationKernels::linspace);
    table.put("aten::tril_indices", call -> triangle(call, true));
    table.put("aten::triu_indices", call -> triangle(call, false));
    return table.buildOrThrow();
  }

  static void fill(HostCall call, String param) {
    var result = call.result();
    var one = scalar(call, param, result.dtype());
    result.copyFrom(Views.expand(one, result.type().sizes()));
  }

  static void fill(HostTensor tensor, double value) {
    var one = HostTensor.allocate(TensorType.contiguous(tensor.dtype()));
    one.set(value);
    tensor.copyFrom(Views.expand(one, tensor.type().sizes()));
  }

  /** {@return a number, or the element of a tensor without dimensions, as a tensor} */
  static HostTensor scalar(HostCall call, String param, DType dtype) {
    var one = HostTensor.allocate(TensorType.contiguous(dtype));
    switch (call.value(param)) {
      case Value.Tensor(HostTensor tensor) -> one.copyFrom(tensor.as(scalarType(tensor)));
      case Value.Constant(Arg.Int(long number)) when !dtype.isFloat() -> one.setLong(number);
      case Value.Constant _, Value.Many _ -> one.set(call.number(param));
    }
    return one;
  }

  private static TensorType scalarType(HostTensor tensor) {
    return TensorType.contiguous(tensor.dtype());
  }

  private static boolean isInteger(HostCall call, String param) {
    return param.isEmpty() || !(call.value(param) instanceof Value.Constant(Arg.Float _));
  }

  /** Floats are computed in double, whatever the result's type is. */
  private static void range(HostCall call, String start, String step) {
    var result = call.result();
    long count = result.type().numel();
    if (!result.dtype().isFloat() && isInteger(call, start) && isInteger(call, step)) {
      long first = start.isEmpty() ? 0 : call.integer(start);
      long distance = step.isEmpty() ? 1 : call.integer(step);
      for (long i = 0; i < count; i++) {
        result.setLong(first + i * distance, i);
      }
    } else {
      boolean whole = !result.dtype().isFloat();
      double first = start.isEmpty() ? 0 : call.number(start);
      double distance = step.isEmpty() ? 1 : call.number(step);
      for (long i = 0; i < count; i++) {
        result.set(whole ? (long) first + i * (long) distance : first + i * distance, i);
      }
    }
  }

  /** From both ends to the middle, as PyTorch computes it. */
  private static void linspace(HostCall call) {
    var result = call.result();
    long steps = result.type().numel();
    double start = call.number("start");
    double end = call.number("end");
    double step = steps > 1 ? (end - start) / (steps - 1) : 0;
    for (long i = 0; i < steps; i++) {
      result.set(i < steps / 2 || steps == 1 ? start + i * step : end - (steps - 1 - i) * step, i);
    }
  }

  private static void triangle(HostCall call, boolean lower) {
    long rows = call.integer("row");
    long columns = call.integer("col");
    long offset = call.integer("offset");
    long firstRow = lower ? Math.max(0, -offset) : 0;
    long endRow = lower ? rows : Math.min(rows, columns - offset);
    long next = 0;
    for (long i = firstRow; i < endRow && columns > 0; i++) {
      long end = lower ? Math.min(columns, i + offset + 1) : columns;
      for (long j = lower ? 0 : Math.max(0, i + offset); j < end; j++) {
        call.result().setLong(i, 0, next);
        call.result().setLong(j, 1, next++);
      }
    }
  }
}
