package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;

/** Ops whose result depends on no tensor's elements. */
final class CreationOps {
  private CreationOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(constants(), likes(), ranges()).flatMap(specs -> specs);
  }

  private static Stream<OpSpec> table(String schemas, Function<OpCall, OpResult> rule) {
    return Table.single(schemas, rule, OpTrait.CREATION);
  }

  private static Stream<OpSpec> constants() {
    return Stream.of(
            table(
                """
                aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> sized(call, Promotion.ofNumber(call.arg("fill_value")))),
            table(
                """
                aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> sized(call, DType.F32)),
            table(
                """
                aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                """,
                call -> {
                  var type = (TensorType) sized(call, DType.F32).type();
                  return OpResult.unspecified(Layouts.inFormat(type, call.arg("memory_format")));
                }),
            table(
                """
                aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> unwritten(strided(call, DType.F32))),
            table(
                """
                aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> unwritten(permuted(call))),
            table(
                """
                aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call ->
                    OpResult.fresh(call.dtype("dtype").orElse(DType.F32), ImmutableLongArray.of())),
            table(
                """
                aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> matrix(call, call.integer("n"), call.integer("n"))),
            table(
                """
                aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> matrix(call, call.integer("n"), call.integer("m"))))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> likes() {
    return Stream.of(
            table(
                """
                aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                """,
                CreationOps::like),
            table(
                """
                aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                """,
                call -> unwritten(like(call))),
            table(
                """
                aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> sized(call, call.tensor("self").dtype())),
            table(
                """
                aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> unwritten(sized(call, call.tensor("self").dtype()))),
            table(
                """
                aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> unwritten(strided(call, call.tensor("self").dtype()))))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> ranges() {
    return Stream.of(
            table(
                """
                aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> range(call, new Arg.Int(0), call.arg("end"), new Arg.Int(1))),
            table(
                """
                aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> range(call, call.arg("start"), call.arg("end"), new Arg.Int(1))),
            table(
                """
                aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> range(call, call.arg("start"), call.arg("end"), call.arg("step"))),
            table(
                """
                aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                CreationOps::linspace),
            table(
                """
                prims::iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, bool requires_grad) -> Tensor
                """,
                call -> vector(call.dtype("dtype").orElseThrow(), call.integer("length"))),
            table(
                """
                aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                CreationOps::triangle))
        .flatMap(specs -> specs);
  }

  private static OpResult linspace(OpCall call) {
    var dtype = call.dtype("dtype").orElse(DType.F32);
    if (dtype == DType.BOOL) {
      throw new OpTypeException("gives numbers, not booleans");
    }
    for (var param : List.of("start", "end")) {
      var number = call.arg(param).number();
      if (dtype.kind() == DType.Kind.INTEGER
          && number.isPresent()
          && !Double.isFinite(number.get().doubleValue())) {
        throw new OpTypeException(
            "'%s' is %s, which %s does not have".formatted(param, number.get(), dtype.shortName()));
      }
    }
    return vector(dtype, call.integer("steps"));
  }

  private static OpResult unwritten(OpResult result) {
    return OpResult.unspecified(result.type());
  }

  /** {@return a row-major result of the shape {@code size}} */
  static OpResult sized(OpCall call, DType dtype) {
    return OpResult.fresh(call.dtype("dtype").orElse(dtype), Shapes.checked(call.integers("size")));
  }

  /** {@return a result of the layout of {@code self}} */
  static OpResult like(OpCall call) {
    var type = Layouts.inFormat(call.tensor("self"), call.arg("memory_format"));
    return OpResult.fresh(type.withDType(call.dtype("dtype").orElse(type.dtype())));
  }

  /** {@return a result with one dimension} */
  static OpResult vector(DType dtype, long length) {
    if (length < 0) {
      throw new OpTypeException("%s elements are asked for".formatted(length));
    }
    return OpResult.fresh(dtype, ImmutableLongArray.of(length));
  }

  private static OpResult matrix(OpCall call, long rows, long columns) {
    return OpResult.fresh(
        call.dtype("dtype").orElse(DType.F32),
        Shapes.checked(ImmutableLongArray.of(rows, columns)));
  }

  private static OpResult strided(OpCall call, DType dtype) {
    var sizes = Shapes.checked(call.integers("size"));
    var strides = call.integers("stride");
    if (sizes.length() != strides.length()) {
      throw new OpTypeException(
          "size has %s, but stride has %s"
              .formatted(Units.count(sizes.length(), "entry"), strides.length()));
    }
    return OpResult.fresh(
        new TensorType(call.dtype("dtype").orElse(dtype), sizes, strides, MemorySpace.ANY));
  }

  /** {@code physical_layout} lists the dimensions, outermost first. */
  private static OpResult permuted(OpCall call) {
    var sizes = Shapes.checked(call.integers("size"));
    var layout = call.integers("physical_layout");
    int rank = sizes.length();
    if (layout.length() != rank) {
      throw new OpTypeException(
          "size has %s, but physical_layout has %s"
              .formatted(Units.count(rank, "entry"), layout.length()));
    }
    Shapes.mask(layout, rank, "physical_layout");
    var order = new int[rank];
    for (int i = 0; i < rank; i++) {
      order[i] = OpCall.wrapDim(layout.get(rank - 1 - i), rank, "physical_layout");
    }
    return OpResult.fresh(
        new TensorType(
            call.dtype("dtype").orElse(DType.F32),
            sizes,
            Layouts.ordered(sizes, order),
            MemorySpace.ANY));
  }

  private static OpResult range(OpCall call, Arg start, Arg end, Arg step) {
    boolean floats = Stream.of(start, end, step).anyMatch(arg -> Promotion.ofNumber(arg).isFloat());
    var dtype = call.dtype("dtype").orElse(floats ? DType.F32 : DType.I64);
    return Promotion.isIntegral(dtype)
        // Towards zero, as PyTorch converts numbers before it counts.
        ? vector(
            dtype,
            integerSteps(
                number(start).longValue(), number(end).longValue(), number(step).longValue()))
        : vector(
            dtype,
            floatSteps(
                number(start).doubleValue(),
                number(end).doubleValue(),
                number(step).doubleValue()));
  }

  private static long integerSteps(long start, long end, long step) {
    checkRange(start, end, step);
    try {
      return Math.ceilDiv(Math.subtractExact(end, start), step);
    } catch (ArithmeticException _) {
      throw new OpTypeException("the range from %s to %s is too large".formatted(start, end));
    }
  }

  private static long floatSteps(double start, double end, double step) {
    if (!Double.isFinite(start) || !Double.isFinite(end)) {
      throw new OpTypeException("the ends of the range must be finite");
    }
    checkRange(start, end, step);
    double steps = Math.ceil((end - start) / step);
    if (!(steps < Long.MAX_VALUE)) {
      throw new OpTypeException("the range has too many steps");
    }
    return (long) steps;
  }

  private static void checkRange(double start, double end, double step) {
    if (step == 0 || Double.isNaN(step)) {
      throw new OpTypeException("step must not be 0");
    }
    if (step > 0 ? end < start : end > start) {
      throw new OpTypeException(
          "a step of %s never gets from %s to %s".formatted(step, start, end));
    }
  }

  private static Number number(Arg arg) {
    return arg.number()
        .orElseThrow(() -> new OpTypeException("the ends of a range must be plain numbers"));
  }

  /** {@code torch.tril_indices}: the indices on or below a diagonal, or on or above it. */
  private static OpResult triangle(OpCall call) {
    long rows = call.integer("row");
    long columns = call.integer("col");
    long offset = call.integer("offset");
    Shapes.checked(ImmutableLongArray.of(rows, columns));
    boolean lower = call.schema().name().name().startsWith("tril");
    long below = belowDiagonal(rows, columns, lower ? offset : offset - 1);
    long count = lower ? below : Shapes.times(rows, columns) - below;
    return OpResult.fresh(call.dtype("dtype").orElse(DType.I64), ImmutableLongArray.of(2, count));
  }

  /** The number of indices (i, j) with {@code j - i <= offset}. */
  private static long belowDiagonal(long rows, long columns, long offset) {
    if (offset >= columns) {
      return Shapes.times(rows, columns);
    }
    if (offset <= -rows) {
      return 0;
    }
    long first = Math.max(0, -offset);
    long full = Math.clamp(columns - offset, first, rows);
    // Rows first .. full-1 hold offset + i + 1 of them each, the rest all columns.
    long partial = Shapes.times(full - first, 2 * (offset + 1) + first + full - 1) / 2;
    return partial + Shapes.times(rows - full, columns);
  }
}
