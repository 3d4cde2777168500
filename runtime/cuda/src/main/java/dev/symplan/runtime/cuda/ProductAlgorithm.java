package dev.symplan.runtime.cuda;

import com.google.common.base.Splitter;
import com.google.common.primitives.ImmutableLongArray;
import java.util.Optional;
import java.util.stream.Collectors;
import org.bytedeco.cuda.cublas.cublasLtMatmulAlgo_t;

/**
 * An algorithm of cuBLASLt, as the words of its {@code cublasLtMatmulAlgo_t}. They mean something
 * to the version of cuBLASLt that gave them, and only for the product that it gave them for.
 */
record ProductAlgorithm(ImmutableLongArray words) {
  private static final int WORDS = 8;
  private static final int HEXADECIMAL = 16;

  ProductAlgorithm {
    if (words.length() != WORDS) {
      throw new IllegalArgumentException("an algorithm of %s words".formatted(words.length()));
    }
  }

  static ProductAlgorithm of(cublasLtMatmulAlgo_t algorithm) {
    var words = ImmutableLongArray.builder(WORDS);
    for (int i = 0; i < WORDS; i++) {
      words.add(algorithm.data(i));
    }
    return new ProductAlgorithm(words.build());
  }

  /** {@return it as the library takes it; the caller closes it} */
  cublasLtMatmulAlgo_t allocate() {
    var algorithm = new cublasLtMatmulAlgo_t();
    for (int i = 0; i < WORDS; i++) {
      algorithm.data(i, words.get(i));
    }
    return algorithm;
  }

  /** {@return it in one word of text} */
  String text() {
    return words.stream()
        .mapToObj(word -> "%016x".formatted(word))
        .collect(Collectors.joining("."));
  }

  /** {@return the algorithm that has this {@link #text}; empty if none has} */
  static Optional<ProductAlgorithm> parse(String text) {
    var words = ImmutableLongArray.builder(WORDS);
    try {
      for (var word : Splitter.on('.').split(text)) {
        words.add(Long.parseUnsignedLong(word, HEXADECIMAL));
      }
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
    var parsed = words.build();
    return parsed.length() == WORDS ? Optional.of(new ProductAlgorithm(parsed)) : Optional.empty();
  }
}
