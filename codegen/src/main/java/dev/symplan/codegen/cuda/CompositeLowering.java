package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.composite.Composites;
import dev.symplan.codegen.composite.Seen;
import dev.symplan.codegen.composite.Source;
import dev.symplan.codegen.composite.Step;
import dev.symplan.codegen.cuda.CudaExpr.NoCudaForm;
import dev.symplan.codegen.cuda.RowNode.Location;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.OpCall;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/** Ops that {@link Composites} makes of steps: a launch for each step. */
final class CompositeLowering {
  /** Indices up to here have a value of their own in f32. */
  private static final long EXACT = 1 << 24;

  /** What steps of one call share. */
  private record Call(
      int rank, OpArguments arguments, boolean wide, Map<Integer, TensorRef> temporaries) {}

  private final Call call;
  private final int rank;
  private final LocalOp op;
  private final OpArguments arguments;
  private final Step step;
  private final List<DeviceStep> before = new ArrayList<>();
  private final List<DeviceStep> after = new ArrayList<>();
  private final int[] rows;
  private final int[] elements;
  private final RowKernel kernel;

  private CompositeLowering(Call call, Step step) {
    this.call = call;
    this.rank = call.rank();
    this.arguments = call.arguments();
    this.op = arguments.op();
    this.step = step;
    var dims = IntStream.range(0, step.sizes().length()).boxed().toList();
    this.rows = dims.stream().filter(dim -> !step.row().contains(dim)).mapToInt(i -> i).toArray();
    this.elements = dims.stream().filter(step.row()::contains).mapToInt(i -> i).toArray();
    this.kernel = new RowKernel(sizes(rows), sizes(elements));
  }

  private ImmutableLongArray sizes(int[] dims) {
    return ImmutableLongArray.copyOf(IntStream.of(dims).mapToLong(step.sizes()::get));
  }

