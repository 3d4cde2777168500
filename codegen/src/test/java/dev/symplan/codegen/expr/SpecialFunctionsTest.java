package dev.symplan.codegen.expr;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.function.DoubleUnaryOperator;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;

/** Where the usual formulas overflow, cancel or leave the domain. */
class SpecialFunctionsTest {
  private static void check(DoubleUnaryOperator f, double x, double expected) {
    double actual = f.applyAsDouble(x);
    if (Double.isFinite(expected)) {
      assertThat(actual).as("of %s", x).isCloseTo(expected, Offset.offset(4 * Math.ulp(expected)));
    } else {
      // Boxed, NaN equals itself.
      assertThat(actual).as("of %s", x).isEqualTo(Double.valueOf(expected));
    }
  }

  @Test
  void inverseHyperbolicFunctionsOfLargeNumbers() {
    check(SpecialFunctions::asinh, 1e200, 461.2101657793691);
    check(SpecialFunctions::asinh, -Double.MAX_VALUE, -710.4758600739439);
    check(SpecialFunctions::asinh, -1e9, -21.416413017506354);
    check(SpecialFunctions::asinh, 0.5, 0.48121182505960347);
    check(SpecialFunctions::asinh, 1e-20, 1e-20);
    check(SpecialFunctions::asinh, Double.NEGATIVE_INFINITY, Double.NEGATIVE_INFINITY);
    check(SpecialFunctions::asinh, Double.NaN, Double.NaN);
    check(SpecialFunctions::acosh, 1e200, 461.2101657793691);
    check(SpecialFunctions::acosh, Double.MAX_VALUE, 710.4758600739439);
    check(SpecialFunctions::acosh, 1.5, 0.9624236501192069);
    check(SpecialFunctions::acosh, 1 + 0x1p-40, 1.3486991523485068e-06);
    check(SpecialFunctions::acosh, 1, 0);
    check(SpecialFunctions::acosh, Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY);
  }

  @Test
  void inverseHyperbolicFunctionsOutsideOfTheirDomain() {
    for (double x : new double[] {0.5, -0.5, -1, -1e5, -1e9, -0x1p63, Double.NEGATIVE_INFINITY}) {
      check(SpecialFunctions::acosh, x, Double.NaN);
    }
    for (double x : new double[] {1.5, -1.5, 1e20, -1e20, Double.MAX_VALUE, Double.NaN}) {
      check(SpecialFunctions::atanh, x, Double.NaN);
    }
  }

  @Test
  void atanhIsOddUpToItsPoles() {
    check(SpecialFunctions::atanh, 1, Double.POSITIVE_INFINITY);
    check(SpecialFunctions::atanh, -1, Double.NEGATIVE_INFINITY);
    check(SpecialFunctions::atanh, 1 - 0x1p-53, 18.714973875118524);
    check(SpecialFunctions::atanh, 0x1p-53 - 1, -18.714973875118524);
  }
}
