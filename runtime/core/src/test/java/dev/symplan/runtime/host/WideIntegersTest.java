package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.function.LongBinaryOperator;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Integers that a signed number of 64 bits or a double does not hold. */
class WideIntegersTest {
  private static final long[] EDGES = {
    0,
    1,
    2,
    3,
    63,
    64,
    Long.MAX_VALUE - 1,
    Long.MAX_VALUE,
    Long.MIN_VALUE,
    Long.MIN_VALUE + 1,
    -2,
    -1,
    1L << 53,
    (1L << 53) + 1,
    (1L << 62) + 1
  };
  private static final int COUNT = 400;

  private static long[] draw(Random random, boolean withZero) {
    return LongStream.generate(
            () -> {
              long value =
                  random.nextBoolean()
                      ? EDGES[random.nextInt(EDGES.length)]
                      : random.nextLong() >>> random.nextInt(Long.SIZE);
              return value == 0 && !withZero ? 1 : value;
            })
        .limit(COUNT)
        .toArray();
  }

  /** {@return the results of ops, by the names that they have} */
  private static ImmutableMap<String, long[]> run(String lines, String inputs, long[]... given) {
    var names =
        lines
            .lines()
            .flatMap(line -> Arrays.stream(line.substring(0, line.indexOf(" = ")).split(", ")))
            .toList();
    var text =
        "graph wide(%s) {\n%sreturn %s\n}\n".formatted(inputs, lines, String.join(", ", names));
    try (var session = Session.open(Programs.plan(text), new HostBackend())) {
      for (int i = 0; i < given.length; i++) {
        var input = session.input(0, i).orElseThrow();
        for (int at = 0; at < given[i].length; at++) {
          input.setLong(given[i][at], at);
        }
      }
      session.run();
      var results = ImmutableMap.<String, long[]>builder();
      for (int i = 0; i < names.size(); i++) {
        results.put(names.get(i), elements(session.output(0, i).orElseThrow()));
      }
      return results.buildOrThrow();
    }
  }

  private static long[] elements(HostTensor tensor) {
    var flat = Programs.flat(tensor);
    return LongStream.range(0, flat.type().numel()).map(flat::getLong).toArray();
  }

  private static long[] each(long[] x, long[] y, LongBinaryOperator op) {
    return IntStream.range(0, COUNT).mapToLong(i -> op.applyAsLong(x[i], y[i])).toArray();
  }

  private static long[] sorted(long[] values, Comparator<Long> order) {
    return Arrays.stream(values).boxed().sorted(order).mapToLong(Long::longValue).toArray();
  }

