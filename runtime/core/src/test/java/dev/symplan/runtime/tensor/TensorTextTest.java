package dev.symplan.runtime.tensor;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Splitter;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Tensors are printed as PyTorch printed them: see {@code recorded/tensor_texts.py}. */
class TensorTextTest {
  private static final String RECORDED = "/recorded/tensor_texts.txt";

  @Test
  void printsAsPyTorchDoes() throws IOException {
    int tensors = 0;
    for (var recorded : Splitter.onPattern("\n(?! )").omitEmptyStrings().split(recorded())) {
      var lines = Splitter.on("\n ").splitToList(recorded.stripTrailing());
      var text = String.join("\n", lines.subList(1, lines.size()));
      assertThat(TensorText.of(tensor(lines.getFirst()))).as(lines.getFirst()).isEqualTo(text);
      tensors++;
    }
    assertThat(tensors).isGreaterThan(200);
  }

  @Test
  void readsAlongStrides() {
    var square = HostTensor.allocate(TensorType.contiguous(DType.I64, 2, 3));
    for (int i = 0; i < 6; i++) {
      square.setLong(i, i / 3, i % 3);
    }
    var type =
        new TensorType(
            DType.I64,
            ImmutableLongArray.of(3, 2),
            ImmutableLongArray.of(1, 3),
            square.type().space());
    assertThat(TensorText.of(square.as(type)))
        .isEqualTo("tensor([[0, 3],\n        [1, 4],\n        [2, 5]])");
  }

  private static String recorded() throws IOException {
    try (var in = Objects.requireNonNull(TensorTextTest.class.getResourceAsStream(RECORDED))) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  private static HostTensor tensor(String line) {
    var words = Splitter.on(' ').omitEmptyStrings().splitToList(line);
    var dtype = DType.ofTorchName(words.getFirst()).orElseThrow();
    var sizes =
        Splitter.on(',')
            .omitEmptyStrings()
            .splitToStream(words.get(1).substring(1, words.get(1).length() - 1))
            .mapToLong(Long::parseLong)
            .toArray();
    var tensor = HostTensor.allocate(TensorType.contiguous(dtype, sizes));
    long numbers = tensor.type().bytes() / dtype.real().bytes();
    var flat = tensor.as(TensorType.contiguous(dtype.real(), numbers));
    var values = values(words.subList(2, words.size()), numbers);
    for (int i = 0; i < values.length; i++) {
      flat.set(values[i], i);
    }
    return tensor;
  }

  private static double[] values(List<String> words, long count) {
    if (words.isEmpty() || !words.getFirst().equals("spread")) {
      return words.stream()
          .map(word -> word.replace("inf", "Infinity").replace("nan", "NaN"))
          .mapToDouble(Double::parseDouble)
          .toArray();
    }
    double scale = Double.parseDouble(words.getLast());
    return LongStream.range(0, count)
        .mapToDouble(i -> (i * 40503 % 65536 - 32768) / 32768.0 * scale)
        .toArray();
  }
}
