package dev.symplan.runtime.tensor;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.SeededInputs.Need;
import java.util.OptionalLong;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class SeededInputsTest {
  private static final long PERIOD = 262_139;

  private static HostTensor repeating(TensorType type, Need need) {
    var tensor = HostTensor.allocate(type);
    SeededInputs.fillRepeating(tensor, 1, 0, "x", need);
    return tensor;
  }

  @Test
  void floatsRepeatAfterALongPeriod() {
    var type = TensorType.contiguous(DType.BF16, 5, 200_000);
    var once = HostTensor.allocate(type);
    SeededInputs.fill(once, 1, 0, "x");
    var repeating = repeating(type, Need.NOTHING);
    for (long i = 0; i < type.numel(); i++) {
      double value = repeating.get(i / 200_000, i % 200_000);
      long first = i % PERIOD;
      assertThat(value).isEqualTo(once.get(first / 200_000, first % 200_000));
    }
    assertThat(LongStream.range(0, PERIOD).mapToDouble(i -> repeating.get(0, i % 200_000)))
        .as("they differ, and are scaled as those of the whole matrix")
        .doesNotContain(1.0)
        .anyMatch(value -> value > 0)
        .anyMatch(value -> value < 0);
  }

  @Test
  void indicesReachAllElements() {
    var type = TensorType.contiguous(DType.I64, 10_000);
    var indices = repeating(type, new Need(1000, OptionalLong.empty()));
    assertThat(LongStream.range(0, 10_000).mapToDouble(indices::get).distinct())
        .hasSizeGreaterThan(900)
        .allMatch(value -> value >= 0 && value < 1000);
    var unknown = repeating(type, Need.NOTHING);
    assertThat(LongStream.range(0, 10_000).mapToDouble(unknown::get))
        .as("who reads them may have few elements")
        .allMatch(value -> value >= 0 && value < 8);
  }

  @Test
  void indicesAndMasksDoNotRepeat() {
    var mask =
        repeating(
            TensorType.contiguous(DType.BOOL, 600_000),
            new Need(Long.MAX_VALUE, OptionalLong.of(17)));
    assertThat(LongStream.range(0, 600_000).filter(i -> mask.get(i) != 0)).hasSize(17);
    var indices =
        repeating(TensorType.contiguous(DType.I64, 300_000), new Need(3, OptionalLong.empty()));
    assertThat(LongStream.range(0, 300_000).mapToDouble(indices::get))
        .allMatch(value -> value >= 0 && value < 3);
  }

  @Test
  void piecesOfLargeTensorsDiffer() {
    int piece = 1 << 20;
    for (var dtype : new DType[] {DType.F32, DType.I32, DType.BOOL}) {
      var large = HostTensor.allocate(TensorType.contiguous(dtype, 2 * piece + 1000));
      SeededInputs.fill(large, 1, 0, "x");
      var again = HostTensor.allocate(large.type());
      SeededInputs.fill(again, 1, 0, "x");
      assertThat(large.memory().mismatch(again.memory())).isEqualTo(-1);
      var small = HostTensor.allocate(TensorType.contiguous(dtype, 1000));
      SeededInputs.fill(small, 1, 0, "x");
      for (int begin = 0; begin <= 2 * piece; begin += piece) {
        var part = large.memory().asSlice(begin * dtype.bytes(), 1000 * dtype.bytes());
        assertThat(part.mismatch(small.memory()) < 0).isEqualTo(begin == 0);
        assertThat(LongStream.range(begin, begin + 1000).mapToDouble(large::get).distinct())
            .hasSizeGreaterThan(1);
      }
    }
  }

  @Test
  void tensorsOfAnyOrderInMemoryHaveTheSameElements() {
    var rows = HostTensor.allocate(TensorType.contiguous(DType.F32, 1100, 1000));
    SeededInputs.fill(rows, 1, 0, "x");
    var columns = HostTensor.allocate(rows.type().withStrides(ImmutableLongArray.of(1, 1100)));
    SeededInputs.fill(columns, 1, 0, "x");
    for (int i = 0; i < 1100; i++) {
      assertThat(columns.get(i, 7)).isEqualTo(rows.get(i, 7));
    }
  }
}
