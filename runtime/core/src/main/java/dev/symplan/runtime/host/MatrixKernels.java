package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** The family of matrix products: what is added is added before the one rounding. */
final class MatrixKernels {
  private MatrixKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var overload : List.of("", ".dtype")) {
      table.put(
          "aten::mm" + overload,
          call -> MatrixProduct.multiply(call.tensor("self"), call.tensor("mat2"), call.result()));
      table.put(
          "aten::bmm" + overload,
          call -> MatrixProduct.batches(call.tensor("self"), call.tensor("mat2"), call.result()));
      table.put(
          "aten::addmm" + overload,
          call ->
              add(call, product(call, call.result(), call.tensor("mat1"), call.tensor("mat2"))));
      table.put(
          "aten::baddbmm" + overload,
          call ->
              add(
                  call,
                  product(call, call.result(), call.tensor("batch1"), call.tensor("batch2"))));
    }
    table.put("aten::addbmm", MatrixKernels::addBatches);
    table.put("aten::mv", call -> vector(call, "self"));
    table.put("aten::addmv", call -> vector(call, "mat"));
    table.put("aten::dot", call -> dot(call, "tensor"));
    table.put("aten::vdot", call -> dot(call, "other"));
    table.put("aten::outer", MatrixKernels::outer);
    table.put("aten::matmul", MatrixKernels::matmul);
    table.put("aten::linear", MatrixKernels::linear);
    table.put(
        "aten::_int_mm",
        call -> MatrixProduct.multiply(call.tensor("self"), call.tensor("mat2"), call.result()));
    table.put("aten::_scaled_mm", MatrixKernels::scaled);
    table.put("aten::_grouped_mm", MatrixKernels::grouped);
    return table.buildOrThrow();
  }

  /** {@return a product of the shape of {@code result}, not rounded to 16 bits} */
  private static HostTensor product(
      HostCall call, HostTensor result, HostTensor left, HostTensor right) {
    if (call.number("alpha") == 0) {
      return HostTensor.allocate(result.type().contiguous());
    }
    var product = MatrixProduct.wide(result.type());
    if (left.type().rank() == 3) {
      MatrixProduct.batches(left, right, product);
    } else {
      MatrixProduct.multiply(left, right, product);
    }
    return product;
  }

  /**
   * {@code beta · self + alpha · product}. As in BLAS, self does not count where beta is 0, nor the
   * product where alpha is 0, whatever its factors are.
   */
  private static void add(HostCall call, HostTensor multiplied) {
    double beta = call.number("beta");
    double alpha = call.number("alpha");
    var self = call.tensor("self");
    var product = alpha == 0 ? HostTensor.allocate(multiplied.type().contiguous()) : multiplied;
    if (!product.dtype().isFloat()) {
      addLongs(call.result(), product, self, (long) alpha, (long) beta);
    } else if (beta == 0) {
      Pointwise.apply(call.result(), Pointwise.unary(x -> alpha * x), product);
    } else {
      Pointwise.apply(
          call.result(), Pointwise.binary((x, y) -> alpha * x + beta * y), product, self);
    }
  }

  private static void addLongs(
      HostTensor result, HostTensor product, HostTensor self, long alpha, long beta) {
    var sum = Views.flat(HostTensor.allocate(result.type().contiguous()));
    var a = Views.flat(product);
    var b = Views.flat(Views.expand(self, result.type().sizes()));
    for (long i = 0; i < sum.type().numel(); i++) {
      sum.setLong(alpha * a.getLong(i) + (beta == 0 ? 0 : beta * b.getLong(i)), i);
    }
    result.copyFrom(sum.as(result.type().contiguous()));
  }

  private static void addBatches(HostCall call) {
    var left = call.tensor("batch1");
    var right = call.tensor("batch2");
    var batches =
        HostTensor.allocate(
            TensorType.contiguous(
                MatrixProduct.wide(call.result().dtype()),
                left.type().size(0),
                left.type().size(1),
                right.type().size(2)));
    MatrixProduct.batches(left, right, batches);
    var sum =
        HostTensor.allocate(
            TensorType.contiguous(batches.dtype(), left.type().size(1), right.type().size(2)));
    for (long i = 0; i < left.type().size(0); i++) {
      Pointwise.apply(sum, Pointwise.binary(Double::sum), sum, Views.select(batches, 0, i));
    }
    add(call, sum);
  }

  private static void vector(HostCall call, String matrix) {
    var product = MatrixProduct.wide(call.result().type());
    MatrixProduct.multiply(
        call.tensor(matrix), Views.unsqueeze(call.tensor("vec"), 1), Views.unsqueeze(product, 1));
    if (call.hasParam("alpha")) {
      add(call, product);
    } else {
      call.result().copyFrom(product);
    }
  }

  private static void dot(HostCall call, String other) {
    MatrixProduct.multiply(
        Views.unsqueeze(call.tensor("self"), 0),
        Views.unsqueeze(call.tensor(other), 1),
        Views.unsqueeze(Views.unsqueeze(call.result(), 0), 0));
  }

  /** Operands of two types are multiplied in the type that holds both. */
  private static void outer(HostCall call) {
    var dtype = call.result().dtype();
    MatrixProduct.multiply(
        Views.unsqueeze(converted(call.tensor("self"), dtype), 1),
        Views.unsqueeze(converted(call.tensor("vec2"), dtype), 0),
        call.result());
  }

  private static HostTensor converted(HostTensor tensor, DType dtype) {
    return tensor.dtype() == dtype
        ? tensor
        : tensor.copyAs(tensor.type().contiguous().withDType(dtype));
  }

  /** Vectors are matrices of one row or column; batches broadcast. */
  private static void matmul(HostCall call) {
    var left = call.tensor("self");
    var right = call.tensor("other");
    var result = call.result();
    if (right.type().rank() == 1) {
      right = Views.unsqueeze(right, 1);
      result = Views.unsqueeze(result, result.type().rank());
    }
    if (left.type().rank() == 1) {
      left = Views.unsqueeze(left, 0);
      result = Views.unsqueeze(result, result.type().rank() - 1);
    }
    products(left, right, result);
  }

  /** Products of the last two dimensions; the others broadcast to the result's. */
  static void products(HostTensor left, HostTensor right, HostTensor result) {
    int rank = result.type().rank();
    if (rank == 2) {
      MatrixProduct.multiply(left, right, result);
      return;
    }
    var batch = result.type().sizes().subArray(0, rank - 2);
    var a = expandBatch(left, batch);
    var b = expandBatch(right, batch);
    for (long i = 0; i < result.type().size(0); i++) {
      products(Views.select(a, 0, i), Views.select(b, 0, i), Views.select(result, 0, i));
    }
  }

  private static HostTensor expandBatch(HostTensor tensor, ImmutableLongArray batch) {
    var sizes = new ArrayList<Long>(batch.asList());
    int rank = tensor.type().rank();
    sizes.add(tensor.type().size(rank - 2));
    sizes.add(tensor.type().size(rank - 1));
    return Views.expand(tensor, ImmutableLongArray.copyOf(sizes));
  }

  private static void linear(HostCall call) {
    var weight = call.tensor("weight");
    var input = call.tensor("input").contiguous();
    boolean vector = weight.type().rank() == 1;
    var matrix = vector ? Views.unsqueeze(weight, 0) : weight;
    long inner = matrix.type().size(1);
    long rows = inner == 0 ? leading(call.result(), vector) : input.type().numel() / inner;
    var result = call.result();
    var product =
        HostTensor.allocate(
            TensorType.contiguous(MatrixProduct.wide(result.dtype()), rows, matrix.type().size(0)));
    MatrixProduct.multiply(
        input.as(TensorType.contiguous(input.dtype(), rows, inner)),
        Views.transpose(matrix, 0, 1),
        product);
    var shaped = product.as(result.type().contiguous().withDType(product.dtype()));
    call.optionalTensor("bias")
        .ifPresentOrElse(
            bias -> Pointwise.apply(result, Pointwise.binary(Double::sum), shaped, bias),
            () -> result.copyFrom(shaped));
  }

  private static long leading(HostTensor result, boolean vector) {
    var sizes = result.type().sizes();
    return sizes.subArray(0, vector ? sizes.length() : sizes.length() - 1).stream()
        .reduce(1, (a, b) -> a * b);
  }

  /** Scales are one number, or one for each row of self and each column of mat2. */
  private static void scaled(HostCall call) {
    if (call.has("scale_result")) {
      throw new UnsupportedOperationException(
          "the host backend does not compute products with scale_result");
    }
    var left = call.tensor("self");
    var right = call.tensor("mat2");
    var product =
        HostTensor.allocate(
            TensorType.contiguous(DType.F32, left.type().size(0), right.type().size(1)));
    MatrixProduct.multiply(left, right, product);
    Pointwise.apply(
        product,
        Pointwise.ternary((x, a, b) -> x * a * b),
        product,
        scale(call.tensor("scale_a"), 0, product.type()),
        scale(call.tensor("scale_b"), 1, product.type()));
    call.optionalTensor("bias")
        .ifPresentOrElse(
            bias -> Pointwise.apply(call.result(), Pointwise.binary(Double::sum), product, bias),
            () -> call.result().copyFrom(product));
  }

  private static HostTensor scale(HostTensor scale, int dim, TensorType product) {
    var type = scale.type();
    if (type.numel() == 1) {
      return scale.as(TensorType.contiguous(scale.dtype()));
    }
    if (type.rank() != 2 || type.size(1 - dim) != 1 || type.size(dim) != product.size(dim)) {
      throw new UnsupportedOperationException(
          "the host backend scales by tensor or by row, not by " + type);
    }
    return scale;
  }

  /** {@code offs} ends each group's rows of self, columns of mat2, or inner elements. */
  private static void grouped(HostCall call) {
    var left = call.tensor("self");
    var right = call.tensor("mat2");
    var result = call.result();
    Optional<HostTensor> ends = call.optionalTensor("offs");
    if (ends.isEmpty()) {
      MatrixProduct.batches(left, right, result);
      return;
    }
    CreationKernels.fill(result, 0);
    long start = 0;
    for (long group = 0; group < ends.get().type().numel(); group++) {
      long end = ends.get().getLong(group);
      long size = end - start;
      boolean rowGroups = left.type().rank() == 2 && right.type().rank() == 3;
      boolean columnGroups = left.type().rank() == 3 && right.type().rank() == 2;
      long total = rowGroups ? left.type().size(0) : right.type().size(columnGroups ? 1 : 0);
      if (size < 0 || end > total) {
        throw new HostKernelException(
            "offs ends group %s at %s of %s".formatted(group, end, total));
      }
      if (rowGroups) {
        MatrixProduct.multiply(
            Views.narrow(left, 0, start, size),
            Views.select(right, 0, group),
            Views.narrow(result, 0, start, size));
      } else if (columnGroups) {
        MatrixProduct.multiply(
            Views.select(left, 0, group),
            Views.narrow(right, 1, start, size),
            Views.narrow(result, 1, start, size));
      } else {
        MatrixProduct.multiply(
            Views.narrow(left, 1, start, size),
            Views.narrow(right, 0, start, size),
            Views.select(result, 0, group));
      }
      start = end;
    }
  }
}
