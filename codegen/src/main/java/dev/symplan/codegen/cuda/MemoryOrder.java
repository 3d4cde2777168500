package dev.symplan.codegen.cuda;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;
import java.util.Comparator;
import java.util.List;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;

/**
 * An order of a shape's dimensions in which threads take elements.
 *
 * @param dims those of the shape, outermost first
 */
record MemoryOrder(ImmutableList<Integer> dims) {

  /**
   * {@return the order in which the most bytes are read and written side by side: that of the shape
   * if no other one is better}
   *
   * @param refs tensors that are broadcast to the shape
   */
  static MemoryOrder of(ImmutableLongArray sizes, List<TensorRef> refs) {
    long elements = sizes.stream().reduce(1, Math::multiplyExact);
    var whole = refs.stream().map(TensorRef::type).filter(t -> t.numel() == elements).toList();
    var given = IntStream.range(0, sizes.length()).boxed().collect(toImmutableList());
    var best = given;
    long most = sideBySide(given, sizes, whole);
    for (var type : whole) {
      var strides = Indices.broadcast(type, sizes.length());
      var order =
          given.stream()
              .sorted(
                  Comparator.comparing(
                      dim -> sizes.get(dim) == 1 ? Long.MIN_VALUE : -strides.get(dim)))
              .collect(toImmutableList());
      long bytes = sideBySide(order, sizes, whole);
      if (bytes > most) {
        best = order;
        most = bytes;
      }
    }
    return new MemoryOrder(best);
  }

  private static long sideBySide(
      ImmutableList<Integer> order, ImmutableLongArray sizes, List<TensorType> types) {
    return order.reverse().stream()
        .filter(dim -> sizes.get(dim) > 1)
        .findFirst()
        .map(
            last ->
                types.stream()
                    .filter(type -> Indices.broadcast(type, sizes.length()).get(last) == 1)
                    .mapToLong(type -> type.numel() * type.dtype().bytes())
                    .sum())
        .orElse(0L);
  }

  /** {@return the same tensor with its dimensions in this order} */
  TensorRef of(TensorRef ref) {
    return new TensorRef(ref.arena(), ref.index(), ref.offset(), of(ref.type()));
  }

  /** Tensors without dimensions stay as they are: types of results depend on that. */
  private TensorType of(TensorType type) {
    if (type.rank() == 0) {
      return type;
    }
    int skipped = dims.size() - type.rank();
    var strides = Indices.broadcast(type, dims.size());
    return new TensorType(
        type.dtype(),
        picked(dim -> dim < skipped ? 1 : type.size(dim - skipped)),
        picked(strides::get),
        type.space());
  }

  private ImmutableLongArray picked(ToLongFunction<Integer> value) {
    return ImmutableLongArray.copyOf(dims.stream().mapToLong(value));
  }

  /** {@return elementwise ops of one shape, whose tensors have their dimensions in this order} */
  ImmutableList<Part> of(ImmutableList<Part> parts) {
    return parts.stream()
        .map(
            part ->
                new Part(part.def(), args(part), each(part.results()), part.name(), part.span()))
        .collect(toImmutableList());
  }

  private ImmutableList<Operand> args(Part part) {
    return IntStream.range(0, part.args().size())
        .mapToObj(i -> Parts.isRead(part, i) ? of(part.args().get(i)) : part.args().get(i))
        .collect(toImmutableList());
  }

  private ImmutableList<Operand> each(List<Operand> operands) {
    return operands.stream().map(this::of).collect(toImmutableList());
  }

  private Operand of(Operand operand) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> new Operand.Tensor(of(ref));
      case Operand.Passed(int index, var type) -> new Operand.Passed(index, of(type));
      case Operand.Many(var items) -> new Operand.Many(each(items));
      case Operand.Constant constant -> constant;
    };
  }
}
