package dev.symplan.runtime.cuda;

import dev.symplan.codegen.Address;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.cuda.library.HandlePool;
import dev.symplan.runtime.failure.RunException;
import java.util.Optional;
import org.bytedeco.cuda.cublas.cublasLtContext;
import org.bytedeco.javacpp.Pointer;

/**
 * Products by cuBLASLt, straight into planned memory.
 *
 * <p>Which algorithm computes one depends only on what the plan knows, {@link ProductShape}, so
 * that all ranks take the same. All products of a GPU are in one stream and share one workspace.
 */
final class CublasProducts {
  static final HandlePool<cublasLtContext> HANDLES = new HandlePool<>();

  private final Gpu gpu;
  private final Check check;
  private final Locations locations;
  private final LibraryWorkspace workspace;
  private final ProductChoices choices;
  private Optional<cublasLtContext> handle = Optional.empty();

  /**
   * @param choices on which all ranks agree
   */
  CublasProducts(Gpu gpu, LibraryWorkspace workspace, Locations locations, ProductChoices choices) {
    this.gpu = gpu;
    this.workspace = workspace;
    this.check = gpu.check();
    this.locations = locations;
    this.choices = choices;
  }

  private cublasLtContext handle() {
    return handle.orElseGet(
        () -> {
          var taken = HANDLES.take(gpu.device(), check::createBlas);
          gpu.onClose(() -> HANDLES.giveBack(gpu.device(), taken));
          handle = Optional.of(taken);
          return taken;
        });
  }

  /**
   * {@return the action that puts the product into its stream; empty for one of 8-bit floats that
   * cuBLASLt does not compute on this GPU}
   */
  Optional<Runnable> prepare(Product product) {
    if (product.stream() != StreamKind.COMPUTE) {
      throw new IllegalStateException("a product beside compute");
    }
    var matmul =
        new CublasMatmul(
            check,
            handle(),
            product,
            new CublasMatmul.Vectors(
                ProductTimer.ANY_VECTOR + product.bias().map(Address::offset).orElse(0L),
                ProductTimer.ANY_VECTOR,
                ProductTimer.ANY_VECTOR));
    gpu.onClose(matmul::close);
    product.bias().ifPresent(bias -> locations.follow(bias, matmul::moveBias));
    product
        .scales()
        .ifPresent(
            scales -> {
              locations.follow(scales.left(), matmul::moveLeftScales);
              locations.follow(scales.right(), matmul::moveRightScales);
            });
    var chosen =
        choices
            .of(ProductShape.of(product))
            .or(() -> matmul.algorithms(1).stream().findFirst())
            .map(ProductAlgorithm::allocate);
    if (chosen.isEmpty() && product.scales().isPresent()) {
      return Optional.empty();
    }
    var algorithm =
        chosen.orElseThrow(
            () ->
                new RunException(
                    "rank %s: cuBLASLt has no algorithm for '%s'"
                        .formatted(check.rank(), product.label())));
    gpu.onClose(algorithm::close);
    long needed =
        matmul
            .workspace(algorithm)
            .orElseThrow(
                () ->
                    new RunException(
                        "rank %s: cuBLASLt refuses the algorithm that was chosen for '%s'"
                            .formatted(check.rank(), product.label())));
    workspace.reserve(needed);
    var memory =
        new CublasMatmul.Memory(
            pointer(product.left()),
            pointer(product.right()),
            pointer(product.addend()),
            pointer(product.result()));
    return Optional.of(
        matmul.call(algorithm, needed, workspace::memory, memory, gpu.stream(product.stream())));
  }

  private Pointer pointer(Matrix matrix) {
    return locations.pointer(matrix.address());
  }
}