  @Test
  void unsignedIntegersAreInTheirOrder() {
    var random = new Random(20_261_129);
    var x = draw(random, true);
    var y = draw(random, false);
    var text =
        """
        lt = aten::lt.Tensor(x, y)
        ge = aten::ge.Tensor(x, y)
        most = aten::maximum(x, y)
        least = aten::minimum(x, y)
        quotient = aten::div.Tensor_mode(x, y, rounding_mode="floor")
        cut = aten::div.Tensor_mode(x, y, rounding_mode="trunc")
        rest = aten::remainder.Tensor(x, y)
        shifted = aten::bitwise_right_shift.Tensor_Scalar(x, 3)
        by = aten::bitwise_right_shift.Tensor(x, y)
        power = aten::pow.Tensor_Tensor(x, y)
        absolute = aten::abs(x)
        positive = aten::relu(x)
        all_most = aten::amax(x, [0])
        all_least = aten::amin(x, [0])
        where_most = aten::argmax(x)
        ascending, order = aten::sort(x)
        found = aten::searchsorted.Tensor(ascending, y)
        so_far, where = aten::cummax(x, 0)
        """;
    var ascending = sorted(x, Long::compareUnsigned);
    long most = ascending[COUNT - 1];
    var results = run(text, "x: u64[%1$s], y: u64[%1$s]".formatted(COUNT), x, y);
    assertThat(results.get("lt"))
        .isEqualTo(each(x, y, (a, b) -> Long.compareUnsigned(a, b) < 0 ? 1 : 0));
    assertThat(results.get("ge"))
        .isEqualTo(each(x, y, (a, b) -> Long.compareUnsigned(a, b) >= 0 ? 1 : 0));
    assertThat(results.get("most")).isEqualTo(each(x, y, WideIntegersTest::most));
    assertThat(results.get("least"))
        .isEqualTo(each(x, y, (a, b) -> Long.compareUnsigned(a, b) < 0 ? a : b));
    assertThat(results.get("quotient")).isEqualTo(each(x, y, Long::divideUnsigned));
    assertThat(results.get("cut")).isEqualTo(each(x, y, Long::divideUnsigned));
    assertThat(results.get("rest")).isEqualTo(each(x, y, Long::remainderUnsigned));
    assertThat(results.get("shifted")).isEqualTo(each(x, y, (a, _) -> a >>> 3));
    assertThat(results.get("by"))
        .isEqualTo(each(x, y, (a, b) -> Long.compareUnsigned(b, 64) < 0 ? a >>> b : 0));
    assertThat(results.get("power")).isEqualTo(each(x, y, WideIntegersTest::power));
    assertThat(results.get("absolute")).isEqualTo(x);
    assertThat(results.get("positive")).isEqualTo(x);
    assertThat(results.get("all_most")).containsExactly(most);
    assertThat(results.get("all_least")).containsExactly(ascending[0]);
    assertThat(x[(int) results.get("where_most")[0]]).isEqualTo(most);
    assertThat(results.get("ascending")).isEqualTo(ascending);
    assertThat(results.get("found"))
        .isEqualTo(
            each(
                x,
                y,
                (_, b) -> Arrays.stream(x).filter(a -> Long.compareUnsigned(a, b) < 0).count()));
    var soFar = x.clone();
    Arrays.parallelPrefix(soFar, WideIntegersTest::most);
    assertThat(results.get("so_far")).isEqualTo(soFar);
  }

  private static long most(long a, long b) {
    return Long.compareUnsigned(a, b) > 0 ? a : b;
  }

  private static long power(long base, long exponent) {
    long result = 1;
    for (int bit = Long.SIZE - 1; bit >= 0; bit--) {
      result *= result;
      result *= (exponent >>> bit & 1) == 1 ? base : 1;
    }
    return result;
  }

  @Test
  void integersBeyondADoubleAreSearchedExactly() {
    var random = new Random(20_261_130);
    var x = draw(random, true);
    var y = draw(random, true);
    var text =
        """
        ascending, order = aten::sort(x)
        left = aten::searchsorted.Tensor(ascending, y)
        right = aten::bucketize.Tensor(y, ascending, right=True)
        so_far, where = aten::cummin(x, 0)
        """;
    var results = run(text, "x: i64[%1$s], y: i64[%1$s]".formatted(COUNT), x, y);
    assertThat(results.get("left"))
        .isEqualTo(each(x, y, (_, b) -> Arrays.stream(x).filter(a -> a < b).count()));
    assertThat(results.get("right"))
        .isEqualTo(each(x, y, (_, b) -> Arrays.stream(x).filter(a -> a <= b).count()));
    var soFar = x.clone();
    Arrays.parallelPrefix(soFar, Math::min);
    assertThat(results.get("so_far")).isEqualTo(soFar);
  }

  @Test
  void scatteredUnsignedIntegersAreInTheirOrder() {
    var text =
        """
        most = aten::scatter_reduce.two(x, 0, index, y, "amax")
        least = aten::scatter_reduce.two(x, 0, index, y, "amin")
        """;
    var results =
        run(
            text,
            "x: u64[2], index: i64[3], y: u64[3]",
            new long[] {5, -1},
            new long[] {0, 0, 1},
            new long[] {-7, 3, 1});
    assertThat(List.of(results.get("most"), results.get("least")))
        .containsExactly(new long[] {-7, -1}, new long[] {3, 1});
  }
}
