package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.composite.ByParts;
import dev.symplan.codegen.composite.Composites;
import dev.symplan.codegen.cuda.CopyKernel.Move;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.ForeachOps;
import dev.symplan.ir.aten.Form;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.Optional;
import java.util.stream.Stream;

/** Local ops as launches, copies and products. */
final class LocalLowering {
  /** Which implementation an op has. */
  private enum Family {
    HOST_COPY("a copy by the copy engines"),
    JOIN("joined or copied"),
    PRODUCT("product"),
    POSITIONS("by position"),
    ATTENTION("attention"),
    ROWS("by rows"),
    SORT("by rows"),
    ELEMENTS("by elements"),
    COMPOSITE("in steps"),
    LIST("in steps");

    private final String text;

    Family(String text) {
      this.text = text;
    }

    static Optional<Family> of(OpDef def) {
      return ofNew(def).or(() -> Form.functional(def).flatMap(form -> ofNew(form.def())));
    }

    private static Optional<Family> ofNew(OpDef def) {
      var name = def.name().toString();
      if (def.has(OpTrait.HOST_COPY)) {
        return Optional.of(HOST_COPY);
      } else if (JOINS.contains(name)) {
        return Optional.of(JOIN);
      } else if (ProductLowering.supports(name)) {
        return Optional.of(PRODUCT);
      } else if (PositionOps.supports(name)) {
        return Optional.of(POSITIONS);
      } else if (AttentionLowering.supports(name)) {
        return Optional.of(ATTENTION);
      } else if (RowOps.supports(def)) {
        return Optional.of(ROWS);
      } else if (SharedMemoryKernel.sorts(name)) {
        return Optional.of(SORT);
      } else if (Pointwise.supports(Form.functional(def).map(Form::def).orElse(def))) {
        return Optional.of(ELEMENTS);
      } else if (Composites.names().contains(name)) {
        return Optional.of(COMPOSITE);
      } else if (ForeachOps.element(def).flatMap(form -> of(form.def())).isPresent()) {
        return Optional.of(LIST);
      }
      return Optional.empty();
    }
  }

  private static final ImmutableSet<String> JOINS =
      ImmutableSet.of(
          "aten::cat",
          "aten::concat",
          "aten::stack",
          "aten::copy_",
          "aten::reshape",
          "aten::reshape_as",
          "aten::flatten.using_ints");

  private final int rank;
  private final LocalOp op;
  private final OpArguments arguments;
  private final ImmutableList.Builder<DeviceStep> steps = ImmutableList.builder();

  private LocalLowering(int rank, LocalOp op, Scratch scratch) {
    this.rank = rank;
    this.op = op;
    this.arguments = new OpArguments(op, scratch);
  }

  /**
   * {@return the steps of a rank for an op}
   *
   * @throws UnsupportedOnGpu when there is no CUDA implementation
   */
  static ImmutableList<DeviceStep> lower(int rank, LocalOp op) {
    return lower(rank, op, new Scratch());
  }

  /** {@return the same for a part of an op, which has some of the scratch memory already} */
  static ImmutableList<DeviceStep> lower(int rank, LocalOp op, Scratch scratch) {
    var lowering = new LocalLowering(rank, op, scratch);
    lowering.lower();
    return lowering.steps.build();
  }

  /** {@return the kind of implementation that an op has; empty if it has none} */
  static Optional<String> family(OpDef def) {
    return Family.of(def).map(family -> family.text);
  }

  /** {@return an op as part of a kernel by elements; empty if it cannot be one} */
  static Optional<Part> elementwise(LocalOp op) {
    return Family.of(op.def())
        .filter(
            family ->
                family == Family.ELEMENTS
                    && !op.def().schema().mutates()
                    && op.results().size() == 1
                    && op.group().isEmpty())
        .map(_ -> new LocalLowering(0, op, new Scratch()).part())
        .filter(Pointwise::supports);
  }

  private void lower() {
    var form = Form.functional(op.def());
    var functional = form.map(Form::def).orElse(op.def());
    boolean complex = isComplex(functional);
    boolean parts = ByParts.suits(functional, types());
    if (form.isPresent() && (complex || parts || Family.ofNew(op.def()).isEmpty())) {
      inPlace(form.get());
      return;
    } else if (parts) {
      part(0);
      if (isComplex(arguments.result())) {
        part(1);
      }
      return;
    } else if (complex) {
      steps.addAll(CompositeLowering.lower(rank, arguments));
      return;
    }
    switch (Family.of(op.def()).orElseThrow(arguments::unsupported)) {
      case HOST_COPY -> hostCopy();
      case JOIN -> joinOrCopy();
      case PRODUCT -> steps.addAll(ProductLowering.lower(rank, arguments));
      case POSITIONS -> steps.addAll(PositionOps.lower(rank, arguments));
      case ATTENTION -> steps.addAll(AttentionLowering.lower(rank, arguments));
      case ROWS -> byRows();
      case SORT -> sorted();
      case COMPOSITE -> steps.addAll(CompositeLowering.lower(rank, arguments));
      case LIST -> items(ForeachOps.element(op.def()).orElseThrow(arguments::unsupported));
      case ELEMENTS -> {
        if (op.def().schema().mutates()) {
          inPlace();
        } else {
          elementwise(op.def(), op.args(), arguments.result());
        }
      }
    }
  }

