package dev.symplan.ir.joint;

import dev.symplan.ir.diag.Span;

/**
 * One tensor of two graphs that run one after the other.
 *
 * @param from the graph that gives or takes it, by its position
 * @param value an output of that graph, or one of its inputs
 * @param to a later graph, by its position
 * @param input the input of that graph that takes the tensor
 * @param kept whether the caller gets the output, too
 * @param copied whether the later graph may get a copy with the strides of its input, where they
 *     differ; otherwise the tensor is one memory
 * @param span where the tie is written
 */
public record Tie(
    int from, String value, int to, String input, boolean kept, boolean copied, Span span) {
  public Tie {
    if (from < 0 || to <= from) {
      throw new IllegalArgumentException(
          "graph %s does not run before graph %s".formatted(from, to));
    }
  }
}
