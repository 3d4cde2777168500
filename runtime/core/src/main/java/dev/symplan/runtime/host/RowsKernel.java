package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.expr.Binding;
import dev.symplan.codegen.expr.Call;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.codegen.expr.RowDims;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.host.BlockProgram.Pass;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * An op that folds, scans or normalizes rows, which expressions define. Floats are accumulated in
 * double, so that their rounding is that of the result only, integers in 64 bits.
 */
record RowsKernel(ImmutableList<Expr> exprs) implements HostKernel {

  @Override
  public void run(HostCall call) {
    prepare(call).run();
  }

  @Override
  public Runnable prepare(HostCall call) {
    var main =
        call.schema().params().stream()
            .map(param -> call.value(param.name()))
            .filter(Value.Tensor.class::isInstance)
            .map(value -> ((Value.Tensor) value).tensor().type())
            .findFirst()
            .orElseThrow();
    var dims = RowDims.of(new HostCallTypes(call, 1), call.schema().name().overload(), main.rank());
    long elements = dims.stream().mapToLong(main::size).reduce(1, (a, b) -> a * b);
    var binding = Binding.of(exprs, new HostCallTypes(call, elements));
    var program = new BlockProgram(binding);
    var operands =
        program.params().stream().map(call::tensor).collect(ImmutableList.toImmutableList());
    var results =
        IntStream.range(0, exprs.size())
            .mapToObj(
                i -> call.hasResult(i) ? Optional.of(call.result(i)) : Optional.<HostTensor>empty())
            .collect(ImmutableList.toImmutableList());
    return () -> new Run(program, main, dims, operands, results).run();
  }

  /**
   * Computes expressions of tensors in f64.
   *
   * @param gone which dimensions of the first operand are within a row
   */
  static void compute(
      String exprs,
      ImmutableMap<String, HostTensor> operands,
      boolean[] gone,
      HostTensor... results) {
    var main = operands.values().iterator().next().type();
    var dims = IntStream.range(0, main.rank()).filter(dim -> gone[dim]).boxed().toList();
    long elements = dims.stream().mapToLong(main::size).reduce(1, (a, b) -> a * b);
    var binding = Binding.of(Expressions.parse(exprs), new Wide(operands, elements));
    var program = new BlockProgram(binding);
    new Run(
            program,
            main,
            dims,
            program.params().stream().map(operands::get).toList(),
            Stream.of(results).map(Optional::of).toList())
        .run();
  }

  /** Tensors whose values are computed with in f64. */
  private record Wide(ImmutableMap<String, HostTensor> operands, long rowElements) implements Call {
    @Override
    public boolean hasParam(String param) {
      return operands.containsKey(param);
    }

    @Override
    public Optional<TensorType> tensor(String param) {
      return Optional.ofNullable(operands.get(param)).map(HostTensor::type);
    }

    @Override
    public Arg constant(String param) {
      return Arg.None.NONE;
    }

    @Override
    public List<DType> dtypes() {
      return List.of(DType.F64);
    }

    @Override
    public DType result() {
      return DType.F64;
    }
  }

  /** One run, over all rows. */
  private static final class Run {
    private final BlockProgram program;
    private final ImmutableList<Integer> loads;
    private final List<HostTensor> tensors = new ArrayList<>();

    /** For each tensor, the bytes from one index to the next. */
    private final List<long[]> rowStrides = new ArrayList<>();

    private final List<long[]> elementStrides = new ArrayList<>();

    /** What is stored in the tensors behind the operands. */
    private final List<Integer> stored = new ArrayList<>();

    private final long[] rowSizes;
    private final long[] elementSizes;
    private final ImmutableList<Pass> passes;
    private final BlockValues values;
    private final boolean oneBlock;

    /** Where a row is one block, the bytes from one element to the next. */
    private final long[] strides;

    private final long elements;

