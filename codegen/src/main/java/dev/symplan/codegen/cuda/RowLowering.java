package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.RowNode.Location;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.IntStream;

/**
 * Ops that go by rows as one kernel: those of a fused instruction, or one.
 *
 * <p>In a fused instruction, every value is one for the whole row or one for each element of it.
 */
final class RowLowering {
  private final int rank;
  private final int rows;

  /** Without dimensions of one element. */
  private final ImmutableLongArray inner;

  private final RowKernel kernel;
  private final Map<TensorRef, Integer> made = new HashMap<>();
  private final Map<Integer, Integer> passed = new HashMap<>();

  /** The tensor whose rows a block has in memory of its own, if there is one, and their name. */
  private final Optional<TensorRef> held;

  private final String heldRow;

  private RowLowering(
      int rank, int rows, List<Part> parts, Optional<TensorRef> held, String heldRow) {
    this.rank = rank;
    this.rows = rows;
    this.held = held;
    this.heldRow = heldRow;
    var first = Parts.typeOf(parts.getFirst().results().getFirst());
    var longest = ImmutableLongArray.of();
    for (var part : parts) {
      for (var result : part.results()) {
        longest = longer(longest, inner(Parts.typeOf(result)));
      }
      if (!Pointwise.supports(part)) {
        for (var operand : part.args()) {
          if (Parts.isTensor(operand)) {
            longest = longer(longest, inner(Parts.typeOf(operand)));
          }
        }
      }
    }
    this.inner = longest;
    this.kernel = new RowKernel(first.sizes().subArray(0, rows), inner);
  }

  private static ImmutableLongArray longer(ImmutableLongArray a, ImmutableLongArray b) {
    return numel(b) > numel(a) ? b : a;
  }

  private static long numel(ImmutableLongArray sizes) {
    return sizes.stream().reduce(1, Math::multiplyExact);
  }

  private ImmutableLongArray inner(TensorType type) {
    return type.sizes().stream()
        .skip(rows)
        .filter(size -> size != 1)
        .collect(
            ImmutableLongArray::builder,
            ImmutableLongArray.Builder::add,
            (a, b) -> a.addAll(b.build()))
        .build();
  }

  /**
   * {@return a launch that runs the parts}
   *
   * @throws UnsupportedOnGpu when one of them cannot be part of it
   */
  static DeviceStep.Launch fused(int rank, Fused fused) {
    var lowering = new RowLowering(rank, fused.rows(), fused.parts(), Optional.empty(), "");
    fused.parts().forEach(lowering::part);
    return lowering.kernel.build(fused.stream(), fused.parts().getLast().name());
  }

  /**
   * {@return a kernel that runs the parts on rows of which a block holds one tensor's}
   *
   * @param held that tensor, in the order of its elements
   * @param heldRow the name of a block's memory with a row of it
   * @throws UnsupportedOnGpu when one of the parts cannot be part of it
   */
  static RowKernel behind(int rank, int rows, List<Part> parts, TensorRef held, String heldRow) {
    var lowering = new RowLowering(rank, rows, parts, Optional.of(held), heldRow);
    parts.forEach(lowering::part);
    return lowering.kernel;
  }

  private void part(Part part) {
    for (var result : part.results()) {
      checkShape(part, Parts.typeOf(result));
    }
    if (Pointwise.supports(part)) {
      var result = Parts.result(part);
      var type = Parts.typeOf(result);
      var inputs = new ArrayList<Integer>();
      var text =
          Pointwise.value(
              part,
              operand -> {
                int node = operand(part, operand, type);
                inputs.add(node);
                return RowKernel.name(node);
              });
      int node = kernel.compute(CTypes.computed(type.dtype()), text, inputs);
      finish(result, node);
      return;
    }
    var over = Parts.main(part);
    checkShape(part, over);
    boolean overRow = inner(over).length() > 0;
    checkDims(part, over);
    var nodes =
        RowOps.apply(
            kernel,
            part,
            operand -> {
              checkShape(part, Parts.typeOf(operand));
              return operand(part, operand, over);
            },
            overRow);
    for (int i = 0; i < part.results().size(); i++) {
      finish(part.results().get(i), nodes.get(i));
    }
  }

