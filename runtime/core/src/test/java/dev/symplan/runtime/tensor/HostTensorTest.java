package dev.symplan.runtime.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import org.junit.jupiter.api.Test;

class HostTensorTest {
  private static final HostTensor MATRIX =
      HostTensor.allocate(TensorType.contiguous(DType.F32, 2, 3));

  @Test
  void elementsHaveAnIndexForEachDimension() {
    MATRIX.set(7, 1, 0);
    assertThat(MATRIX.get(1, 0)).isEqualTo(7);
    for (var index : new long[][] {{}, {1}, {1, 0, 0}}) {
      assertThatThrownBy(() -> MATRIX.get(index))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(index.length + " indices for f32[2, 3]");
    }
  }

  @Test
  void otherElementsDoNotExist() {
    for (var index : new long[][] {{0, 3}, {2, 0}, {0, -1}}) {
      assertThatThrownBy(() -> MATRIX.set(1, index)).isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @Test
  void theOnlyElementNeedsNoIndex() {
    var one = HostTensor.allocate(TensorType.contiguous(DType.I64, 1, 1));
    one.setLong(5);
    assertThat(one.getLong()).isEqualTo(5);
    assertThat(one.getLong(0, 0)).isEqualTo(5);
  }
}
