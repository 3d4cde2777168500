package dev.symplan.codegen.expr;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.BuiltinOps;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Expressions are of what their ops have, and are bound to what calls give. */
class ExpressionsTest {

  /** A call of an op with a tensor {@code x} and numbers. */
  private record Given(DType tensor, DType result, ImmutableMap<String, Arg> constants)
      implements Call {
    @Override
    public boolean hasParam(String param) {
      return param.equals("x") || constants.containsKey(param);
    }

    @Override
    public Optional<TensorType> tensor(String param) {
      return param.equals("x") ? Optional.of(TensorType.contiguous(tensor, 4)) : Optional.empty();
    }

    @Override
    public Arg constant(String param) {
      return constants.getOrDefault(param, Arg.None.NONE);
    }

    @Override
    public List<DType> dtypes() {
      return List.of(tensor, result);
    }

    @Override
    public DType result() {
      return result;
    }

    @Override
    public long rowElements() {
      return 4;
    }
  }

  private static Expr parse(String text) {
    return Expressions.parse(text).getFirst();
  }

  private static Binding bind(String text, DType tensor, DType result, Object... constants) {
    var given = ImmutableMap.<String, Arg>builder();
    for (int i = 0; i < constants.length; i += 2) {
      given.put((String) constants[i], (Arg) constants[i + 1]);
    }
    return Binding.of(
        ImmutableList.of(parse(text)), new Given(tensor, result, given.buildOrThrow()));
  }

  @TestFactory
  Stream<DynamicTest> areOfTheParametersOfTheirOps() {
    return Expressions.names().stream()
        .map(
            name ->
                DynamicTest.dynamicTest(
                    name,
                    () -> {
                      var def = BuiltinOps.registry().get(name);
                      assertThat(Binding.params(Expressions.get(name)))
                          .allMatch(def.schema()::hasParam);
                      assertThat(Expressions.get(name)).hasSameSizeAs(def.schema().results());
                    }));
  }

  @ParameterizedTest
  @CsvSource(
      delimiterString = " is ",
      value = {
        "x + y * z is x + (y * z)",
        "x - y - z is (x - y) - z",
        "-x * y is (-x) * y",
        "x < y || y != z && z == x is (x < y) || ((y != z) && (z == x))",
        "x ? y : z ? x : y is x ? y : (z ? x : y)",
      })
  void operatorsBindAsInC(String text, String sameWithParentheses) {
    assertThat(parse(text)).isEqualTo(parse(sameWithParentheses));
  }

  @ParameterizedTest
  @ValueSource(strings = {"x +", "(x", "x y", "sqrt(x, y)", "nothing(x)", "+", "x ? y"})
  void othersAreRefused(String text) {
    assertThatThrownBy(() -> parse(text)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void whatConstantsDecideIsDecided() {
    var text = "has(min) ? maximum(x, min) : how == \"twice\" ? 2 * x : x";
    assertThat(bind(text, DType.F32, DType.F32, "how", new Arg.Str("twice")).results())
        .containsExactly(parse("2 * x"));
    assertThat(bind(text, DType.F32, DType.F32, "how", new Arg.Str("once")).results())
        .containsExactly(parse("x"));
    assertThat(bind(text, DType.F32, DType.F32, "min", new Arg.Int(3)).results())
        .containsExactly(Expr.of(Primitive.Function.MAXIMUM, parse("x"), new Expr.Float(3)));
  }

  @ParameterizedTest
  @CsvSource(
      delimiterString = " is ",
      value = {
        "1 is x",
        "2 is x * x",
        "3 is x * x * x",
        "0.5 is sqrt(x)",
        "-0.5 is 1 / sqrt(x)",
        "-1 is 1 / x",
        "-2 is 1 / (x * x)",
        "2.5 is pow(x, 2.5)"
      })
  void somePowersAreProductsAndRoots(double exponent, String text) {
    for (var dtype : List.of(DType.F64, DType.F32, DType.BF16)) {
      assertThat(bind("pow(x, k)", dtype, dtype, "k", new Arg.Float(exponent)).results())
          .containsExactly(parse(text));
    }
  }

  @Test
  void powersOfIntegersStayIntegers() {
    var square = bind("pow(x, k)", DType.I64, DType.I64, "k", new Arg.Int(2));
    assertThat(square).isEqualTo(new Binding(ImmutableList.of(parse("x * x")), DType.I64));
    var reciprocal = bind("pow(x, k)", DType.I64, DType.I64, "k", new Arg.Int(-1));
    assertThat(reciprocal.results())
        .containsExactly(Expr.of(Primitive.Function.POW, parse("x"), new Expr.Int(-1)));
  }

  @Test
  void numbersAreRoundedToWhatIsComputedIn() {
    var tenth = new Arg.Float(0.1);
    assertThat(bind("k", DType.F32, DType.F32, "k", tenth).results())
        .containsExactly(new Expr.Float(0.1f));
    assertThat(bind("k", DType.F64, DType.F64, "k", tenth).results())
        .containsExactly(new Expr.Float(0.1));
    // Arithmetic is in f32, comparisons are in the tensors' type.
    assertThat(bind("k", DType.BF16, DType.BF16, "k", tenth).results())
        .containsExactly(new Expr.Float(0.1f));
    assertThat(bind("x == k", DType.BF16, DType.BOOL, "k", tenth).results())
        .containsExactly(
            Expr.of(Primitive.Comparison.EQ, parse("x"), new Expr.Float(0.10009765625)));
    assertThat(bind("k", DType.I64, DType.I64, "k", tenth).results())
        .containsExactly(new Expr.Int(0));
  }

  @Test
  void integersStayExact() {
    var bound = bind("x + k", DType.I64, DType.I64, "k", new Arg.Int((1L << 53) + 1));
    assertThat(bound.isFloat()).isFalse();
    assertThat(bound.results())
        .containsExactly(Expr.of(Primitive.Operator.ADD, parse("x"), new Expr.Int((1L << 53) + 1)));
    assertThat(bind("k * k", DType.I64, DType.I64, "k", new Arg.Int(3_037_000_499L)).results())
        .containsExactly(new Expr.Int(9_223_372_030_926_249_001L));
  }

  @Test
  void equalPartsAreComputedOnce() {
    var steps = Steps.of(ImmutableList.of(parse("exp(x) / (1 + exp(x))"), parse("exp(x)")));
    assertThat(steps.nodes().stream().filter(node -> node.equals(parse("exp(x)")))).hasSize(1);
    assertThat(steps.nodes().get(steps.results().getLast())).isEqualTo(parse("exp(x)"));
  }
}
