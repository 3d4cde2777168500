package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.planner.plan.StreamKind;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.bytedeco.cuda.cublas.cublasLtContext;
import org.bytedeco.cuda.cublas.cublasLtMatmulAlgo_t;

/** Measures which algorithms of cuBLASLt are the fastest, each by many products in one graph. */
final class AlgorithmTimer {

  /** The number of algorithms to ask for; the library ranks them, the presumably fastest first. */
  static final int ALGORITHMS = 16;

  private static final Duration FOR_ONE = Duration.ofMillis(50);

  /** The time of all products in one graph, unless a single one takes longer. */
  private static final double GRAPH_MICROS = 500;

  private static final int MAX_RUNS = 64;

  /** A GPU that was idle may take a while until its clocks are as high as they get. */
  private static final Duration WARM_UP = Duration.ofMillis(3);

  private final Gpu gpu;
  private final Check check;

  AlgorithmTimer(Gpu gpu) {
    this.gpu = gpu;
    this.check = gpu.check();
  }

  /**
   * {@return the fastest algorithm; empty if the GPU has no memory to measure in, or cuBLASLt no
   * algorithm}
   */
  Optional<ProductAlgorithm> fastest(cublasLtContext handle, Product product) {
    var allocated = ProductScratch.allocate(gpu, product);
    if (allocated.isEmpty()) {
      return Optional.empty();
    }
    try (var scratch = allocated.get();
        var matmul = new CublasMatmul(check, handle, product, scratch.vectors())) {
      var candidates = matmul.algorithms(ALGORITHMS);
      return candidates.isEmpty()
          ? Optional.empty()
          : Optional.of(candidates.get(winner(candidates, matmul, scratch)));
    }
  }

  private int winner(
      ImmutableList<ProductAlgorithm> candidates, CublasMatmul matmul, ProductScratch scratch) {
    var releases = new ArrayList<Runnable>();
    try {
      int runs = runs(candidates.getFirst(), matmul, scratch, releases);
      Map<Integer, CapturedGraph> graphs = new HashMap<>();
      return Race.winner(
          candidates.size(),
          i ->
              time(
                  graphs.computeIfAbsent(
                      i, _ -> graph(candidates.get(i), matmul, scratch, runs, releases))),
          System::nanoTime,
          FOR_ONE);
    } finally {
      Release.all(releases.reversed());
    }
  }

  /** {@return how many products a graph needs, so that what its launch takes does not count} */
  private int runs(
      ProductAlgorithm algorithm,
      CublasMatmul matmul,
      ProductScratch scratch,
      List<Runnable> releases) {
    var one = graph(algorithm, matmul, scratch, 1, releases);
    long begin = System.nanoTime();
    while (System.nanoTime() - begin < WARM_UP.toNanos()) {
      time(one);
    }
    return (int) Math.clamp(GRAPH_MICROS / time(one), 1, MAX_RUNS);
  }

  private CapturedGraph graph(
      ProductAlgorithm algorithm,
      CublasMatmul matmul,
      ProductScratch scratch,
      int runs,
      List<Runnable> releases) {
    var allocated = algorithm.allocate();
    releases.add(allocated::close);
    long bytes = matmul.workspace(allocated).orElseThrow();
    var graph =
        gpu.captured(
            () -> {
              for (int i = 0; i < runs; i++) {
                call(allocated, bytes, matmul, scratch, i % scratch.copies()).run();
              }
            });
    releases.add(graph::close);
    return graph;
  }

  private Runnable call(
      cublasLtMatmulAlgo_t algorithm,
      long bytes,
      CublasMatmul matmul,
      ProductScratch scratch,
      int copy) {
    return matmul.call(
        algorithm,
        bytes,
        scratch::workspace,
        scratch.matrices(copy),
        gpu.stream(StreamKind.COMPUTE));
  }

  private double time(CapturedGraph graph) {
    var stream = gpu.stream(StreamKind.COMPUTE);
    return gpu.time(() -> graph.launch(stream));
  }
}