  private void finish(Operand result, int node) {
    switch (result) {
      case Operand.Passed(int index, var _) -> passed.put(index, node);
      case Operand.Tensor(var ref) -> {
        made.put(ref, node);
        kernel.store(node, location(ref, ref.type()));
      }
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    }
  }

  private void checkShape(Part part, TensorType type) {
    var own = inner(type);
    if (own.length() > 0 && !own.equals(inner)) {
      throw byRows(part);
    }
  }

  private static UnsupportedOnGpu byRows(Part part) {
    return Parts.unsupported(
        part, "%s over a part of rows (try --no-fusion)".formatted(part.def().name()));
  }

  /** All of a row must be reduced, normalized or scanned. */
  private void checkDims(Part part, TensorType over) {
    var dims = Parts.dims(part, over.rank());
    for (int dim = rows; dim < over.rank(); dim++) {
      if (over.size(dim) != 1 && !dims.contains(dim)) {
        throw byRows(part);
      }
    }
  }

  private int operand(Part part, Operand operand, TensorType as) {
    return switch (operand) {
      case Operand.Passed(int index, var type) -> {
        checkShape(part, type);
        yield Objects.requireNonNull(passed.get(index));
      }
      case Operand.Tensor(var ref) -> {
        var own = made.get(ref);
        yield own != null ? own : load(ref, as);
      }
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    };
  }

  private int load(TensorRef ref, TensorType as) {
    boolean full = false;
    int skipped = as.rank() - ref.type().rank();
    for (int dim = Math.max(0, rows - skipped); dim < ref.type().rank(); dim++) {
      full |= ref.type().size(dim) != 1;
    }
    if (held.isPresent() && isSame(ref, held.get())) {
      return kernel.load(heldLocation(ref), full);
    }
    return kernel.load(location(ref, as), full);
  }

  /** {@return whether two tensors are the same elements in the same order} */
  static boolean isSame(TensorRef a, TensorRef b) {
    return a.arena() == b.arena()
        && a.index() == b.index()
        && a.offset() == b.offset()
        && a.type().dtype() == b.type().dtype()
        && a.type().numel() == b.type().numel()
        && a.type().isContiguous()
        && b.type().isContiguous();
  }

  /** Where a block has the elements of a row: all are there, side by side. */
  private Location heldLocation(TensorRef ref) {
    var strides = new long[inner.length()];
    long stride = 1;
    for (int dim = strides.length - 1; dim >= 0; dim--) {
      strides[dim] = stride;
      stride *= inner.get(dim);
    }
    return new Location(
        Optional.empty(),
        heldRow,
        ref.type().dtype(),
        ImmutableLongArray.copyOf(new long[rows]),
        ImmutableLongArray.copyOf(strides));
  }

  /**
   * @param as the shape that the tensor is broadcast to: rows, then the elements of one
   */
  private Location location(TensorRef ref, TensorType as) {
    var strides = Indices.broadcast(ref.type(), as.rank());
    var own =
        IntStream.range(rows, as.rank())
            .filter(dim -> as.size(dim) != 1)
            .mapToLong(strides::get)
            .toArray();
    return Location.of(
        rank,
        ref,
        strides.subArray(0, rows),
        own.length == 0
            ? ImmutableLongArray.copyOf(new long[inner.length()])
            : ImmutableLongArray.copyOf(own));
  }

  /**
   * {@return a launch that runs one op over dimensions of its operands, wherever they are}
   *
   * @param part its results are in memory
   * @throws UnsupportedOnGpu when it cannot
   */
  static DeviceStep.Launch single(int rank, StreamKind stream, Part part) {
    var sum = ShortSum.of(part);
    return sum.isPresent()
        ? ElementwiseKernel.sum(rank, stream, sum.get().terms(), sum.get().result(), part.name())
        : over(part, operand -> View.of(rank, ((Operand.Tensor) operand).ref()))
            .build(stream, part.name());
  }

