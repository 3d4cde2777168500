package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Ops whose result is an argument's storage in another shape or order, or a part of it. */
final class ViewOps {
  private ViewOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            whole(), shapes(), PermuteOps.all(), parts(), ReinterpretOps.all(), maybeCopies())
        .flatMap(specs -> specs);
  }

  /** {@return the rule of an op with one result, a view of {@code self}} */
  static InferRule of(BiFunction<OpCall, Value, OpResult> rule) {
    return InferRule.single(call -> rule.apply(call, call.value("self")));
  }

  /** {@return the value itself} */
  static OpResult whole(Value value) {
    return OpResult.view(value, value.tensor().sizes(), value.tensor().strides(), 0);
  }

  private static Stream<OpSpec> whole() {
    return Stream.of(
            Table.ops(
                """
                aten::alias(Tensor(a) self) -> Tensor(a)
                aten::detach(Tensor(a) self) -> Tensor(a)
                aten::lift_fresh(Tensor(a) self) -> Tensor(a)
                aten::positive(Tensor(a) self) -> Tensor(a)
                """,
                of((call, self) -> whole(self))),
            Table.single(
                """
                prims::view_of(Tensor(a) a) -> Tensor(a)
                """,
                call -> whole(call.value("a"))))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> shapes() {
    return Stream.of(
            Table.ops(
                """
                aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)
                aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor
                """,
                of((call, self) -> viewed(self, call.integers("size")))),
            Table.ops(
                """
                aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)
                """,
                of((call, self) -> viewed(self, call.tensor("other").sizes()))),
            Table.ops(
                """
                aten::_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)
                """,
                of(
                    (call, self) ->
                        OpResult.view(self, call.integers("size"), call.integers("stride"), 0))),
            Table.ops(
                """
                aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)
                """,
                of((call, self) -> reshaped(self, call.integers("shape")))),
            Table.ops(
                """
                aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)
                """,
                of((call, self) -> reshaped(self, call.tensor("other").sizes()))),
            Table.ops(
                """
                aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)
                """,
                of(ViewOps::flattened)),
            Table.ops(
                """
                aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)
                """,
                of(ViewOps::unflattened)),
            Table.ops(
                """
                aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
                aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)
                """,
                of((call, self) -> expanded(self, call.integers("size")))),
            Table.ops(
                """
                aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)
                """,
                of((call, self) -> expanded(self, call.tensor("other").sizes()))),
            Table.ops(
                """
                aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
                """,
                of(ViewOps::unsqueezed)),
            Table.ops(
                """
                aten::squeeze(Tensor(a) self) -> Tensor(a)
                aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)
                aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)
                """,
                of(ViewOps::squeezed)))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> parts() {
    return Stream.of(
            Table.ops(
                """
                aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)
                """,
                of(ViewOps::strided)),
            Table.ops(
                """
                aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)
                """,
                of(ViewOps::sliced)),
            Table.ops(
                """
                aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)
                """,
                of(ViewOps::narrowed)),
            Table.ops(
                """
                aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
                """,
                of(
                    (call, self) ->
                        Slices.select(
                            self, call.dim("dim", self.tensor().rank()), call.integer("index")))),
            Table.ops(
                """
                aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)
                """,
                of(ViewOps::diagonal)),
            Table.ops(
                """
                aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)
                """,
                of(ViewOps::windows)))
        .flatMap(specs -> specs);
  }

  /** Views for which nothing must change. */
  private static Stream<OpSpec> maybeCopies() {
    return Stream.of(
            Table.ops(
                """
                aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)
                """,
                of(
                    (call, self) -> {
                      var wanted = Layouts.inFormat(self.tensor(), call.arg("memory_format"));
                      boolean there =
                          call.arg("memory_format").equals(new Arg.Symbol("contiguous_format"))
                              ? self.tensor().isContiguous()
                              : self.tensor().strides().equals(wanted.strides());
                      return there ? whole(self) : OpResult.fresh(wanted);
                    })),
            Table.ops(
                """
                aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
                aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
                aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
                """,
                of(
                    (call, self) ->
                        converted(
                            call,
                            self,
                            self.tensor()
                                .withDType(call.dtype("dtype").orElse(self.tensor().dtype()))))),
            Table.ops(
                """
                aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
                """,
                of(
                    (call, self) ->
                        converted(
                            call, self, self.tensor().withDType(call.tensor("other").dtype())))),
            Table.ops(
                """
                aten::type_as(Tensor self, Tensor other) -> Tensor
                """,
                of(
                    (call, self) -> {
                      var dtype = call.tensor("other").dtype();
                      return dtype == self.tensor().dtype()
                          ? whole(self)
                          : OpResult.fresh(Layouts.preserved(self.tensor()).withDType(dtype));
                    })),
            Table.single(
                """
                prims::inductor_force_stride_order(Tensor input, SymInt[] stride) -> Tensor
                """,
                ViewOps::restrided))
        .flatMap(specs -> specs);
  }

  private static OpResult viewed(Value self, ImmutableLongArray size) {
    var type = self.tensor();
    var sizes = Shapes.infer(type.numel(), size);
    return Layouts.viewStrides(type, sizes)
        .map(strides -> OpResult.view(self, sizes, strides, 0))
        .orElseThrow(
            () ->
                new OpTypeException(
                    "%s cannot be viewed as %s without a copy".formatted(type, Shapes.text(sizes)),
                    "use aten::reshape, which copies if necessary"));
  }

  private static OpResult reshaped(Value self, ImmutableLongArray shape) {
    var type = self.tensor();
    var sizes = Shapes.infer(type.numel(), shape);
    return Layouts.viewStrides(type, sizes)
        .map(strides -> OpResult.view(self, sizes, strides, 0))
        .orElseGet(() -> OpResult.fresh(type.dtype(), sizes));
  }

  private static OpResult flattened(OpCall call, Value self) {
    var sizes = self.tensor().sizes();
    int first = call.dim("start_dim", sizes.length());
    int last = call.dim("end_dim", sizes.length());
    if (first > last) {
      throw new OpTypeException("start_dim %s is after end_dim %s".formatted(first, last));
    }
    if (sizes.isEmpty()) {
      return reshaped(self, ImmutableLongArray.of(1));
    }
    if (first == last) {
      return whole(self);
    }
    long joined = 1;
    for (int i = first; i <= last; i++) {
      joined *= sizes.get(i);
    }
    return reshaped(
        self,
        Shapes.join(
            Shapes.insert(sizes.subArray(0, first), first, joined),
            sizes.subArray(last + 1, sizes.length())));
  }

  private static OpResult unflattened(OpCall call, Value self) {
    var type = self.tensor();
    if (type.rank() == 0) {
      throw new OpTypeException("a tensor without dimensions has none to unflatten");
    }
    int dim = call.dim("dim", type.rank());
    var inner = Shapes.infer(type.size(dim), call.integers("sizes"));
    return viewed(
        self,
        Shapes.join(
            Shapes.join(type.sizes().subArray(0, dim), inner),
            type.sizes().subArray(dim + 1, type.rank())));
  }

  private static OpResult expanded(Value self, ImmutableLongArray wanted) {
    var type = self.tensor();
    int added = wanted.length() - type.rank();
    if (added < 0) {
      throw new OpTypeException(
          "%s has more dimensions than %s".formatted(type, Shapes.text(wanted)));
    }
    var sizes = new long[wanted.length()];
    var strides = new long[wanted.length()];
    for (int i = sizes.length - 1; i >= 0; i--) {
      long old = i < added ? 1 : type.size(i - added);
      long size = wanted.get(i) == -1 && i >= added ? old : wanted.get(i);
      if (size < 0 || (old != 1 && old != size)) {
        throw new OpTypeException(
            "%s does not expand to %s: dimension %s is %s"
                .formatted(type, Shapes.text(wanted), i, old),
            "only dimensions of size 1 expand; -1 keeps a size");
      }
      sizes[i] = size;
      if (old != size || type.rank() == 0) {
        strides[i] = 0;
      } else {
        strides[i] =
            i < added ? Shapes.times(sizes[i + 1], strides[i + 1]) : type.stride(i - added);
      }
    }
    return OpResult.view(
        self, ImmutableLongArray.copyOf(sizes), ImmutableLongArray.copyOf(strides), 0);
  }

  private static OpResult unsqueezed(OpCall call, Value self) {
    var type = self.tensor();
    int dim = OpCall.wrapDim(call.integer("dim"), type.rank() + 1, "dim");
    long stride = dim < type.rank() ? Shapes.times(type.size(dim), type.stride(dim)) : 1;
    return OpResult.view(
        self, Shapes.insert(type.sizes(), dim, 1), Shapes.insert(type.strides(), dim, stride), 0);
  }

  private static OpResult squeezed(OpCall call, Value self) {
    var type = self.tensor();
    boolean named = call.schema().hasParam("dim");
    var chosen = named ? Shapes.mask(call.integers("dim"), type.rank(), "dim") : new boolean[0];
    var order =
        IntStream.range(0, type.rank())
            .filter(i -> type.size(i) != 1 || (named && !chosen[i]))
            .toArray();
    return PermuteOps.ordered(self, order);
  }

  /** A given offset counts from the start of the storage, wherever in it self begins. */
  static OpResult strided(OpCall call, Value self) {
    var sizes = Shapes.checked(call.integers("size"));
    var strides = call.integers("stride");
    long offset = call.has("storage_offset") ? call.integer("storage_offset") : 0;
    if (sizes.length() != strides.length()) {
      throw new OpTypeException(
          "size has %s, but stride has %s"
              .formatted(Units.count(sizes.length(), "entry"), strides.length()));
    }
    if (strides.stream().anyMatch(stride -> stride < 0)) {
      throw new OpTypeException(
          "one of the strides %s is negative".formatted(Shapes.text(strides)));
    }
    if (offset < 0) {
      throw new OpTypeException("storage_offset is %s, but must not be negative".formatted(offset));
    }
    var type = new TensorType(self.tensor().dtype(), sizes, strides, MemorySpace.ANY);
    return new OpResult(
        type, Optional.of(new OpResult.View(self, offset, call.has("storage_offset"))), false);
  }

  private static OpResult sliced(OpCall call, Value self) {
    var type = self.tensor();
    return Slices.slice(
        self,
        call.dim("dim", type.rank()),
        optional(call, "start"),
        optional(call, "end"),
        call.integer("step"));
  }

  private static Optional<Long> optional(OpCall call, String param) {
    return call.has(param) ? Optional.of(call.integer(param)) : Optional.empty();
  }

  private static OpResult narrowed(OpCall call, Value self) {
    var type = self.tensor();
    int dim = call.dim("dim", type.rank());
    if (type.rank() == 0) {
      throw new OpTypeException("a tensor without dimensions cannot be narrowed");
    }
    long start = call.integer("start");
    long from = start < 0 ? start + type.size(dim) : start;
    long length = call.integer("length");
    if (from < 0 || from > type.size(dim) || length < 0 || length > type.size(dim) - from) {
      throw new OpTypeException(
          "start %s and length %s leave dimension %s of size %s"
              .formatted(start, length, dim, type.size(dim)));
    }
    return Slices.cut(self, dim, length, 1, from);
  }

  static OpResult diagonal(OpCall call, Value self) {
    var type = self.tensor();
    int dim1 = call.dim("dim1", type.rank());
    int dim2 = call.dim("dim2", type.rank());
    if (dim1 == dim2 || type.rank() < 2) {
      throw new OpTypeException("dim1 and dim2 must name two dimensions of " + type);
    }
    long offset = call.integer("offset");
    long rows = type.size(dim1) + Math.min(0, offset);
    long columns = type.size(dim2) - Math.max(0, offset);
    long length =
        Math.max(0, Math.min(Math.min(type.size(dim1), type.size(dim2)), Math.min(rows, columns)));
    long start =
        length == 0 ? 0 : offset >= 0 ? offset * type.stride(dim2) : -offset * type.stride(dim1);
    int first = Math.min(dim1, dim2);
    int second = Math.max(dim1, dim2) - 1;
    var sizes = Shapes.without(Shapes.without(type.sizes(), first), second);
    var strides = Shapes.without(Shapes.without(type.strides(), first), second);
    return OpResult.view(
        self,
        Shapes.insert(sizes, sizes.length(), length),
        Shapes.insert(strides, strides.length(), type.stride(dim1) + type.stride(dim2)),
        start);
  }

  private static OpResult windows(OpCall call, Value self) {
    var type = self.tensor();
    int dim = call.dim("dimension", type.rank());
    long size = call.integer("size");
    long step = call.integer("step");
    long total = type.rank() == 0 ? 1 : type.size(dim);
    if (size < 0 || size > total || step <= 0) {
      throw new OpTypeException(
          "windows of size %s and step %s do not fit dimension %s of size %s"
              .formatted(size, step, dim, total));
    }
    if (type.rank() == 0) {
      return OpResult.view(self, ImmutableLongArray.of(size), ImmutableLongArray.of(1), 0);
    }
    long stride = type.stride(dim);
    return OpResult.view(
        self,
        Shapes.insert(Shapes.with(type.sizes(), dim, (total - size) / step + 1), type.rank(), size),
        Shapes.insert(
            Shapes.with(type.strides(), dim, Shapes.times(step, stride)), type.rank(), stride),
        0);
  }

  private static OpResult converted(OpCall call, Value self, TensorType wanted) {
    var copy = Layouts.inFormat(wanted, call.arg("memory_format"));
    boolean there =
        wanted.dtype() == self.tensor().dtype()
            && !call.bool("copy")
            && (!call.has("memory_format")
                || call.arg("memory_format").equals(new Arg.Symbol("preserve_format"))
                || copy.strides().equals(self.tensor().strides()));
    return there ? whole(self) : OpResult.fresh(copy);
  }

  private static OpResult restrided(OpCall call) {
    var input = call.value("input");
    var strides = call.integers("stride");
    if (strides.length() != input.tensor().rank()) {
      throw new OpTypeException(
          "stride has %s, but the tensor has %s"
              .formatted(
                  Units.count(strides.length(), "entry"),
                  Units.count(input.tensor().rank(), "dimension")));
    }
    return strides.equals(input.tensor().strides())
        ? whole(input)
        : OpResult.fresh(Layouts.fresh(input.tensor()).withStrides(strides));
  }
}
