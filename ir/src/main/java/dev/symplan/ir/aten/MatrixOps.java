package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Sets;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Matrix products. */
final class MatrixOps {
  /** The element types that are multiplied with scales. */
  private static final ImmutableSet<DType> NARROW =
      Sets.immutableEnumSet(DType.F8E4M3FN, DType.F8E5M2, DType.F8E4M3FNUZ, DType.F8E5M2FNUZ);

  private MatrixOps() {}

  /** The rows or columns that share a scale where blocks are scaled. */
  private static final long SCALED_BLOCK = 128;

  static Stream<OpSpec> all() {
    return Stream.of(
            products(
                    "self",
                    """
                    aten::mm(Tensor self, Tensor mat2) -> Tensor
                    aten::mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor
                    """,
                    call -> OpResult.fresh(product(call, "self", "mat2", 2)))
                .map(spec -> spec.traits(OpTrait.ROWS_APART)),
            products(
                    "self",
                    """
                    aten::bmm(Tensor self, Tensor mat2) -> Tensor
                    aten::bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor
                    """,
                    call -> OpResult.fresh(product(call, "self", "mat2", 3)))
                .map(spec -> spec.traits(OpTrait.ROWS_APART)),
            products(
                    "mat1",
                    """
                    aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
                    aten::addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor
                    """,
                    call -> added(call, product(call, "mat1", "mat2", 2)))
                .map(spec -> spec.traits(OpTrait.ROWS_APART)),
            products(
                "batch1",
                """
                aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
                aten::baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor
                """,
                call -> added(call, product(call, "batch1", "batch2", 3))),
            products(
                    "batch1",
                    """
                    aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
                    """,
                    call -> {
                      var batches = product(call, "batch1", "batch2", 3);
                      return added(call, batches.sizes().subArray(1, 3), batches.dtype());
                    })
                .map(
                    spec ->
                        spec.flops(
                            (call, result) -> {
                              var left = call.tensor("batch1");
                              return 2.0 * result.numel() * left.size(0) * left.size(2);
                            })),
            products(
                "self",
                """
                aten::mv(Tensor self, Tensor vec) -> Tensor
                """,
                call -> OpResult.fresh(vectorProduct(call, "self", "vec"))),
            products(
                "mat",
                """
                aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor
                """,
                call -> added(call, vectorProduct(call, "mat", "vec"))),
            products(
                "self",
                """
                aten::dot(Tensor self, Tensor tensor) -> Tensor
                """,
                call -> dot(call, "tensor")),
            products(
                "self",
                """
                aten::vdot(Tensor self, Tensor other) -> Tensor
                """,
                call -> dot(call, "other")),
            Table.single(
                """
                aten::outer(Tensor self, Tensor vec2) -> Tensor
                """,
                MatrixOps::outer),
            products(
                "self",
                """
                aten::matmul(Tensor self, Tensor other) -> Tensor
                """,
                call -> matmul(call.tensor("self"), call.tensor("other"))),
            products(
                "input",
                """
                aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
                """,
                MatrixOps::linear),
            products(
                "self",
                """
                aten::_int_mm(Tensor self, Tensor mat2) -> Tensor
                """,
                MatrixOps::integers),
            products(
                "self",
                """
                aten::_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor
                """,
                MatrixOps::scaled),
            products(
                "self",
                """
                aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor
                """,
                MatrixOps::grouped))
        .flatMap(specs -> specs);
  }

  /** {@return products, each element of which is a sum over the last dimension of {@code left}} */
  private static Stream<OpSpec> products(
      String left, String schemas, Function<OpCall, OpResult> rule) {
    return Table.single(schemas, rule)
        .map(
            spec ->
                spec.flops(
                    (call, result) -> {
                      var factor = call.tensor(left);
                      return 2.0 * result.numel() * factor.size(factor.rank() - 1);
                    }));
  }

