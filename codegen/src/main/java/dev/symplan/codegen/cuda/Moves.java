package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Lists;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.CopyKernel.Move;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Elements on their way from one tensor to another, and parts of tensors. */
final class Moves {
  /** As many tensors as one kernel copies. */
  private static final int MOST = 16;

  private Moves() {}

  /** {@return whether a copy of memory copies the elements} */
  static boolean isSame(TensorRef from, TensorRef to) {
    return from.type().dtype() == to.type().dtype()
        && from.type().sizes().equals(to.type().sizes())
        && (from.type().isContiguous() && to.type().isContiguous()
            || from.type().isDense() && from.type().strides().equals(to.type().strides()));
  }

  /** Whether two tensors are the same elements at the same addresses. */
  private static boolean isThere(TensorRef from, TensorRef to) {
    return from.arena() == to.arena()
        && from.index() == to.index()
        && from.offset() == to.offset()
        && from.type().dtype() == to.type().dtype()
        && from.type().sizes().equals(to.type().sizes())
        && IntStream.range(0, from.type().rank())
            .allMatch(
                dim ->
                    from.type().size(dim) == 1 || from.type().stride(dim) == to.type().stride(dim));
  }

  /** {@return whether two tensors have no memory in common, by where they begin and end} */
  static boolean isApart(TensorRef a, TensorRef b) {
    return a.arena() != b.arena()
        || a.index() != b.index()
        || a.offset() + a.type().storageBytes() <= b.offset()
        || b.offset() + b.type().storageBytes() <= a.offset();
  }

  /**
   * {@return the steps that copy elements, wherever they lie, and convert them where types differ}
   */
  static ImmutableList<DeviceStep> copy(
      int rank, OpArguments arguments, TensorRef from, TensorRef to) {
    return copy(rank, arguments, ImmutableList.of(new Move(from, to)));
  }

  /**
   * {@return the steps that copy tensors one after the other: as few launches as possible, where
   * the order makes no difference}
   */
  static ImmutableList<DeviceStep> copy(int rank, OpArguments arguments, List<Move> moves) {
    var zeros = ImmutableList.<DeviceStep>builder();
    var needed =
        moves.stream()
            .flatMap(move -> apart(rank, arguments, move, zeros))
            .filter(move -> move.to().type().numel() > 0 && !isThere(move.from(), move.to()))
            .map(move -> isSame(move.from(), move.to()) ? move : move.inOrder())
            .toList();
    needed.forEach(move -> check(arguments, move));
    var steps = ImmutableList.<DeviceStep>builder().addAll(zeros.build());
    if (!isInAnyOrder(needed)) {
      needed.forEach(move -> steps.add(step(rank, arguments, move)));
      return steps.build();
    }
    var kernels = new LinkedHashMap<Vectors, List<Move>>();
    for (var move : needed) {
      if (isSame(move.from(), move.to()) || move.squares().isPresent()) {
        steps.add(step(rank, arguments, move));
      } else {
        kernels.computeIfAbsent(move.vectors(), _ -> new ArrayList<>()).add(move);
      }
    }
    var op = arguments.op();
    kernels.forEach(
        (vectors, all) ->
            Lists.partition(all, MOST)
                .forEach(
                    some ->
                        steps.add(CopyKernel.launch(rank, op.stream(), some, vectors, op.name()))));
    return steps.build();
  }

  /**
   * {@return moves of real elements, if complex ones are converted}
   *
   * @param zeros takes the steps that set imaginary parts of real elements
   */
  private static Stream<Move> apart(
      int rank, OpArguments arguments, Move move, ImmutableList.Builder<DeviceStep> zeros) {
    boolean from = isComplex(move.from());
    boolean to = isComplex(move.to());
    if (!move.converts() || move.to().type().numel() == 0 || !(from || to)) {
      return Stream.of(move);
    } else if (move.to().type().dtype() == DType.BOOL) {
      throw arguments.unsupported();
    }
    var real =
        new Move(from ? part(move.from(), 0) : move.from(), to ? part(move.to(), 0) : move.to());
    if (from && to) {
      return Stream.of(real, new Move(part(move.from(), 1), part(move.to(), 1)));
    } else if (to) {
      zeros.addAll(PositionOps.fill(rank, arguments, part(move.to(), 1), 0));
    }
    return Stream.of(real);
  }

  private static boolean isComplex(TensorRef ref) {
    return ref.type().dtype().kind() == DType.Kind.COMPLEX;
  }