  private boolean isComplex(OpDef def) {
    return Composites.isComplex(def, types());
  }

  private Stream<TensorType> types() {
    return Stream.concat(
            op.args().stream().flatMap(Operand::tensors),
            op.results().stream().flatMap(Optional::stream))
        .map(TensorRef::type);
  }

  /** Does the op to the real (0) or imaginary (1) parts of complex elements. */
  private void part(int part) {
    var whole = arguments.result();
    var result = isComplex(whole) ? part(whole, part) : whole;
    if (part == 1 && ByParts.isReal(op.def())) {
      steps.addAll(PositionOps.fill(rank, arguments, result, 0));
      return;
    }
    var args = ImmutableList.<Operand>builder();
    for (int i = 0; i < op.args().size(); i++) {
      var param = op.def().schema().params().get(i).name();
      args.add(
          switch (op.args().get(i)) {
            case Operand.Tensor(var ref) -> new Operand.Tensor(part(param, ref, part));
            case Operand.Constant(var value) ->
                new Operand.Constant(ByParts.constant(param, value, part));
            case Operand.Many many -> many;
            case Operand.Passed passed -> passed;
          });
    }
    steps.addAll(
        lower(
            rank,
            new LocalOp(
                op.stream(),
                op.def(),
                args.build(),
                ImmutableList.of(Optional.of(result)),
                Optional.empty(),
                op.name(),
                op.span()),
            arguments.scratch()));
  }

  private TensorRef part(String param, TensorRef ref, int part) {
    if (isComplex(ref)) {
      return part(ref, part);
    } else if (part == 0 || !ByParts.hasElements(param)) {
      return ref;
    }
    var zeros = arguments.scratch().take(ref.type().contiguous());
    steps.addAll(PositionOps.fill(rank, arguments, zeros, 0));
    return zeros;
  }

  private static boolean isComplex(TensorRef ref) {
    return ref.type().dtype().kind() == DType.Kind.COMPLEX;
  }

  /** Memory without elements has no second part. */
  private static TensorRef part(TensorRef ref, int part) {
    return Moves.part(ref, ref.type().numel() == 0 ? 0 : part);
  }

  /** Both tensors lie alike, so gaps between elements are copied with them. */
  private void hostCopy() {
    var from = arguments.tensor("self");
    var to = arguments.result();
    if (!from.type().strides().equals(to.type().strides())) {
      throw arguments.unsupported();
    }
    steps.add(
        new DeviceStep.Copy(
            op.stream(),
            Address.of(rank, from),
            Address.of(rank, to),
            from.type().storageBytes(),
            op.name()));
  }

  private void byRows() {
    if (hasElements()) {
      steps.add(RowLowering.single(rank, op.stream(), part()));
    }
  }

  private void sorted() {
    if (hasElements()) {
      var self = arguments.tensor("self").type();
      if (self.rank() > 0 && self.size(arguments.dim("dim", self.rank())) > LongSort.SHORTEST) {
        steps.addAll(PositionOps.lower(rank, arguments, OrderedOps::sort));
        return;
      }
      int rows = self.rank() == 0 ? 0 : arguments.dim("dim", self.rank());
      steps.add(SharedMemoryKernel.launch(rank, op.stream(), rows, ImmutableList.of(part())));
    }
  }

  private boolean hasElements() {
    return op.results().stream().flatMap(Optional::stream).anyMatch(ref -> ref.type().numel() > 0);
  }

  private Part part() {
    var results =
        op.results().stream()
            .<Operand>map(
                result ->
                    result.isPresent()
                        ? new Operand.Tensor(result.get())
                        : new Operand.Constant(Arg.None.NONE))
            .collect(ImmutableList.toImmutableList());
    return new Part(op.def(), op.args(), results, op.name(), op.span());
  }

  private void elementwise(OpDef def, ImmutableList<Operand> args, TensorRef result) {
    var part =
        new Part(def, args, ImmutableList.of(new Operand.Tensor(result)), op.name(), op.span());
    var sources =
        args.stream()
            .filter(Operand.Tensor.class::isInstance)
            .map(arg -> ((Operand.Tensor) arg).ref())
            .toList();
    if (op.results().size() > 1 || op.group().isPresent() || !Pointwise.supports(part)) {
      throw arguments.unsupported();
    }
    if (Pointwise.copies(def) && sources.size() == 1 && Moves.isSame(sources.getFirst(), result)) {
      copy(sources.getFirst(), result);
    } else if (result.type().numel() > 0) {
      if (OneShape.clash(ImmutableList.of(part)).isPresent()) {
        // The part may have the name of another op, which is not in place.
        throw arguments.unsupported(arguments.name() + " over what else is read or written");
      }
      steps.add(ElementwiseKernel.launch(rank, op.stream(), ImmutableList.of(part)));
    }
  }

