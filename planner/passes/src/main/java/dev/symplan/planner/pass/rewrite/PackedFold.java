package dev.symplan.planner.pass.rewrite;

import static com.google.common.base.Preconditions.checkArgument;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import java.util.List;

/**
 * A collective of tensors that are packed into one, which can take the tensors themselves.
 *
 * @param collective its number
 * @param ranks how many have such tensors
 * @param parts the tensors that it then sends, each with a result of its own
 * @param reads the values that take the place of the packed result in the graph
 * @param copies the ops that are left out
 */
record PackedFold(
    int collective,
    int ranks,
    ImmutableList<Part> parts,
    ImmutableList<Read> reads,
    ImmutableIntArray copies)
    implements Fold {

  PackedFold {
    checkArgument(!parts.isEmpty() && !reads.isEmpty(), "a collective needs tensors");
    checkArgument(reads.stream().allMatch(read -> read.part() < parts.size()), "unknown parts");
  }

  /**
   * Elements of a tensor, one after the other.
   *
   * @param source the tensor, contiguous
   * @param start the first one
   * @param size how many there are
   * @param place where they lie in what each rank sends, or gets
   */
  record Part(Value source, long start, long size, long place) {
    boolean isWhole() {
      return size == source.tensor().numel();
    }
  }

  /**
   * A tensor of the source that the result of a part, or some of it, becomes.
   *
   * @param value the tensor, contiguous
   * @param part the number of the part
   * @param start its first element in the result
   */
  record Read(Value value, int part, long start) {}

  @Override
  public boolean isLike(Fold other) {
    return other instanceof PackedFold fold
        && moved().equals(fold.moved())
        && sent() == fold.sent()
        && got() == fold.got();
  }

  /** {@return the places and sizes of the parts: ranks may read others of one packed tensor} */
  private List<List<Long>> moved() {
    return parts.stream().map(part -> List.of(part.place(), part.size())).toList();
  }

  private DType sent() {
    return parts.getFirst().source().tensor().dtype();
  }

  private DType got() {
    return reads.getFirst().value().tensor().dtype();
  }

  /** {@return whether the collective converts what it reduces} */
  boolean widens() {
    return sent() != got();
  }
}
