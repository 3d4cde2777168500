package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A program of collectives of one group, {@code g}, that has all ranks. */
final class GroupProgram {

  /** Refuses no workspace for its size, and no variant that goes through multicast. */
  static final Target ROOMY =
      TargetFile.read(
          new SourceFile(
              "roomy.json",
              """
              {"format": "symplan-target", "version": 1, "name": "roomy", "base": "h200x4",
               "workspace_bytes": 1073741824, "multicast": true}
              """));

  private final List<String> inputs = new ArrayList<>();
  private final List<String> lines = new ArrayList<>();
  private final List<String> outputs = new ArrayList<>();

  /** {@return the name of a new input} */
  String input(String type) {
    var name = "x" + inputs.size();
    inputs.add("%s: %s".formatted(name, type));
    return name;
  }

  /** {@return the name of a value of a new op} */
  String op(String call) {
    var name = "v" + lines.size();
    lines.add("%s = %s".formatted(name, call));
    return name;
  }

  /** {@return the names of the values of a new op} */
  List<String> ops(int count, String call) {
    var names =
        IntStream.range(0, count).mapToObj(i -> "v%s_%s".formatted(lines.size(), i)).toList();
    lines.add("%s = %s".formatted(String.join(", ", names), call));
    return names;
  }

  /** {@return the name of the result of a collective that was waited for} */
  String collective(String call) {
    return op("_c10d_functional::wait_tensor(%s)".formatted(op("_c10d_functional::" + call)));
  }

  /** {@return the name of a value divided by the root mean square of its rows, and scaled} */
  String norm(String value, String weight) {
    var wide = op("aten::_to_copy(%s, dtype=torch.float32)".formatted(value));
    var squares = op("aten::pow.Tensor_Scalar(%s, 2)".formatted(wide));
    var mean = op("aten::mean.dim(%s, [-1], True)".formatted(squares));
    var root = op("aten::rsqrt(%s)".formatted(op("aten::add.Scalar(%s, 1e-5)".formatted(mean))));
    var scaled = op("aten::mul.Tensor(%s, %s)".formatted(wide, root));
    var narrow = op("aten::_to_copy(%s, dtype=torch.bfloat16)".formatted(scaled));
    return op("aten::mul.Tensor(%s, %s)".formatted(narrow, weight));
  }

  void output(String name) {
    outputs.add(name);
  }

  /**
   * {@return an all_reduce with two shots}
   *
   * @param perThread a slice has more vectors of 16 bytes than so many for each thread
   * @param inPlace whether the result takes the place of the operand
   */
  static Plan largeTwoShot(int ranks, DType dtype, int perThread, boolean inPlace) {
    long vectors = 64 * 512 * perThread + 77;
    long elements = ranks * vectors * 16 / dtype.bytes() + 3;
    var program = new GroupProgram();
    var input = program.input("%s[%s]".formatted(dtype.shortName(), elements));
    var half = program.op("aten::mul.Scalar(%s, 0.5)".formatted(input));
    program.output(program.collective("all_reduce(%s, \"sum\", \"g\")".formatted(half)));
    if (!inPlace) {
      program.output(half);
    }
    return program.plan(ranks, "all_reduce", Variant.TWO_SHOT);
  }

  /**
   * {@return all_reduces whose norms are multiplied by weights; outputs with an even number are
   * norms, those with an odd number products}
   */
  static Plan normsAndProducts(int ranks, int tokens, Variant variant) {
    return norms(ranks, tokens, variant, true);
  }

  /** {@return the same without weights, so that all outputs are norms} */
  static Plan norms(int ranks, int tokens, Variant variant) {
    return norms(ranks, tokens, variant, false);
  }

  private static Plan norms(int ranks, int tokens, Variant variant, boolean products) {
    var program = new GroupProgram();
    var value = program.input("bf16[%s, 512]".formatted(tokens));
    var scale = program.input("bf16[512]");
    for (int i = 0; i < 3; i++) {
      value = program.collective("all_reduce(%s, \"avg\", \"g\")".formatted(value));
      value = program.norm(value, scale);
      program.output(value);
      if (products) {
        var weights = program.op("aten::t(%s)".formatted(program.input("bf16[4096, 512]")));
        program.output(program.op("aten::mm(%s, %s)".formatted(value, weights)));
      }
    }
    return program.plan(ranks, "all_reduce", variant);
  }

  /** {@return the program as it is written, with this variant for all collectives of a kind} */
  Plan plan(int ranks, String kind, Variant variant) {
    return plan(ranks, asWritten(kind, variant));
  }

  /** {@return the program with these options} */
  Plan plan(int ranks, CompileOptions options) {
    var text =
        """
        graph version 1
        group g = [%s]
        graph t(%s) {
          %s
          return %s
        }
        """
            .formatted(
                IntStream.range(0, ranks)
                    .mapToObj(Integer::toString)
                    .collect(Collectors.joining(", ")),
                String.join(", ", inputs),
                String.join("\n  ", lines),
                String.join(", ", outputs));
    return Compiler.forTarget(ROOMY)
        .with(options.withMulticast(true))
        .compile(GraphParser.parse(new SourceFile("group.graph", text)));
  }

  static CompileOptions asWritten(String kind, Variant variant) {
    return CompileOptions.DEFAULT
        .withRewrites(RewriteOptions.OFF)
        .withVariants(ImmutableMap.of(kind, variant));
  }
}