  private static TensorType product(OpCall call, String left, String right, int rank) {
    var a = call.tensor(left);
    var b = call.tensor(right);
    checkRank(left, a, rank);
    checkRank(right, b, rank);
    checkFactors(left, a, right, b);
    if (rank == 3 && a.size(0) != b.size(0)) {
      throw new OpTypeException(
          "batch sizes differ: %s and %s".formatted(a.size(0), b.size(0)),
          "aten::matmul broadcasts batches");
    }
    checkInner(a.size(rank - 1), b.size(rank - 2), a, b);
    var sizes = Shapes.with(a.sizes(), rank - 1, b.size(rank - 1));
    return TensorType.contiguous(productType(call, a.dtype()), sizes);
  }

  /** Products of 16 bits may stay in f32, in which they are summed. */
  private static DType productType(OpCall call, DType dtype) {
    var wanted =
        call.schema().hasParam("out_dtype") ? call.dtype("out_dtype").orElse(dtype) : dtype;
    boolean stays = wanted == DType.F32 && (dtype == DType.F16 || dtype == DType.BF16);
    if (wanted != dtype && !stays) {
      throw new OpTypeException(
          "out_dtype must be %s, like the operands, or f32 for operands of f16 or bf16, not %s"
              .formatted(dtype.shortName(), wanted.shortName()));
    }
    return wanted;
  }

  private static void checkRank(String name, TensorType type, int rank) {
    if (type.rank() != rank) {
      throw new OpTypeException(
          "%s must have %s, but is %s".formatted(name, Units.count(rank, "dimension"), type));
    }
  }

  private static void checkFactors(String left, TensorType a, String right, TensorType b) {
    checkSameType(left, a, right, b);
    if (a.dtype() == DType.BOOL) {
      throw new OpTypeException(
          "works on numbers, not on b8", "convert with prims::convert_element_type");
    }
  }

  private static void checkSameType(String left, TensorType a, String right, TensorType b) {
    if (a.dtype() != b.dtype()) {
      throw new OpTypeException(
          "%s is %s, but %s is %s"
              .formatted(left, a.dtype().shortName(), right, b.dtype().shortName()),
          "convert one with prims::convert_element_type");
    }
  }

  private static void checkInner(long left, long right, TensorType a, TensorType b) {
    if (left != right) {
      throw new OpTypeException(
          "inner sizes differ: %s and %s".formatted(left, right), "%s times %s".formatted(a, b));
    }
  }

  private static OpResult added(OpCall call, TensorType product) {
    return added(call, product.sizes(), product.dtype());
  }

  private static OpResult added(OpCall call, ImmutableLongArray sizes, DType dtype) {
    Shapes.checkBroadcastsTo("self", call.tensor("self").sizes(), sizes);
    if (Promotion.isIntegral(dtype)
        && (call.arg("alpha") instanceof Arg.Float || call.arg("beta") instanceof Arg.Float)) {
      throw new OpTypeException("alpha or beta is a float, but the operands are integers");
    }
    var own = call.tensor("self").dtype();
    boolean likeOperands =
        call.schema().hasParam("mat1") && own == call.tensor("mat1").dtype()
            || call.schema().hasParam("batch1") && own == call.tensor("batch1").dtype();
    if (own != dtype && !likeOperands) {
      throw new OpTypeException(
          "self is %s, but the product is %s"
              .formatted(call.tensor("self").dtype().shortName(), dtype.shortName()),
          "convert one with prims::convert_element_type");
    }
    return OpResult.fresh(dtype, sizes);
  }

  private static TensorType vectorProduct(OpCall call, String matrix, String vector) {
    var a = call.tensor(matrix);
    var x = call.tensor(vector);
    checkRank(matrix, a, 2);
    checkRank(vector, x, 1);
    checkFactors(matrix, a, vector, x);
    checkInner(a.size(1), x.size(0), a, x);
    return TensorType.contiguous(a.dtype(), a.size(0));
  }

  private static OpResult dot(OpCall call, String other) {
    var a = call.tensor("self");
    var b = call.tensor(other);
    checkRank("self", a, 1);
    checkRank(other, b, 1);
    checkFactors("self", a, other, b);
    checkInner(a.size(0), b.size(0), a, b);
    return OpResult.fresh(a.dtype(), ImmutableLongArray.of());
  }

  private static OpResult outer(OpCall call) {
    var a = call.tensor("self");
    var b = call.tensor("vec2");
    checkRank("self", a, 1);
    checkRank("vec2", b, 1);
    return OpResult.fresh(
        Promotion.of(a.dtype(), b.dtype()), ImmutableLongArray.of(a.size(0), b.size(0)));
  }

