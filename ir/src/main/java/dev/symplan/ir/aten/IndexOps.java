package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Stream;

/** Ops that read or write the places that index tensors name. */
final class IndexOps {
  private IndexOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(embeddings(), lists(), alongDim(), scatters(), searches())
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> embeddings() {
    return Stream.of(
            Table.single(
                """
                aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor
                """,
                IndexOps::embedded),
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
                call -> OpResult.fresh(call.tensor("self").dtype(), indexedSizes(call))),
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
                IndexOps::selected),
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
                IndexOps::gathered),
            Table.single(
                """
                aten::take(Tensor self, Tensor index) -> Tensor
                """,
                call -> {
                  checkIndex("index", call.tensor("index"));
                  return OpResult.fresh(call.tensor("self").dtype(), call.tensor("index").sizes());
                }),
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
                OpTrait.UPDATES_SELF))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> scatters() {
    return Stream.of(
            Table.single(
                """
                aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor
                """,
                call -> {
                  var self = call.value("self");
                  return replaced(
                      call,
                      Slices.slice(
                          self,
                          call.dim("dim", self.tensor().rank()),
                          optional(call, "start"),
                          optional(call, "end"),
                          call.integer("step")));
                },
                OpTrait.UPDATES_SELF),
            Table.single(
                """
                aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor
                """,
                call -> {
                  var self = call.value("self");
                  return replaced(
                      call,
                      Slices.select(
                          self, call.dim("dim", self.tensor().rank()), call.integer("index")));
                },
                OpTrait.UPDATES_SELF),
            Table.single(
                """
                aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor
                """,
                call -> replaced(call, ViewOps.diagonal(call, call.value("self"))),
                OpTrait.UPDATES_SELF),
            Table.single(
                """
                aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor
                """,
                IndexOps::stridedScattered,
                OpTrait.UPDATES_SELF),
            Table.single(
                """
                aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor
                """,
                call ->
                    gradient(
                        call,
                        input ->
                            Slices.slice(
                                input,
                                call.dim("dim", input.tensor().rank()),
                                optional(call, "start"),
                                optional(call, "end"),
                                call.integer("step")))),
            Table.single(
                """
                aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor
                """,
                call ->
                    gradient(
                        call,
                        input ->
                            Slices.select(
                                input,
                                call.dim("dim", input.tensor().rank()),
                                call.integer("index")))),
            Table.single(
                """
                aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor
                """,
                IndexOps::maskScattered))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> searches() {
    return Stream.of(
            Table.single(
                """
                aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor
                """,
                IndexOps::bucketed),
            Table.single(
                """
                aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor
                """,
                IndexOps::searched),
            Table.single(
                """
                aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor
                """,
                call -> {
                  long bins = call.integer("bins");
                  if (bins <= 0) {
                    throw new OpTypeException("bins is %d, but must be positive".formatted(bins));
                  }
                  return OpResult.fresh(call.tensor("self").dtype(), ImmutableLongArray.of(bins));
                }))
        .flatMap(specs -> specs);
  }

  private static OpResult copyOf(TensorType type) {
    return OpResult.fresh(Layouts.preserved(type));
  }

  private static Optional<Long> optional(OpCall call, String param) {
    return call.has(param) ? Optional.of(call.integer(param)) : Optional.empty();
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
          "num_classes is %d; the shape must not depend on data".formatted(classes),
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
          "%d indices for a tensor of %d dimensions".formatted(items.size(), self.rank()));
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
   * <p>NumPy's advanced indexing: the shape that the indices broadcast to stands in the place of
   * the indexed dimensions where these are neighbours, else at the front.
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
              "a mask of the shape %s does not fit self %s from dimension %d on"
                  .formatted(mask, self, dim));
        }
      }
      dim += Math.max(1, mask.length());
    }
    if (dim > self.rank()) {
      throw new OpTypeException(
          "the indices are for %d dimensions, but self has %d".formatted(dim, self.rank()));
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
    var self = call.tensor("self");
    var index = call.tensor("index");
    int dim = call.dim("dim", self.rank());
    checkIndex("index", index);
    if (index.numel() > 0) {
      checkWithin(index, "self", self, dim);
    }
    return OpResult.fresh(self.dtype(), index.sizes());
  }

  /** Checks that the index is nowhere larger than {@code within}, but for one dimension. */
  private static void checkWithin(TensorType index, String name, TensorType within, int except) {
    if (Math.max(1, index.rank()) != Math.max(1, within.rank())) {
      throw new OpTypeException(
          "index has %d dimensions, but %s has %d".formatted(index.rank(), name, within.rank()));
    }
    for (int i = 0; i < index.rank(); i++) {
      long size = within.rank() == 0 ? 1 : within.size(i);
      if (i != except && index.size(i) > size) {
        throw new OpTypeException(
            "index has size %d at dimension %d, but %s has only %d"
                .formatted(index.size(i), i, name, size));
      }
    }
  }

  private static OpResult scattered(OpCall call) {
    var self = call.tensor("self");
    var index = call.tensor("index");
    int dim = call.dim("dim", self.rank());
    checkIndex("index", index);
    if (index.numel() > 0) {
      checkWithin(index, "self", self, dim);
      if (call.schema().hasParam("src")) {
        checkWithin(index, "src", call.tensor("src"), -1);
      }
    }
    if (call.schema().hasParam("src")) {
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
    if (!known.contains(call.string("reduce"))) {
      throw new OpTypeException(
          "there is no reduction '%s' here".formatted(call.string("reduce")),
          "reductions: " + String.join(", ", known));
    }
  }

  /** A copy of self in which {@code src} stands in the place of a part. */
  private static OpResult replaced(OpCall call, OpResult part) {
    var src = call.tensor("src");
    var sizes = ((TensorType) part.type()).sizes();
    if (!src.sizes().equals(sizes)) {
      throw new OpTypeException(
          "src has the shape %s, but its place has %s"
              .formatted(Shapes.text(src.sizes()), Shapes.text(sizes)));
    }
    return copyOf(call.tensor("self"));
  }

  /** Zeros of the input's shape, with the gradient in the part that was taken. */
  private static OpResult gradient(OpCall call, Function<Value, OpResult> taken) {
    var grad = call.tensor("grad_output");
    var type = TensorType.contiguous(grad.dtype(), Shapes.checked(call.integers("input_sizes")));
    var part = taken.apply(new Value(0, "input", type, Span.NONE, false));
    var sizes = ((TensorType) part.type()).sizes();
    if (!grad.sizes().equals(sizes)) {
      throw new OpTypeException(
          "grad_output has the shape %s, but its place has %s"
              .formatted(Shapes.text(grad.sizes()), Shapes.text(sizes)));
    }
    return OpResult.fresh(type);
  }

  private static OpResult stridedScattered(OpCall call) {
    var part = ViewOps.strided(call, call.value("self"));
    var result = replaced(call, part);
    var type = (TensorType) part.type();
    long offset = part.view().orElseThrow().offset() * type.dtype().bytes();
    long bytes = ((TensorType) result.type()).storageBytes();
    if (type.numel() > 0 && offset > bytes - type.storageBytes()) {
      throw new OpTypeException(
          "reaches outside the memory of self, which has %d bytes".formatted(bytes),
          "takes %d bytes from byte %d on".formatted(type.storageBytes(), offset));
    }
    return result;
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

  private static OpResult bucketed(OpCall call) {
    var boundaries = call.tensor("boundaries");
    if (boundaries.rank() != 1) {
      throw new OpTypeException("boundaries must have 1 dimension, but is " + boundaries);
    }
    return positions(call);
  }

  private static OpResult searched(OpCall call) {
    var sorted = call.tensor("sorted_sequence");
    var leading = sorted.sizes().subArray(0, Math.max(0, sorted.rank() - 1));
    if (sorted.rank() != 1 && !isForRowsOfSelf(call, leading)) {
      throw new OpTypeException(
          "sorted_sequence must have 1 dimension, or all dimensions of self but the last, not %s"
              .formatted(sorted));
    }
    if (call.has("sorter")
        && !(call.tensor("sorter").sizes().equals(sorted.sizes())
            && call.tensor("sorter").dtype() == DType.I64)) {
      throw new OpTypeException(
          "sorter must be i64%s, like sorted_sequence, not %s"
              .formatted(Shapes.text(sorted.sizes()), call.tensor("sorter")));
    }
    if (call.has("side")) {
      var side = call.string("side");
      if (!side.equals("right") && (!side.equals("left") || call.bool("right"))) {
        throw new OpTypeException("side is '%s', which does not go with right".formatted(side));
      }
    }
    return positions(call);
  }

  private static boolean isForRowsOfSelf(OpCall call, ImmutableLongArray leading) {
    var self = call.tensor("self");
    return self.rank() == leading.length() + 1
        && self.sizes().subArray(0, leading.length()).equals(leading);
  }

  private static OpResult positions(OpCall call) {
    return OpResult.fresh(
        call.bool("out_int32") ? DType.I32 : DType.I64, call.tensor("self").sizes());
  }
}
