package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.expr.Binding;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.codegen.expr.RowDims;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The properties of an op that kernels need: the types of its tensors, its arguments, and whether
 * it is supported.
 */
final class Parts {
  private Parts() {}

  static UnsupportedOnGpu unsupported(Part part, String what) {
    return new UnsupportedOnGpu(what, part.name(), part.span());
  }

  static UnsupportedOnGpu unsupported(Part part) {
    return unsupported(part, part.def().name() + " has no CUDA implementation");
  }

  /**
   * Goes on with elements that kernels compute with.
   *
   * @throws UnsupportedOnGpu for others
   */
  static void checkComputes(Part part, DType dtype) {
    if (!CTypes.computes(dtype)) {
      throw unsupported(part, "%s of %s".formatted(part.def().name(), dtype.shortName()));
    }
  }

  /** {@return the tensors in memory that ops read and write, each as often as they do} */
  static ImmutableList<TensorRef> tensors(List<Part> parts) {
    return parts.stream()
        .flatMap(part -> Stream.concat(read(part), part.results().stream()))
        .flatMap(Operand::tensors)
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return the arguments that are read} */
  static Stream<Operand> read(Part part) {
    return IntStream.range(0, part.args().size())
        .filter(argument -> isRead(part, argument))
        .mapToObj(part.args()::get);
  }

  /**
   * {@return whether an argument is read} Of a tensor that gives another one its type, only that
   * counts, and it may have any shape.
   */
  static boolean isRead(Part part, int argument) {
    return !Pointwise.supports(part)
        || Binding.params(Expressions.get(part.def().name().toString()))
            .contains(part.def().schema().params().get(argument).name());
  }

  /** {@return the type of an operand or result that is a tensor} */
  static TensorType typeOf(Operand operand) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> ref.type();
      case Operand.Passed(var _, var type) -> type;
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    };
  }

  static boolean isTensor(Operand operand) {
    return switch (operand) {
      case Operand.Tensor _, Operand.Passed _ -> true;
      case Operand.Many _, Operand.Constant _ -> false;
    };
  }

  /** {@return an op's expressions for this call} */
  static Binding bind(Part part, ImmutableList<Expr> exprs, PartTypes call) {
    try {
      return Binding.of(exprs, call);
    } catch (IllegalArgumentException e) {
      throw unsupported(part, "%s with %s".formatted(part.def().name(), e.getMessage()));
    }
  }

  /** {@return the only result of a part} */
  static Operand result(Part part) {
    if (part.results().size() != 1) {
      throw unsupported(part);
    }
    return part.results().getFirst();
  }

  /** {@return the type of the first operand that is a tensor: what ops by rows go over} */
  static TensorType main(Part part) {
    return part.args().stream()
        .filter(Parts::isTensor)
        .findFirst()
        .map(Parts::typeOf)
        .orElseThrow(() -> unsupported(part));
  }

  /** {@return an argument; empty if the schema has no such parameter} */
  static Optional<Operand> argument(Part part, String param) {
    var schema = part.def().schema();
    return schema.hasParam(param)
        ? Optional.of(part.args().get(schema.indexOf(param)))
        : Optional.empty();
  }

  /** {@return an argument that is not a tensor} */
  static Optional<Arg> constant(Part part, String param) {
    return argument(part, param)
        .flatMap(
            operand ->
                operand instanceof Operand.Constant(var value)
                    ? Optional.of(value)
                    : Optional.empty());
  }

  /** {@return the dimensions that an op reduces, normalizes or scans} */
  static List<Integer> dims(Part part, int rank) {
    return RowDims.of(new PartTypes(part, 1), part.def().name().overload(), rank);
  }
}
