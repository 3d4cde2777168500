package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;

/** Makes PyTorch's ops of the products for which XLA calls cuBLAS. */
final class LibraryCalls {
  private static final Pattern NUMBER =
      Pattern.compile("\"(alpha_real|alpha_imag|beta)\":(-?[0-9.eE+-]+)");
  private static final Pattern DIMENSIONS =
      Pattern.compile("\"((?:lhs|rhs)_(?:contracting|batch))_dimensions\":\\[([\"0-9, ]*)]");
  private static final Pattern EPILOGUE = Pattern.compile("\"epilogue\":\"([A-Z_]+)\"");

  private final GraphEmitter emitter;
  private final Products products;

  LibraryCalls(GraphEmitter emitter) {
    this.emitter = emitter;
    this.products = new Products(emitter);
  }

  /**
   * {@return the product, and nothing in place of its workspace; absent if no ops compute the same}
   */
  Optional<Bound> read(HloInstruction instruction, List<Bound> operands) {
    var target = instruction.attributes().string("custom_call_target");
    if (!target.equals("__cublas$gemm") && !target.equals("__cublas$lt$matmul")) {
      return Optional.empty();
    }
    var config = instruction.attributes().text("backend_config").orElse("");
    var matcher = EPILOGUE.matcher(config);
    var epilogue = matcher.find() ? matcher.group(1) : "DEFAULT";
    double alpha = number(config, "alpha_real", 1);
    double beta = number(config, "beta", 0);
    var arrays = instruction.shape().arrays().toList();
    int extra = (beta == 0 ? 0 : 1) + (epilogue.startsWith("BIAS") ? 1 : 0);
    if (number(config, "alpha_imag", 0) != 0
        || operands.size() != 2 + extra
        || arrays.isEmpty()
        || !arrays.getFirst().exact()) {
      return Optional.empty();
    }
    var name = instruction.name();
    var shape = arrays.getFirst();
    var dot =
        new HloInstruction(
            name,
            shape,
            "dot",
            instruction.operands().subList(0, 2),
            "",
            new HloAttributes(dimensions(config)),
            instruction.span());
    return products
        .read(
            dot,
            emitter.value(operands.get(0), name + ".lhs"),
            emitter.value(operands.get(1), name + ".rhs"),
            shape)
        .flatMap(product -> finished(name, product, alpha, beta, epilogue, operands))
        .map(value -> bound(instruction.shape(), value));
  }

  private Optional<Value> finished(
      String name,
      Value product,
      double alpha,
      double beta,
      String epilogue,
      List<Bound> operands) {
    var value = product;
    if (alpha != 1) {
      value =
          emitter.op(
              name + ".scaled", "aten::mul.Tensor", new Arg.Ref(value), new Arg.Float(alpha));
    }
    if (beta != 0) {
      value =
          emitter.op(
              name + ".sum",
              "aten::add.Tensor",
              new Arg.Ref(value),
              new Arg.Ref(emitter.value(operands.get(2), name + ".addend")),
              new Arg.Float(beta));
    }
    var steps = new ArrayList<>(List.of(epilogue.split("_")));
    if (steps.remove("BIAS")) {
      value =
          emitter.op(
              name + ".biased",
              "aten::add.Tensor",
              new Arg.Ref(value),
              new Arg.Ref(emitter.value(operands.getLast(), name + ".bias")));
    }
    if (steps.remove("RELU")) {
      value = emitter.op(name + ".relu", "aten::relu", new Arg.Ref(value));
    } else if (steps.remove("GELU")) {
      value = emitter.op(name + ".gelu", "aten::gelu", new Arg.Ref(value), new Arg.Str("tanh"));
    }
    steps.remove("DEFAULT");
    return steps.isEmpty() ? Optional.of(value) : Optional.empty();
  }

  /** The arrays of the result after the first are workspaces. */
  private static Bound bound(HloShape shape, Value value) {
    return shape instanceof HloShape.Tuple(ImmutableList<HloShape> parts)
        ? new Bound.Tuple(
            ImmutableList.<Bound>builder()
                .add(new Bound.Tensor(value))
                .addAll(java.util.Collections.nCopies(parts.size() - 1, Bound.Nothing.NOTHING))
                .build())
        : new Bound.Tensor(value);
  }

  private static double number(String config, String key, double otherwise) {
    return NUMBER
        .matcher(config)
        .results()
        .filter(result -> result.group(1).equals(key))
        .findFirst()
        .map(result -> Double.parseDouble(result.group(2)))
        .orElse(otherwise);
  }

  private static ImmutableMap<String, String> dimensions(String config) {
    var found = ImmutableMap.<String, String>builder();
    DIMENSIONS
        .matcher(config)
        .results()
        .forEach(
            result -> {
              var side = result.group(1).replace("_contracting", "_contracting_dims");
              found.put(side.replace("_batch", "_batch_dims"), result.group(2).replace("\"", ""));
            });
    return found.buildKeepingLast();
  }
}