  /**
   * {@return the steps of a rank for an op}
   *
   * @throws UnsupportedOnGpu when there is no CUDA implementation of the call
   */
  static ImmutableList<DeviceStep> lower(int rank, OpArguments arguments) {
    var op = arguments.op();
    var call =
        new OpCall(
            op.def(),
            op.args().stream()
                .map(CompositeLowering::arg)
                .collect(ImmutableList.toImmutableList()));
    var results =
        op.results().stream()
            .map(result -> result.map(TensorRef::type))
            .collect(ImmutableList.toImmutableList());
    var steps = Composites.expand(call, results);
    boolean wide =
        steps.stream()
            .flatMap(Step::tensors)
            .filter(seen -> !(seen.source() instanceof Source.Temporary))
            .anyMatch(seen -> seen.type().dtype() == DType.F64);
    var own = new Call(rank, arguments, wide, new HashMap<>());
    return steps.stream()
        .flatMap(step -> new CompositeLowering(own, step).lower().stream())
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return the argument as rules know it} */
  static Arg arg(Operand operand) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> new Arg.Ref(new Value(0, "", ref.type(), Span.NONE, false));
      case Operand.Passed(var _, var type) -> new Arg.Ref(new Value(0, "", type, Span.NONE, false));
      case Operand.Many(var items) ->
          new Arg.Seq(
              items.stream().map(CompositeLowering::arg).collect(ImmutableList.toImmutableList()));
      case Operand.Constant(var value) -> value;
    };
  }

  private List<DeviceStep> lower() {
    step.tensors().forEach(this::check);
    boolean overRow = elements.length > 0;
    if (isAcross()) {
      kernel.goAcross();
    }
    try {
      var nodes =
          RowOps.apply(
              kernel,
              step.bind(call.wide() ? DType.F64 : DType.F32),
              param -> load(step.operand(param)),
              overRow,
              step.results().stream().map(seen -> Optional.of(seen.type().dtype())).toList());
      for (int i = 0; i < nodes.size(); i++) {
        kernel.store(nodes.get(i), result(step.results().get(i)));
      }
    } catch (NoCudaForm e) {
      throw arguments.unsupported();
    }
    before.add(kernel.build(op.stream(), op.name()));
    before.addAll(after);
    return before;
  }

  private void check(Seen seen) {
    var type = seen.type();
    if (!CTypes.computes(type.dtype())) {
      throw arguments.unsupported("%s of %s".formatted(arguments.name(), type.dtype().shortName()));
    } else if (seen.source() instanceof Source.Index && type.numel() > EXACT) {
      throw arguments.unsupported("%s of %s classes".formatted(arguments.name(), type.numel()));
    }
  }

  /** Whether rows are neighbours in memory, and a row's elements are not. */
  private boolean isAcross() {
    return rows.length > 0
        && elements.length > 0
        && step.tensors()
            .filter(seen -> seen.type().sizes().equals(step.sizes()))
            .findFirst()
            .map(
                seen ->
                    seen.stride(rows[rows.length - 1]) == 1
                        && IntStream.of(elements).allMatch(dim -> seen.stride(dim) > 1))
            .orElse(false);
  }

  private int load(Seen seen) {
    boolean full = IntStream.of(elements).anyMatch(dim -> seen.type().size(dim) != 1);
    return switch (seen.source()) {
      case Source.Argument _, Source.Result _, Source.Part _, Source.Temporary _ ->
          kernel.load(seen.copied() ? copy(seen) : location(seen, memory(seen)), full);
      case Source.Picked picked -> pick(seen, picked);
      case Source.Index _ -> index(seen, full);
    };
  }

  /** The target is an integer still, and so is what it is compared with. */
  private int pick(Seen seen, Source.Picked picked) {
    int target = load(step.operand(picked.target()));
    int index =
        kernel.compute(
            "long long",
            "%1$s == %2$s ? 0 : %1$s >= 0 && %1$s < %3$s ? %1$s : (__trap(), 0)"
                .formatted(
                    RowKernel.name(target), Literals.integer(picked.ignored()), picked.classes()),
            List.of(target));
    return kernel.pick(location(seen, memory(seen)), new RowNode.Offset(index, picked.stride()));
  }

  private int index(Seen seen, boolean full) {
    var dims = full ? elements : rows;
    return IntStream.range(0, dims.length)
        .filter(i -> seen.type().size(dims[i]) != 1)
        .mapToObj(i -> kernel.index(i, full))
        .findFirst()
        .orElseGet(() -> kernel.compute("long long", "0", ImmutableList.of()));
  }

  /** Copies an operand that cannot be read as it is seen. */
  private Location copy(Seen seen) {
    var from = memory(seen);
    var to = arguments.scratch().take(from.type().contiguous());
    before.addAll(Moves.copy(rank, arguments, from, to));
    return location(seen, to);
  }

  private Location result(Seen seen) {
    var to = memory(seen);
    if (!seen.copied()) {
      return location(seen, to);
    }
    var from = arguments.scratch().take(to.type().contiguous());
    after.addAll(Moves.copy(rank, arguments, from, to));
    return location(seen, from);
  }

  private Location location(Seen seen, TensorRef memory) {
    return Location.of(rank, memory, strides(seen, rows), strides(seen, elements));
  }

  private TensorRef memory(Seen seen) {
    return seen.source() instanceof Source.Temporary(int number, long start)
        ? Moves.shifted(
            call.temporaries()
                .computeIfAbsent(
                    number,
                    _ ->
                        arguments
                            .scratch()
                            .take(seen.type().withDType(call.wide() ? DType.F64 : DType.F32))),
            start,
            seen.type())
        : memory(seen.source());
  }

  private static ImmutableLongArray strides(Seen seen, int[] dims) {
    return ImmutableLongArray.copyOf(IntStream.of(dims).mapToLong(seen::stride));
  }

  private TensorRef memory(Source source) {
    return switch (source) {
      case Source.Argument(var param, int item) ->
          arguments.operand(param) instanceof Operand.Many
              ? arguments.tensors(param).get(item).orElseThrow()
              : arguments.tensor(param);
      case Source.Result(int index) -> arguments.result(index).orElseThrow();
      case Source.Part(var of, int part) -> Moves.part(memory(of), part);
      case Source.Picked(var of, var _, var _, var _, var _) -> memory(of);
      case Source.Index _, Source.Temporary _ -> throw new IllegalStateException("not in memory");
    };
  }
}
