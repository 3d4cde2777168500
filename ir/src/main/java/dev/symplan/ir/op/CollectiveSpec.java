package dev.symplan.ir.op;

import com.google.common.base.Ascii;
import java.util.Arrays;
import java.util.Optional;

/**
 * How a collective uses its parameters, so that the planner needs no list of names.
 *
 * @param operand the parameter that is sent: a {@code Tensor} or {@code Tensor[]}
 * @param group the parameter that names the process group
 * @param reduceOp the parameter that names the reduction, where there is one
 * @param into the parameter that the result is written to, for {@code _out} forms
 */
public record CollectiveSpec(
    Kind kind, String operand, String group, Optional<String> reduceOp, Optional<String> into) {

  public CollectiveSpec {
    if (kind != Kind.CUSTOM && kind.reduces() != reduceOp.isPresent()) {
      throw new IllegalArgumentException(
          kind.reduces()
              ? "%s needs a parameter that names the reduction".formatted(kind.text())
              : "%s reduces nothing".formatted(kind.text()));
    }
  }

  /**
   * {@return the reduction that a call asks for, where there is one}
   *
   * @throws OpTypeException when there is no such reduction
   */
  public Optional<ReduceOp> reduceOp(OpCall call) {
    return reduceOp.map(param -> ReduceOp.ofText(call.string(param)));
  }

  /** What moves where. */
  public enum Kind {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    BROADCAST,
    /** Known only by its symmetric arguments; a library supplies the implementation. */
    CUSTOM;

    /** {@return whether it combines elements of different ranks} */
    public boolean reduces() {
      return this == ALL_REDUCE || this == REDUCE_SCATTER;
    }

    /** {@return the name in files and options, for example {@code all_reduce}} */
    public String text() {
      return Ascii.toLowerCase(name());
    }

    /** {@return the kind of this name} */
    public static Optional<Kind> ofText(String text) {
      return Arrays.stream(values()).filter(kind -> kind.text().equals(text)).findFirst();
    }
  }
}
