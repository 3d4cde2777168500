package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Nobody checks an address any more once it is made, so a product checks its operands before. */
class MatrixProductTest {
  private static TensorType type(DType dtype, long rows, long columns, long down, long across) {
    return new TensorType(
        dtype,
        ImmutableLongArray.of(rows, columns),
        ImmutableLongArray.of(down, across),
        MemorySpace.ANY);
  }

  /** A matrix of small whole numbers, no two rows or columns alike. */
  private static HostTensor matrix(TensorType type, int seed) {
    var tensor = HostTensor.allocate(type);
    for (long i = 0; i < type.size(0); i++) {
      for (long j = 0; j < type.size(1); j++) {
        tensor.set((i * 5 + j * 3 + seed) % 7 - 3, i, j);
      }
    }
    return tensor;
  }

  private static void check(HostTensor left, HostTensor right, HostTensor result) {
    MatrixProduct.multiply(left, right, result);
    for (long i = 0; i < result.type().size(0); i++) {
      for (long j = 0; j < result.type().size(1); j++) {
        double sum = 0;
        for (long k = 0; k < left.type().size(1); k++) {
          sum += left.get(i, k) * right.get(k, j);
        }
        assertThat(result.get(i, j)).as("[%s, %s]", i, j).isEqualTo(sum);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "4, 1, 3, 1, 3, 1",
    "1, 3, 1, 4, 1, 3",
    "9, 2, 0, 1, 5, 1",
    "0, 0, 1, 0, 6, 2",
    "5, 1, 3, 1, 1, 9",
    "1, 2, 2, 2, 7, 1"
  })
  void anyLayout(long down, long across, long down2, long across2, long down3, long across3) {
    for (var dtype : new DType[] {DType.F32, DType.F64, DType.BF16, DType.I64}) {
      check(
          matrix(type(dtype, 3, 4, down, across), 1),
          matrix(type(dtype, 4, 3, down2, across2), 2),
          HostTensor.allocate(type(dtype, 3, 3, down3, across3)));
    }
  }

  @Test
  void distancesThatBlasDoesNotCountTo() {
    long far = 3_000_000_000L;
    for (var dtype : new DType[] {DType.F32, DType.F64}) {
      check(
          matrix(type(dtype, 1, 4, far, 1), 1),
          matrix(type(dtype, 4, 1, 1, far), 2),
          HostTensor.allocate(type(dtype, 1, 1, far, far)));
    }
  }

  @Test
  void narrowFloatsOfTwoTypes() {
    check(
        matrix(type(DType.F8E4M3FN, 3, 4, 4, 1), 1),
        matrix(type(DType.F8E5M2, 4, 3, 1, 4), 2),
        HostTensor.allocate(type(DType.BF16, 3, 3, 3, 1)));
  }

  @ParameterizedTest
  @CsvSource({"F64, F32", "F32, F64", "F32, I32", "BF16, F64", "I64, I32", "I64, F32"})
  void operandsOfTwoTypes(DType left, DType right) {
    assertThatThrownBy(
            () ->
                MatrixProduct.multiply(
                    matrix(type(left, 2, 2, 2, 1), 1),
                    matrix(type(right, 2, 2, 2, 1), 2),
                    HostTensor.allocate(type(left, 2, 2, 2, 1))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "the right operand of a product must be %s, like the left one, not %s",
            left.shortName(), right.shortName());
  }

  @ParameterizedTest
  @CsvSource({"2, 3, 4, 2, 2, 2", "2, 3, 3, 2, 3, 2", "2, 3, 3, 2, 2, 3", "1, 9, 1, 1, 1, 1"})
  void sizesThatDoNotFit(long m, long k, long k2, long n, long m2, long n2) {
    assertThatThrownBy(
            () ->
                MatrixProduct.multiply(
                    matrix(type(DType.F32, m, k, k, 1), 1),
                    matrix(type(DType.F32, k2, n, n, 1), 2),
                    HostTensor.allocate(type(DType.F32, m2, n2, n2, 1))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("f32[%s, %s] times f32[%s, %s] does not give f32[%s, %s]", m, k, k2, n, m2, n2);
  }

  @Test
  void memoryOfTheJavaHeap() {
    var square = type(DType.F32, 2, 2, 2, 1);
    var heap = new HostTensor(MemorySegment.ofArray(new float[4]), square);
    assertThatThrownBy(
            () -> MatrixProduct.multiply(heap, matrix(square, 1), HostTensor.allocate(square)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("a product of f32 reaches 16 bytes into");
  }
}
