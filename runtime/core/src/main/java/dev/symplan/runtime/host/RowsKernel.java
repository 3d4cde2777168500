package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Maps;
import com.google.common.primitives.Ints;
import dev.symplan.codegen.composite.Step;
import dev.symplan.codegen.expr.Binding;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Primitive;
import dev.symplan.codegen.expr.RowDims;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.host.BlockProgram.Pass;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;

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
   * Adds up in f64.
   *
   * @param row the dimensions that are summed over, in their order
   */
  static void sum(HostTensor tensor, List<Integer> row, HostTensor result) {
    var sum = Expr.of(Primitive.Fold.SUM, new Expr.Param("x"));
    var program = new BlockProgram(new Binding(ImmutableList.of(sum), DType.F64));
    new Run(program, tensor.type(), row, List.of(tensor), List.of(Optional.of(result))).run();
  }

  /**
   * {@return the action that computes a step in f64}
   *
   * @param operands the tensors as they are seen
   * @param results as many as the step's
   */
  static Runnable prepare(Step step, Map<String, HostTensor> operands, List<HostTensor> results) {
    var main = TensorType.contiguous(DType.F64, step.sizes());
    var rows = rows(step, main, Maps.transformValues(operands, HostTensor::type));
    var tensors = rows.program().params().stream().map(operands::get).toList();
    var present = results.stream().map(Optional::of).toList();
    return () -> new Run(rows.program(), main, rows.dims(), tensors, present).run();
  }

  /**
   * @param dims the dimensions within a row
   */
  private record Rows(BlockProgram program, List<Integer> dims) {}

  private static Rows rows(Step step, TensorType main, Map<String, TensorType> operands) {
    var binding = step.bind(DType.F64);
    if (step.row().isEmpty() && binding.results().stream().noneMatch(Binding::isByRow)) {
      // Elements that are by themselves are one row, too, unless a result is the same for all.
      var all = IntStream.range(0, main.rank()).boxed().toList();
      var program = new BlockProgram(binding, singles(main, all, operands));
      if (program.results().stream().allMatch(program::isFull)) {
        return new Rows(program, all);
      }
    }
    var dims = step.row().asList();
    return new Rows(new BlockProgram(binding, singles(main, dims, operands)), dims);
  }

  /** {@return the operands that have one element for each row, where rows have more} */
  private static Set<String> singles(
      TensorType main, List<Integer> dims, Map<String, TensorType> operands) {
    var longer = dims.stream().filter(dim -> main.size(dim) != 1).toList();
    return longer.isEmpty()
        ? Set.of()
        : Maps.filterValues(
                operands,
                type ->
                    longer.stream()
                        .map(dim -> dim - main.rank() + type.rank())
                        .allMatch(dim -> dim < 0 || type.size(dim) == 1))
            .keySet();
  }

  /** One run, over all rows. */
  private static final class Run {
    /** Rows that are taken at once at the most. */
    private static final int MOST = Loops.CHUNK / 2;

    private final BlockProgram program;
    private final int[] loads;
    private final List<HostTensor> tensors = new ArrayList<>();

    /** For each tensor, the bytes from one index to the next. */
    private final List<long[]> rowStrides = new ArrayList<>();

    private final List<long[]> elementStrides = new ArrayList<>();

    /** The values that are stored in the tensors after the operands. */
    private final int[] stored;

    private final long[] rowSizes;
    private final long[] elementSizes;
    private final Pass before;
    private final Pass[] passes;
    private final BlockValues<?> values;
    private final boolean oneBlock;

    /** Rows that are taken at once. */
    private final int together;

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
      this.loads = Ints.toArray(program.loads());
      var kept = IntStream.range(0, main.rank()).filter(dim -> !dims.contains(dim)).toArray();
      var gone = IntStream.range(0, main.rank()).filter(dims::contains).toArray();
      this.rowSizes = IntStream.of(kept).mapToLong(main::size).toArray();
      this.elementSizes = IntStream.of(gone).mapToLong(main::size).toArray();
      this.elements = product(elementSizes);
      this.stored =
          IntStream.range(0, results.size())
              .filter(i -> results.get(i).isPresent())
              .map(program.results()::get)
              .toArray();
      for (var operand : operands) {
        add(operand, main, kept, gone);
      }
      for (int i = 0; i < results.size(); i++) {
        if (results.get(i).isPresent()) {
          var result = results.get(i).get();
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
      this.before = program.before();
      this.passes = program.passes(oneBlock).toArray(Pass[]::new);
      this.together =
          oneBlock
              ? (int)
                  Math.clamp(
                      Math.min(product(rowSizes), Loops.CHUNK / Math.max(1, elements)), 1, MOST)
              : 1;
      this.values =
          program.memory(together, (int) Math.min(Loops.CHUNK, together * Math.max(1, elements)));
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
      var start = new long[tensors.size()];
      Loops.forEach(
          rowSizes,
          rowStrides,
          (offsets, steps, count) -> {
            for (int row = 0; row < count; row += together) {
              for (int t = 0; t < start.length; t++) {
                start[t] = offsets[t] + row * steps[t];
              }
              rows(start, steps, Math.min(together, count - row));
            }
          });
    }

    /**
     * Computes rows.
     *
     * @param start where the first one begins in each tensor, in bytes
     * @param next from one row to the next
     */
    private void rows(long[] start, long[] next, int count) {
      for (int t : before.loads()) {
        values.load(loads[t], 0, tensors.get(t), start[t], next[t], count);
      }
      once(before, count);
      for (int number = 0; number < passes.length; number++) {
        pass(passes[number], number == passes.length - 1, start, next, count);
      }
      for (int i = 0; i < stored.length; i++) {
        if (!program.isFull(stored[i])) {
          int t = loads.length + i;
          values.store(stored[i], 0, tensors.get(t), start[t], next[t], count);
        }
      }
    }

    private void pass(Pass pass, boolean last, long[] start, long[] next, int count) {
      for (var fold : pass.folds()) {
        values.start(fold.fold(), fold.to(), count);
      }
      if (oneBlock) {
        if (elements > 0) {
          block(pass, last, start, next, count, strides, (int) elements, 0);
        }
      } else {
        var first = new long[1];
        var at = new long[start.length];
        Loops.forEach(
            elementSizes,
            elementStrides,
            (offsets, steps, n) -> {
              for (int t = 0; t < at.length; t++) {
                at[t] = start[t] + offsets[t];
              }
              block(pass, last, at, next, 1, steps, n, first[0]);
              first[0] += n;
            });
      }
      once(pass, count);
    }

    private void once(Pass pass, int count) {
      for (var step : pass.once()) {
        step.run(values, count);
      }
      int width = (int) Math.min(Loops.CHUNK, elements);
      for (var spread : pass.spread()) {
        values.spread(spread.from(), spread.to(), count, width);
      }
    }

    /**
     * Goes through some elements of rows.
     *
     * @param next from one row to the next, in bytes
     * @param steps from one element to the next
     * @param n elements of each row
     * @param first the position of the first element in its row
     */
    private void block(
        Pass pass,
        boolean last,
        long[] at,
        long[] next,
        int count,
        long[] steps,
        int n,
        long first) {
      for (int t : pass.loads()) {
        boolean dense = count == 1 || next[t] == n * steps[t];
        for (int row = 0; row < (dense ? 1 : count); row++) {
          values.load(
              loads[t],
              row * n,
              tensors.get(t),
              at[t] + row * next[t],
              steps[t],
              dense ? count * n : n);
        }
      }
      for (var step : pass.elements()) {
        if (step.primitive() instanceof Primitive.Scan scan) {
          values.scan(scan, step.a(), step.to(), count, n, first);
        } else {
          step.run(values, count * n);
        }
      }
      for (var fold : pass.folds()) {
        values.fold(fold.fold(), fold.from(), fold.to(), count, n, first);
      }
      for (int i = 0; last && i < stored.length; i++) {
        if (program.isFull(stored[i])) {
          int t = loads.length + i;
          boolean dense = count == 1 || next[t] == n * steps[t];
          for (int row = 0; row < (dense ? 1 : count); row++) {
            values.store(
                stored[i],
                row * n,
                tensors.get(t),
                at[t] + row * next[t],
                steps[t],
                dense ? count * n : n);
          }
        }
      }
    }
  }
}