  /** What the op makes elsewhere, in the type that it has there, is copied over {@code self}. */
  private void inPlace(Form form) {
    var args = form.args(op.args(), Operand.Constant::new);
    var type = made(form);
    var self = arguments.tensor("self");
    // Libraries, which know no scratch memory, write over it at once.
    boolean direct =
        ProductLowering.supports(form.def().name().toString()) && !isComplex(form.def());
    boolean apart =
        op.args().stream()
            .skip(1)
            .flatMap(Operand::tensors)
            .allMatch(ref -> Moves.isApart(ref, self));
    if (direct && !(apart && type.dtype() == self.type().dtype())) {
      throw arguments.unsupported(arguments.name() + " of operands that it writes over");
    }
    var target = direct ? self : arguments.scratch().take(type);
    steps.addAll(
        lower(
            rank,
            new LocalOp(
                op.stream(),
                form.def(),
                args,
                ImmutableList.of(Optional.of(target)),
                Optional.empty(),
                op.name(),
                op.span()),
            arguments.scratch()));
    if (!direct) {
      copy(target, self);
    }
  }

  /** What the op makes if it does not write it over {@code self}. */
  private TensorType made(Form form) {
    var types =
        form.args(op.args(), Operand.Constant::new).stream()
            .map(CompositeLowering::arg)
            .collect(ImmutableList.toImmutableList());
    return (TensorType) form.def().infer(types).orElseThrow().getFirst().type();
  }

  private void inPlace() {
    var form = Form.functional(op.def()).orElseThrow(arguments::unsupported);
    var self = arguments.tensor("self");
    if (made(form).dtype() == self.type().dtype()) {
      elementwise(form.def(), form.args(op.args(), Operand.Constant::new), self);
    } else {
      // It is computed in the type that it has elsewhere, and rounded once.
      inPlace(form);
    }
  }

  /** One op for each item of the lists. */
  private void items(Form element) {
    for (int i = 0; i < op.results().size(); i++) {
      int index = i;
      var given = ForeachOps.item(op.def().schema(), op.args(), list -> item(list, index));
      if (op.results().get(i).isPresent()) {
        steps.addAll(
            lower(
                rank,
                new LocalOp(
                    op.stream(),
                    element.def(),
                    element.args(given, Operand.Constant::new),
                    ImmutableList.of(op.results().get(i)),
                    Optional.empty(),
                    op.name(),
                    op.span())));
      }
    }
  }

  private static Operand item(Operand list, int index) {
    return switch (list) {
      case Operand.Many(var items) -> items.get(index);
      case Operand.Constant(Arg.Seq(var items)) -> new Operand.Constant(items.get(index));
      case Operand.Constant _, Operand.Tensor _, Operand.Passed _ -> list;
    };
  }

  private void copy(TensorRef from, TensorRef to) {
    steps.addAll(Moves.copy(rank, arguments, from, to));
  }

  private static TensorRef at(TensorRef place, TensorType type) {
    return new TensorRef(place.arena(), place.index(), place.offset(), type);
  }

  private void joinOrCopy() {
    switch (arguments.name()) {
      case "aten::copy_" -> {
        var self = arguments.tensor("self");
        copy(Moves.expand(arguments.tensor("src"), self.type().sizes()), self);
      }
      case "aten::stack" -> stack();
      case "aten::reshape", "aten::reshape_as", "aten::flatten.using_ints" -> {
        // One that is a view is not an instruction; the others make contiguous tensors.
        var self = arguments.tensor("self");
        copy(self, at(arguments.result(), self.type().contiguous()));
      }
      default -> join();
    }
  }

  private void join() {
    var result = arguments.result();
    int dim = arguments.dim("dim", result.type().rank());
    long start = 0;
    var moves = new ArrayList<Move>();
    for (var item : arguments.tensors("tensors")) {
      var from = item.orElseThrow();
      // PyTorch lets tensors of shape [0] pass, whatever the others' shapes are.
      if (from.type().numel() > 0) {
        long size = from.type().size(dim);
        moves.add(new Move(from, Moves.narrow(result, dim, start, size, 1)));
        start += size;
      }
    }
    steps.addAll(Moves.copy(rank, arguments, moves));
  }

  private void stack() {
    var result = arguments.result();
    int dim = arguments.dim("dim", result.type().rank());
    var moves = new ArrayList<Move>();
    for (var item : arguments.tensors("tensors")) {
      moves.add(new Move(item.orElseThrow(), Moves.select(result, dim, moves.size())));
    }
    steps.addAll(Moves.copy(rank, arguments, moves));
  }
}
