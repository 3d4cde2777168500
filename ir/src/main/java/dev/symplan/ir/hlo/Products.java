package dev.symplan.ir.hlo;

import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** Makes {@code aten::mm} and {@code aten::bmm} of {@code dot}. */
final class Products {
  private final GraphEmitter emitter;

  Products(GraphEmitter emitter) {
    this.emitter = emitter;
  }

  /** The dimensions of one operand, by what becomes of them. */
  private record Dims(
      ImmutableIntArray batch, ImmutableIntArray own, ImmutableIntArray contracted) {
    static Dims of(HloInstruction dot, String side, int rank) {
      var batch = dims(dot, side + "_batch_dims", rank);
      var contracted = dims(dot, side + "_contracting_dims", rank);
      var own =
          ImmutableIntArray.copyOf(
              IntStream.range(0, rank)
                  .filter(dim -> !batch.contains(dim) && !contracted.contains(dim)));
      if (own.length() + batch.length() + contracted.length() != rank) {
        throw new IllegalArgumentException("the batch and contracting dimensions of a dot overlap");
      }
      return new Dims(batch, own, contracted);
    }

    private static ImmutableIntArray dims(HloInstruction dot, String key, int rank) {
      var given = dot.attributes().integers(key);
      if (given.stream().anyMatch(dim -> dim < 0 || dim >= rank)) {
        throw new IllegalArgumentException(
            "%s names a dimension that is not below %s".formatted(key, rank));
      }
      return ImmutableIntArray.copyOf(given.stream().mapToInt(dim -> (int) dim));
    }
  }

  /**
   * {@return the floating-point operations of a dot, a multiply-add counting as two}
   *
   * @throws IllegalArgumentException when its dimensions are not those of its operands
   */
  static double flops(HloInstruction dot, Array lhs, Array result) {
    double count = 2.0 * result.tensor().numel();
    var sizes = lhs.tensor().sizes();
    for (long dim : dot.attributes().integers("lhs_contracting_dims").toArray()) {
      if (dim < 0 || dim >= sizes.length()) {
        throw new IllegalArgumentException(
            "lhs_contracting_dims names a dimension that is not below %s"
                .formatted(sizes.length()));
      }
      count *= sizes.get((int) dim);
    }
    return count;
  }

  /**
   * {@return the product; absent if no op of PyTorch computes the same}
   *
   * @throws IllegalArgumentException when its dimensions are not those of its operands
   */
  Optional<Value> read(HloInstruction dot, Value lhs, Value rhs, Array shape) {
    var dtype = lhs.tensor().dtype();
    boolean floats =
        dtype == DType.F16 || dtype == DType.BF16 || dtype == DType.F32 || dtype == DType.F64;
    boolean widens = shape.dtype() == DType.F32 && (dtype == DType.F16 || dtype == DType.BF16);
    if (dot.attributes().has("sparsity")
        || !floats
        || rhs.tensor().dtype() != dtype
        || (shape.dtype() != dtype && !widens)) {
      return Optional.empty();
    }
    var left = Dims.of(dot, "lhs", lhs.tensor().rank());
    var right = Dims.of(dot, "rhs", rhs.tensor().rank());
    var name = dot.name();
    boolean batched = !left.batch().isEmpty();
    var a = matrix(lhs, batched, left.batch(), left.own(), left.contracted(), name + ".lhs");
    var b = matrix(rhs, batched, right.batch(), right.contracted(), right.own(), name + ".rhs");
    var op = (batched ? "aten::bmm" : "aten::mm") + (widens ? ".dtype" : "");
    var args =
        widens
            ? new Arg[] {new Arg.Ref(a), new Arg.Ref(b), new Arg.Dtype(shape.dtype())}
            : new Arg[] {new Arg.Ref(a), new Arg.Ref(b)};
    boolean flat = shape.tensor().rank() == (batched ? 3 : 2);
    if (flat) {
      return Optional.of(emitter.fresh(name, shape, op, args));
    }
    var product = emitter.op(name, op, args);
    return Optional.of(emitter.reshaped(product, shape.tensor().sizes(), name + ".view"));
  }

  private Value matrix(
      Value value,
      boolean batched,
      ImmutableIntArray batch,
      ImmutableIntArray rows,
      ImmutableIntArray columns,
      String name) {
    var order = ImmutableIntArray.builder().addAll(batch).addAll(rows).addAll(columns).build();
    var seen = emitter.permuted(value, order, name + ".permuted");
    long[] sizes = {product(value, batch), product(value, rows), product(value, columns)};
    var wanted = LongStream.of(sizes).skip(batched ? 0 : 1).toArray();
    return emitter.reshaped(seen, ImmutableLongArray.copyOf(wanted), name);
  }

  private static long product(Value value, ImmutableIntArray dims) {
    long count = 1;
    for (int i = 0; i < dims.length(); i++) {
      count = Math.multiplyExact(count, value.tensor().size(dims.get(i)));
    }
    return count;
  }
}
