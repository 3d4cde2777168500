package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Transfer.Rows;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.SliceDims;
import java.util.Optional;

/** Bytes of a tensor that a collective moves: where they begin, how many, and how they lie. */
public record TensorRange(long offset, long bytes, Rows rows) {
  /** One run of memory. */
  TensorRange(long offset, long bytes) {
    this(offset, bytes, Rows.ONE);
  }

  /** {@return all bytes of an operand that a rank reads, in the order of its result's} */
  public static TensorRange operand(Collective collective, int tensor) {
    return whole(moved(collective, tensor, false));
  }

  /** {@return all bytes of a result that a rank writes, in their order} */
  public static TensorRange result(Collective collective, int tensor) {
    return whole(moved(collective, tensor, true));
  }

  /** All elements of a tensor: rows if they are not one run of memory. */
  static TensorRange whole(TensorType type) {
    return part(type, 0, type.bytes());
  }

  /** Some of the elements of a tensor, by their bytes in order: rows where these are apart. */
  static TensorRange part(TensorType type, long from, long bytes) {
    return bytes == 0
        ? new TensorRange(0, 0)
        : rows(type)
            .map(rows -> new TensorRange(rows.offset(from), bytes, rows.from(from)))
            .orElseGet(() -> new TensorRange(from, bytes));
  }

  /**
   * {@return the type of a tensor as it is moved: where operand and result lie alike, in the order
   * of memory}
   */
  static TensorType moved(Collective collective, int tensor, boolean result) {
    var operand = collective.operands().get(tensor).type();
    var made = collective.results().get(tensor).type();
    var type = result ? made : operand;
    return operand.isDense() && made.isDense() && operand.strides().equals(made.strides())
        ? type.contiguous()
        : type;
  }

  static Optional<Rows> rows(TensorType type) {
    return type.rowsApart().map(rows -> rows(rows, type.dtype().bytes()));
  }

  private static Rows rows(TensorType.Rows rows, int item) {
    var loops = ImmutableList.<Rows.Loop>builder();
    long bytes = rows.elements() * item;
    for (var loop : rows.loops()) {
      loops.add(new Rows.Loop(bytes, loop.pitch() * item));
      bytes *= loop.rounds();
    }
    return new Rows(loops.build(), 0);
  }

  /** A rank's slice of a tensor, along a dimension; all have one size, and lie alike. */
  static TensorRange slice(TensorType whole, int dim, int slices, int index) {
    long share = whole.bytes() / slices;
    if (share == 0 || (whole.isContiguous() && SliceDims.rows(whole, dim) <= 1)) {
      return new TensorRange(index * share, share);
    }
    long size = whole.size(dim) / slices;
    return new TensorRange(
        start(whole, dim, index * size), share, rows(whole.part(dim, size)).orElse(Rows.ONE));
  }

  /** Where the elements with an index along a dimension begin, in bytes. */
  private static long start(TensorType type, int dim, long index) {
    return index * type.stride(dim) * type.dtype().bytes();
  }

  /**
   * {@return the bytes of an all_to_all that a rank sends to a member, or gets from it}
   *
   * @param result whether it is of the result
   */
  public static TensorRange rows(Collective collective, int tensor, boolean result, int member) {
    var type = moved(collective, tensor, result);
    int size = collective.group().members().length();
    var rows = result ? collective.receiveRows() : collective.sendRows();
    if (!rows.isEmpty()) {
      long from = rows.subArray(0, member).stream().sum();
      long bytes = type.part(0, rows.get(member)).bytes();
      // Slices of one row and of several lie alike.
      return bytes == 0
          ? new TensorRange(0, 0)
          : new TensorRange(start(type, 0, from), bytes, rows(type).orElse(Rows.ONE));
    }
    int dim = result ? collective.dims().result() : collective.dims().operand();
    return slice(type, dim, size, member);
  }

  /**
   * One of as many slices as there are, of whole units; the last may be short or empty.
   *
   * @param unit in bytes
   */
  static TensorRange slice(long bytes, long unit, int slices, int index) {
    long most = Math.ceilDiv(Math.ceilDiv(bytes, unit), slices) * unit;
    long offset = Math.min(bytes, index * most);
    return new TensorRange(offset, Math.min(most, bytes - offset));
  }
}
