package dev.symplan.bench;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphParser;
import java.util.Locale;
import java.util.SplittableRandom;

/**
 * Programs for a 3-D mesh of ranks: each stage of a pipeline has a graph, which replicas run over
 * different data, each on several ranks.
 *
 * <p>A stage is an MLP whose layers end in an all-reduce of the replica's ranks, with the gradients
 * of one product, which all replicas add up. At the end, the stage hands its tokens on to the next
 * one, and the last to the first, as interleaved schedules do. That is PyTorch's {@code
 * permute_tensor}: an {@code all_to_all_single} in which each rank sends all rows to one other. A
 * seed decides what each stage computes between the collectives.
 *
 * @param stages how many graphs there are
 * @param data how many replicas a stage has
 * @param tensor how many ranks a replica has
 * @param layers of one stage
 */
public record PipelineProgram(int stages, int data, int tensor, int layers, long seed) {
  private static final long TOKENS = 2048;
  private static final long HIDDEN = 1024;
  private static final long WIDTH = 512;
  private static final String[] ACTIVATIONS = {"silu", "relu", "gelu", "tanh"};

  public PipelineProgram {
    if (stages < 1 || data < 1 || tensor < 1 || layers < 1) {
      throw new IllegalArgumentException("a mesh and a stage have at least one of each");
    }
  }

  /** {@return the program of all stages} */
  public Program program() {
    var text = head(stages);
    for (int stage = 0; stage < stages; stage++) {
      int each = data * tensor;
      var ranks = " ranks [%s:%s]".formatted(stage * each, (stage + 1) * each);
      appendStage(text, stage, stages == 1 ? "" : ranks, stages);
    }
    return parse(text);
  }

  /** {@return the program of one stage, for its ranks alone, which hands tokens on to itself} */
  public Program alone(int stage) {
    var text = head(1);
    appendStage(text, stage, "", 1);
    return parse(text);
  }

  private static Program parse(StringBuilder text) {
    return GraphParser.parse(new SourceFile("pipeline.graph", text.toString()));
  }

  private StringBuilder head(int present) {
    return new StringBuilder(
        """
        graph version 1
        group pp = mesh [%1$s, %2$s, %3$s] dim 0
        group dp = mesh [%1$s, %2$s, %3$s] dim 1
        group tp = mesh [%1$s, %2$s, %3$s] dim 2
        """
            .formatted(present, data, tensor));
  }

  /**
   * @param present how many stages the program has
   */
  private void appendStage(StringBuilder text, int stage, String ranks, int present) {
    var random = new SplittableRandom(seed + stage);
    text.append("graph stage(x0: bf16[%s, %s]".formatted(TOKENS, HIDDEN));
    for (int layer = 0; layer < layers; layer++) {
      text.append(
          ", up%1$s: bf16[%2$s, %3$s], down%1$s: bf16[%3$s, %2$s]".formatted(layer, HIDDEN, WIDTH));
    }
    text.append(")").append(ranks).append(" {\n");
    var gradients = new StringBuilder();
    for (int layer = 0; layer < layers; layer++) {
      var activation = ACTIVATIONS[random.nextInt(ACTIVATIONS.length)];
      text.append(
          """
            h%1$s = aten::mm(x%1$s, up%1$s)
            a%1$s = aten::%3$s(h%1$s)
            p%1$s = aten::mm(a%1$s, down%1$s)
            r%1$s = _c10d_functional::all_reduce(p%1$s, "sum", "tp")
            y%1$s = _c10d_functional::wait_tensor(r%1$s)
            x%2$s = aten::add.Tensor(x%1$s, y%1$s)
            t%1$s = aten::t(a%1$s)
            d%1$s = aten::mm(t%1$s, y%1$s)
            g%1$s = _c10d_functional::all_reduce(d%1$s, "sum", "dp")
            w%1$s = _c10d_functional::wait_tensor(g%1$s)
          """
              .formatted(layer, layer + 1, activation));
      gradients.append(", w").append(layer);
    }
    int at = stage % present;
    text.append(
        """
          sent = _c10d_functional::all_to_all_single(x%s, %s, %s, "pp")
          next = _c10d_functional::wait_tensor(sent)
          return next%s
        }
        """
            .formatted(
                layers,
                rowsOf((at + present - 1) % present, present),
                rowsOf((at + 1) % present, present),
                gradients));
  }

  /** {@return all rows for one rank of the pipeline, none for the others} */
  private static String rowsOf(int peer, int present) {
    var rows = new StringBuilder("[");
    for (int i = 0; i < present; i++) {
      rows.append(i > 0 ? ", " : "").append(i == peer ? TOKENS : 0);
    }
    return rows.append(']').toString();
  }

  /** {@return its difference from others, for people} */
  @Override
  public String toString() {
    return String.format(
        Locale.ROOT, "%sx%sx%s, %s layers, seed %s", stages, data, tensor, layers, seed);
  }
}
