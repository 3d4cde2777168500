package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.RandomSeeds;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.PositionOps.Rule;
import dev.symplan.ir.Arg;
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
    this.op = op;
    this.arguments = op.arguments;
    this.target = target;
    this.kernel = op.kernel(target.type().sizes());
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
