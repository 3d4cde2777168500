package dev.symplan.runtime.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.planner.cost.Work;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.bench.Roof.Bound;
import dev.symplan.runtime.bench.Roof.Limit;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class RoofTest {
  /** 4 GB/s, 2 GFLOP/s. */
  private static final Roof ROOF =
      new Roof(
          Optional.of(new Roof.Copy(2_000, Timing.of(0.5, 1, 9))),
          ImmutableMap.of(DType.BF16, new Roof.Product(10, Timing.of(1))));

  @Test
  void isTheLargerOfMemoryAndArithmetic() {
    assertThat(ROOF.copy().orElseThrow().rate()).isEqualTo(4);
    assertThat(ROOF.bound(new Work(8_000, 0, Optional.empty()))).contains(new Bound(2, Limit.COPY));
    assertThat(ROOF.bound(new Work(8_000, 2_000, Optional.of(DType.BF16))))
        .contains(new Bound(2, Limit.COPY));
    assertThat(ROOF.bound(new Work(8_000, 6_000, Optional.of(DType.BF16))))
        .contains(new Bound(3, Limit.PRODUCT));
    assertThat(ROOF.micros(new Work(8_000, 6_000, Optional.of(DType.BF16))))
        .isEqualTo(OptionalDouble.of(3));
    assertThat(Stream.of(Limit.values()).map(Limit::text)).containsExactly("copy", "product");
  }

  @Test
  void isUnknownWhereItWasNotMeasured() {
    assertThat(ROOF.bound(new Work(8_000, 6_000, Optional.of(DType.F8E4M3FN)))).isEmpty();
    var none = new Roof(Optional.empty(), ImmutableMap.of());
    assertThat(none.bound(new Work(8_000, 0, Optional.empty()))).isEmpty();
  }
}
