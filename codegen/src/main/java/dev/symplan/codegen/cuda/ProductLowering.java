package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.machine.Alignment;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;

/** Products of matrices, as BLAS has them: without copies where operands have neighbours. */
final class ProductLowering {
  private final int rank;
  private final OpArguments arguments;
  private final ImmutableList.Builder<DeviceStep> steps = ImmutableList.builder();

  private final TensorRef result;

  /**
   * @param result of one product, two-dimensional, or with a dimension of batches as all operands
   *     have it
   */
  ProductLowering(int rank, OpArguments arguments, TensorRef result) {
    this.rank = rank;
    this.arguments = arguments;
    this.result = result;
  }

  static boolean supports(String op) {
    return switch (op) {
      case "aten::mm",
          "aten::mm.dtype",
          "aten::bmm",
          "aten::bmm.dtype",
          "aten::addmm",
          "aten::addmm.dtype",
          "aten::baddbmm",
          "aten::baddbmm.dtype",
          "aten::_int_mm",
          "aten::_scaled_mm",
          "aten::_grouped_mm" ->
          true;
      default -> ShapedProducts.supports(op);
    };
  }

  /**
   * {@return the steps of a rank for a product}
   *
   * @throws UnsupportedOnGpu when BLAS cannot do it
   */
  static ImmutableList<DeviceStep> lower(int rank, OpArguments arguments) {
    if (ShapedProducts.supports(arguments.name())) {
      return new ShapedProducts(rank, arguments).lower();
    }
    var lowering = new ProductLowering(rank, arguments, arguments.result());
    switch (arguments.name()) {
      case "aten::addmm", "aten::addmm.dtype" -> lowering.added("mat1", "mat2");
      case "aten::baddbmm", "aten::baddbmm.dtype" -> lowering.added("batch1", "batch2");
      case "aten::_scaled_mm" -> lowering.scaled();
      case "aten::_grouped_mm" -> lowering.grouped();
      default -> lowering.product(arguments.tensor("self"), arguments.tensor("mat2"));
    }
    return lowering.steps.build();
  }

  ImmutableList<DeviceStep> steps() {
    return steps.build();
  }

  void product(TensorRef left, TensorRef right) {
    if (left.type().size(left.type().rank() - 1) == 0) {
      steps.addAll(PositionOps.fill(rank, arguments, result, 0));
    } else {
      product(left, right, 1, 0, result, Optional.empty());
    }
  }

  /** {@code beta · self + alpha · left · right}. */
  private void added(String left, String right) {
    added(
        arguments.tensor(left),
        arguments.tensor(right),
        arguments.tensor("self"),
        arguments.number("alpha").doubleValue(),
        arguments.number("beta").doubleValue());
  }

  void added(TensorRef left, TensorRef right, TensorRef given, double alpha, double beta) {
    var self = Moves.expand(given, result.type().sizes());
    if (alpha == 0 || left.type().size(result.type().rank() - 1) == 0) {
      // cuBLASLt multiplies by an alpha of 0, which makes NaN of infinite factors.
      if (result.type().numel() > 0) {
        addPlain(left, right, alpha, beta, self);
      }
    } else if (beta == 0) {
      product(left, right, alpha, 0, result, Optional.empty());
    } else if (!isForBlas(result) || !isForBlas(left) || !isForBlas(right)) {
      product(left, right, alpha, beta, self, Optional.empty());
    } else if (isBias(self) && beta == 1) {
      product(left, right, alpha, 0, result, Optional.of(Address.of(rank, self)));
    } else if (isAddend(self)) {
      product(left, right, alpha, beta, self, Optional.empty());
    } else {
      steps.addAll(Moves.copy(rank, arguments, self, result));
      product(left, right, alpha, beta, result, Optional.empty());
    }
  }

