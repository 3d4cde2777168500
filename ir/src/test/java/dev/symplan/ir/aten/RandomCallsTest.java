package dev.symplan.ir.aten;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.ArgBinder;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.op.SchemaType;
import dev.symplan.ir.testkit.Fuzz;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Calls every op with arguments that fit its schema but, mostly, not each other. */
@Tag("random")
class RandomCallsTest {
  private static final int CALLS = 300;
  private static final long SEED = Fuzz.seed(20261121);

  private final Random random = new Random(SEED);
  private int nextId;

  /** The type of most tensors of a call, so that some calls get further than their first check. */
  private TensorType usual = TensorType.contiguous(DType.F32);

  static Stream<OpSpec> specs() {
    return BuiltinOps.all().filter(spec -> !BuiltinOpsTest.needsAnnotation(spec));
  }

  @ParameterizedTest
  @MethodSource("specs")
  void givesResultsOrSaysWhatIsWrong(OpSpec spec) {
    var def = spec.resolve();
    for (int i = 0; i < Fuzz.times(CALLS); i++) {
      usual = tensorType();
      var args = def.schema().params().stream().map(p -> arg(p.type())).toList();
      ImmutableList<Arg> bound;
      ImmutableList<OpResult> results;
      try {
        bound = bind(def, args);
        results = def.infer(bound).orElseThrow();
      } catch (OpTypeException e) {
        assertThat(e.getMessage()).isNotBlank().doesNotContain("null").doesNotContain("\n");
        continue;
      } catch (IllegalArgumentException e) {
        // A shape that no tensor has, refused by its type.
        assertThat(e).hasStackTraceContaining("TensorType");
        continue;
      } catch (RuntimeException e) {
        throw new AssertionError("seed %s: %s %s".formatted(SEED, def.name(), args), e);
      }
      results.forEach(result -> checkInside(def, bound, result));
    }
  }

  private static ImmutableList<Arg> bind(OpDef def, List<Arg> args) {
    int keywordsFrom =
        IntStream.range(0, args.size())
            .filter(i -> def.schema().params().get(i).keywordOnly())
            .findFirst()
            .orElse(args.size());
    var keywords =
        IntStream.range(keywordsFrom, args.size())
            .boxed()
            .collect(Collectors.toMap(i -> def.schema().params().get(i).name(), args::get));
    return ArgBinder.bind(def.schema(), args.subList(0, keywordsFrom), Map.copyOf(keywords));
  }

  /** A view reaches no further than what it views, but for those whose strides are free. */
  private static void checkInside(OpDef def, ImmutableList<Arg> args, OpResult result) {
    if (result.view().isEmpty()
        || def.name().name().contains("strided")
        || def.name().name().equals("_reshape_alias")) {
      return;
    }
    var view = result.view().get();
    var type = (TensorType) result.type();
    if (type.numel() == 0) {
      return;
    }
    long base = view.of().tensor().storageBytes();
    long start = view.offset() * view.of().tensor().dtype().bytes();
    assertThat(start).as("%s %s", def.name(), args).isNotNegative();
    assertThat(start + type.storageBytes()).as("%s %s", def.name(), args).isLessThanOrEqualTo(base);
  }

  private Arg arg(SchemaType type) {
    return switch (type) {
      case SchemaType.Base base -> arg(base);
      case SchemaType.OptionalOf(var element) ->
          random.nextBoolean() ? Arg.None.NONE : arg(element);
      case SchemaType.ListOf list ->
          new Arg.Seq(
              IntStream.range(0, list.size().orElse(random.nextInt(4)))
                  .mapToObj(i -> arg(list.element()))
                  .collect(ImmutableList.toImmutableList()));
      case SchemaType.TupleOf _, SchemaType.GenericOf _, SchemaType.Named _ -> Arg.None.NONE;
    };
  }

  private Arg arg(SchemaType.Base base) {
    return switch (base) {
      case TENSOR -> random.nextInt(20) == 0 ? Arg.None.NONE : new Arg.Ref(tensor());
      case INT, SYM_INT, DEVICE_INDEX -> new Arg.Int(integer());
      case FLOAT, SYM_FLOAT -> new Arg.Float(random.nextGaussian());
      case BOOL, SYM_BOOL -> new Arg.Bool(random.nextBoolean());
      case NUMBER, COMPLEX ->
          switch (random.nextInt(4)) {
            case 0 -> new Arg.Float(random.nextBoolean() ? Double.NaN : random.nextGaussian());
            case 1 -> new Arg.Bool(random.nextBoolean());
            case 2 -> new Arg.Ref(value(ScalarType.FLOAT));
            default -> new Arg.Int(integer());
          };
      case STRING, DIMNAME -> new Arg.Str(pick("sum", "avg", "floor", "0", "none", ""));
      case SCALAR_TYPE -> new Arg.Dtype(pick(DType.values()));
      case LAYOUT, Q_SCHEME -> new Arg.Symbol("strided");
      case MEMORY_FORMAT ->
          new Arg.Symbol(pick("contiguous_format", "preserve_format", "channels_last", "other"));
      case DEVICE -> new Arg.Device("cpu");
      case GENERATOR, STORAGE, STREAM, ANY, NONE, CONST_QUANTIZER -> Arg.None.NONE;
    };
  }

  @SafeVarargs
  private <T> T pick(T... choices) {
    return choices[random.nextInt(choices.length)];
  }

  private long integer() {
    return switch (random.nextInt(12)) {
      case 0 -> Long.MAX_VALUE;
      case 1 -> Long.MIN_VALUE;
      case 2 -> random.nextLong();
      case 3 -> 1L << 40;
      default -> random.nextInt(-2, 5);
    };
  }

  private Value value(Type type) {
    return new Value(nextId, "v" + nextId++, type, Span.NONE, true);
  }

  private Value tensor() {
    return value(
        switch (random.nextInt(5)) {
          case 0 -> tensorType();
          case 1 -> usual.contiguous().withDType(pick(DType.I64, DType.BOOL, DType.BF16));
          default -> usual;
        });
  }

  private TensorType tensorType() {
    var dtype = random.nextInt(3) > 0 ? DType.F32 : pick(DType.values());
    if (random.nextInt(8) == 0) {
      return TensorType.contiguous(DType.I64, 2, 3);
    }
    int rank = random.nextInt(5);
    var sizes = ImmutableLongArray.builder(rank);
    for (int i = 0; i < rank; i++) {
      sizes.add(random.nextInt(30) == 0 ? 1L << 33 : pick(0, 1, 2, 2, 3, 3, 4, 6));
    }
    var shape = sizes.build();
    var order = IntStream.range(0, rank).map(i -> rank - 1 - i).toArray();
    for (int i = rank - 1; i > 0 && random.nextBoolean(); i--) {
      int other = random.nextInt(i + 1);
      int dim = order[i];
      order[i] = order[other];
      order[other] = dim;
    }
    try {
      var strides = Layouts.ordered(shape, order).toArray();
      for (int i = 0; i < rank; i++) {
        strides[i] *= pick(1, 1, 1, 1, 2, 0);
      }
      return new TensorType(dtype, shape, ImmutableLongArray.copyOf(strides), MemorySpace.ANY);
    } catch (IllegalArgumentException | OpTypeException e) {
      return TensorType.contiguous(dtype);
    }
  }
}
