package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.Layouts;
import java.util.Optional;

/**
 * Products of vectors, and of matrices in any number of batches: as products of matrices, wherever
 * the tensors are.
 */
final class ShapedProducts {
  private static final ImmutableSet<String> OPS =
      ImmutableSet.of(
          "aten::matmul",
          "aten::linear",
          "aten::mv",
          "aten::dot",
          "aten::vdot",
          "aten::outer",
          "aten::addmv",
          "aten::addbmm");

  /** What a product is added to, and the factors of both. */
  private record Addend(TensorRef self, double alpha, double beta) {}

  private final int rank;
  private final OpArguments arguments;
  private final ImmutableList.Builder<DeviceStep> steps = ImmutableList.builder();

  ShapedProducts(int rank, OpArguments arguments) {
    this.rank = rank;
    this.arguments = arguments;
  }

  static boolean supports(String op) {
    return OPS.contains(op);
  }

  ImmutableList<DeviceStep> lower() {
    switch (arguments.name()) {
      case "aten::matmul" ->
          vectors(arguments.tensor("self"), arguments.tensor("other"), Optional.empty());
      case "aten::linear" -> linear();
      case "aten::mv" ->
          vectors(arguments.tensor("self"), arguments.tensor("vec"), Optional.empty());
      case "aten::dot" ->
          vectors(arguments.tensor("self"), arguments.tensor("tensor"), Optional.empty());
      case "aten::vdot" ->
          vectors(arguments.tensor("self"), arguments.tensor("other"), Optional.empty());
      case "aten::outer" ->
          product(
              Moves.unsqueeze(arguments.tensor("self"), 1),
              Moves.unsqueeze(arguments.tensor("vec2"), 0),
              arguments.result(),
              Optional.empty());
      case "aten::addmv" ->
          vectors(
              arguments.tensor("mat"),
              arguments.tensor("vec"),
              Optional.of(
                  addend(
                      Moves.expand(arguments.tensor("self"), arguments.result().type().sizes()))));
      default -> sumOfBatches();
    }
    return steps.build();
  }

  private Addend addend(TensorRef self) {
    return new Addend(
        self, arguments.number("alpha").doubleValue(), arguments.number("beta").doubleValue());
  }

  /** Vectors are matrices of one row or column; batches are broadcast. */
  private void vectors(TensorRef left, TensorRef right, Optional<Addend> addend) {
    var result = arguments.result();
    var self = addend.map(Addend::self);
    if (right.type().rank() == 1) {
      right = Moves.unsqueeze(right, 1);
      self = self.map(own -> Moves.unsqueeze(own, own.type().rank()));
      result = Moves.unsqueeze(result, result.type().rank());
    }
    if (left.type().rank() == 1) {
      left = Moves.unsqueeze(left, 0);
      result = Moves.unsqueeze(result, result.type().rank() - 1);
    }
    var shaped = self;
    product(
        left,
        right,
        result,
        addend.map(own -> new Addend(shaped.orElseThrow(), own.alpha(), own.beta())));
  }

  private void linear() {
    var input = arguments.tensor("input");
    var weight = arguments.tensor("weight");
    var result = arguments.result();
    if (weight.type().rank() == 1) {
      weight = Moves.unsqueeze(weight, 0);
      result = Moves.unsqueeze(result, result.type().rank());
    }
    if (input.type().rank() == 1) {
      input = Moves.unsqueeze(input, 0);
      result = Moves.unsqueeze(result, 0);
    }
    var sizes = result.type().sizes();
    product(
        input,
        Moves.transpose(weight),
        result,
        arguments.optionalTensor("bias").map(bias -> new Addend(Moves.expand(bias, sizes), 1, 1)));
  }

