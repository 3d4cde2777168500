package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/** Ops that reduce dimensions, scan along one or sort it. */
final class ReductionOps {
  private static final UnaryOperator<DType> SAME = d -> d;
  private static final UnaryOperator<DType> INDEX = d -> DType.I64;

  /** {@code any} and {@code all} keep PyTorch's old bool type. */
  private static final UnaryOperator<DType> TRUTH = d -> d == DType.U8 ? d : DType.BOOL;

  /** The result along a dimension without elements. */
  private enum Empty {
    /** The reduction has a neutral element. */
    FINE,
    ERROR
  }

  private ReductionOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(sums(), extremes(), statistics(), scans(), orders())
        .flatMap(specs -> specs)
        .map(spec -> spec.traits(OpTrait.ROWWISE));
  }

  private static Stream<OpSpec> sums() {
    return Stream.of(
            Table.ops(
                """
                aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
                aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
                aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor
                aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
                """,
                reduce(Promotion::summing, Empty.FINE)),
            Table.ops(
                """
                aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
                """,
                call -> {
                  var _ = realOnly(call.tensor("self").dtype());
                  return reduce(dtype -> Promotion.summing(realOnly(dtype)), Empty.FINE)
                      .infer(call);
                }),
            Table.ops(
                """
                aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor
                aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
                """,
                reduce(ReductionOps::floatOnly, Empty.FINE)),
            Table.ops(
                """
                aten::any(Tensor self) -> Tensor
                aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
                aten::all(Tensor self) -> Tensor
                aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
                """,
                reduce(TRUTH, Empty.FINE)),
            Table.single(
                """
                aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
                aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
                """,
                ReductionOps::truthOfDims),
            Table.ops(
                """
                aten::count_nonzero(Tensor self, int? dim=None) -> Tensor
                aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor
                """,
                reduce(INDEX, Empty.FINE)),
            Table.ops(
                """
                aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor
                """,
                reduce(Promotion::floating, Empty.FINE)),
            Table.ops(
                """
                aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
                aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor
                aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor
                aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor
                """,
                call -> {
                  // Norms are real, and dtype is what the input is converted to.
                  if (call.schema().hasParam("dtype") && call.has("dtype")) {
                    var _ = realOnly(call.tensor("self").dtype());
                    var _ = realOnly(call.dtype("dtype").orElseThrow());
                  }
                  return reduce(d -> floatOnly(d).real(), Empty.FINE).infer(call);
                }))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> extremes() {
    return Stream.of(
            Table.ops(
                """
                aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
                aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
                aten::max(Tensor self) -> Tensor
                aten::min(Tensor self) -> Tensor
                """,
                reduce(ReductionOps::realOnly, Empty.ERROR)),
            Table.ops(
                """
                aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
                aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
                """,
                reduce(ReductionOps::indexOfReal, Empty.ERROR)),
            Table.ops(
                """
                aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
                aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
                aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
                """,
                reduceTwice(ReductionOps::realOnly, INDEX, Empty.ERROR)),
            Table.ops(
                """
                aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)
                """,
                reduceTwice(ReductionOps::realOnly, SAME, Empty.ERROR)),
            Table.ops(
                """
                prims::prepare_softmax_online(Tensor a, int dim) -> (Tensor, Tensor)
                """,
                call -> {
                  var a = call.tensor("a");
                  var dims = ImmutableLongArray.of(call.integer("dim"));
                  var gone = Shapes.mask(dims, a.rank(), "dim");
                  var result =
                      OpResult.fresh(
                          floatOnly(realOnly(a.dtype())), Shapes.reduce(a.sizes(), gone, true));
                  return List.of(result, result);
                }))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> statistics() {
    return Stream.of(
            Table.ops(
                """
                aten::var(Tensor self, bool unbiased=True) -> Tensor
                aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor
                aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
                aten::std(Tensor self, bool unbiased=True) -> Tensor
                aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor
                aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
                """,
                reduce(d -> floatOnly(d).real(), Empty.FINE)),
            Table.ops(
                """
                aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)
                aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)
                aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)
                aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)
                aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)
                aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)
                """,
                reduceTwice(d -> floatOnly(d).real(), ReductionOps::floatOnly, Empty.FINE)))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> scans() {
    return Stream.of(
            Table.single(
                """
                aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
                aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
                """,
                call -> scanned(call, resultType(call, Promotion::summing))),
            Table.single(
                """
                aten::logcumsumexp(Tensor self, int dim) -> Tensor
                """,
                call -> scanned(call, Promotion.floating(call.tensor("self").dtype()))),
            Table.ops(
                """
                aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)
                aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)
                """,
                call ->
                    List.of(
                        scanned(call, realOnly(call.tensor("self").dtype())),
                        scanned(call, DType.I64))))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> orders() {
    return Stream.of(
            Table.ops(
                """
                aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)
                aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)
                """,
                call ->
                    List.of(sorted(call, call.tensor("self").dtype()), sorted(call, DType.I64))),
            Table.single(
                """
                aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor
                aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor
                """,
                call -> sorted(call, DType.I64)),
            Table.ops(
                """
                aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)
                """,
                ReductionOps::top))
        .flatMap(specs -> specs);
  }

  private static DType floatOnly(DType dtype) {
    if (Promotion.isIntegral(dtype)) {
      throw new OpTypeException(
          "works on floats, not on " + dtype.shortName(),
          "give dtype=torch.float32 or convert with prims::convert_element_type");
    }
    return dtype;
  }

  /** Complex numbers have no order. */
  private static DType realOnly(DType dtype) {
    ElementwiseTypes.Takes.REAL.check(dtype);
    return dtype;
  }

  private static DType indexOfReal(DType dtype) {
    return INDEX.apply(realOnly(dtype));
  }

  private static InferRule reduce(UnaryOperator<DType> dtype, Empty empty) {
    return InferRule.single(
        call -> OpResult.fresh(resultType(call, dtype), reducedSizes(call, empty)));
  }

  private static InferRule reduceTwice(
      UnaryOperator<DType> first, UnaryOperator<DType> second, Empty empty) {
    return call -> {
      var sizes = reducedSizes(call, empty);
      return List.of(
          OpResult.fresh(resultType(call, first), sizes),
          OpResult.fresh(resultType(call, second), sizes));
    };
  }

  /** The argument {@code dtype} is the type that the input is converted to first. */
  private static DType resultType(OpCall call, UnaryOperator<DType> dtype) {
    var given = call.schema().hasParam("dtype") ? call.dtype("dtype") : Optional.<DType>empty();
    if (given.isPresent()) {
      if (given.get() == DType.BOOL) {
        throw new OpTypeException(
            "dtype is bool, which adds up nothing", "use aten::any or aten::all");
      }
      // The op refuses the same types when the caller asks for them.
      var _ = dtype.apply(given.get());
      return given.get();
    }
    return dtype.apply(call.tensor("self").dtype());
  }

  private static ImmutableLongArray reducedSizes(OpCall call, Empty empty) {
    var self = call.tensor("self");
    boolean keepdim = call.schema().hasParam("keepdim") && call.bool("keepdim");
    var gone = reducedDims(call, self.rank());
    for (int i = 0; i < self.rank(); i++) {
      if (empty == Empty.ERROR && gone[i] && self.size(i) == 0) {
        throw new OpTypeException(
            "dimension %s of %s has no elements to choose from".formatted(i, self));
      }
    }
    return Shapes.reduce(self.sizes(), gone, keepdim);
  }

  /** No dimension named means all of them. */
  private static boolean[] reducedDims(OpCall call, int rank) {
    if (call.schema().hasParam("dim") && call.has("dim")) {
      var dims = call.integers("dim");
      if (!dims.isEmpty()) {
        return Shapes.mask(dims, rank, "dim");
      }
    }
    var all = new boolean[Math.max(1, rank)];
    Arrays.fill(all, true);
    return all;
  }

  /** Here, but nowhere else, an empty list of dimensions reduces none. */
  private static OpResult truthOfDims(OpCall call) {
    var self = call.tensor("self");
    if (call.has("dim") && call.integers("dim").isEmpty()) {
      return OpResult.fresh(TRUTH.apply(self.dtype()), self.sizes());
    }
    return OpResult.fresh(TRUTH.apply(self.dtype()), reducedSizes(call, Empty.FINE));
  }

  private static OpResult scanned(OpCall call, DType dtype) {
    var self = call.tensor("self");
    call.dim("dim", self.rank());
    return OpResult.fresh(dtype, self.sizes());
  }

  private static OpResult sorted(OpCall call, DType dtype) {
    var self = call.tensor("self");
    var _ = realOnly(self.dtype());
    call.dim("dim", self.rank());
    return OpResult.fresh(Layouts.preserved(self).withDType(dtype));
  }

  private static List<OpResult> top(OpCall call) {
    var self = call.tensor("self");
    var _ = realOnly(self.dtype());
    int dim = call.dim("dim", self.rank());
    long k = call.integer("k");
    long size = self.rank() == 0 ? 1 : self.size(dim);
    if (k < 0 || k > size) {
      throw new OpTypeException(
          "k is %s, but dimension %s has %s".formatted(k, dim, Units.count(size, "element")));
    }
    var sizes = self.rank() == 0 ? self.sizes() : Shapes.with(self.sizes(), dim, k);
    return List.of(OpResult.fresh(self.dtype(), sizes), OpResult.fresh(DType.I64, sizes));
  }
}
