package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.PositionOps.Rule;
import dev.symplan.ir.Arg;
import java.util.ArrayList;
import java.util.List;

/**
 * Padding with elements of the tensor itself and interpolation, and their gradients: each index of
 * a dimension gets a mix of two elements. Gradients sum, for each element, what was made of it.
 */
final class ResampledOps {
  static final ImmutableMap<String, Rule> TABLE = table();

  /** Which elements an index gets: {@code low}, and {@code share} of {@code high}. */
  private record Line(String low, String high, String share) {
    static Line of(String element) {
      return new Line(element, element, "0.0");
    }

    boolean mixes() {
      return !low.equals(high);
    }
  }

  private interface Lines {
    /**
     * {@return how a dimension is read}
     *
     * @param dim counted from the last
     * @param index of what is made
     */
    Line of(int dim, long from, long to, String index);
  }

  private ResampledOps() {}

  private static ImmutableMap<String, Rule> table() {
    var table = ImmutableMap.<String, Rule>builder();
    for (int dims = 1; dims <= 3; dims++) {
      for (var mode : List.of("reflect", "replicate")) {
        var name =
            "aten::%s_pad%sd"
                .formatted(mode.equals("reflect") ? "reflection" : "replication", dims);
        table.put(name, op -> make(op, "self", padding(op, "padding", mode)));
        table.put(name + "_backward", op -> gradient(op, padding(op, "padding", mode)));
      }
    }
    table.put("aten::pad", ResampledOps::pad);
    for (var name : List.of("nearest", "bilinear")) {
      boolean nearest = name.equals("nearest");
      table.put("aten::upsample_%s2d".formatted(name), op -> resize(op, "self", nearest));
      table.put("aten::upsample_%s2d.vec".formatted(name), op -> resize(op, "input", nearest));
      table.put(
          "aten::upsample_%s2d_backward".formatted(name),
          op -> gradient(op, resizing(op, nearest)));
    }
    return table.buildOrThrow();
  }

  private static void pad(PositionOps op) {
    var mode =
        op.arguments.operand("mode") instanceof Operand.Constant(Arg.Str(String text)) ? text : "";
    switch (mode) {
      case "constant" -> op.pad();
      case "reflect", "replicate", "circular" -> make(op, "self", padding(op, "pad", mode));
      default ->
          throw op.arguments.unsupported(
              "%s in the mode '%s'".formatted(op.arguments.name(), mode));
    }
  }

  /** The numbers count from the last dimension: before, after, before, after … */
  private static Lines padding(PositionOps op, String param, String mode) {
    var pad = op.arguments.integers(param);
    return (dim, from, _, index) -> {
      if (2 * dim >= pad.length()) {
        return Line.of(index);
      }
      long before = pad.get(2 * dim);
      long after = pad.get(2 * dim + 1);
      var at = "(%s - %s)".formatted(index, Literals.integer(before));
      return Line.of(
          switch (mode) {
            case "reflect" -> "reflected(%s, %s)".formatted(at, from);
            case "replicate" -> "clamped(%s, %s)".formatted(at, from);
            default -> {
              // Elements that are cut off do not come back at the other end.
              long cut = Math.max(0, -before);
              long kept = Math.max(1, from - cut - Math.max(0, -after));
              yield "%s + turned(%s - %s, %s)".formatted(cut, index, Math.max(0, before), kept);
            }
          });
    };
  }

  private static final String FUNCTIONS =
      """
      __device__ __forceinline__ long long reflected(long long at, long long size) {
        at = at < 0 ? -at : at;
        return at < size ? at : 2 * (size - 1) - at;
      }

      __device__ __forceinline__ long long clamped(long long at, long long size) {
        return at < 0 ? 0 : at < size ? at : size - 1;
      }

      __device__ __forceinline__ long long turned(long long at, long long size) {
        const long long rest = at % size;
        return rest < 0 ? rest + size : rest;
      }

      __device__ __forceinline__ double corner(double scale, long long at) {
        const double place = scale * (at + 0.5) - 0.5;
        return place > 0 ? place : 0;
      }

      // Not a mix where both are one element, which may be infinite.
      __device__ __forceinline__ double mixed(double a, double b, double share, bool one) {
        return one ? a : (1 - share) * a + share * b;
      }

      __device__ __forceinline__ double part(double place, long long size) {
        const double rest = place - clamped((long long)place, size);
        return rest < 0 ? 0 : rest > 1 ? 1 : rest;
      }
      """;

  private static void resize(PositionOps op, String param, boolean nearest) {
    make(op, param, resizing(op, nearest));
  }