  /** Whether it has one number for each row of the column-major product. */
  private boolean isBias(TensorRef self) {
    var type = self.type();
    int dims = type.rank();
    int along = byColumns() ? dims - 2 : dims - 1;
    int across = byColumns() ? dims - 1 : dims - 2;
    return type.dtype() == result.type().dtype()
        // BLAS has no epilogues in f64.
        && type.dtype() != DType.F64
        && type.stride(across) == 0
        && (type.stride(along) == 1 || type.size(along) == 1)
        && (dims == 2 || type.stride(0) == 0)
        && Address.of(rank, self).isVectorAligned();
  }

  /** Whether it lies as the result does, so that it need not be there first. */
  private boolean isAddend(TensorRef self) {
    int first = self.type().rank() - 2;
    return self.type().dtype() == result.type().dtype()
        && (byColumns()
            ? leads(self.type(), first, first + 1)
            : leads(self.type(), first + 1, first));
  }

  /**
   * Whether the result is column-major, rather than row-major. A vector is both: then it is one
   * column of the product, so that a matrix times a vector has one form only.
   */
  private boolean byColumns() {
    var type = result.type();
    int first = type.rank() - 2;
    boolean byColumns = leads(type, first, first + 1);
    boolean byRows = leads(type, first + 1, first);
    if (!byColumns && !byRows) {
      throw arguments.unsupported("%s into %s".formatted(arguments.name(), type));
    }
    return byColumns && !(byRows && type.size(first) == 1);
  }

  /** Whether BLAS knows the type, and rows or columns have their elements side by side. */
  private boolean isForBlas(TensorRef ref) {
    var type = ref.type();
    boolean known =
        switch (type.dtype()) {
          case F32, F64, F16, BF16 -> type.dtype() == result.type().dtype();
          default -> false;
        };
    int first = type.rank() - 2;
    return known && (leads(type, first, first + 1) || leads(type, first + 1, first));
  }

  /** Each element by itself, for what BLAS does not take. */
  private void addPlain(
      TensorRef left, TensorRef right, double alpha, double beta, TensorRef addend) {
    var dtype = result.type().dtype();
    var type = CTypes.computed(dtype);
    steps.add(
        plain(
            left,
            right,
            type,
            (kernel, indices) -> {
              // As in BLAS, nothing times alpha is nothing, whatever the factors are.
              var value =
                  alpha == 0
                      ? "0"
                      : alpha == 1
                          ? "sum"
                          : "%s * sum".formatted(PositionKernel.number(dtype, alpha));
              return beta == 0
                  ? value
                  : "%s + %s * (%s)%s"
                      .formatted(
                          value,
                          PositionKernel.number(dtype, beta),
                          type,
                          kernel.value(addend, indices));
            }));
  }

  /**
   * {@code (self · mat2) * scale_a * scale_b + bias}; scales are of tensors, or of rows and
   * columns.
   */
  private void scaled() {
    if (arguments.optionalTensor("scale_result").isPresent()) {
      throw arguments.unsupported(arguments.name() + " with scale_result");
    }
    var left = arguments.tensor("self");
    var right = arguments.tensor("mat2");
    var bias =
        arguments.optionalTensor("bias").map(given -> Moves.expand(given, result.type().sizes()));
    bias.ifPresent(arguments::checkComputes);
    if (result.type().numel() == 0) {
      return;
    }
    var plain =
        plain(
            left,
            right,
            "float",
            (kernel, indices) ->
                "sum * %s * %s%s"
                    .formatted(
                        kernel.value(scale("scale_a", 0), indices),
                        kernel.value(scale("scale_b", 1), indices),
                        bias.map(b -> " + " + kernel.value(b, indices)).orElse("")));
    steps.add(
        isForTensorCores(left, right) && bias.stream().allMatch(this::isForTensorCores)
            ? scaled(left, right, bias.map(b -> Address.of(rank, b)), plain)
            : plain);
  }

