package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.composite.Composites;
import dev.symplan.codegen.composite.Seen;
import dev.symplan.codegen.composite.Source;
import dev.symplan.codegen.composite.Step;
import dev.symplan.codegen.expr.NoSuchClassException;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/** The ops that {@link Composites} makes of steps, computed in f64; each result is rounded once. */
final class CompositeKernels implements HostKernel {
  static final HostKernel KERNEL = new CompositeKernels();

  private CompositeKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    Composites.names().forEach(name -> table.put(name, KERNEL));
    return table.buildOrThrow();
  }

  @Override
  public void run(HostCall call) {
    prepare(call).run();
  }

  @Override
  public Runnable prepare(HostCall call) {
    call.checkKnown();
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
    var steps =
        Composites.expand(
                new OpCall(BuiltinOps.registry().get(call.schema().name().toString()), args),
                results)
            .stream()
            .map(step -> new Prepared(call, step, temporaries))
            .toList();
    return () -> {
      try {
        steps.forEach(Prepared::run);
      } catch (NoSuchClassException e) {
        throw new HostKernelException(String.valueOf(e.getMessage()));
      }
    };
  }

  /** A step of a call. */
  private static final class Prepared {
    private final HostCall call;
    private final Map<Integer, HostTensor> temporaries;

    /** The copies that fill operands that are not read in place. */
    private final List<Runnable> before = new ArrayList<>();

    private final List<Runnable> after = new ArrayList<>();
    private final Runnable rows;

    Prepared(HostCall call, Step step, Map<Integer, HostTensor> temporaries) {
      this.call = call;
      this.temporaries = temporaries;
      var operands = new HashMap<String, HostTensor>();
      step.operands().forEach((name, seen) -> operands.put(name, operand(step, seen)));
      this.rows =
          RowsKernel.prepare(step, operands, step.results().stream().map(this::result).toList());
    }

    void run() {
      before.forEach(Runnable::run);
      rows.run();
      after.forEach(Runnable::run);
    }

    private HostTensor operand(Step step, Seen seen) {
      var memory = memory(seen.source(), seen.type());
      if (seen.source() instanceof Source.Picked picked) {
        var target = operand(step, step.operand(picked.target()));
        var result =
            HostTensor.allocate(TensorType.contiguous(Source.Temporary.DTYPE, seen.type().sizes()));
        before.add(() -> pick(picked, memory, seen.type(), target, result));
        return result;
      } else if (seen.copied()) {
        var copy = HostTensor.allocate(memory.type().contiguous());
        before.add(() -> copy.copyFrom(memory));
        return copy.as(seen.type());
      }
      return memory.as(seen.type());
    }

    private HostTensor result(Seen seen) {
      var memory = memory(seen.source(), seen.type());
      if (!seen.copied()) {
        return memory.as(seen.type());
      }
      var result = HostTensor.allocate(seen.type());
      after.add(() -> memory.copyFrom(result.as(memory.type().contiguous())));
      return result;
    }

    /** {@return the tensor that is seen, as it is} */
    private HostTensor memory(Source source, TensorType seen) {
      return switch (source) {
        case Source.Argument(var param, int item) ->
            switch (call.value(param)) {
              case Value.Tensor(var tensor) -> tensor;
              case Value.Many _ -> call.tensors(param).get(item);
              case Value.Constant _ -> throw new IllegalStateException(param + " is not a tensor");
            };
        case Source.Picked(var of, var _, var _, var _, var _) -> memory(of, seen);
        case Source.Result(int index) -> call.result(index);
        case Source.Part(var of, int part) -> memory(of, seen).part(part);
        case Source.Temporary(int number, long start) ->
            Views.strided(
                temporaries.computeIfAbsent(number, _ -> HostTensor.allocate(seen)),
                seen.sizes().asList(),
                seen.strides().asList(),
                start);
        case Source.Index _ -> indices(seen);
      };
    }
  }

  private static HostTensor indices(TensorType type) {
    var indices = HostTensor.allocate(TensorType.contiguous(type.dtype(), type.numel()));
    for (long i = 0; i < type.numel(); i++) {
      indices.setLong(i, i);
    }
    return indices;
  }

  /**
   * Reads an element for each target.
   *
   * @param seen where the elements of the first class are
   */
  private static void pick(
      Source.Picked picked,
      HostTensor from,
      TensorType seen,
      HostTensor target,
      HostTensor result) {
    var sizes = seen.sizes().toArray();
    long bytes = from.dtype().bytes();
    var flat = from.as(TensorType.contiguous(from.dtype(), from.type().storageBytes() / bytes));
    var targets = new long[Loops.CHUNK];
    var values = new double[Loops.CHUNK];
    Loops.forEach(
        sizes,
        List.of(
            Loops.byteStrides(seen, sizes),
            Loops.byteStrides(target.type(), sizes),
            Loops.byteStrides(result.type(), sizes)),
        (offsets, steps, n) -> {
          Elements.load(target.memory(), offsets[1], steps[1], target.dtype(), targets, n);
          for (int i = 0; i < n; i++) {
            long first = (offsets[0] + i * steps[0]) / bytes;
            values[i] = flat.get(first + picked.index(targets[i]) * picked.stride());
          }
          Elements.store(values, n, result.memory(), offsets[2], steps[2], result.dtype());
        });
  }
}
