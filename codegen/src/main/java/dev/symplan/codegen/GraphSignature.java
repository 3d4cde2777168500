package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Border;

/**
 * What one graph of a program takes and gives: ranges of the program's inputs and outputs, from the
 * first index to the one behind the last. An input that a later graph takes as well is of the first
 * graph that takes it.
 */
public record GraphSignature(
    String name, int firstInput, int endInput, int firstOutput, int endOutput) {

  /** {@return the graphs of an executable, in the order in which they run} */
  public static ImmutableList<GraphSignature> allOf(Executable executable) {
    var program = executable.ranks().getFirst();
    var graphs = ImmutableList.<GraphSignature>builder();
    var name = executable.name();
    int input = 0;
    int output = 0;
    for (var instruction : program.instructions()) {
      if (instruction instanceof Border(var next, int inputs, int outputs)) {
        graphs.add(new GraphSignature(name, input, inputs, output, outputs));
        name = next;
        input = inputs;
        output = outputs;
      }
    }
    graphs.add(
        new GraphSignature(name, input, program.inputs().size(), output, program.outputs().size()));
    return graphs.build();
  }
}
