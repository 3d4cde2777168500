package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Choosing;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.RandomSeeds;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.PositionOps.Rule;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.List;
import java.util.Optional;

/**
 * Ops that draw random numbers, each by its position: the numbers of the host backend, by
 * Philox-4x32 with 10 rounds.
 */
final class RandomNumbers {
  private static final String PHILOX =
      """
      struct Drawn {
        unsigned x, y, z, w;
      };

      __device__ __forceinline__ Drawn philox(unsigned long long seed, unsigned long long position) {
        unsigned c0 = (unsigned)position, c1 = (unsigned)(position >> 32), c2 = 0, c3 = 0;
        unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
      #pragma unroll
        for (int round = 0; round < 10; round++) {
          unsigned long long a = (unsigned long long)c0 * 0xD2511F53u;
          unsigned long long b = (unsigned long long)c2 * 0xCD9E8D57u;
          c0 = (unsigned)(b >> 32) ^ c1 ^ k0;
          c2 = (unsigned)(a >> 32) ^ c3 ^ k1;
          c1 = (unsigned)b;
          c3 = (unsigned)a;
          k0 += 0x9E3779B9u;
          k1 += 0xBB67AE85u;
        }
        return {c0, c1, c2, c3};
      }

      __device__ __forceinline__ unsigned long long bits(Drawn drawn) {
        return drawn.x | (unsigned long long)drawn.y << 32;
      }

      // In [0, 1): the factor is the largest float below 2^-31.
      __device__ __forceinline__ float uniform(unsigned bits) {
        int number = (int)bits;
        return (number < 0 ? -number - 1 : number) * 4.6566127342e-10f;
      }

      __device__ __forceinline__ double normal(Drawn drawn) {
        float first = uniform(drawn.x);
        double radius = sqrt(-2 * log((double)(first < 1.0e-7f ? 1.0e-7f : first)));
        return radius * cos(0x1.921fb54442d18p2 * uniform(drawn.y));
      }
      """;

  private static final String UNIFORM = "uniform(drawn.x)";
  private static final String NORMAL = "normal(drawn)";

  static final ImmutableMap<String, Rule> TABLE = table();

  private final PositionOps op;
  private final OpArguments arguments;
  private final PositionKernel kernel;
  private final TensorRef target;

  private RandomNumbers(PositionOps op, TensorRef target) {
    this(op, target, op.kernel(target.type().sizes()));
  }

  private RandomNumbers(PositionOps op, TensorRef target, PositionKernel kernel) {
    this.op = op;
    this.arguments = op.arguments;
    this.target = target;
    this.kernel = kernel;
    kernel.function(PHILOX);
  }

  private static ImmutableMap<String, Rule> table() {
    var table = ImmutableMap.<String, Rule>builder();
    for (var form : List.of("", ".generator", "_like", "_like.generator")) {
      table.put("aten::rand" + form, op -> result(op).fill(UNIFORM));
      table.put("aten::randn" + form, op -> result(op).fill(NORMAL));
      table.put("aten::randint" + form, op -> result(op).integers());
    }
    for (var form :
        List.of(".low", ".low_generator", "_like.low_dtype", "_like.low_generator_dtype")) {
      table.put("aten::randint" + form, op -> result(op).integers());
    }
    table.put("aten::bernoulli", op -> result(op).bernoulli());
    table.put("aten::bernoulli.p", op -> result(op).chosen());
    table.put("aten::bernoulli_.float", op -> self(op).chosen());
    table.put("aten::normal_functional", op -> result(op).normal());
    table.put("aten::normal_", op -> self(op).normal());
    table.put("aten::uniform", op -> result(op).uniform());
    table.put("aten::uniform_", op -> self(op).uniform());
    table.put("aten::exponential", op -> result(op).exponential());
    table.put("aten::exponential_", op -> self(op).exponential());
    for (var form : List.of("", ".generator")) {
      table.put("aten::randperm" + form, RandomNumbers::permutation);
    }
    table.put("aten::multinomial", RandomNumbers::samples);
    table.put("aten::dropout", op -> result(op).dropOut(Optional.empty()));
    table.put("aten::native_dropout", RandomNumbers::nativeDropout);
    table.put("prims::inductor_seed", op -> result(op).fill("(long long)bits(drawn)"));
    table.put("prims::inductor_seeds", op -> result(op).fill("(long long)bits(drawn)"));
    table.put("prims::inductor_lookup_seed", RandomNumbers::lookUp);
    table.put("prims::inductor_random", op -> result(op).seeded());
    table.put("prims::inductor_randint", op -> result(op).seededIntegers());
    return table.buildOrThrow();
  }

  private static RandomNumbers result(PositionOps op) {
    return new RandomNumbers(op, op.arguments.result());
  }

