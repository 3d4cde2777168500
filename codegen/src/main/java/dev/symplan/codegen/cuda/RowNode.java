package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import java.util.Optional;

/** A value that rows are taken through: of each element of a row, or one for all of them. */
sealed interface RowNode {

  /** Whether each element has its own. */
  boolean full();

  /** The numbers of the values that it is made from. */
  ImmutableList<Integer> inputs();

  /** The node's type in C++. */
  String type();

  /**
   * An element of a tensor, as it is computed with.
   *
   * @param location where it is; the rest is added to that
   */
  record Loaded(Location location, boolean full, Optional<Offset> offset) implements RowNode {
    @Override
    public ImmutableList<Integer> inputs() {
      return offset.map(by -> ImmutableList.of(by.index())).orElse(ImmutableList.of());
    }

    @Override
    public String type() {
      return CTypes.computed(location.dtype());
    }
  }

  /**
   * A value times a distance in elements.
   *
   * @param index the number of the value, an integer
   */
  record Offset(int index, long stride) {}

  /**
   * The index along a dimension.
   *
   * @param dim among those within a row where {@code full}, else among those that count rows
   */
  record Index(int dim, boolean full) implements RowNode {
    @Override
    public ImmutableList<Integer> inputs() {
      return ImmutableList.of();
    }

    @Override
    public String type() {
      return CTypes.computed(DType.I64);
    }
  }

  /** The value of an expression of the inputs' names. */
  record Computed(String type, String text, ImmutableList<Integer> inputs, boolean full)
      implements RowNode {}

  /**
   * The value that a fold keeps.
   *
   * @param terms the terms that it takes in
   * @param overRow whether there is a term for each element of the row, rather than one
   */
  record Folded(
      Fold fold, ImmutableList<String> terms, ImmutableList<Integer> inputs, boolean overRow)
      implements RowNode {
    @Override
    public boolean full() {
      return false;
    }

    @Override
    public String type() {
      return fold.types().getFirst();
    }
  }

  /** For each element, what a fold keeps of those up to it. */
  record Scanned(Fold fold, String term, ImmutableList<Integer> inputs, boolean full)
      implements RowNode {
    @Override
    public String type() {
      return fold.types().getFirst();
    }
  }

  /**
   * The state that is kept of elements that went by.
   *
   * @param types of what is kept, {@code a0} and perhaps {@code a1}
   * @param starts their values before any element
   * @param combine a statement that takes in {@code b0}, {@code b1}: an element, or what others
   *     kept of theirs
   */
  record Fold(ImmutableList<String> types, ImmutableList<String> starts, String combine) {
    static Fold of(String type, String start, String combine) {
      return new Fold(ImmutableList.of(type), ImmutableList.of(start), combine);
    }
  }

  /**
   * Where a tensor's elements are.
   *
   * @param memory where they are; empty for what a block has to itself
   * @param shared the name of the block's own memory
   * @param rows elements from one index to the next, for each dimension of rows
   * @param inner for each dimension within a row
   */
  record Location(
      Optional<KernelArgument.Memory> memory,
      String shared,
      DType dtype,
      ImmutableLongArray rows,
      ImmutableLongArray inner) {

    static Location of(int rank, TensorRef ref, ImmutableLongArray rows, ImmutableLongArray inner) {
      return new Location(
          Optional.of(KernelArgument.Memory.of(rank, ref)), "", ref.type().dtype(), rows, inner);
    }
  }

  /** A value that is written into a tensor. */
  record Store(int node, Location location) {}
}
