package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Takes a rank's steps in order, and makes one launch of {@linkplain StreamedProduct streamed
 * products} that follow each other: with a few vectors, what a launch costs by itself counts. With
 * more vectors, {@linkplain HopperStreamedKernel one} has a pair and what computes with it.
 */
final class ProductJoining {

  /** Of a launch: each makes the choice of a block's matrix longer. */
  private static final int MAX_PRODUCTS = 8;

  private final int rank;
  private final ConstantInputs constants;
  private final ImmutableList.Builder<DeviceStep> steps = ImmutableList.builder();
  private final List<Product> waiting = new ArrayList<>();

  /**
   * @param constants of all graphs of the program
   */
  ProductJoining(int rank, ConstantInputs constants) {
    this.rank = rank;
    this.constants = constants;
  }

  void add(DeviceStep step) {
    if (step instanceof Product product
        && (StreamedProduct.suits(product)
            || HopperStreamedKernel.suits(product)
            || HopperStreamedKernel.suitsAlone(product))) {
      if (!waiting.isEmpty()
          && (waiting.size() == MAX_PRODUCTS
              || StreamedProduct.suits(product) != isStreamed()
              || !StreamedProduct.joins(waiting, product))) {
        launchWaiting();
      }
      waiting.add(product);
    } else {
      launchWaiting();
      steps.add(step);
    }
  }

  /**
   * Adds fused ops; where they compute with the results of two products, to the launch of these.
   */
  void add(Fused fused) {
    var together = withWaiting(fused);
    if (together.isPresent()) {
      waiting.clear();
      steps.add(together.get());
    } else {
      FusedLowering.lower(rank, fused).forEach(this::add);
    }
  }

  private Optional<DeviceStep> withWaiting(Fused fused) {
    if (waiting.size() != 2) {
      return Optional.empty();
    }
    try {
      Optional<DeviceStep> streamed =
          isStreamed()
              ? pair(fused, false)
                  .flatMap(pair -> StreamedProduct.launch(pair, constants))
                  .map(launch -> launch)
              : Optional.empty();
      return waiting.stream().allMatch(HopperStreamedKernel::suits)
          ? pair(fused, true)
              .map(
                  pair ->
                      HopperStreamedKernel.launch(
                          pair,
                          constants,
                          streamed.map(ImmutableList::of).orElseGet(() -> apart(fused))))
          : streamed;
    } catch (UnsupportedOnGpu e) {
      // Alone, they may be done in another way.
      return Optional.empty();
    }
  }

  private Optional<ProductPair> pair(Fused fused, boolean wide) {
    return ProductPair.of(rank, waiting.getFirst(), waiting.getLast(), fused, wide);
  }

  private ImmutableList<DeviceStep> apart(Fused fused) {
    return ImmutableList.<DeviceStep>builder()
        .addAll(isStreamed() ? ImmutableList.of(streamed()) : ImmutableList.copyOf(waiting))
        .addAll(FusedLowering.lower(rank, fused))
        .build();
  }

  private boolean isStreamed() {
    return StreamedProduct.suits(waiting.getFirst());
  }

  private Launch streamed() {
    return StreamedProduct.launch(ImmutableList.copyOf(waiting), constants);
  }

  private void launchWaiting() {
    if (waiting.size() > 1 && isStreamed()) {
      steps.add(streamed());
    } else {
      waiting.forEach(product -> steps.add(alone(product)));
    }
    waiting.clear();
  }

  private DeviceStep alone(Product product) {
    var otherwise =
        StreamedProduct.suits(product)
            ? StreamedProduct.launch(ImmutableList.of(product), constants)
            : product;
    return HopperStreamedKernel.suitsAlone(product)
        ? HopperStreamedKernel.launch(product, constants, otherwise)
        : otherwise;
  }

  /** {@return all steps; nothing is added afterwards} */
  ImmutableList<DeviceStep> build() {
    launchWaiting();
    return steps.build();
  }
}