  private static RandomNumbers self(PositionOps op) {
    return new RandomNumbers(op, op.arguments.tensor("self"));
  }

  /** Draws from the generator that is given, or else from one of the op's own. */
  private void seed() {
    if (!arguments.has("generator")) {
      seed(RandomSeeds.of(arguments.op().name()));
    } else if (arguments.operand("generator") instanceof Operand.Constant(Arg.Str(String name))) {
      seed(RandomSeeds.of(name));
    } else {
      state(arguments.tensor("generator"));
    }
  }

  private void seed(long value) {
    kernel.once("unsigned long long seed = 0x%sULL;".formatted(Long.toHexString(value)));
  }

  private void state(TensorRef state) {
    arguments.checkComputes(state);
    if (state.type().rank() != 1) {
      throw arguments.unsupported(
          "%s with a state of %s".formatted(arguments.name(), state.type()));
    }
    kernel.function(RandomSeeds.mixedInCuda());
    kernel.once("unsigned long long seed = 0;");
    kernel.once(
        "for (long long s = 0; s < %s; s++) {\n  seed = mixed(seed, (unsigned long long)%s);\n}"
            .formatted(state.type().size(0), kernel.value(state, List.of("s"))));
  }

  private void seedOfInductor() {
    var seed = arguments.tensor("seed");
    kernel.once(
        "unsigned long long seed = (unsigned long long)%s;"
            .formatted(kernel.value(seed, List.of())));
  }

  private void fill(String number) {
    seed();
    set(number);
  }

  private void set(String number) {
    arguments.checkComputes(target);
    kernel.line("Drawn drawn = philox(seed, i);");
    kernel.set(target, kernel.indices(), number);
    op.launch(kernel, target.type().sizes());
  }

  private String number(String param) {
    return Literals.floating(arguments.number(param).doubleValue(), true);
  }

  private String integersFrom(long low) {
    long count = Math.max(1, arguments.integer("high") - low);
    return "%s + (long long)(bits(drawn) %% %sULL)".formatted(Literals.integer(low), count);
  }

  private void integers() {
    fill(integersFrom(arguments.hasParam("low") ? arguments.integer("low") : 0));
  }

  private void bernoulli() {
    var self = arguments.tensor("self");
    arguments.checkComputes(self);
    fill("(double)%s < %s ? 1 : 0".formatted(UNIFORM, kernel.value(self, kernel.indices())));
  }

  private void chosen() {
    fill("(double)%s < %s ? 1 : 0".formatted(UNIFORM, number("p")));
  }

  private void normal() {
    fill("%s + %s * %s".formatted(number("mean"), number("std"), NORMAL));
  }

  private void uniform() {
    double from = arguments.number("from").doubleValue();
    double width = arguments.number("to").doubleValue() - from;
    fill(
        "%s + %s * %s"
            .formatted(Literals.floating(from, true), Literals.floating(width, true), UNIFORM));
  }

  private void exponential() {
    fill("-log1p(-(double)%s) / %s".formatted(UNIFORM, number("lambd")));
  }

  private void seeded() {
    seedOfInductor();
    var mode = text("mode");
    switch (mode) {
      case "rand" -> set(UNIFORM);
      case "randn" -> set(NORMAL);
      default ->
          throw arguments.unsupported("%s of the mode '%s'".formatted(arguments.name(), mode));
    }
  }

  private String text(String param) {
    return arguments.operand(param) instanceof Operand.Constant(Arg.Str(String value)) ? value : "";
  }

  private void seededIntegers() {
    seedOfInductor();
    set(integersFrom(arguments.integer("low")));
  }

  /** In the order of random keys. */
  private static void permutation(PositionOps op) {
    var result = op.arguments.result();
    op.arguments.checkComputes(result);
    if (result.type().numel() > 0) {
      var keys = op.scratch.take(TensorType.contiguous(DType.U64, result.type().numel()));
      new RandomNumbers(op, keys).fill("bits(drawn)");
      LongSort.take(op, keys, 0, false, Optional.empty(), Optional.of(result));
    }
  }