  /** A product of matrices for each batch, or as few as the strides permit. */
  private void product(TensorRef left, TensorRef right, TensorRef result, Optional<Addend> addend) {
    int dims = result.type().rank();
    var a = batched(left, result);
    var b = batched(right, result);
    if (result.type().numel() == 0) {
      return;
    } else if (dims == 2) {
      matrices(a, b, result, addend);
      return;
    }
    var rows = rows(a, result);
    if (rows.isPresent() && isShared(b)) {
      // One matrix for all rows, however they are grouped.
      var lines = ImmutableLongArray.of(rows.get().type().size(0), result.type().size(dims - 1));
      var flat = flat(result, lines);
      var self = addend.map(own -> flat(own.self(), lines));
      if (flat.isPresent() && self.map(Optional::isPresent).orElse(true)) {
        var matrix = b;
        while (matrix.type().rank() > 2) {
          matrix = Moves.select(matrix, 0, 0);
        }
        product(
            rows.get(),
            matrix,
            flat.get(),
            addend.map(
                own -> new Addend(self.orElseThrow().orElseThrow(), own.alpha(), own.beta())));
        return;
      }
    }
    if (dims == 3) {
      matrices(a, b, result, addend);
      return;
    }
    for (long i = 0; i < result.type().size(0); i++) {
      long index = i;
      product(
          Moves.select(a, 0, i),
          Moves.select(b, 0, i),
          Moves.select(result, 0, i),
          addend.map(
              own -> new Addend(Moves.select(own.self(), 0, index), own.alpha(), own.beta())));
    }
  }

  private void matrices(
      TensorRef left, TensorRef right, TensorRef result, Optional<Addend> addend) {
    var lowering = new ProductLowering(rank, arguments, result);
    addend.ifPresentOrElse(
        own -> lowering.added(left, right, own.self(), own.alpha(), own.beta()),
        () -> lowering.product(left, right));
    steps.addAll(lowering.steps());
  }

  /** A matrix, or matrices, with the batches of the result. */
  private static TensorRef batched(TensorRef ref, TensorRef result) {
    var type = ref.type();
    var sizes =
        ImmutableLongArray.builder()
            .addAll(result.type().sizes().subArray(0, result.type().rank() - 2))
            .add(type.size(type.rank() - 2))
            .add(type.size(type.rank() - 1))
            .build();
    return Moves.expand(ref, sizes);
  }

  private static boolean isShared(TensorRef matrices) {
    for (int dim = 0; dim < matrices.type().rank() - 2; dim++) {
      if (matrices.type().size(dim) > 1 && matrices.type().stride(dim) != 0) {
        return false;
      }
    }
    return true;
  }

  /** All rows of all batches, one after the other. */
  private static Optional<TensorRef> rows(TensorRef ref, TensorRef result) {
    int dims = ref.type().rank();
    long lines = result.type().numel() / result.type().size(dims - 1);
    return flat(ref, ImmutableLongArray.of(lines, ref.type().size(dims - 1)));
  }

  private static Optional<TensorRef> flat(TensorRef ref, ImmutableLongArray sizes) {
    return Layouts.viewStrides(ref.type(), sizes)
        .map(
            strides ->
                new TensorRef(
                    ref.arena(),
                    ref.index(),
                    ref.offset(),
                    new TensorType(ref.type().dtype(), sizes, strides, MemorySpace.ANY)));
  }

  /** {@code beta · self + alpha · Σ batch1 · batch2}, each element by itself. */
  private void sumOfBatches() {
    var left = arguments.tensor("batch1");
    var right = arguments.tensor("batch2");
    var result = arguments.result();
    var added = addend(Moves.expand(arguments.tensor("self"), result.type().sizes()));
    arguments.checkComputes(result);
    var dtype = result.type().dtype();
    var type = CTypes.computed(dtype);
    var kernel = new PositionKernel(rank, result.type().sizes());
    kernel.line("%s sum = 0;".formatted(type));
    kernel.line("for (long long b = 0; b < %s; b++) {".formatted(left.type().size(0)));
    kernel.line("  for (long long k = 0; k < %s; k++) {".formatted(left.type().size(2)));
    kernel.line(
        "    sum += %s * %s;"
            .formatted(
                kernel.value(left, ImmutableList.of("b", "i0", "k")),
                kernel.value(right, ImmutableList.of("b", "k", "i1"))));
    kernel.line("  }");
    kernel.line("}");
    var value =
        added.alpha() == 0
            ? "0"
            : "%s * sum".formatted(PositionKernel.number(dtype, added.alpha()));
    kernel.set(
        result,
        kernel.indices(),
        added.beta() == 0
            ? value
            : "%s + %s * %s"
                .formatted(
                    value,
                    PositionKernel.number(dtype, added.beta()),
                    kernel.value(added.self(), kernel.indices())));
    if (result.type().numel() > 0) {
      steps.add(kernel.build(arguments.op().stream(), arguments.op().name()));
    }
  }
}