  /** Whether no tensor is written where another one is read. */
  private static boolean isInAnyOrder(List<Move> moves) {
    return moves.stream()
        .allMatch(
            move ->
                moves.stream()
                    .allMatch(other -> other.equals(move) || isApart(move.from(), other.to())));
  }

  private static void check(OpArguments arguments, Move move) {
    var source = move.from().type().dtype();
    var target = move.to().type().dtype();
    if (move.converts() && !(CTypes.computes(source) && CTypes.computes(target))) {
      throw arguments.unsupported(
          "%s of %s to %s".formatted(arguments.name(), source.shortName(), target.shortName()));
    }
  }

  private static DeviceStep step(int rank, OpArguments arguments, Move move) {
    var op = arguments.op();
    return isSame(move.from(), move.to())
        ? new DeviceStep.Copy(
            op.stream(),
            Address.of(rank, move.from()),
            Address.of(rank, move.to()),
            move.to().type().storageBytes(),
            op.name())
        : CopyKernel.launch(rank, op.stream(), List.of(move), move.vectors(), op.name());
  }

  /** {@return a tensor as it is broadcast to a shape} */
  static TensorRef expand(TensorRef ref, ImmutableLongArray sizes) {
    return as(ref, ref.offset(), sizes, Indices.broadcast(ref.type(), sizes.length()));
  }

  /** {@return some of the indices of one dimension} */
  static TensorRef narrow(TensorRef ref, int dim, long start, long count, long step) {
    var type = ref.type();
    var sizes = type.sizes().toArray();
    var strides = type.strides().toArray();
    sizes[dim] = count;
    strides[dim] *= step;
    return as(
        ref,
        ref.offset() + start * type.stride(dim) * type.dtype().bytes(),
        ImmutableLongArray.copyOf(sizes),
        ImmutableLongArray.copyOf(strides));
  }

  /** {@return a tensor without a dimension, at one index of it} */
  static TensorRef select(TensorRef ref, int dim, long index) {
    var one = narrow(ref, dim, index, 1, 1);
    return as(
        one, one.offset(), without(one.type().sizes(), dim), without(one.type().strides(), dim));
  }

  /** {@return the real (0) or imaginary (1) parts of complex elements} */
  static TensorRef part(TensorRef ref, int part) {
    return select(ref.with(ref.type().parts()), ref.type().rank(), part);
  }

  /**
   * {@return elements of the same memory}
   *
   * @param start the position of the first one
   * @param type says where the others are
   */
  static TensorRef shifted(TensorRef ref, long start, TensorType type) {
    return as(ref, ref.offset() + start * ref.type().dtype().bytes(), type.sizes(), type.strides());
  }

  /** {@return a tensor with a dimension of one element more} */
  static TensorRef unsqueeze(TensorRef ref, int dim) {
    var type = ref.type();
    var sizes = ImmutableLongArray.builder().addAll(type.sizes().subArray(0, dim)).add(1);
    var strides = ImmutableLongArray.builder().addAll(type.strides().subArray(0, dim)).add(1);
    return as(
        ref,
        ref.offset(),
        sizes.addAll(type.sizes().subArray(dim, type.rank())).build(),
        strides.addAll(type.strides().subArray(dim, type.rank())).build());
  }

  /** {@return a tensor, a number as one of one element} */
  static TensorRef atLeastVector(TensorRef ref) {
    return ref.type().rank() == 0 ? unsqueeze(ref, 0) : ref;
  }

  /** {@return a matrix whose rows are the columns of another one} */
  static TensorRef transpose(TensorRef ref) {
    var type = ref.type();
    return as(
        ref,
        ref.offset(),
        ImmutableLongArray.of(type.size(1), type.size(0)),
        ImmutableLongArray.of(type.stride(1), type.stride(0)));
  }

  /** {@return other elements of the memory that a tensor begins in, by their distances} */
  static TensorRef strided(
      TensorRef ref, long start, ImmutableLongArray sizes, ImmutableLongArray strides) {
    return as(ref, ref.offset() + start * ref.type().dtype().bytes(), sizes, strides);
  }

  private static TensorRef as(
      TensorRef ref, long offset, ImmutableLongArray sizes, ImmutableLongArray strides) {
    var type = ref.type();
    return new TensorRef(
        ref.arena(),
        ref.index(),
        offset,
        new TensorType(type.dtype(), sizes, strides, type.space()));
  }

  private static ImmutableLongArray without(ImmutableLongArray values, int dim) {
    var all = ImmutableLongArray.builder();
    for (int i = 0; i < values.length(); i++) {
      if (i != dim) {
        all.add(values.get(i));
      }
    }
    return all.build();
  }
}
