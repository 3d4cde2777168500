package dev.symplan.runtime.cuda;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.primitives.Bytes;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.runtime.ProductAlgorithms;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.TreeMap;
import org.bytedeco.cuda.cublas.cublasLtContext;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;

/**
 * Chooses the algorithms of a program's products when a session opens, which waits for that: so the
 * time is limited. What was measured before, here or in another process, is not measured again.
 */
final class ProductTimer {
  private static final ProductCache CACHE = new ProductCache(ProductCache.folder(System.getenv()));

  /** How long a rank may measure, but never longer than a part of what others wait for it. */
  private static final Duration MOST = Duration.ofSeconds(5);

  private static final int PART = 4;
  private static final int MAX_NAME = 256;

  /** The address of a bias or of factors: the library looks at its alignment alone. */
  static final long ANY_VECTOR = 256;

  private static final CublasMatmul.Vectors ANY_VECTORS =
      new CublasMatmul.Vectors(ANY_VECTOR, ANY_VECTOR, ANY_VECTOR);

  private final ProductAlgorithms how;
  private final ImmutableList<DeviceProgram> programs;
  private final Duration most;

  /**
   * @param programs of all ranks
   * @param timeout how long ranks wait for each other
   */
  ProductTimer(ProductAlgorithms how, ImmutableList<DeviceProgram> programs, Duration timeout) {
    this.how = how;
    this.programs = programs;
    var part = timeout.dividedBy(PART);
    this.most = part.compareTo(MOST) < 0 ? part : MOST;
  }

  /**
   * {@return the choices for which a GPU's rank is the one that makes them; none for shapes for
   * which there is no time or no memory}
   */
  ProductChoices choose(Gpu gpu) {
    return switch (how) {
      case HEURISTIC -> ProductChoices.none(Ascii.toLowerCase(how.name()));
      case TIMED -> time(gpu, ProductChoices.chosenBy(gpu.check().rank(), programs));
    };
  }

  private ProductChoices time(Gpu gpu, ImmutableList<Product> products) {
    var machine = machine(gpu);
    if (products.isEmpty()) {
      return ProductChoices.none(machine);
    }
    long end = System.nanoTime() + most.toNanos();
    var kept = CACHE.read(machine);
    var known = new TreeMap<String, ProductAlgorithm>();
    var measured = new TreeMap<String, ProductAlgorithm>();
    var check = gpu.check();
    var timer = new AlgorithmTimer(gpu);
    var handle = CublasProducts.HANDLES.take(gpu.device(), check::createBlas);
    try {
      for (var product : products) {
        var shape = ProductShape.of(product);
        var before =
            kept.of(shape).filter(algorithm -> computes(check, handle, product, algorithm));
        before.ifPresent(algorithm -> known.put(shape.text(), algorithm));
        if (before.isEmpty() && System.nanoTime() < end) {
          timer
              .fastest(handle, product)
              .ifPresent(algorithm -> measured.put(shape.text(), algorithm));
        }
      }
    } finally {
      CublasProducts.HANDLES.giveBack(gpu.device(), handle);
    }
    var found = new ProductChoices(machine, ImmutableSortedMap.copyOf(measured));
    CACHE.add(found);
    return found.with(new ProductChoices(machine, ImmutableSortedMap.copyOf(known)));
  }

  /** Whether what a file says is an algorithm for the product. */
  private static boolean computes(
      Check check, cublasLtContext handle, Product product, ProductAlgorithm algorithm) {
    try (var matmul = new CublasMatmul(check, handle, product, ANY_VECTORS);
        var allocated = algorithm.allocate()) {
      return matmul.workspace(allocated).isPresent();
    }
  }

  /**
   * {@return the machine that is measured; times of other GPUs and versions do not count for it}
   */
  private static String machine(Gpu gpu) {
    var check = gpu.check();
    var name = new byte[MAX_NAME];
    check.driver(cudart.cuDeviceGetName(name, name.length, gpu.device()), "cuDeviceGetName");
    var driver = new int[1];
    check.runtime(cudart.cudaDriverGetVersion(driver), "cudaDriverGetVersion");
    return "%s, %s multiprocessors, driver %s, cuBLASLt %s, %s algorithms, %s bytes of workspace"
        .formatted(
            new String(name, 0, Bytes.indexOf(name, (byte) 0), StandardCharsets.US_ASCII),
            gpu.attribute(cudart.cudaDevAttrMultiProcessorCount),
            driver[0],
            cublas.cublasLtGetVersion(),
            AlgorithmTimer.ALGORITHMS,
            CublasMatmul.MAX_WORKSPACE);
  }
}
