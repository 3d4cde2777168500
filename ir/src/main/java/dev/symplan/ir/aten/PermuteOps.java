package dev.symplan.ir.aten;

import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Views that have the same dimensions in another order. */
final class PermuteOps {
  private PermuteOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.ops(
                """
                aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)
                """,
                ViewOps.of(PermuteOps::permuted)),
            Table.ops(
                """
                aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
                aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
                """,
                ViewOps.of(
                    (call, self) -> swapped(self, call.integer("dim0"), call.integer("dim1")))),
            Table.ops(
                """
                aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)
                """,
                ViewOps.of(
                    (call, self) -> swapped(self, call.integer("axis0"), call.integer("axis1")))),
            Table.ops(
                """
                aten::t(Tensor(a) self) -> Tensor(a)
                """,
                ViewOps.of((call, self) -> matrixTransposed(self))),
            Table.ops(
                """
                aten::mT(Tensor(a) self) -> Tensor(a)
                """,
                ViewOps.of((call, self) -> lastTwoSwapped(self))),
            Table.ops(
                """
                aten::numpy_T(Tensor(a) self) -> Tensor(a)
                """,
                ViewOps.of(
                    (call, self) -> {
                      int rank = self.tensor().rank();
                      return ordered(
                          self, IntStream.range(0, rank).map(i -> rank - 1 - i).toArray());
                    })),
            Table.ops(
                """
                aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)
                aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)
                """,
                ViewOps.of(PermuteOps::moved)))
        .flatMap(specs -> specs);
  }

  /** {@return the dimensions in this order; those left out have size 1} */
  static OpResult ordered(Value self, int[] order) {
    return OpResult.view(
        self,
        Shapes.permute(self.tensor().sizes(), order),
        Shapes.permute(self.tensor().strides(), order),
        0);
  }

  private static OpResult permuted(OpCall call, Value self) {
    var dims = call.integers("dims");
    int rank = self.tensor().rank();
    if (dims.length() != rank) {
      throw new OpTypeException(
          "dims %s names %s, but the tensor has %s"
              .formatted(Shapes.text(dims), Units.count(dims.length(), "dimension"), rank));
    }
    Shapes.mask(dims, rank, "dims");
    return ordered(
        self, dims.stream().mapToInt(dim -> OpCall.wrapDim(dim, rank, "dims")).toArray());
  }

  private static OpResult swapped(Value self, long dim0, long dim1) {
    int rank = self.tensor().rank();
    int a = OpCall.wrapDim(dim0, rank, "the first dimension");
    int b = OpCall.wrapDim(dim1, rank, "the second dimension");
    return ordered(self, IntStream.range(0, rank).map(i -> i == a ? b : i == b ? a : i).toArray());
  }

  private static OpResult matrixTransposed(Value self) {
    int rank = self.tensor().rank();
    if (rank > 2) {
      throw new OpTypeException(
          "takes at most 2 dimensions, not " + rank, "use aten::transpose.int");
    }
    return swapped(self, 0, Math.max(0, rank - 1));
  }

  private static OpResult lastTwoSwapped(Value self) {
    if (self.tensor().rank() < 2) {
      throw new OpTypeException("needs at least 2 dimensions, but is " + self.tensor());
    }
    return swapped(self, -2, -1);
  }

  private static OpResult moved(OpCall call, Value self) {
    int rank = self.tensor().rank();
    var source = call.integers("source");
    var target = call.integers("destination");
    if (source.length() != target.length()) {
      throw new OpTypeException(
          "source names %s, but destination names %s"
              .formatted(Units.count(source.length(), "dimension"), target.length()));
    }
    if (rank == 0) {
      return ViewOps.whole(self);
    }
    var moving = Shapes.mask(source, rank, "source");
    var taken = Shapes.mask(target, rank, "destination");
    var order = new int[rank];
    for (int i = 0; i < source.length(); i++) {
      int to = OpCall.wrapDim(target.get(i), rank, "destination");
      order[to] = OpCall.wrapDim(source.get(i), rank, "source");
    }
    int next = 0;
    for (int i = 0; i < rank; i++) {
      if (!taken[i]) {
        while (moving[next]) {
          next++;
        }
        order[i] = next++;
      }
    }
    return ordered(self, order);
  }
}
