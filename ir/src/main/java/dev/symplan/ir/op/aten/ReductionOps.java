package dev.symplan.ir.op.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.DType.Kind;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/** Ops that reduce dimensions. */
final class ReductionOps {
  private static final ImmutableLongArray ALL = ImmutableLongArray.of();

  private ReductionOps() {}

  static Stream<OpSpec> all() {
    UnaryOperator<DType> sums = d -> d.kind().compareTo(Kind.FLOAT) < 0 ? DType.I64 : d;
    UnaryOperator<DType> same = d -> d;
    return Stream.of(
        whole("aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", sums),
        whole("aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", Types::floating),
        whole("aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", sums),
        dims(
            "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType?"
                + " dtype=None) -> Tensor",
            sums),
        dims(
            "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType?"
                + " dtype=None) -> Tensor",
            Types::floating),
        dims("aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", same),
        dims("aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", same),
        whole("aten::max(Tensor self) -> Tensor", same),
        whole("aten::min(Tensor self) -> Tensor", same),
        whole("aten::any(Tensor self) -> Tensor", d -> DType.BOOL),
        whole("aten::all(Tensor self) -> Tensor", d -> DType.BOOL),
        dims("aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", d -> DType.BOOL),
        dims("aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", d -> DType.BOOL),
        withIndices(
            "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor"
                + " indices)"),
        withIndices(
            "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor"
                + " indices)"),
        OpSpec.of("aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor")
            .rule(call -> List.of(reduced(call, d -> DType.I64))),
        OpSpec.of("aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor")
            .rule(call -> List.of(reduced(call, d -> DType.I64))),
        OpSpec.of(
                "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar?"
                    + " correction=None, bool keepdim=False) -> (Tensor, Tensor)")
            .rule(call -> List.of(reduced(call, same), reduced(call, same))),
        OpSpec.of(
                "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None,"
                    + " bool keepdim=False) -> Tensor")
            .rule(call -> List.of(reduced(call, same))),
        OpSpec.of("aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
            .rule(
                call -> {
                  call.dim("dim", call.tensor("self").rank());
                  return List.of(
                      OpResult.fresh(resultType(call, sums), call.tensor("self").sizes()));
                }),
        OpSpec.of("prims::prepare_softmax_online(Tensor x, int dim) -> (Tensor, Tensor)")
            .rule(
                call -> {
                  var x = call.tensor("x");
                  var dim = ImmutableLongArray.of(call.dim("dim", x.rank()));
                  var result = OpResult.fresh(x.dtype(), sizes(x, dim, true));
                  return List.of(result, result);
                }));
  }

  private static OpSpec whole(String schema, UnaryOperator<DType> dtype) {
    return OpSpec.of(schema)
        .rule(call -> List.of(OpResult.fresh(resultType(call, dtype), ImmutableLongArray.of())));
  }

  private static OpSpec dims(String schema, UnaryOperator<DType> dtype) {
    return OpSpec.of(schema).rule(call -> List.of(reduced(call, dtype)));
  }

  private static OpSpec withIndices(String schema) {
    return OpSpec.of(schema)
        .rule(call -> List.of(reduced(call, d -> d), reduced(call, d -> DType.I64)));
  }

  private static DType resultType(OpCall call, UnaryOperator<DType> dtype) {
    var own = dtype.apply(call.tensor("self").dtype());
    return call.schema().hasParam("dtype") ? call.dtype("dtype").orElse(own) : own;
  }

  private static OpResult reduced(OpCall call, UnaryOperator<DType> dtype) {
    var self = call.tensor("self");
    var dims = call.has("dim") ? call.integers("dim") : ALL;
    return OpResult.fresh(resultType(call, dtype), sizes(self, dims, call.bool("keepdim")));
  }

  /** The shape left when {@code dims} are reduced; none named means all. */
  private static ImmutableLongArray sizes(
      TensorType self, ImmutableLongArray dims, boolean keepdim) {
    var gone = new boolean[Math.max(1, self.rank())];
    for (long dim : dims.asList()) {
      gone[OpCall.wrapDim(dim, self.rank(), "dim")] = true;
    }
    var sizes = new ArrayList<Long>();
    for (int i = 0; i < self.rank(); i++) {
      if (!gone[i] && !dims.isEmpty()) {
        sizes.add(self.size(i));
      } else if (keepdim) {
        sizes.add(1L);
      }
    }
    return ImmutableLongArray.copyOf(sizes);
  }
}
