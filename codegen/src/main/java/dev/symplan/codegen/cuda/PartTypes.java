package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Streams;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.expr.Call;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.Optional;

/** A part, as expressions are bound to it. */
record PartTypes(Part part, long rowElements) implements Call {

  @Override
  public boolean hasParam(String param) {
    return part.def().schema().hasParam(param);
  }

  @Override
  public Optional<TensorType> tensor(String param) {
    return Parts.argument(part, param).filter(Parts::isTensor).map(Parts::typeOf);
  }

  @Override
  public Arg constant(String param) {
    return switch (Parts.argument(part, param).orElseThrow()) {
      case Operand.Constant(var value) -> value;
      case Operand.Tensor _, Operand.Passed _, Operand.Many _ ->
          throw Parts.unsupported(part, part.def().name() + " with a list of tensors");
    };
  }

  @Override
  public ImmutableList<DType> dtypes() {
    return Streams.concat(part.args().stream(), part.results().stream())
        .filter(Parts::isTensor)
        .map(operand -> Parts.typeOf(operand).dtype())
        .collect(ImmutableList.toImmutableList());
  }

  @Override
  public DType result() {
    return part.results().stream()
        .filter(Parts::isTensor)
        .findFirst()
        .map(result -> Parts.typeOf(result).dtype())
        .orElseThrow();
  }
}
