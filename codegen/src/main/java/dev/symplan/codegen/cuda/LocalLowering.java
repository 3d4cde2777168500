package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.Optional;

/** Local ops as launches, copies and products. */
final class LocalLowering {
  private final int rank;
  private final LocalOp op;
  private final ImmutableList.Builder<DeviceStep> steps = ImmutableList.builder();

  private LocalLowering(int rank, LocalOp op) {
    this.rank = rank;
    this.op = op;
  }

  /**
   * {@return what a rank does for an op}
   *
   * @throws UnsupportedOnGpu when there is no CUDA implementation
   */
  static ImmutableList<DeviceStep> lower(int rank, LocalOp op) {
    var lowering = new LocalLowering(rank, op);
    lowering.lower();
    return lowering.steps.build();
  }

  private void lower() {
    switch (op.def().name().toString()) {
      case "aten::mm", "aten::bmm" -> product(ref("self"), ref("mat2"));
      case "aten::addmm" -> added("mat1", "mat2");
      case "aten::baddbmm" -> added("batch1", "batch2");
      case "aten::cat", "aten::concat" -> join();
      default -> {
        if (RowOps.supports(op.def().name().toString())) {
          byRows();
        } else {
          elementwise();
        }
      }
    }
  }

  private void byRows() {
    var results =
        op.results().stream()
            .<Operand>map(
                result ->
                    result.isPresent()
                        ? new Operand.Tensor(result.get())
                        : new Operand.Constant(Arg.None.NONE))
            .collect(ImmutableList.toImmutableList());
    if (op.results().stream().flatMap(Optional::stream).anyMatch(ref -> ref.type().numel() > 0)) {
      steps.add(
          RowLowering.single(
              rank, op.stream(), new Part(op.def(), op.args(), results, op.name(), op.span())));
    }
  }

  private UnsupportedOnGpu unsupported(String what) {
    return new UnsupportedOnGpu(what, op.name(), op.span());
  }

  private Operand operand(String param) {
    return op.args().get(op.def().schema().indexOf(param));
  }

  private TensorRef ref(String param) {
    if (operand(param) instanceof Operand.Tensor(var ref)) {
      return ref;
    }
    throw unsupported("%s with %s = %s".formatted(op.def().name(), param, operand(param)));
  }

  private TensorRef result() {
    return op.results().stream()
        .findFirst()
        .flatMap(first -> first)
        .orElseThrow(() -> unsupported(op.def().name() + " has no CUDA implementation:"));
  }

  private double number(String param) {
    return switch (operand(param)) {
      case Operand.Constant(Arg.Int(long value)) -> value;
      case Operand.Constant(Arg.Float(double value)) -> value;
      default ->
          throw unsupported("%s with %s = %s".formatted(op.def().name(), param, operand(param)));
    };
  }

  private void elementwise() {
    if (op.results().size() != 1 || op.group().isPresent() || op.def().schema().mutates()) {
      throw unsupported(op.def().name() + " has no CUDA implementation");
    }
    var part =
        new Part(
            op.def(),
            op.args(),
            ImmutableList.of(new Operand.Tensor(result())),
            op.name(),
            op.span());
    var sources =
        op.args().stream()
            .filter(Operand.Tensor.class::isInstance)
            .map(arg -> ((Operand.Tensor) arg).ref())
            .toList();
    if (copies(part) && sources.size() == 1 && isSame(sources.getFirst(), result())) {
      copy(sources.getFirst(), result());
    } else if (result().type().numel() > 0 || !Pointwise.supports(part)) {
      steps.add(ElementwiseKernel.launch(rank, op.stream(), ImmutableList.of(part)));
    }
  }

  /** Sets all elements of the result. */
  private void fill(Number value) {
    var result = result();
    var dtype = result.type().dtype();
    if (!CTypes.computes(dtype)) {
      throw unsupported("%s of %s".formatted(op.def().name(), dtype.shortName()));
    }
    if (result.type().numel() > 0) {
      var kernel = new PlaceKernel(rank, result.type().sizes());
      kernel.set(result, kernel.indices(), PlaceKernel.number(dtype, value));
      steps.add(kernel.build(op.stream(), op.name()));
    }
  }

