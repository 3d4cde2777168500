package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Iterables;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.DeviceStep.Share;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import java.util.HashMap;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Two products of the same vectors, and the elementwise ops that come right after them, for one
 * launch.
 *
 * @param other which {@linkplain StreamedProduct#joins may be} in the launch of the first
 * @param stored those of both whose results are read afterwards, too
 * @param memory which the ops use
 * @param rest statements of the ops that have arrays {@code product0} and {@code product1} of a
 *     vector's elements and the index {@code i} of the vector in both results
 * @param vectors of neighbouring rows
 * @param shares of all three
 */
record ProductPair(
    Product one,
    Product other,
    ImmutableSet<Product> stored,
    MemoryArguments memory,
    String rest,
    Vectors vectors,
    ImmutableList<Share> shares) {

  /**
   * {@return the pair; empty if the ops do not go element by element over both results, or write
   * what other blocks read}
   *
   * @param wide whether threads take vectors, if all tensors lie for that
   * @throws UnsupportedOnGpu when one of the ops has no CUDA implementation
   */
  static Optional<ProductPair> of(int rank, Product one, Product other, Fused fused, boolean wide) {
    long elements = one.rows() * one.columns();
    boolean fits =
        one.rows() == other.rows()
            && isDense(one)
            && isDense(other)
            && fused.stream() == one.stream()
            && OneShape.is(fused.parts());
    if (!fits) {
      return Optional.empty();
    }
    var results =
        ImmutableMap.of(
            StreamedProduct.written(one), "product0", StreamedProduct.written(other), "product1");
    var given = new HashMap<TensorRef, String>();
    for (var part : fused.parts()) {
      for (var operand : Iterables.concat(part.args(), part.results())) {
        if (operand instanceof Operand.Tensor(var ref)) {
          var memory = Memory.of(rank, ref);
          var name = results.get(memory);
          boolean whole = ref.type().isContiguous() && ref.type().numel() == elements;
          if (name != null && whole && ref.type().dtype() == one.dtype()) {
            given.put(ref, name);
          } else if (!results.keySet().stream().allMatch(memory::isApart)) {
            return Optional.empty();
          }
        }
      }
      for (var result : part.results()) {
        if (result instanceof Operand.Tensor(var ref)
            && !Stream.of(one, other)
                .flatMap(StreamedProduct::read)
                .allMatch(Memory.of(rank, ref)::isApart)) {
          return Optional.empty();
        }
      }
    }
    var passed =
        fused.lastReads().stream()
            .filter(given::containsKey)
            .map(ref -> Memory.of(rank, ref))
            .collect(ImmutableSet.toImmutableSet());
    var stored =
        Stream.of(one, other)
            .filter(each -> !passed.contains(StreamedProduct.written(each)))
            .collect(ImmutableSet.toImmutableSet());
    var memory = new MemoryArguments();
    var label = fused.parts().getLast().name();
    return ElementwiseKernel.statements(
            rank, fused.parts(), memory, given, wide && isWide(one) && isWide(other))
        .map(
            rest ->
                new ProductPair(
                    one,
                    other,
                    stored,
                    memory,
                    rest.statements(),
                    rest.vectors(),
                    ImmutableList.of(
                        StreamedProduct.share(one),
                        StreamedProduct.share(other),
                        new Share(label, elements * one.dtype().bytes()))));
  }

  private static boolean isDense(Product product) {
    return product.result().leading() == product.rows();
  }

  /** {@return whether vectors of rows of a product's result lie as in a tensor of one dimension} */
  static boolean isWide(Product product) {
    return product.result().address().isVectorAligned()
        && product.rows() % Vectors.MAX_WIDTH == 0
        && product.result().leading() % Vectors.MAX_WIDTH == 0;
  }

  /** {@return whether nothing before the launch writes the matrices} */
  boolean areConstant(ConstantInputs constants) {
    return Stream.of(one, other).allMatch(each -> constants.contains(each.left().address()));
  }

  /** {@return the name of the last op} */
  String label() {
    return shares.getLast().label();
  }
}