  private static Lines resizing(PositionOps op, boolean nearest) {
    return (dim, from, to, index) -> {
      if (dim > 1) {
        return Line.of(index);
      }
      double factor = factor(op, 1 - dim);
      if (nearest) {
        // In f32 as PyTorch has it: which element is nearest depends on the rounding.
        float scale = factor > 0 ? (float) (1 / factor) : (float) from / Math.max(1, to);
        return Line.of(
            "clamped((long long)floor((float)(%s) * %s), %s)"
                .formatted(index, Literals.floating(scale, false), from));
      }
      boolean corners = op.arguments.flag("align_corners");
      double scale =
          corners
              ? to > 1 ? (double) (from - 1) / (to - 1) : 0
              : factor > 0 ? 1 / factor : (double) from / Math.max(1, to);
      var place =
          corners
              ? "%s * (%s)".formatted(Literals.floating(scale, true), index)
              : "corner(%s, %s)".formatted(Literals.floating(scale, true), index);
      return new Line(
          "clamped((long long)(%s), %s)".formatted(place, from),
          "clamped((long long)(%s) + 1, %s)".formatted(place, from),
          "part(%s, %s)".formatted(place, from));
    };
  }

  /** {@return how much a dimension grows by, where the call says so; else 0} */
  private static double factor(PositionOps op, int dim) {
    var arguments = op.arguments;
    if (!arguments.hasParam("scale_factors")) {
      var param = dim == 0 ? "scales_h" : "scales_w";
      return arguments.has(param) ? arguments.number(param).doubleValue() : 0;
    }
    return arguments.operand("scale_factors")
                instanceof Operand.Constant(Arg.Seq(ImmutableList<Arg> items))
            && items.get(dim) instanceof Arg.Float(double factor)
        ? factor
        : 0;
  }

  private static Line line(Lines lines, TensorRef from, TensorRef to, int dim, String index) {
    int rank = from.type().rank();
    return lines.of(rank - 1 - dim, from.type().size(dim), to.type().size(dim), index);
  }

  private static void make(PositionOps op, String param, Lines lines) {
    var self = op.arguments.tensor(param);
    var result = op.arguments.result();
    int rank = self.type().rank();
    var kernel = op.kernel(result.type().sizes());
    kernel.function(FUNCTIONS);
    var all = new ArrayList<Line>();
    for (int dim = 0; dim < rank; dim++) {
      all.add(line(lines, self, result, dim, "i" + dim));
    }
    if (all.stream().noneMatch(Line::mixes)) {
      op.move(kernel, self, all.stream().map(Line::low).toList());
      return;
    }
    op.arguments.checkComputes(self);
    // The last two dimensions mix.
    var low = all.get(rank - 2);
    var next = all.get(rank - 1);
    kernel.line("const double down = %s, right = %s;".formatted(low.share(), next.share()));
    kernel.line("double value[4];");
    for (int corner = 0; corner < 4; corner++) {
      var indices = new ArrayList<>(all.stream().map(Line::low).toList());
      indices.set(rank - 2, corner / 2 == 0 ? low.low() : low.high());
      indices.set(rank - 1, corner % 2 == 0 ? next.low() : next.high());
      kernel.line("value[%s] = (double)%s;".formatted(corner, kernel.value(self, indices)));
    }
    kernel.line("const bool level = %s == %s;".formatted(low.low(), low.high()));
    kernel.line("const bool same = %s == %s;".formatted(next.low(), next.high()));
    kernel.line("const double left = mixed(value[0], value[2], down, level);");
    kernel.line("const double other = mixed(value[1], value[3], down, level);");
    kernel.set(
        result,
        kernel.indices(),
        "(%s)mixed(left, other, right, same)".formatted(CTypes.computed(result.type().dtype())));
    op.launch(kernel, result.type().sizes());
  }

  private static void gradient(PositionOps op, Lines lines) {
    var grad = op.arguments.tensor("grad_output");
    var result = op.arguments.result();
    op.arguments.checkComputes(grad);
    int rank = result.type().rank();
    var kernel = op.kernel(result.type().sizes());
    kernel.function(FUNCTIONS);
    var indices = new ArrayList<>(kernel.indices());
    kernel.line("double sum = 0;");
    int loops = 0;
    var weight = new StringBuilder();
    for (int dim = 0; dim < rank; dim++) {
      var line = line(lines, result, grad, dim, "o" + dim);
      if (!line.low().equals("o" + dim)) {
        kernel.line(
            "for (long long o%1$s = 0; o%1$s < %2$s; o%1$s++) {"
                .formatted(dim, grad.type().size(dim)));
        if (line.mixes()) {
          kernel.line("const double share%s = %s;".formatted(dim, line.share()));
          kernel.line(
              "const double w%1$s = (%2$s == i%1$s ? 1 - share%1$s : 0)".formatted(dim, line.low())
                  + " + (%2$s == i%1$s ? share%1$s : 0);".formatted(dim, line.high()));
          weight.append("w%s * ".formatted(dim));
        } else {
          kernel.line("const int w%1$s = %2$s == i%1$s;".formatted(dim, line.low()));
        }
        kernel.line("if (w%s == 0) {\n  continue;\n}".formatted(dim));
        indices.set(dim, "o" + dim);
        loops++;
      }
    }
    kernel.line("sum += %s(double)%s;".formatted(weight, kernel.value(grad, indices)));
    kernel.line("}".repeat(loops));
    kernel.set(
        result, kernel.indices(), "(%s)sum".formatted(CTypes.computed(result.type().dtype())));
    op.launch(kernel, result.type().sizes());
  }
}
