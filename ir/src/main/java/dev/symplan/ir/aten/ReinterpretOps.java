package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType.Kind;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.Optional;
import java.util.stream.Stream;

/** Views that take the same bytes for elements of another type. */
final class ReinterpretOps {
  private ReinterpretOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.ops(
                """
                aten::resolve_conj(Tensor(a) self) -> Tensor(a)
                aten::resolve_neg(Tensor(a) self) -> Tensor(a)
                """,
                ViewOps.of((call, self) -> ViewOps.whole(self))),
            Table.ops(
                """
                aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)
                """,
                ViewOps.of(ReinterpretOps::reinterpreted)),
            Table.ops(
                """
                aten::view_as_real(Tensor(a) self) -> Tensor(a)
                """,
                ViewOps.of((call, self) -> parts(self))),
            Table.ops(
                """
                aten::view_as_complex(Tensor(a) self) -> Tensor(a)
                """,
                ViewOps.of((call, self) -> complex(self))))
        .flatMap(specs -> specs);
  }

  private static OpResult reinterpreted(OpCall call, Value self) {
    var type = self.tensor();
    var dtype = call.dtype("dtype").orElseThrow();
    int from = type.dtype().bytes();
    int to = dtype.bytes();
    if (from == to) {
      return view(self, type.withDType(dtype));
    }
    int last = type.rank() - 1;
    if (last < 0 || type.stride(last) != 1) {
      throw new OpTypeException(
          "elements of another size need a last dimension of stride 1, which %s lacks"
              .formatted(type));
    }
    var sizes = type.sizes().toArray();
    var strides = type.strides().toArray();
    if (from > to) {
      int parts = from / to;
      sizes[last] = Shapes.times(sizes[last], parts);
      for (int i = 0; i < last; i++) {
        strides[i] = Shapes.times(strides[i], parts);
      }
    } else {
      int parts = to / from;
      if (sizes[last] % parts != 0) {
        throw new OpTypeException(
            "the last size %s is not a multiple of %s".formatted(sizes[last], parts));
      }
      sizes[last] /= parts;
      for (int i = 0; i < last; i++) {
        if (strides[i] % parts != 0) {
          throw new OpTypeException(
              "stride %s of dimension %s is not a multiple of %s".formatted(strides[i], i, parts));
        }
        strides[i] /= parts;
      }
    }
    return view(
        self,
        new TensorType(
            dtype,
            ImmutableLongArray.copyOf(sizes),
            ImmutableLongArray.copyOf(strides),
            MemorySpace.ANY));
  }

  private static OpResult view(Value self, TensorType type) {
    return new OpResult(
        type.withSpace(MemorySpace.ANY), Optional.of(new OpResult.View(self, 0)), false);
  }

  private static OpResult parts(Value self) {
    var type = self.tensor();
    if (type.dtype().kind() != Kind.COMPLEX) {
      throw new OpTypeException("works on complex numbers, not on " + type.dtype().shortName());
    }
    return view(self, type.parts());
  }

  private static OpResult complex(Value self) {
    var type = self.tensor();
    int last = type.rank() - 1;
    boolean pairs = last >= 0 && type.size(last) == 2 && type.stride(last) == 1;
    boolean even = pairs && type.strides().subArray(0, last).stream().allMatch(s -> s % 2 == 0);
    boolean parts = Promotion.complex(type.dtype()).real() == type.dtype();
    if (!even || !parts) {
      throw new OpTypeException(
          "needs pairs of f16, f32 or f64: a last dimension of size 2 and stride 1, even strides"
              + " elsewhere;"
              + " this is %s".formatted(type));
    }
    var strides = type.strides().subArray(0, last).stream().map(s -> s / 2).toArray();
    return view(
        self,
        new TensorType(
            Promotion.complex(type.dtype()),
            type.sizes().subArray(0, last),
            ImmutableLongArray.copyOf(strides),
            MemorySpace.ANY));
  }
}