  /** Vectors count as matrices of one row or column, which the result then lacks. */
  private static OpResult matmul(TensorType a, TensorType b) {
    if (a.rank() == 0 || b.rank() == 0) {
      throw new OpTypeException(
          "tensors without dimensions have no matrix product: %s and %s".formatted(a, b),
          "multiply with aten::mul.Tensor");
    }
    checkFactors("self", a, "other", b);
    var left = a.rank() == 1 ? Shapes.insert(a.sizes(), 0, 1) : a.sizes();
    var right = b.rank() == 1 ? Shapes.insert(b.sizes(), 1, 1) : b.sizes();
    int m = left.length();
    int n = right.length();
    checkInner(left.get(m - 1), right.get(n - 2), a, b);
    var sizes = Shapes.broadcast(left.subArray(0, m - 2), right.subArray(0, n - 2));
    if (a.rank() > 1) {
      sizes = Shapes.insert(sizes, sizes.length(), left.get(m - 2));
    }
    if (b.rank() > 1) {
      sizes = Shapes.insert(sizes, sizes.length(), right.get(n - 1));
    }
    return OpResult.fresh(a.dtype(), sizes);
  }

  private static OpResult linear(OpCall call) {
    var input = call.tensor("input");
    var weight = call.tensor("weight");
    if (weight.rank() < 1 || weight.rank() > 2 || input.rank() < 1) {
      throw new OpTypeException(
          "input %s does not fit weight %s".formatted(input, weight),
          "weight is [out_features, in_features]");
    }
    checkFactors("input", input, "weight", weight);
    int last = input.rank() - 1;
    if (input.size(last) != weight.size(weight.rank() - 1)) {
      throw new OpTypeException(
          "input has %s features, but weight takes %s"
              .formatted(input.size(last), weight.size(weight.rank() - 1)),
          "weight is [out_features, in_features]");
    }
    var sizes =
        weight.rank() == 1
            ? input.sizes().subArray(0, last)
            : Shapes.with(input.sizes(), last, weight.size(0));
    if (call.has("bias")) {
      checkFactors("input", input, "bias", call.tensor("bias"));
      Shapes.checkBroadcastsTo("bias", call.tensor("bias").sizes(), sizes);
    }
    return OpResult.fresh(input.dtype(), sizes);
  }

  private static OpResult integers(OpCall call) {
    if (call.tensor("self").dtype() != DType.I8) {
      throw new OpTypeException("self must be i8, not " + call.tensor("self").dtype().shortName());
    }
    return OpResult.fresh(product(call, "self", "mat2", 2).withDType(DType.I32));
  }

  private static OpResult scaled(OpCall call) {
    var a = call.tensor("self");
    var b = call.tensor("mat2");
    checkRank("self", a, 2);
    checkRank("mat2", b, 2);
    checkNarrow("self", a);
    checkNarrow("mat2", b);
    checkInner(a.size(1), b.size(0), a, b);
    checkScale(call, "scale_a", 0, "self", "row");
    checkScale(call, "scale_b", 1, "mat2", "column");
    var sizes = ImmutableLongArray.of(a.size(0), b.size(1));
    if (call.has("bias")) {
      checkRank("bias", call.tensor("bias"), 1);
      Shapes.checkBroadcastsTo("bias", call.tensor("bias").sizes(), sizes);
    }
    var dtype = call.dtype("out_dtype").orElse(a.dtype());
    if (!dtype.isFloat()) {
      throw new OpTypeException("out_dtype must be a float type, not " + dtype.shortName());
    }
    return OpResult.fresh(dtype, sizes);
  }

  private static void checkNarrow(String name, TensorType type) {
    if (!NARROW.contains(type.dtype())) {
      throw new OpTypeException(
          "%s must be %s, not %s"
              .formatted(
                  name,
                  NARROW.stream().map(DType::shortName).collect(Collectors.joining(" or ")),
                  type.dtype().shortName()),
          "multiply other types with aten::mm");
    }
  }

