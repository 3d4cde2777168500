package dev.symplan.runtime.tensor;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import java.util.Arrays;

/**
 * The shortest float type that each value of a graph was rounded to on its way from the inputs.
 *
 * <p>Inputs are exact, whatever their type. Two correct evaluations differ by about the precision
 * of that type, as they may add in different orders before they round.
 */
public final class Rounding {
  private final DType[] ofValue;

  private Rounding(DType[] ofValue) {
    this.ofValue = ofValue;
  }

  /** {@return the types of a graph's values} */
  public static Rounding of(Graph graph) {
    var ofValue = new DType[graph.valueCount()];
    Arrays.fill(ofValue, DType.F64);
    for (var op : graph.ops()) {
      var shortest = DType.F64;
      for (var operand : op.operands()) {
        shortest = shorter(shortest, ofValue[operand.id()]);
      }
      var results = op.infer();
      for (int i = 0; i < op.results().size(); i++) {
        var result = op.results().get(i);
        boolean rounds = result.isTensor() && results.get(i).view().isEmpty();
        ofValue[result.id()] = rounds ? shorter(shortest, result.tensor().dtype()) : shortest;
      }
    }
    return new Rounding(ofValue);
  }

  /** {@return the type for an output of the graph; f64 for one that no float op had part in} */
  public DType ofOutput(Arg output) {
    return output instanceof Arg.Ref(Value value) ? ofValue[value.id()] : DType.F64;
  }

  private static DType shorter(DType a, DType b) {
    return b.isFloat() && b.bytes() < a.bytes() ? b : a;
  }
}
