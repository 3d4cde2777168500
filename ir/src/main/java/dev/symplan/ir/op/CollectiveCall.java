package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
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

  /** {@return the name of the process group; empty where the argument is not a name} */
  public String group() {
    return call.arg(spec.group()) instanceof Arg.Str(String name) ? name : "";
  }

  /** {@return the values that each rank sends: one, or several when coalesced} */
  public ImmutableList<Value> operands() {
    return call.arg(spec.operand()).operands();
  }

  /** {@return the reduction; empty where nothing is reduced} */
  public Optional<ReduceOp> reduceOp() {
    return spec.has(Role.REDUCE_OP)
        ? Optional.of(ReduceOp.ofText(call.string(spec.param(Role.REDUCE_OP))))
        : Optional.empty();
  }

  /** {@return the group rank that a broadcast comes from} */
  public OptionalInt root() {
    if (!spec.has(Role.ROOT)) {
      return OptionalInt.empty();
    }
    long root = call.integer(spec.param(Role.ROOT));
    if (root < 0 || root > Integer.MAX_VALUE) {
      throw new OpTypeException(
          "%s is %d, but ranks count from 0".formatted(spec.param(Role.ROOT), root));
    }
    return OptionalInt.of((int) root);
  }

  /** {@return the number of ranks that the call is for, where it states one} */
  public OptionalLong groupSize() {
    return spec.has(Role.GROUP_SIZE)
            && call.arg(spec.param(Role.GROUP_SIZE)) instanceof Arg.Int(long size)
        ? OptionalLong.of(size)
        : OptionalLong.empty();
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
    var _ = inputSplits();
    var _ = outputSplits();
  }
}