  /** Whether the op does nothing but copy. */
  private static boolean copies(Part part) {
    return Expressions.find(part.def().name().toString())
        .filter(e -> e.floats().matches("\\{\\w+\\}"))
        .isPresent();
  }

  private static boolean isSame(TensorRef from, TensorRef to) {
    return from.type().dtype() == to.type().dtype()
        && from.type().sizes().equals(to.type().sizes())
        && (from.type().isContiguous() && to.type().isContiguous()
            || from.type().isDense() && from.type().strides().equals(to.type().strides()));
  }

  private void copy(TensorRef from, TensorRef to) {
    if (to.type().numel() > 0) {
      steps.add(
          new DeviceStep.Copy(
              op.stream(),
              Address.of(rank, from),
              Address.of(rank, to),
              to.type().storageBytes(),
              op.name()));
    }
  }

  /** Copies elements, wherever they lie, and converts them where the types differ. */
  private void arrange(TensorRef from, TensorRef to) {
    var target = to.type().dtype();
    if (isSame(from, to)) {
      copy(from, to);
    } else if (from.type().dtype() != target
        && !(CTypes.computes(from.type().dtype()) && CTypes.computes(target))) {
      throw unsupported(
          "%s of %s to %s"
              .formatted(op.def().name(), from.type().dtype().shortName(), target.shortName()));
    } else if (to.type().numel() > 0) {
      steps.add(CopyKernel.launch(rank, op.stream(), from, to, op.name()));
    }
  }

  private void join() {
    var result = result();
    if (!(operand("tensors") instanceof Operand.Many(var items))) {
      throw unsupported(op.def().name() + " of no tensors");
    }
    int dims = result.type().rank();
    int dim = Math.floorMod((int) number("dim"), dims);
    long start = 0;
    for (var item : items) {
      var from = ((Operand.Tensor) item).ref();
      // PyTorch lets tensors of shape [0] pass, whatever the others' shapes are.
      if (from.type().numel() > 0) {
        var sizes = result.type().sizes().toArray();
        sizes[dim] = from.type().size(dim);
        var type =
            new TensorType(
                result.type().dtype(),
                ImmutableLongArray.copyOf(sizes),
                result.type().strides(),
                result.type().space());
        long offset = result.offset() + start * result.type().stride(dim) * type.dtype().bytes();
        arrange(from, new TensorRef(result.arena(), result.index(), offset, type));
        start += sizes[dim];
      }
    }
  }

  private void product(TensorRef left, TensorRef right) {
    if (left.type().size(left.type().rank() - 1) == 0) {
      fill(0);
    } else {
      product(left, right, 1, 0, result(), Optional.empty());
    }
  }

  /** {@code beta · self + alpha · left · right}. */
  private void added(String left, String right) {
    double beta = number("beta");
    double alpha = number("alpha");
    var result = result();
    var self = expand(ref("self"), result.type());
    if (ref(left).type().size(result.type().rank() - 1) == 0) {
      if (beta == 0) {
        fill(0);
      } else if (beta == 1) {
        arrange(self, result);
      } else {
        throw unsupported("%s of no columns with beta = %s".formatted(op.def().name(), beta));
      }
    } else if (beta == 0) {
      product(ref(left), ref(right), alpha, 0, result, Optional.empty());
    } else if (isBias(self) && beta == 1) {
      product(ref(left), ref(right), alpha, 0, result, Optional.of(Address.of(rank, self)));
    } else if (isAddend(self)) {
      product(ref(left), ref(right), alpha, beta, self, Optional.empty());
    } else {
      arrange(self, result);
      product(ref(left), ref(right), alpha, beta, result, Optional.empty());
    }
  }