    Run(
        BlockProgram program,
        TensorType main,
        List<Integer> dims,
        List<HostTensor> operands,
        List<Optional<HostTensor>> results) {
      this.program = program;
      this.loads = program.loads();
      var kept = IntStream.range(0, main.rank()).filter(dim -> !dims.contains(dim)).toArray();
      var gone = IntStream.range(0, main.rank()).filter(dims::contains).toArray();
      this.rowSizes = IntStream.of(kept).mapToLong(main::size).toArray();
      this.elementSizes = IntStream.of(gone).mapToLong(main::size).toArray();
      this.elements = product(elementSizes);
      for (var operand : operands) {
        add(operand, main, kept, gone);
      }
      for (int i = 0; i < results.size(); i++) {
        if (results.get(i).isPresent()) {
          var result = results.get(i).get();
          stored.add(program.results().get(i));
          if (result.type().rank() == main.rank()) {
            add(result, main, kept, gone);
          } else {
            tensors.add(result);
            rowStrides.add(Loops.byteStrides(result.type(), rowSizes));
            elementStrides.add(new long[gone.length]);
          }
        }
      }
      var joined = new long[gone.length + 1];
      var steps = new long[tensors.size()][gone.length + 1];
      this.oneBlock =
          Loops.collapse(elementSizes, elementStrides, joined, steps) == 1
              && elements <= Loops.CHUNK;
      this.strides = Arrays.stream(steps).mapToLong(of -> of[0]).toArray();
      this.passes = program.passes(oneBlock);
      this.values = program.memory((int) Math.min(Loops.CHUNK, Math.max(1, elements)));
    }

    private void add(HostTensor tensor, TensorType main, int[] kept, int[] gone) {
      var strides = Loops.byteStrides(tensor.type(), main.sizes().toArray());
      tensors.add(tensor);
      rowStrides.add(IntStream.of(kept).mapToLong(dim -> strides[dim]).toArray());
      elementStrides.add(IntStream.of(gone).mapToLong(dim -> strides[dim]).toArray());
    }

    private static long product(long[] sizes) {
      long product = 1;
      for (long size : sizes) {
        product *= size;
      }
      return product;
    }

    void run() {
      program.constants().forEach(step -> step.run(values, 1));
      var start = new long[tensors.size()];
      Loops.forEach(
          rowSizes,
          rowStrides,
          (offsets, steps, count) -> {
            for (int row = 0; row < count; row++) {
              for (int t = 0; t < start.length; t++) {
                start[t] = offsets[t] + row * steps[t];
              }
              row(start);
            }
          });
    }

    private void row(long[] start) {
      for (int number = 0; number < passes.size(); number++) {
        pass(passes.get(number), number == passes.size() - 1, start);
      }
      for (int i = 0; i < stored.size(); i++) {
        if (!program.isFull(stored.get(i))) {
          int t = loads.size() + i;
          values.store(stored.get(i), tensors.get(t), start[t], 0, 1);
        }
      }
    }

    private void pass(Pass pass, boolean last, long[] start) {
      for (int i = 0; i < pass.folds().size(); i++) {
        var fold = pass.folds().get(i);
        values.start(fold.primitive(), fold.to());
      }
      for (int i = 0; i < pass.elements().size(); i++) {
        var step = pass.elements().get(i);
        if (step.primitive().scans()) {
          values.start(step.primitive(), step.to());
        }
      }
      if (oneBlock) {
        if (elements > 0) {
          block(pass, last, start, strides, (int) elements, 0);
        }
      } else {
        var first = new long[1];
        var at = new long[start.length];
        Loops.forEach(
            elementSizes,
            elementStrides,
            (offsets, strides, n) -> {
              for (int t = 0; t < at.length; t++) {
                at[t] = start[t] + offsets[t];
              }
              block(pass, last, at, strides, n, first[0]);
              first[0] += n;
            });
      }
      // What is one for the row is there for each element, as steps take all alike.
      int width = (int) Math.min(Loops.CHUNK, Math.max(1, elements));
      for (int i = 0; i < pass.folds().size(); i++) {
        values.spread(pass.folds().get(i).to(), width);
      }
      for (int i = 0; i < pass.once().size(); i++) {
        pass.once().get(i).run(values, width);
      }
    }

    /**
     * @param first the position of the first element in the row
     */
    private void block(Pass pass, boolean last, long[] at, long[] strides, int n, long first) {
      for (int i = 0; i < pass.loads().size(); i++) {
        int t = loads.indexOf(pass.loads().get(i));
        values.load(loads.get(t), tensors.get(t), at[t], strides[t], n, false);
      }
      for (int i = 0; i < pass.elements().size(); i++) {
        var step = pass.elements().get(i);
        if (step.primitive().scans()) {
          values.take(step.primitive(), step.a(), step.to(), n, first);
        } else {
          step.run(values, n);
        }
      }
      for (int i = 0; i < pass.folds().size(); i++) {
        var fold = pass.folds().get(i);
        values.take(fold.primitive(), fold.a(), fold.to(), n, first);
      }
      for (int i = 0; last && i < stored.size(); i++) {
        if (program.isFull(stored.get(i))) {
          int t = loads.size() + i;
          values.store(stored.get(i), tensors.get(t), at[t], strides[t], n);
        }
      }
    }
  }
}
