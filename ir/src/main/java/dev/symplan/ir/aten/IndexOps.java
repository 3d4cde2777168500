package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** Ops that read or write the elements that index tensors or masks name. */
final class IndexOps {
  private IndexOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(embeddings(), lists(), alongDim()).flatMap(specs -> specs);
  }

  private static Stream<OpSpec> embeddings() {
    return Stream.of(
            Table.single(
                """
                aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor
                """,
                IndexOps::embedded,
                OpTrait.GATHER),
            Table.single(
                """
                aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor
                """,
                IndexOps::embeddingGradient),
            Table.single(
                """
                aten::one_hot(Tensor self, int num_classes=-1) -> Tensor
                """,
                IndexOps::oneHot))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> lists() {
    return Stream.of(
            Table.single(
                """
                aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
                aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
                """,
                call -> OpResult.fresh(call.tensor("self").dtype(), indexedSizes(call)),
                OpTrait.GATHER),
            Table.single(
                """
                aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
                aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
                """,
                call -> {
                  checkPut(call);
                  return copyOf(call.tensor("self"));
                },
                OpTrait.UPDATES_SELF),
            Table.single(
                """
                prims::_unsafe_index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)
                """,
                call -> {
                  checkPut(call);
                  return ViewOps.whole(call.value("self"));
                },
                OpTrait.SIDE_EFFECT))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> alongDim() {
    return Stream.of(
            Table.single(
                """
                aten::index_select(Tensor self, int dim, Tensor index) -> Tensor
                """,
                IndexOps::selected,
                OpTrait.GATHER),
            Table.single(
                """
                aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor
                aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor
                """,
                IndexOps::addedAt),
            Table.single(
                """
                aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
                aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor
                """,
                call -> {
                  var self = call.tensor("self");
                  call.dim("dim", self.rank());
                  checkVector(call.tensor("index"));
                  if (call.arg("value") instanceof Arg.Ref && call.tensor("value").rank() != 0) {
                    throw new OpTypeException(
                        "value must have no dimensions, but is " + call.tensor("value"));
                  }
                  return copyOf(self);
                }),
            Table.single(
                """
                aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor
                """,
                IndexOps::gathered,
                OpTrait.GATHER),
            Table.single(
                """
                aten::take(Tensor self, Tensor index) -> Tensor
                """,
                call -> {
                  checkIndex("index", call.tensor("index"));
                  return OpResult.fresh(call.tensor("self").dtype(), call.tensor("index").sizes());
                },
                OpTrait.GATHER),
            Table.single(
                """
                aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
                aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
                aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor
                aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor
                aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
                aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor
                """,
                IndexOps::scattered,
                OpTrait.UPDATES_SELF),
            Table.single(
                """
                aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor
                """,
                IndexOps::maskScattered))
        .flatMap(specs -> specs);
  }

  private static OpResult copyOf(TensorType type) {
    return OpResult.fresh(Layouts.preserved(type));
  }

  /** Indices are i64 or i32; masks would make the shape depend on data. */
  private static void checkIndex(String name, TensorType type) {
    if (type.dtype() != DType.I64 && type.dtype() != DType.I32) {
      throw new OpTypeException(
          "%s must be i64 or i32, not %s".formatted(name, type.dtype().shortName()));
    }
  }

  private static void checkVector(TensorType index) {
    checkIndex("index", index);
    if (index.rank() > 1) {
      throw new OpTypeException("index must have at most 1 dimension, but is " + index);
    }
  }

  private static void checkSameType(String name, TensorType type, TensorType self) {
    if (type.dtype() != self.dtype()) {
      throw new OpTypeException(
          "%s is %s, but self is %s"
              .formatted(name, type.dtype().shortName(), self.dtype().shortName()),
          "convert one with prims::convert_element_type");
    }
  }

  private static OpResult embedded(OpCall call) {
    var weight = call.tensor("weight");
    var indices = call.tensor("indices");
    if (weight.rank() != 2) {
      throw new OpTypeException("weight must have 2 dimensions, but is " + weight);
    }
    checkIndex("indices", indices);
    return OpResult.fresh(
        weight.dtype(), Shapes.insert(indices.sizes(), indices.rank(), weight.size(1)));
  }

  private static OpResult embeddingGradient(OpCall call) {
    var grad = call.tensor("grad_output");
    var indices = call.tensor("indices");
    checkIndex("indices", indices);
    if (grad.rank() == 0 || !grad.sizes().subArray(0, grad.rank() - 1).equals(indices.sizes())) {
      throw new OpTypeException(
          "grad_output is %s, but must be indices %s with one more dimension"
              .formatted(grad, indices));
    }
    return OpResult.fresh(
        grad.dtype(),
        Shapes.checked(
            ImmutableLongArray.of(call.integer("num_weights"), grad.size(grad.rank() - 1))));
  }

  private static OpResult oneHot(OpCall call) {
    var self = call.tensor("self");
    long classes = call.integer("num_classes");
    if (self.dtype() != DType.I64) {
      throw new OpTypeException("self must be i64, not " + self.dtype().shortName());
    }
    if (classes <= 0) {
      throw new OpTypeException(
          "num_classes is %s; the shape must not depend on data".formatted(classes),
          "give the number of classes");
    }
    return OpResult.fresh(DType.I64, Shapes.insert(self.sizes(), self.rank(), classes));
  }

  /** {@return the index for each dimension, as far as the list goes} */
  private static List<Optional<TensorType>> indices(OpCall call, TensorType self) {
    if (!(call.arg("indices") instanceof Arg.Seq(ImmutableList<Arg> items))) {
      throw new OpTypeException("indices must be a list of tensors and None");
    }
    if (items.size() > self.rank()) {
      throw new OpTypeException(
          "%s for a tensor of %s"
              .formatted(
                  Units.count(items.size(), "index"), Units.count(self.rank(), "dimension")));
    }
    var indices = new ArrayList<Optional<TensorType>>();
    for (Arg item : items) {
      if (item instanceof Arg.Ref(Value value) && value.type() instanceof TensorType type) {
        if (isMask(type)) {
          throw new OpTypeException(
              "'%s' is a mask, and the shape would depend on its data".formatted(value.name()),
              "use aten::where.self, which keeps the shape");
        }
        checkIndex("'" + value.name() + "'", type);
        indices.add(Optional.of(type));
      } else {
        indices.add(Optional.empty());
      }
    }
    return indices;
  }

  /**
   * {@return the shape of {@code self[indices]}}
   *
   * <p>NumPy's advanced indexing: the shape that the indices broadcast to replaces the indexed
   * dimensions where these are neighbours, and is at the front elsewhere.
   */
  static ImmutableLongArray indexedSizes(OpCall call) {
    var self = call.tensor("self");
    var indices = indices(call, self);
    var found = ImmutableLongArray.of();
    var before = ImmutableLongArray.builder();
    var after = ImmutableLongArray.builder();
    boolean adjacent = true;
    int last = -1;
    for (int i = 0; i < self.rank(); i++) {
      var index = i < indices.size() ? indices.get(i) : Optional.<TensorType>empty();
      if (index.isPresent()) {
        found = Shapes.broadcast(found, index.get().sizes());
        adjacent &= last < 0 || last == i - 1;
        last = i;
      } else if (last < 0) {
        before.add(self.size(i));
      } else {
        after.add(self.size(i));
      }
    }
    if (last < 0) {
      return self.sizes();
    }
    var front = before.build();
    return adjacent
        ? Shapes.join(Shapes.join(front, found), after.build())
        : Shapes.join(found, Shapes.join(front, after.build()));
  }

  private static boolean isMask(TensorType type) {
    return type.dtype() == DType.BOOL || type.dtype() == DType.U8;
  }

  private static List<TensorType> masks(OpCall call) {
    return call.arg("indices") instanceof Arg.Seq(ImmutableList<Arg> items)
        ? items.stream()
            .flatMap(item -> item instanceof Arg.Ref(Value value) ? Stream.of(value) : Stream.of())
            .filter(Value::isTensor)
            .map(Value::tensor)
            .filter(IndexOps::isMask)
            .toList()
        : List.of();
  }

  /** A mask stands for as many dimensions of self as it has. */
  private static void checkMasks(OpCall call) {
    var self = call.tensor("self");
    int dim = 0;
    for (Arg item : ((Arg.Seq) call.arg("indices")).items()) {
      var mask =
          item instanceof Arg.Ref(Value value) && value.isTensor() && isMask(value.tensor())
              ? value.tensor().sizes()
              : ImmutableLongArray.of();
      for (int i = 0; i < mask.length(); i++) {
        if (dim + i >= self.rank() || self.size(dim + i) != mask.get(i)) {
          throw new OpTypeException(
              "a mask of the shape %s does not fit self %s from dimension %s on"
                  .formatted(mask, self, dim));
        }
      }
      dim += Math.max(1, mask.length());
    }
    if (dim > self.rank()) {
      throw new OpTypeException(
          "the indices are for %s, but self has %s"
              .formatted(Units.count(dim, "dimension"), self.rank()));
    }
  }

  static void checkPut(OpCall call) {
    checkSameType("values", call.tensor("values"), call.tensor("self"));
    // The number of values that a mask takes depends on its data; the type of the result does not.
    if (masks(call).isEmpty()) {
      Shapes.checkBroadcastsTo("values", call.tensor("values").sizes(), indexedSizes(call));
    } else {
      checkMasks(call);
    }
  }

  private static OpResult selected(OpCall call) {
    var self = call.tensor("self");
    var index = call.tensor("index");
    int dim = call.dim("dim", self.rank());
    checkVector(index);
    return OpResult.fresh(
        self.dtype(),
        self.rank() == 0 ? self.sizes() : Shapes.with(self.sizes(), dim, index.numel()));
  }

  private static OpResult addedAt(OpCall call) {
    var self = call.tensor("self");
    var source = call.tensor("source");
    int dim = call.dim("dim", self.rank());
    checkVector(call.tensor("index"));
    checkSameType("source", source, self);
    long count = call.tensor("index").numel();
    var needed = self.rank() == 0 ? self.sizes() : Shapes.with(self.sizes(), dim, count);
    if (!source.sizes().equals(needed) && !(self.rank() < 2 && source.numel() == count)) {
      throw new OpTypeException(
          "source has the shape %s, but self and index need %s"
              .formatted(Shapes.text(source.sizes()), Shapes.text(needed)));
    }
    return OpResult.fresh(self.dtype(), self.sizes());
  }

  private static OpResult gathered(OpCall call) {
    checkAlong(call);
    return OpResult.fresh(call.tensor("self").dtype(), call.tensor("index").sizes());
  }

  /** Checks an index of elements along one dimension of self. */
  private static void checkAlong(OpCall call) {
    var self = call.tensor("self");
    var index = call.tensor("index");
    int dim = call.dim("dim", self.rank());
    checkIndex("index", index);
    if (index.numel() > 0) {
      checkWithin(index, "self", self, dim);
    }
  }

  /** Checks that the index is nowhere larger than {@code within}, but for one dimension. */
  private static void checkWithin(TensorType index, String name, TensorType within, int except) {
    if (Math.max(1, index.rank()) != Math.max(1, within.rank())) {
      throw new OpTypeException(
          "index has %s, but %s has %s"
              .formatted(Units.count(index.rank(), "dimension"), name, within.rank()));
    }
    // A scalar counts as one element of one dimension.
    for (int i = 0; i < Math.max(1, index.rank()); i++) {
      long size = within.rank() == 0 ? 1 : within.size(i);
      long indices = index.rank() == 0 ? 1 : index.size(i);
      if (i != except && indices > size) {
        throw new OpTypeException(
            "index has size %s at dimension %s, but %s has only %s"
                .formatted(indices, i, name, size));
      }
    }
  }

  private static OpResult scattered(OpCall call) {
    checkAlong(call);
    var self = call.tensor("self");
    if (call.schema().hasParam("src")) {
      if (call.tensor("index").numel() > 0) {
        checkWithin(call.tensor("index"), "src", call.tensor("src"), -1);
      }
      checkSameType("src", call.tensor("src"), self);
    }
    if (call.schema().hasParam("reduce")) {
      checkReduce(call);
    }
    return OpResult.fresh(self.dtype(), self.sizes());
  }

  private static void checkReduce(OpCall call) {
    var known =
        call.schema().hasParam("include_self")
            ? ImmutableList.of("sum", "prod", "mean", "amax", "amin")
            : ImmutableList.of("add", "multiply");
    if (call.string("reduce").startsWith("am")) {
      ElementwiseTypes.Takes.REAL.check(call.tensor("self").dtype());
    }
    if (!known.contains(call.string("reduce"))) {
      throw new OpTypeException(
          "unknown reduction '%s'".formatted(call.string("reduce")),
          "reductions: " + String.join(", ", known));
    }
  }

  private static OpResult maskScattered(OpCall call) {
    var self = call.tensor("self");
    checkSameType("source", call.tensor("source"), self);
    if (call.tensor("mask").dtype() != DType.BOOL) {
      throw new OpTypeException(
          "mask must be bool, not " + call.tensor("mask").dtype().shortName());
    }
    return OpResult.fresh(
        self.dtype(), Shapes.broadcast(call.tensor("mask").sizes(), self.sizes()));
  }
}