  /** BLAS has the transposed result, which is column-major, of the transposed operands. */
  private DeviceStep.Product scaled(
      TensorRef left, TensorRef right, Optional<Address> bias, DeviceStep otherwise) {
    var onto = lines(result, 0, false);
    return new DeviceStep.Product(
        arguments.op().stream(),
        result.type().size(1),
        result.type().size(0),
        left.type().size(1),
        1,
        0,
        lines(right, 1, true),
        lines(left, 0, false),
        onto,
        bias,
        onto,
        1,
        Optional.of(
            new DeviceStep.Scales(
                Address.of(rank, arguments.tensor("scale_b")),
                Address.of(rank, arguments.tensor("scale_a")),
                !areOfTensors(),
                arguments.flag("use_fast_accum"),
                ImmutableList.of(otherwise))),
        arguments.op().name());
  }

  /** Whether tensor cores multiply such 8-bit floats, stored so, and with so precise sums. */
  private boolean isForTensorCores(TensorRef left, TensorRef right) {
    boolean fromShort =
        List.of(left, right).stream()
                .allMatch(
                    factor ->
                        factor.type().dtype() == DType.F8E4M3FN
                            || factor.type().dtype() == DType.F8E5M2)
            && !(left.type().dtype() == DType.F8E5M2 && right.type().dtype() == DType.F8E5M2);
    boolean precise =
        switch (result.type().dtype()) {
          case BF16, F16 -> true;
          // Their sums have fewer bits than an f32.
          case F32 -> arguments.flag("use_fast_accum");
          default -> false;
        };
    return fromShort
        && precise
        && left.type().size(1) > 0
        && left.type().size(1) % Alignment.VECTOR == 0
        && right.type().size(1) % Alignment.VECTOR == 0
        && areAlignedLines(left, 0)
        && areAlignedLines(right, 1)
        && areAlignedLines(result, 0)
        && (areOfTensors() || isOfLines("scale_a", 0) && isOfLines("scale_b", 1));
  }

  /** Whether a bias has one number for each column, of the result's type. */
  private boolean isForTensorCores(TensorRef bias) {
    var type = bias.type();
    return type.dtype() == result.type().dtype()
        && type.dtype() != DType.F32
        && type.stride(1) == 1
        && (type.stride(0) == 0 || type.size(0) == 1)
        && Address.of(rank, bias).isVectorAligned();
  }

  /**
   * Whether the elements of all rows (0) or columns (1) are side by side, and begin at multiples of
   * 16 bytes.
   */
  private boolean areAlignedLines(TensorRef ref, int dim) {
    var type = ref.type();
    return leads(type, 1 - dim, dim)
        && Address.of(rank, ref).isVectorAligned()
        && (type.size(dim) == 1 || type.stride(dim) * type.dtype().bytes() % Alignment.VECTOR == 0);
  }

  private boolean areOfTensors() {
    return arguments.tensor("scale_a").type().numel() == 1
        && arguments.tensor("scale_b").type().numel() == 1;
  }

  /** Whether there is a factor for each row (0) or column (1), side by side. */
  private boolean isOfLines(String param, int dim) {
    var scale = arguments.tensor(param);
    var type = scale.type();
    long lines = result.type().size(dim);
    return type.rank() == 2
        && type.numel() == lines
        && type.size(dim) == lines
        && (lines == 1 || type.stride(dim) == 1)
        && Address.of(rank, scale).isVectorAligned();
  }

  /** A matrix whose rows (0) or columns (1) BLAS takes for columns. */
  private Matrix lines(TensorRef ref, int dim, boolean transposed) {
    var type = ref.type();
    return new Matrix(
        Address.of(rank, ref),
        type.dtype(),
        transposed,
        type.size(dim) == 1 ? type.size(1 - dim) : type.stride(dim),
        0);
  }

  /** Without ends, each matrix of one operand is multiplied by one of the other. */
  private void grouped() {
    if (!arguments.has("offs")) {
      product(arguments.tensor("self"), arguments.tensor("mat2"));
    } else if (result.type().numel() > 0) {
      steps.add(GroupedProduct.of(arguments).step(rank, arguments));
    }
  }

