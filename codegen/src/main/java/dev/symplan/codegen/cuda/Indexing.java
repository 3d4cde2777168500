package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.stream.IntStream;

/**
 * The elements {@code self[indices]} of NumPy's advanced indexing: the shape that the indices
 * broadcast to replaces the indexed dimensions where these are neighbours, and is at the front
 * elsewhere.
 *
 * @param dims the indexed dimensions
 * @param indices the tensors that index them
 * @param common the shape that the indices broadcast to
 * @param rest the other dimensions
 * @param front where the shape stands among the dimensions of the result
 */
record Indexing(
    TensorType self,
    ImmutableList<Integer> dims,
    ImmutableList<TensorRef> indices,
    ImmutableLongArray common,
    ImmutableList<Integer> rest,
    int front) {

  static Indexing of(TensorType self, List<Optional<TensorRef>> indices) {
    var dims = ImmutableList.<Integer>builder();
    var given = ImmutableList.<TensorRef>builder();
    var rest = ImmutableList.<Integer>builder();
    var common = new ArrayList<Long>();
    for (int dim = 0; dim < self.rank(); dim++) {
      if (dim < indices.size() && indices.get(dim).isPresent()) {
        dims.add(dim);
        given.add(indices.get(dim).get());
        broadcast(common, indices.get(dim).get().type());
      } else {
        rest.add(dim);
      }
    }
    var indexed = dims.build();
    boolean adjacent =
        !indexed.isEmpty() && indexed.getLast() - indexed.getFirst() == indexed.size() - 1;
    return new Indexing(
        self,
        indexed,
        given.build(),
        ImmutableLongArray.copyOf(common),
        rest.build(),
        adjacent ? indexed.getFirst() : 0);
  }

  private static void broadcast(List<Long> common, TensorType type) {
    while (common.size() < type.rank()) {
      common.addFirst(1L);
    }
    for (int dim = 0; dim < type.rank(); dim++) {
      int at = common.size() - type.rank() + dim;
      if (type.size(dim) != 1) {
        common.set(at, type.size(dim));
      }
    }
  }

  /** {@return the shape of what is indexed} */
  ImmutableLongArray sizes() {
    var sizes = new ArrayList<Long>();
    rest.forEach(dim -> sizes.add(self.size(dim)));
    sizes.addAll(front, common.asList());
    return ImmutableLongArray.copyOf(sizes);
  }

  /** {@return the dimensions of the result that the indices' shape stands at} */
  List<String> ofCommon(List<String> result) {
    return result.subList(front, front + common.length());
  }

  /** Declares {@code at0}, {@code at1} and so on, from the indices of an element of the result. */
  void read(PositionKernel kernel, List<String> result) {
    read(ofCommon(result), kernel::value).forEach(kernel::line);
  }

  /**
   * {@return lines that declare {@code at0}, {@code at1} and so on, for each indexed dimension}
   *
   * @param common an index for each dimension of {@link #common}
   * @param value an element of a tensor
   */
  List<String> read(List<String> common, BiFunction<TensorRef, List<String>, String> value) {
    var lines = new ArrayList<String>();
    for (int i = 0; i < dims.size(); i++) {
      var index = indices.get(i);
      long size = self.size(dims.get(i));
      var own = common.subList(common.size() - index.type().rank(), common.size());
      lines.add("long long at%s = %s;".formatted(i, value.apply(index, own)));
      lines.add("at%1$s += at%1$s < 0 ? %2$s : 0;".formatted(i, size));
      lines.add("if (at%1$s < 0 || at%1$s >= %2$s) {\n  __trap();\n}".formatted(i, size));
    }
    return lines;
  }

  /** {@return the indices in {@code self}, once all are read} */
  List<String> indices(List<String> result) {
    var others = new ArrayList<>(result);
    ofCommon(others).clear();
    return IntStream.range(0, self.rank())
        .mapToObj(
            dim -> dims.contains(dim) ? "at" + dims.indexOf(dim) : others.get(rest.indexOf(dim)))
        .toList();
  }
}
