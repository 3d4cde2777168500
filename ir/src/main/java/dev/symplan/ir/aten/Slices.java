package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.stream.Stream;

/** Parts of a tensor along one dimension, and the ops that give several of them. */
final class Slices {
  private static final long MAX_PARTS = 100_000;

  private Slices() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.ops(
                """
                aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
                aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]
                """,
                parts((call, self) -> equal(sizeAt(call, self), call.integer("split_size")))),
            Table.ops(
                """
                aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]
                """,
                parts((call, self) -> call.integers("split_size"))),
            Table.ops(
                """
                aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
                aten::unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]
                """,
                parts((call, self) -> call.integers("split_sizes"))),
            Table.ops(
                """
                aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]
                aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]
                """,
                parts(Slices::chunks)),
            Table.ops(
                """
                aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]
                """,
                parts(Slices::sections)),
            Table.ops(
                """
                aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]
                """,
                Slices::between),
            Table.ops(
                """
                aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]
                """,
                Slices::unbound))
        .flatMap(specs -> specs);
  }

  /** {@return {@code size} elements along a dimension from {@code start} on, {@code step} apart} */
  static OpResult cut(Value self, int dim, long size, long step, long start) {
    var type = self.tensor();
    long stride = type.stride(dim);
    return OpResult.view(
        self,
        Shapes.with(type.sizes(), dim, size),
        Shapes.with(type.strides(), dim, Shapes.times(stride, step)),
        type.numel() == 0 && size == 0 && start == 0 ? 0 : Shapes.times(start, stride));
  }

  /** {@return {@code self[..., start:end:step, ...]}, indices beyond the ends cut off} */
  static OpResult slice(Value self, int dim, Optional<Long> start, Optional<Long> end, long step) {
    var type = self.tensor();
    if (type.rank() == 0) {
      throw new OpTypeException("a tensor without dimensions cannot be sliced");
    }
    if (step <= 0) {
      throw new OpTypeException("step is %s, but must be positive".formatted(step));
    }
    long size = type.size(dim);
    long from = clamp(start.orElse(0L), size);
    long to = clamp(end.orElse(size), size);
    return cut(self, dim, Shapes.steps(from, to, step), step, from);
  }

  private static long clamp(long index, long size) {
    return Math.clamp(index < 0 ? index + size : index, 0, size);
  }

  /** {@return the part at one index, without the dimension} */
  static OpResult select(Value self, int dim, long index) {
    var type = self.tensor();
    if (type.rank() == 0) {
      throw new OpTypeException("a tensor without dimensions has no elements to select");
    }
    long size = type.size(dim);
    if (index < -size || index >= size) {
      throw new OpTypeException(
          "index %s is out of range for dimension %s of size %s".formatted(index, dim, size));
    }
    long offset = (index < 0 ? index + size : index) * type.stride(dim);
    return OpResult.view(
        self, Shapes.without(type.sizes(), dim), Shapes.without(type.strides(), dim), offset);
  }

  private static InferRule parts(BiFunction<OpCall, TensorType, ImmutableLongArray> sizes) {
    return call -> {
      var self = call.value("self");
      long total = sizeAt(call, self.tensor());
      var parts = sizes.apply(call, self.tensor());
      int dim = call.dim("dim", self.tensor().rank());
      if (Shapes.sum(Shapes.checked(parts)) != total) {
        throw new OpTypeException(
            "the parts %s add up to %s, but dimension %s has size %s"
                .formatted(Shapes.text(parts), Shapes.sum(parts), dim, total));
      }
      var results = new ArrayList<OpResult>();
      long start = 0;
      for (int i = 0; i < parts.length(); i++) {
        results.add(cut(self, dim, parts.get(i), 1, start));
        start += parts.get(i);
      }
      return results;
    };
  }

  private static long sizeAt(OpCall call, TensorType type) {
    if (type.rank() == 0) {
      throw new OpTypeException("a tensor without dimensions has no parts");
    }
    return type.size(call.dim("dim", type.rank()));
  }

  /** The last part may be smaller; nothing at all is one empty part. */
  private static ImmutableLongArray equal(long total, long size) {
    if (size < 0 || (size == 0 && total != 0)) {
      throw new OpTypeException("split_size is %s, but must be positive".formatted(size));
    }
    checkCount(size == 0 ? 1 : Math.ceilDiv(total, size));
    var parts = ImmutableLongArray.builder();
    long left = total;
    do {
      long part = Math.min(size, left);
      parts.add(part);
      left -= part;
    } while (left > 0);
    return parts.build();
  }

  private static void checkCount(long count) {
    if (count > MAX_PARTS) {
      throw new OpTypeException(
          "%s parts are too many; at most %s are supported".formatted(count, MAX_PARTS));
    }
  }

  private static ImmutableLongArray chunks(OpCall call, TensorType self) {
    long chunks = call.integer("chunks");
    long total = sizeAt(call, self);
    if (chunks <= 0) {
      throw new OpTypeException("chunks is %s, but must be positive".formatted(chunks));
    }
    if (total == 0) {
      checkCount(chunks);
      return ImmutableLongArray.copyOf(new long[(int) chunks]);
    }
    return equal(total, Math.ceilDiv(total, chunks));
  }

  /** The first parts are larger by one where the sections do not come out even. */
  private static ImmutableLongArray sections(OpCall call, TensorType self) {
    long sections = call.integer("sections");
    long total = sizeAt(call, self);
    if (sections <= 0) {
      throw new OpTypeException("sections is %s, but must be positive".formatted(sections));
    }
    checkCount(sections);
    var parts = ImmutableLongArray.builder();
    for (long i = 0; i < sections; i++) {
      parts.add(total / sections + (i < total % sections ? 1 : 0));
    }
    return parts.build();
  }

  private static List<OpResult> between(OpCall call) {
    var self = call.value("self");
    var indices = call.integers("indices");
    int dim = call.dim("dim", self.tensor().rank());
    var results = new ArrayList<OpResult>();
    long start = 0;
    for (long end : indices.asList()) {
      results.add(slice(self, dim, Optional.of(start), Optional.of(end), 1));
      start = end;
    }
    results.add(slice(self, dim, Optional.of(start), Optional.empty(), 1));
    return results;
  }

  private static List<OpResult> unbound(OpCall call) {
    var self = call.value("self");
    long count = sizeAt(call, self.tensor());
    checkCount(count);
    var results = new ArrayList<OpResult>();
    for (long i = 0; i < count; i++) {
      results.add(select(self, call.dim("dim", self.tensor().rank()), i));
    }
    return results;
  }
}