  /** {@return the factor of each element of the result} */
  private TensorRef scale(String param, int dim) {
    var scale = arguments.tensor(param);
    var type = scale.type();
    var sizes = result.type().sizes();
    if (type.numel() != 1
        && (type.rank() != 2 || type.size(1 - dim) != 1 || type.size(dim) != sizes.get(dim))) {
      throw arguments.unsupported("%s with a %s of %s".formatted(arguments.name(), param, type));
    }
    return Moves.expand(scale, sizes);
  }

  /** Each element by itself: what {@code element} makes of the {@code sum} of its products. */
  private DeviceStep plain(
      TensorRef left,
      TensorRef right,
      String type,
      BiFunction<PositionKernel, List<String>, String> element) {
    arguments.checkComputes(result);
    arguments.checkComputes(left);
    arguments.checkComputes(right);
    var kernel = new PositionKernel(rank, result.type().sizes());
    var indices = kernel.indices();
    var batch = indices.subList(0, indices.size() - 2);
    var row = ImmutableList.<String>builder().addAll(batch).add(indices.get(batch.size()), "k");
    var column = ImmutableList.<String>builder().addAll(batch).add("k", indices.getLast());
    kernel.line("%s sum = 0;".formatted(type));
    kernel.line(
        "for (long long k = 0; k < %s; k++) {".formatted(left.type().size(batch.size() + 1)));
    kernel.line(
        "  sum += (%s)%s * (%s)%s;"
            .formatted(
                type, kernel.value(left, row.build()), type, kernel.value(right, column.build())));
    kernel.line("}");
    kernel.set(result, indices, element.apply(kernel, indices));
    return kernel.build(arguments.op().stream(), arguments.op().name());
  }

  private void product(
      TensorRef left,
      TensorRef right,
      double alpha,
      double beta,
      TensorRef addend,
      Optional<Address> bias) {
    if (result.type().numel() == 0) {
      return;
    }
    if (!isForBlas(left) || !isForBlas(right) || !isForBlas(result)) {
      addPlain(left, right, alpha, beta, addend);
      return;
    }
    int first = result.type().rank() - 2;
    boolean byColumns = byColumns();
    // Row by row, the transposed result is column-major: it is that of the transposed operands.
    var product =
        new DeviceStep.Product(
            arguments.op().stream(),
            result.type().size(byColumns ? first : first + 1),
            result.type().size(byColumns ? first + 1 : first),
            left.type().size(first + 1),
            alpha,
            beta,
            matrix(byColumns ? left : right, !byColumns),
            matrix(byColumns ? right : left, !byColumns),
            matrix(addend, !byColumns),
            bias,
            matrix(result, !byColumns),
            first == 0 ? 1 : result.type().size(0),
            Optional.empty(),
            arguments.op().name());
    steps.add(product);
  }

  /** Whether elements along {@code near} are neighbours, and {@code far} is at least a column. */
  private static boolean leads(TensorType type, int near, int far) {
    return (type.size(near) == 1 || type.stride(near) == 1)
        && (type.size(far) == 1 || type.stride(far) >= type.size(near));
  }

  private Matrix matrix(TensorRef ref, boolean flipped) {
    var type = ref.type();
    int row = type.rank() - 2 + (flipped ? 1 : 0);
    int column = type.rank() - 1 - (flipped ? 1 : 0);
    boolean straight = leads(type, row, column);
    if (!straight && !leads(type, column, row)) {
      throw arguments.unsupported(
          "%s of %s, whose rows are separated,".formatted(arguments.name(), type));
    }
    int near = straight ? row : column;
    int far = straight ? column : row;
    long leading = type.size(far) == 1 ? Math.max(1, type.size(near)) : type.stride(far);
    return new Matrix(
        Address.of(rank, ref),
        type.dtype(),
        !straight,
        leading,
        type.rank() == 3 ? type.stride(0) : 0);
  }
}