  /**
   * A block for each row, each of whose threads adds up a part of the weights: as many parts as the
   * host has, so that both choose the same.
   */
  private static void samples(PositionOps op) {
    var arguments = op.arguments;
    var given = arguments.tensor("self");
    var result = arguments.result();
    arguments.checkComputes(given);
    var self = given.type().rank() == 1 ? Moves.unsqueeze(given, 0) : given;
    var to = result.type().rank() == 1 ? Moves.unsqueeze(result, 0) : result;
    long count = self.type().size(1);
    boolean again = arguments.flag("replacement");
    if (result.type().numel() == 0) {
      return;
    }
    var weights = op.scratch.take(self.type().contiguous().withDType(DType.F64));
    var sizes = ImmutableLongArray.of(self.type().size(0), Choosing.PARTS);
    var random = new RandomNumbers(op, weights, op.kernel(sizes));
    var kernel = random.kernel;
    random.seed();
    kernel.once("__shared__ double sums[%s];".formatted(Choosing.PARTS));
    kernel.line("for (long long j = i1; j < %s; j += %s) {".formatted(count, Choosing.PARTS));
    kernel.line("  const double w = (double)%s;".formatted(kernel.value(self, List.of("i0", "j"))));
    kernel.line("  if (!(w >= 0)) {\n    __trap();\n  }");
    kernel.set(weights, List.of("i0", "j"), "w");
    kernel.line("}");
    kernel.line("__syncthreads();");
    kernel.line("const long long part = %s;".formatted(Choosing.part(count)));
    kernel.line("for (long long s = 0; s < %s; s++) {".formatted(to.type().size(1)));
    kernel.line("  double sum = 0;");
    kernel.line(
        "  for (long long j = i1 * part; j < (i1 + 1) * part && j < %s; j++) {".formatted(count));
    kernel.line("    sum += %s;".formatted(kernel.value(weights, List.of("i0", "j"))));
    kernel.line("  }");
    kernel.line("  sums[i1] = sum;");
    kernel.line("  __syncthreads();");
    kernel.line("  if (i1 == 0) {");
    kernel.line("    double total = 0;");
    kernel.line("    for (int p = 0; p < %s; p++) {".formatted(Choosing.PARTS));
    kernel.line("      total += sums[p];");
    kernel.line("    }");
    kernel.line("    Drawn drawn = philox(seed, i0 * %sULL + s);".formatted(to.type().size(1)));
    kernel.line("    double rest = (double)%s * total;".formatted(UNIFORM));
    kernel.line("    long long last = -1;");
    kernel.line("    bool inside = false;");
    kernel.line("    for (int p = 0; p < %s && !inside; p++) {".formatted(Choosing.PARTS));
    kernel.line("      if (sums[p] > 0) {");
    kernel.line("        last = p;");
    kernel.line("        inside = rest < sums[p];");
    kernel.line("        rest -= inside ? 0 : sums[p];");
    kernel.line("      }");
    kernel.line("    }");
    kernel.line("    if (last < 0) {\n      __trap();\n    }");
    kernel.line("    long long at = -1;");
    kernel.line(
        "    for (long long j = last * part; j < (last + 1) * part && j < %s; j++) {"
            .formatted(count));
    kernel.line("      const double w = %s;".formatted(kernel.value(weights, List.of("i0", "j"))));
    kernel.line("      if (w > 0) {");
    kernel.line("        at = j;");
    kernel.line("        rest -= w;");
    kernel.line("        if (inside && rest < 0) {\n          break;\n        }");
    kernel.line("      }");
    kernel.line("    }");
    kernel.set(to, List.of("i0", "s"), "at");
    if (!again) {
      kernel.set(weights, List.of("i0", "at"), "0");
    }
    kernel.line("  }");
    kernel.line("  __syncthreads();");
    kernel.line("}");
    op.launch(kernel, sizes);
  }

  private static void lookUp(PositionOps op) {
    op.copy(
        Moves.select(op.arguments.tensor("seeds"), 0, op.arguments.integer("index")),
        op.arguments.result());
  }

  private static void nativeDropout(PositionOps op) {
    var mask = op.arguments.result(1);
    if (op.arguments.has("train") && !op.arguments.flag("train")) {
      op.arguments.result(0).ifPresent(result -> op.copy(op.arguments.tensor("input"), result));
      mask.ifPresent(all -> op.fill(all, 1));
      return;
    }
    op.arguments
        .result(0)
        .or(() -> mask)
        .ifPresent(target -> new RandomNumbers(op, target).dropOut(mask));
  }

  private void dropOut(Optional<TensorRef> mask) {
    double p = arguments.number("p").doubleValue();
    double scale = p == 1 ? 0 : 1 / (1 - p);
    var input = arguments.tensor("input");
    arguments.checkComputes(input);
    seed();
    kernel.line("Drawn drawn = philox(seed, i);");
    kernel.line("bool kept = (double)%s >= %s;".formatted(UNIFORM, number("p")));
    arguments
        .result(0)
        .ifPresent(
            result ->
                kernel.set(
                    result,
                    kernel.indices(),
                    "kept ? %s * %s : 0"
                        .formatted(
                            kernel.value(input, kernel.indices()),
                            PositionKernel.number(input.type().dtype(), scale))));
    mask.ifPresent(kept -> kernel.set(kept, kernel.indices(), "kept"));
    op.launch(kernel, target.type().sizes());
  }
}