  /**
   * A tensor as a part reads or writes it.
   *
   * @param memory where it is; empty for what a block has to itself
   * @param shared the name of the block's own memory
   */
  record View(TensorType type, Optional<KernelArgument.Memory> memory, String shared) {
    static View of(int rank, TensorRef ref) {
      return new View(ref.type(), Optional.of(KernelArgument.Memory.of(rank, ref)), "");
    }

    Location location(ImmutableLongArray rows, ImmutableLongArray inner) {
      return new Location(memory, shared, type.dtype(), rows, inner);
    }
  }

  /**
   * {@return a kernel for one op that reduces, normalizes or scans dimensions of its operands,
   * wherever they are; the others make its rows}
   */
  static RowKernel over(Part part, Function<Operand, View> views) {
    var main = Parts.main(part);
    var dims = Parts.dims(part, main.rank());
    var kept = IntStream.range(0, main.rank()).filter(dim -> !dims.contains(dim)).toArray();
    var gone = IntStream.range(0, main.rank()).filter(dims::contains).toArray();
    var kernel = new RowKernel(sizes(main, kept), sizes(main, gone));
    boolean overRow = gone.length > 0;
    if (isAcross(main, kept, gone)) {
      kernel.goAcross();
    }
    var nodes =
        RowOps.apply(
            kernel,
            part,
            operand -> {
              var view = views.apply(operand);
              var strides = Indices.broadcast(view.type(), main.rank());
              return kernel.load(view.location(pick(strides, kept), pick(strides, gone)), overRow);
            },
            overRow);
    for (int i = 0; i < nodes.size(); i++) {
      if (Parts.isTensor(part.results().get(i))) {
        var view = views.apply(part.results().get(i));
        kernel.store(nodes.get(i), result(view, main.rank(), kept, gone));
      }
    }
    return kernel;
  }

  /** Whether rows are neighbours in memory, and a row's elements are not. */
  private static boolean isAcross(TensorType type, int[] kept, int[] gone) {
    return kept.length > 0
        && type.stride(kept[kept.length - 1]) == 1
        && type.size(kept[kept.length - 1]) > 1
        && Arrays.stream(gone).allMatch(dim -> type.size(dim) == 1 || type.stride(dim) > 1);
  }

  private static Location result(View view, int rank, int[] kept, int[] gone) {
    var type = view.type();
    if (type.rank() == rank) {
      var strides = Indices.broadcast(type, rank);
      return view.location(pick(strides, kept), pick(strides, gone));
    }
    return view.location(type.strides(), ImmutableLongArray.copyOf(new long[gone.length]));
  }

  /** {@return a kernel for one elementwise op, whose rows are single elements} */
  static RowKernel elements(Part part, Function<Operand, View> views) {
    var result = Parts.result(part);
    var type = Parts.typeOf(result);
    var none = ImmutableLongArray.of();
    var kernel = new RowKernel(type.sizes(), none);
    var inputs = new ArrayList<Integer>();
    var text =
        Pointwise.value(
            part,
            operand -> {
              var view = views.apply(operand);
              var strides = Indices.broadcast(view.type(), type.rank());
              int node = kernel.load(view.location(strides, none), false);
              inputs.add(node);
              return RowKernel.name(node);
            });
    int node = kernel.compute(CTypes.computed(type.dtype()), text, inputs);
    var view = views.apply(result);
    kernel.store(node, view.location(Indices.broadcast(view.type(), type.rank()), none));
    return kernel;
  }

  private static ImmutableLongArray sizes(TensorType type, int[] dims) {
    return pick(type.sizes(), dims);
  }

  private static ImmutableLongArray pick(ImmutableLongArray values, int[] dims) {
    return ImmutableLongArray.copyOf(Arrays.stream(dims).mapToLong(values::get));
  }
}