  /** Whether it has one number for each row of the column-major product. */
  private boolean isBias(TensorRef self) {
    var type = self.type();
    int dims = type.rank();
    int along = byColumns() ? dims - 2 : dims - 1;
    int across = byColumns() ? dims - 1 : dims - 2;
    return type.dtype() == result().type().dtype()
        // BLAS has no epilogues in f64.
        && type.dtype() != DType.F64
        && type.stride(across) == 0
        && (type.stride(along) == 1 || type.size(along) == 1)
        && (dims == 2 || type.stride(0) == 0)
        && Address.of(rank, self).isVectorAligned();
  }

  /** Whether it lies as the result does, so that it need not be there first. */
  private boolean isAddend(TensorRef self) {
    int first = self.type().rank() - 2;
    return self.type().dtype() == result().type().dtype()
        && (byColumns()
            ? leads(self.type(), first, first + 1)
            : leads(self.type(), first + 1, first));
  }

  /** Whether the result is column-major, rather than row-major. */
  private boolean byColumns() {
    var type = result().type();
    int first = type.rank() - 2;
    boolean byColumns = leads(type, first, first + 1);
    if (!byColumns && !leads(type, first + 1, first)) {
      throw unsupported("%s into %s".formatted(op.def().name(), type));
    }
    return byColumns;
  }

  private static TensorRef expand(TensorRef ref, TensorType to) {
    var strides = new long[to.rank()];
    for (int i = 0; i < ref.type().rank(); i++) {
      int at = to.rank() - ref.type().rank() + i;
      strides[at] = ref.type().size(i) == 1 ? 0 : ref.type().stride(i);
    }
    return new TensorRef(
        ref.arena(),
        ref.index(),
        ref.offset(),
        new TensorType(
            ref.type().dtype(), to.sizes(), ImmutableLongArray.copyOf(strides), to.space()));
  }

  private void product(
      TensorRef left,
      TensorRef right,
      double alpha,
      double beta,
      TensorRef addend,
      Optional<Address> bias) {
    var result = result();
    var dtype = left.type().dtype();
    boolean known =
        switch (dtype) {
          case F32, F64, F16, BF16 ->
              result.type().dtype() == dtype && right.type().dtype() == dtype;
          default -> false;
        };
    if (!known) {
      throw unsupported("%s of %s".formatted(op.def().name(), dtype.shortName()));
    }
    if (result.type().numel() == 0) {
      return;
    }
    int first = result.type().rank() - 2;
    boolean byColumns = byColumns();
    // Row by row, the transposed result is column-major: it is that of the transposed operands.
    steps.add(
        new DeviceStep.Product(
            op.stream(),
            dtype,
            result.type().size(byColumns ? first : first + 1),
            result.type().size(byColumns ? first + 1 : first),
            left.type().size(first + 1),
            alpha,
            beta,
            matrix(byColumns ? left : right, !byColumns),
            matrix(byColumns ? right : left, !byColumns),
            matrix(addend, !byColumns),
            bias,
            matrix(result, !byColumns),
            first == 0 ? 1 : result.type().size(0),
            op.name()));
  }

  /** Whether elements along {@code near} are neighbours, and {@code far} is at least a column. */
  private static boolean leads(TensorType type, int near, int far) {
    return (type.size(near) == 1 || type.stride(near) == 1)
        && (type.size(far) == 1 || type.stride(far) >= type.size(near));
  }

  private Matrix matrix(TensorRef ref, boolean flipped) {
    var type = ref.type();
    int row = type.rank() - 2 + (flipped ? 1 : 0);
    int column = type.rank() - 1 - (flipped ? 1 : 0);
    boolean straight = leads(type, row, column);
    if (!straight && !leads(type, column, row)) {
      throw unsupported("%s of %s, whose rows lie apart,".formatted(op.def().name(), type));
    }
    int near = straight ? row : column;
    int far = straight ? column : row;
    long leading = type.size(far) == 1 ? Math.max(1, type.size(near)) : type.stride(far);
    return new Matrix(
        Address.of(rank, ref), !straight, leading, type.rank() == 3 ? type.stride(0) : 0);
  }
}