  /**
   * One number in f32, or one for each row or block, which may be a power of two.
   *
   * @param dim of the rows or columns of {@code factor} that it scales
   */
  private static void checkScale(OpCall call, String name, int dim, String factor, String line) {
    var type = call.tensor(name);
    boolean blocks = type.rank() > 0 && type.dtype() == DType.F8E8M0FNU;
    if (type.dtype() != DType.F32 && !blocks) {
      throw new OpTypeException(
          "%s must be f32, or f8e8m0fnu for blocks, but is %s".formatted(name, type));
    }
    // PyTorch pads the scales of blocks in some layouts.
    long lines = call.tensor(factor).size(dim);
    long blockCount = Math.ceilDiv(lines, SCALED_BLOCK);
    if (!blocks && type.numel() != 1) {
      long own = type.rank() > 2 ? 0 : type.size(Math.min(dim, type.rank() - 1));
      if (own != lines && own != blockCount && own != Math.ceilDiv(blockCount, 4) * 4) {
        throw new OpTypeException(
            "%s is %s, but %s has %s".formatted(name, type, factor, Units.count(lines, line)));
      }
    }
  }

  /**
   * Groups of rows of a matrix, each times its own matrix. {@code offs} says where the groups end:
   * along the rows of a 2-D {@code self}, the columns of a 2-D {@code mat2}, or, when both are 2-D,
   * the inner dimension.
   */
  private static OpResult grouped(OpCall call) {
    var a = call.tensor("self");
    var b = call.tensor("mat2");
    if (a.rank() < 2 || a.rank() > 3 || b.rank() < 2 || b.rank() > 3) {
      throw new OpTypeException(
          "operands must have 2 or 3 dimensions, but are %s and %s".formatted(a, b));
    }
    checkFactors("self", a, "mat2", b);
    checkInner(a.size(a.rank() - 1), b.size(b.rank() - 2), a, b);
    if (call.has("bias")) {
      throw new OpTypeException("bias must be None", "add it with aten::add.Tensor");
    }
    boolean batched = a.rank() == 3 && b.rank() == 3;
    if (batched == call.has("offs")) {
      throw new OpTypeException(
          batched
              ? "offs needs an operand with 2 dimensions"
              : "needs offs, as an operand has 2 dimensions");
    }
    if (batched && a.size(0) != b.size(0)) {
      throw new OpTypeException("batch sizes differ: %s and %s".formatted(a.size(0), b.size(0)));
    }
    if (!batched) {
      checkEnds(call.tensor("offs"), a, b);
    }
    long rows = a.size(a.rank() - 2);
    long columns = b.size(b.rank() - 1);
    boolean rowGroups = a.rank() == 2 && b.rank() == 3;
    boolean columnGroups = a.rank() == 3 && b.rank() == 2;
    var sizes =
        rowGroups || columnGroups
            ? ImmutableLongArray.of(rows, columns)
            : ImmutableLongArray.of(
                batched ? a.size(0) : call.tensor("offs").size(0), rows, columns);
    var type = TensorType.contiguous(call.dtype("out_dtype").orElse(a.dtype()), sizes);
    return OpResult.fresh(type.withStrides(paddedRows(type)));
  }

  private static void checkEnds(TensorType ends, TensorType a, TensorType b) {
    checkRank("offs", ends, 1);
    if (ends.dtype() != DType.I32) {
      throw new OpTypeException("offs must be i32, not " + ends.dtype().shortName());
    }
    for (var operand : new TensorType[] {a, b}) {
      if (operand.rank() == 3 && operand.size(0) != ends.size(0)) {
        throw new OpTypeException(
            "offs ends %s, but there are %s matrices in %s"
                .formatted(Units.count(ends.size(0), "group"), operand.size(0), operand));
      }
    }
  }

  /** The kernels want rows that start at multiples of 16 bytes. */
  private static ImmutableLongArray paddedRows(TensorType type) {
    long unit = 16 / type.dtype().bytes();
    int rank = type.rank();
    long row = Shapes.times(Math.ceilDiv(type.size(rank - 1), unit), unit);
    return rank == 2
        ? ImmutableLongArray.of(row, 1)
        : ImmutableLongArray.of(Shapes.times(row, type.size(1)), row, 1);
  }
}
