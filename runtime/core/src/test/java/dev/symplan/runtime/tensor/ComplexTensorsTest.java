package dev.symplan.runtime.tensor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import org.junit.jupiter.api.Test;

/** Complex numbers are made up and compared by their parts. */
class ComplexTensorsTest {
  private static HostTensor made(long seed) {
    var tensor = HostTensor.allocate(TensorType.contiguous(DType.C64, 4, 8));
    SeededInputs.fill(tensor, seed, 0, "c");
    return tensor;
  }

  @Test
  void bothPartsAreMadeUp() {
    var parts = made(1).as(made(1).type().parts());
    assertThat(parts.type()).isEqualTo(TensorType.contiguous(DType.F32, 4, 8, 2));
    assertThat(parts.get(3, 7, 0)).isNotZero();
    assertThat(parts.get(3, 7, 1)).isNotZero().isNotEqualTo(parts.get(3, 7, 0));
  }

  @Test
  void differencesOfEitherPartCount() {
    var changed = made(1);
    assertThat(TensorDiff.between(changed, made(1)).isWithin(DType.C64)).isTrue();
    var parts = changed.as(changed.type().parts());
    parts.set(parts.get(2, 3, 1) + 1, 2, 3, 1);
    var difference = TensorDiff.between(changed, made(1));
    assertThat(difference.isWithin(DType.C64)).isFalse();
    assertThat(difference.unequal()).isEqualTo(1);
  }
}
