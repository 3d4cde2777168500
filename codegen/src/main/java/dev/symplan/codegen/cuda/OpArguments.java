package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.Arg;
import java.util.Optional;
import java.util.function.Function;

/**
 * The arguments of a local op, by the names of its schema; others than expected are refused.
 *
 * @param scratch memory for what its steps pass on
 */
record OpArguments(LocalOp op, Scratch scratch) {

  OpArguments(LocalOp op) {
    this(op, new Scratch());
  }

  String name() {
    return op.def().name().toString();
  }

  UnsupportedOnGpu unsupported(String what) {
    return new UnsupportedOnGpu(what, op.name(), op.span());
  }

  UnsupportedOnGpu unsupported() {
    return unsupported(name() + " has no CUDA implementation");
  }

  /**
   * Goes on with elements that kernels compute with.
   *
   * @throws UnsupportedOnGpu for others
   */
  void checkComputes(TensorRef ref) {
    var dtype = ref.type().dtype();
    if (!CTypes.computes(dtype)) {
      throw unsupported("%s of %s".formatted(name(), dtype.shortName()));
    }
  }

  private UnsupportedOnGpu unsupported(String param, Operand value) {
    return unsupported(
        "%s with %s = %s"
            .formatted(
                name(), param, value instanceof Operand.Constant(var given) ? given : value));
  }

  Operand operand(String param) {
    return op.args().get(op.def().schema().indexOf(param));
  }

  boolean hasParam(String param) {
    return op.def().schema().hasParam(param);
  }

  /** {@return whether the schema has the parameter, and it is not None} */
  boolean has(String param) {
    return hasParam(param) && !(operand(param) instanceof Operand.Constant(Arg.None _));
  }

  TensorRef tensor(String param) {
    if (operand(param) instanceof Operand.Tensor(var ref)) {
      return ref;
    }
    throw unsupported(param, operand(param));
  }

  Optional<TensorRef> optionalTensor(String param) {
    return has(param) ? Optional.of(tensor(param)) : Optional.empty();
  }

  /** {@return the tensors of a list; empty for those that are None} */
  ImmutableList<Optional<TensorRef>> tensors(String param) {
    if (operand(param) instanceof Operand.Many(var items)) {
      return items.stream()
          .map(
              item ->
                  item instanceof Operand.Tensor(var ref)
                      ? Optional.of(ref)
                      : Optional.<TensorRef>empty())
          .collect(ImmutableList.toImmutableList());
    }
    throw unsupported(param, operand(param));
  }

  Number number(String param) {
    return constant(param, Arg::number);
  }

  long integer(String param) {
    return constant(param, Arg::integer);
  }

  boolean flag(String param) {
    if (operand(param) instanceof Operand.Constant(Arg.Bool(boolean value))) {
      return value;
    }
    throw unsupported(param, operand(param));
  }

  /** {@return a list of numbers; one alone counts as a list} */
  ImmutableLongArray integers(String param) {
    return constant(param, Arg::integers);
  }

  private <T> T constant(String param, Function<Arg, Optional<T>> read) {
    if (operand(param) instanceof Operand.Constant(var value)) {
      return read.apply(value).orElseThrow(() -> unsupported(param, operand(param)));
    }
    throw unsupported(param, operand(param));
  }

  /** {@return a dimension, counted from the front} */
  int dim(String param, int rank) {
    return Math.floorMod(integer(param), Math.max(1, rank));
  }

  TensorRef result() {
    return result(0)
        .orElseThrow(() -> unsupported(name() + " without a result has no CUDA implementation"));
  }

  Optional<TensorRef> result(int index) {
    return index < op.results().size() ? op.results().get(index) : Optional.empty();
  }
}
