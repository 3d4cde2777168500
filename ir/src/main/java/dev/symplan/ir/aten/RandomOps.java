package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.DoublePredicate;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * Random numbers. Ops that draw from a generator change its state, and so must neither vanish nor
 * run twice; those that are given a seed may.
 */
final class RandomOps {
  private static final Set<String> CONTINUOUS =
      Set.of(
          "rand",
          "randn",
          "rand_like",
          "randn_like",
          "normal_functional",
          "normal_",
          "uniform",
          "uniform_",
          "exponential",
          "exponential_");

  private RandomOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(drawing(), dropout(), seeded()).flatMap(specs -> specs);
  }

  private static Stream<OpSpec> table(String schemas, Function<OpCall, OpResult> rule) {
    return Table.single(
        schemas,
        call -> {
          var result = rule.apply(checked(call));
          if (CONTINUOUS.contains(call.schema().name().name())) {
            checkNumbers((TensorType) result.type());
          }
          return result;
        },
        OpTrait.SIDE_EFFECT);
  }

  /** Ops that draw from a continuous distribution do not exist for integers. */
  private static void checkNumbers(TensorType type) {
    var kind = type.dtype().kind();
    if (kind != DType.Kind.FLOAT && kind != DType.Kind.COMPLEX) {
      throw new OpTypeException("draws floats, not " + type.dtype().shortName());
    }
  }

  /** Refuses what no numbers can be drawn with; a number that only the caller knows may be any. */
  private static OpCall checked(OpCall call) {
    checkState(call);
    switch (call.schema().name().name()) {
      case "uniform", "uniform_" ->
          check(
              call,
              "from",
              from -> find(call, "to").map(to -> from <= to).orElse(true),
              "at most 'to'");
      case "exponential", "exponential_" -> check(call, "lambd", rate -> rate > 0, "above 0");
      case "normal_functional", "normal_" -> check(call, "std", std -> std >= 0, "0 or more");
      case "bernoulli", "bernoulli_" -> checkProbability(call);
      case "randint", "randint_like" -> checkRange(call);
      default -> {}
    }
    return call;
  }

  private static void checkProbability(OpCall call) {
    if (call.schema().hasParam("p")) {
      check(call, "p", p -> p >= 0 && p <= 1, "between 0 and 1");
    }
  }

  private static void checkRange(OpCall call) {
    var low =
        call.schema().hasParam("low")
            ? call.arg("low").number().map(Number::longValue)
            : Optional.of(0L);
    var high = call.arg("high").number().map(Number::longValue);
    if (low.isPresent() && high.isPresent() && high.get() <= low.get()) {
      throw new OpTypeException(
          "'high' must be above %s, but is %s".formatted(low.get(), high.get()));
    }
  }

  private static Optional<Double> find(OpCall call, String param) {
    return call.arg(param).number().map(Number::doubleValue);
  }

  private static void check(OpCall call, String param, DoublePredicate isRight, String wanted) {
    find(call, param)
        .filter(value -> !isRight.test(value))
        .ifPresent(
            value -> {
              throw new OpTypeException(
                  "'%s' must be %s, but is %s".formatted(param, wanted, value));
            });
  }

  /** A generator that is given as its state is a row of numbers. */
  private static void checkState(OpCall call) {
    if (call.schema().hasParam("generator")
        && call.arg("generator") instanceof Arg.Ref(var state)
        && state.isTensor()
        && state.tensor().rank() != 1) {
      throw new OpTypeException(
          "the state of a generator has one dimension, but 'generator' is " + state.tensor());
    }
  }

  private static Stream<OpSpec> drawing() {
    return Stream.of(
            table(
                """
                aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> CreationOps.sized(call, DType.F32)),
            table(
                """
                aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::randint.generator(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call -> CreationOps.sized(call, DType.I64)),
            table(
                """
                aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                aten::rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                aten::randn_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                aten::randint_like.generator(Tensor self, SymInt high, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                aten::randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
                """,
                CreationOps::like),
            table(
                """
                aten::randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                aten::randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
                """,
                call ->
                    CreationOps.vector(call.dtype("dtype").orElse(DType.I64), call.integer("n"))),
            table(
                """
                aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor
                aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor
                aten::normal_functional(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor
                aten::uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor
                aten::exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor
                """,
                call -> OpResult.fresh(Layouts.preserved(call.tensor("self")))),
            table(
                """
                aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)
                aten::uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)
                aten::exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)
                aten::normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)
                """,
                call -> ViewOps.whole(call.value("self"))),
            table(
                """
                aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor
                """,
                RandomOps::samples),
            table(
                """
                prims::inductor_seed(Device device) -> Tensor
                """,
                call -> OpResult.fresh(DType.I64, ImmutableLongArray.of())),
            table(
                """
                prims::inductor_seeds(int count, Device device) -> Tensor
                """,
                call -> CreationOps.vector(DType.I64, call.integer("count"))))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> dropout() {
    return Stream.of(
            Table.ops(
                """
                aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)
                """,
                call -> {
                  if (!call.has("train") || call.bool("train")) {
                    checkProbability(call);
                    checkNumbers(call.tensor("input"));
                  }
                  var input = Layouts.preserved(call.tensor("input"));
                  return List.of(
                      OpResult.fresh(input), OpResult.fresh(input.withDType(DType.BOOL)));
                },
                OpTrait.SIDE_EFFECT),
            Table.single(
                """
                aten::dropout(Tensor input, float p, bool train) -> Tensor
                """,
                RandomOps::dropped))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> seeded() {
    return Stream.of(
            Table.single(
                """
                prims::inductor_lookup_seed(Tensor seeds, int index) -> Tensor
                """,
                call -> {
                  var seeds = call.tensor("seeds");
                  long index = call.integer("index");
                  if (seeds.rank() != 1 || index < 0 || index >= seeds.size(0)) {
                    throw new OpTypeException(
                        "seed %s does not exist in %s".formatted(index, seeds));
                  }
                  return OpResult.fresh(DType.I64, ImmutableLongArray.of());
                }),
            Table.single(
                """
                prims::inductor_random(SymInt[] size, Tensor seed, str mode, *, ScalarType? align_dtype=None) -> Tensor
                """,
                call -> OpResult.fresh(DType.F32, Shapes.checked(call.integers("size")))),
            Table.single(
                """
                prims::inductor_randint(SymInt low, SymInt high, SymInt[] size, Tensor seed) -> Tensor
                """,
                call -> OpResult.fresh(DType.I64, Shapes.checked(call.integers("size")))))
        .flatMap(specs -> specs);
  }

  private static OpResult samples(OpCall call) {
    var self = call.tensor("self");
    long count = call.integer("num_samples");
    if (self.rank() < 1 || self.rank() > 2 || count <= 0) {
      throw new OpTypeException(
          "cannot take %s samples of %s; weights have 1 or 2 dimensions".formatted(count, self));
    }
    return OpResult.fresh(DType.I64, Shapes.with(self.sizes(), self.rank() - 1, count));
  }

  private static OpResult dropped(OpCall call) {
    checkProbability(call);
    var input = call.value("input");
    if (!call.bool("train") || call.number("p") == 0) {
      return ViewOps.whole(input);
    }
    checkNumbers(input.tensor());
    return OpResult.fresh(Layouts.preserved(input.tensor()));
  }
}
