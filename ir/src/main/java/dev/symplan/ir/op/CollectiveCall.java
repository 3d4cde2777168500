package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveSpec.Foreign;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.CollectiveSpec.Role;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;

/** The arguments of one collective, read by role. Each read throws {@link OpTypeException}. */
public record CollectiveCall(CollectiveSpec spec, OpCall call) {

  public Kind kind() {
    return spec.kind();
  }

  /** {@return the name of the process group, if the argument is a name} */
  public Optional<String> groupName() {
    if (spec.group().isEmpty()) {
      return Optional.of(CollectiveSpec.WORLD);
    }
    return call.arg(spec.group().get()) instanceof Arg.Str(String name)
        ? Optional.of(name)
        : Optional.empty();
  }

  /** {@return the name of the process group; {@code ""} where the argument is not a name} */
  public String group() {
    return groupName().orElse("");
  }

  /** {@return the values that each rank sends: one, or several when coalesced} */
  public ImmutableList<Value> operands() {
    return call.arg(spec.operand()).operands();
  }

  /** {@return the argument that the result is written into; empty if it is a new tensor} */
  public Optional<Value> target() {
    var schema = call.schema();
    Optional<Param> param =
        schema.results().isEmpty()
            ? schema.params().stream().filter(own -> own.alias().write()).findFirst()
            : schema.params().stream()
                .filter(own -> own.alias().write())
                .filter(
                    own ->
                        own.alias().before().equals(schema.results().getFirst().alias().before()))
                .findFirst();
    return param.map(own -> call.value(own.name()));
  }

  /** {@return the arguments whose memory the op overwrites, but not with its result} */
  public ImmutableList<Value> scratch() {
    var target = target();
    return call.schema().params().stream()
        .filter(
            param -> param.alias().write() || param.name().equals(spec.params().get(Role.SCRATCH)))
        .map(param -> call.value(param.name()))
        .filter(value -> !target.equals(Optional.of(value)))
        .collect(ImmutableList.toImmutableList());
  }

  /**
   * {@return the dimension along which the ranks' parts lie}
   *
   * @param rank the number of dimensions
   */
  public int dim(int rank) {
    if (!spec.has(Role.DIM)) {
      return 0;
    }
    return call.arg(spec.param(Role.DIM)) instanceof Arg.Bool(boolean last)
        ? (last ? Math.max(0, rank - 1) : 0)
        : call.dim(spec.param(Role.DIM), rank);
  }

  /** {@return the dimensions along which the slices lie that ranks exchange} */
  public SliceDims sliceDims() {
    if (!spec.has(Role.DIM) && !spec.has(Role.SPLIT_DIM) && !spec.has(Role.CONCAT_DIM)) {
      return SliceDims.FIRST;
    }
    int rank = operands().getFirst().tensor().rank();
    return switch (kind()) {
      case ALL_GATHER -> new SliceDims(0, dim(rank));
      case REDUCE_SCATTER -> new SliceDims(dim(rank), 0);
      case ALL_TO_ALL -> new SliceDims(dim(Role.SPLIT_DIM, rank), dim(Role.CONCAT_DIM, rank));
      case ALL_REDUCE, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM -> SliceDims.FIRST;
    };
  }

  private int dim(Role role, int rank) {
    return spec.has(role) ? call.dim(spec.param(role), rank) : 0;
  }

  /**
   * {@return the element type that elements are converted to before they are reduced, which is that
   * of the result; empty if it is the operand's}
   */
  public Optional<DType> dtype() {
    return spec.has(Role.DTYPE) ? call.dtype(spec.param(Role.DTYPE)) : Optional.empty();
  }

  /** {@return the reduction; empty if nothing is reduced} */
  public Optional<ReduceOp> reduceOp() {
    if (spec.has(Role.REDUCE_OP)) {
      return Optional.of(ReduceOp.ofText(call.string(spec.param(Role.REDUCE_OP))));
    }
    return kind().reduces() ? Optional.of(ReduceOp.SUM) : Optional.empty();
  }

  /** {@return the group rank that a broadcast comes from, or that alone gets a sum} */
  public OptionalInt root() {
    if (!spec.has(Role.ROOT)) {
      return OptionalInt.empty();
    }
    long root = call.integer(spec.param(Role.ROOT));
    if (root < 0 || root > Integer.MAX_VALUE) {
      throw new OpTypeException(
          "%s is %s, but ranks count from 0".formatted(spec.param(Role.ROOT), root));
    }
    return OptionalInt.of((int) root);
  }

  /** {@return who sends to whom in a collective_permute; nobody in others} */
  public Permutation permutation() {
    if (!spec.has(Role.PAIRS)) {
      return Permutation.NONE;
    }
    var param = spec.param(Role.PAIRS);
    if (!(call.arg(param) instanceof Arg.Seq(var items))) {
      throw notPairs(param);
    }
    try {
      return new Permutation(
          items.stream().map(item -> pair(param, item)).collect(ImmutableList.toImmutableList()));
    } catch (IllegalArgumentException e) {
      throw new OpTypeException("%s: %s".formatted(param, e.getMessage()));
    }
  }

  private static Permutation.Pair pair(String param, Arg item) {
    var ends =
        item.integers()
            .filter(all -> all.length() == 2 && all.stream().allMatch(end -> end == (int) end))
            .orElseThrow(() -> notPairs(param));
    return new Permutation.Pair((int) ends.get(0), (int) ends.get(1));
  }

  private static OpTypeException notPairs(String param) {
    return new OpTypeException(param + " must be a list of pairs of ranks");
  }

  /** {@return the number of ranks that the call is for, where it states one} */
  public OptionalLong groupSize() {
    return spec.has(Role.GROUP_SIZE)
            && call.arg(spec.param(Role.GROUP_SIZE)) instanceof Arg.Int(long size)
        ? OptionalLong.of(size)
        : OptionalLong.empty();
  }

  /** {@return the algorithm that the caller names, for example {@code two_shot}} */
  public Optional<String> algorithm() {
    if (spec.has(Role.ALGORITHM)
        && call.arg(spec.param(Role.ALGORITHM)) instanceof Arg.Str(String name)) {
      return Optional.of(name);
    }
    return spec.foreign().flatMap(Foreign::algorithm);
  }

  /** {@return the rows of the operand for each rank; empty for equal parts} */
  public ImmutableLongArray inputSplits() {
    return splits(Role.INPUT_SPLIT_SIZES);
  }

  /** {@return the rows of the result from each rank; empty for equal parts} */
  public ImmutableLongArray outputSplits() {
    return splits(Role.OUTPUT_SPLIT_SIZES);
  }

  private ImmutableLongArray splits(Role role) {
    return spec.has(role) && call.has(spec.param(role))
        ? call.integers(spec.param(role))
        : ImmutableLongArray.of();
  }

  /**
   * Reads everything, so that later reads do not fail.
   *
   * @throws OpTypeException when an argument does not fit its role
   */
  void check() {
    var _ = reduceOp();
    var _ = root();
    var _ = permutation();
    var _ = inputSplits();
    var _ = outputSplits();
  }
}
