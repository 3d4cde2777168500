package dev.symplan.runtime.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.testkit.Fuzz;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("random")
class SafetensorsTest {
  private static final int DAMAGES = 1_000;

  @TempDir private Path folder;
  private Path file = Path.of("");

  @BeforeEach
  void name() {
    file = folder.resolve("a.safetensors");
  }

  private static HostTensor tensor(DType dtype, long... sizes) {
    var tensor = HostTensor.allocate(TensorType.contiguous(dtype, sizes));
    for (long i = 0; i < tensor.type().bytes(); i++) {
      tensor.memory().set(ValueLayout.JAVA_BYTE, i, (byte) (i % 2));
    }
    return tensor;
  }

  private void writeTwo() {
    Safetensors.write(
        file, ImmutableMap.of("in1", tensor(DType.F32, 2, 3), "in0", tensor(DType.BOOL, 5)));
  }

  private void write(String header, int dataBytes) throws IOException {
    var text = header.getBytes(StandardCharsets.UTF_8);
    var bytes =
        ByteBuffer.allocate(Long.BYTES + text.length + dataBytes).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putLong(text.length).put(text);
    Files.write(file, bytes.array());
  }

  @Test
  void givesBackWhatWasWritten() {
    var tensors = ImmutableMap.<String, HostTensor>builder();
    for (var dtype : DType.values()) {
      if (Safetensors.canHold(dtype)) {
        tensors.put(dtype.name(), tensor(dtype, 3, 5));
      }
    }
    tensors.put("scalar", tensor(DType.F64)).put("empty", tensor(DType.I64, 0, 4));
    var written = tensors.buildOrThrow();
    Safetensors.write(file, written);
    var read = Safetensors.read(file);
    assertThat(read.keySet()).isEqualTo(written.keySet());
    read.forEach(
        (name, tensor) -> {
          HostTensor original = written.getOrDefault(name, tensor);
          assertThat(tensor.type()).as(name).isEqualTo(original.type());
          long bytes = original.type().bytes();
          assertThat(
                  tensor.memory().asSlice(0, bytes).mismatch(original.memory().asSlice(0, bytes)))
              .as(name)
              .isEqualTo(-1);
        });
  }

  @Test
  void everyTruncationIsAnError() throws IOException {
    writeTwo();
    var bytes = Files.readAllBytes(file);
    for (int length = 0; length < bytes.length; length++) {
      Files.write(file, Arrays.copyOf(bytes, length));
      assertThatThrownBy(() -> Safetensors.read(file))
          .as("%s of %s bytes", length, bytes.length)
          .isInstanceOf(CompileException.class)
          .hasMessageContaining("a.safetensors");
    }
    Files.write(file, Arrays.copyOf(bytes, bytes.length + 1));
    assertThatThrownBy(() -> Safetensors.read(file))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("its tensors end at byte 29, but its data at 30");
  }

  @Test
  void randomDamageIsReadOrRefused() throws IOException {
    writeTwo();
    var bytes = Files.readAllBytes(file);
    long seed = Fuzz.seed(20261121);
    var random = new Random(seed);
    int refused = 0;
    for (int i = 0; i < Fuzz.times(DAMAGES); i++) {
      var damaged = bytes.clone();
      for (int k = 0; k <= random.nextInt(3); k++) {
        damaged[random.nextInt(damaged.length)] = (byte) random.nextInt(256);
      }
      Files.write(file, damaged);
      try {
        Safetensors.read(file).values().forEach(tensor -> tensor.contiguous().type());
      } catch (CompileException e) {
        refused++;
        assertThat(e.getMessage()).as("seed %s, damage %s", seed, i).contains("a.safetensors");
      }
    }
    assertThat(refused).isGreaterThan(DAMAGES / 2);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          []                                                                    | not an object
          {"a": 1                                                               | not JSON
          {"a": {}} {}                                                          | expected the end
          {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "a": 1} | not JSON
          {"a": 3}                                                              | a: this is not an object
          {"a": {"dtype": "Q4", "shape": [1], "data_offsets": [0, 4]}}          | unknown dtype 'Q4'
          {"a": {"dtype": "F32", "data_offsets": [0, 4]}}                       | a: 'shape' is missing
          {"a": {"dtype": "F32", "shape": [1]}}                                 | a: 'data_offsets' is missing
          {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}        | a.shape:
          {"a": {"dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]}}       | a.shape[0]: this is not a 64-bit integer
          {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}         | takes 8 bytes, but has 4
          {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}}         | takes 4 bytes, but has 8
          {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}         | is at bytes
          {"a": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}        | is at bytes
          {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}         | begins at byte 4
          {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}         | its data at 8
          {"a": {"dtype": "F32", "shape": [9223372036854775807, 9223372036854775807], "data_offsets": [0, 8]}} | a.shape:
          {"a": {"dtype": "F32", "shape": [4611686018427387905], "data_offsets": [0, 4]}} | a.shape:
          {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}} | begins at byte 4
          """)
  void headersThatLieAreErrors(String header, String message) throws IOException {
    write(header, 8);
    assertThatThrownBy(() -> Safetensors.read(file))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("a.safetensors")
        .hasMessageContaining(message);
  }

  @Test
  void aHeaderOfAnyLengthIsAnError() throws IOException {
    for (long length : new long[] {-1, 0, 1, 9, Long.MAX_VALUE, Long.MIN_VALUE, 100_000_001}) {
      Files.write(
          file, ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putLong(length).array());
      assertThatThrownBy(() -> Safetensors.read(file))
          .as("length %s", length)
          .isInstanceOf(CompileException.class)
          .hasMessageContaining("a.safetensors")
          .hasMessageContaining("header is %s, but 8 bytes", Long.toUnsignedString(length));
    }
  }

  @Test
  void aDeepHeaderIsAnError() throws IOException {
    write("{\"a\": " + "[".repeat(100_000), 0);
    assertThatThrownBy(() -> Safetensors.read(file))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("nesting depth");
  }

  @Test
  void writesNothingWhereItCannot() {
    var nowhere = folder.resolve("none").resolve("a.safetensors");
    assertThatThrownBy(() -> Safetensors.write(nowhere, ImmutableMap.of("a", tensor(DType.F32, 1))))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("cannot be written");
    assertThat(folder).isEmptyDirectory();
  }
}
