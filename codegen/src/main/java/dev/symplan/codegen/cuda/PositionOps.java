package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.CopyKernel.Move;
import dev.symplan.ir.aten.BuiltinOps;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Ops that make or move elements by where they are: creation, padding, indexing, gathering and
 * scattering.
 */
final class PositionOps {
  /** How an op becomes steps. */
  interface Rule {
    void lower(PositionOps op);
  }

  private static final ImmutableMap<String, Rule> TABLE = table();

  final int rank;
  final OpArguments arguments;
  final Scratch scratch;
  private final ImmutableList.Builder<DeviceStep> steps = ImmutableList.builder();

  private PositionOps(int rank, OpArguments arguments) {
    this.rank = rank;
    this.arguments = arguments;
    this.scratch = arguments.scratch();
  }

  static boolean supports(String op) {
    return TABLE.containsKey(op);
  }

  /**
   * {@return the steps of a rank for an op}
   *
   * @throws UnsupportedOnGpu when there is no CUDA implementation for its types
   */
  static ImmutableList<DeviceStep> lower(int rank, OpArguments arguments) {
    var rule = TABLE.get(arguments.name());
    if (rule == null) {
      throw arguments.unsupported();
    }
    return lower(rank, arguments, rule);
  }

  /** {@return the steps that a rule makes} */
  static ImmutableList<DeviceStep> lower(int rank, OpArguments arguments, Rule rule) {
    var op = new PositionOps(rank, arguments);
    rule.lower(op);
    return op.steps.build();
  }

  /** {@return the steps that set all elements of a tensor} */
  static ImmutableList<DeviceStep> fill(
      int rank, OpArguments arguments, TensorRef to, Number value) {
    var op = new PositionOps(rank, arguments);
    op.fill(to, value);
    return op.steps.build();
  }

  private static ImmutableMap<String, Rule> table() {
    var table = ImmutableMap.<String, Rule>builder();
    for (var name : List.of("full", "full_like", "new_full")) {
      table.put("aten::" + name, op -> op.fill("fill_value"));
    }
    table.put("aten::scalar_tensor", op -> op.fill("s"));
    for (var name :
        List.of(
            "zeros",
            "zeros_like",
            "new_zeros",
            // As on the host: memory that no op writes is the same in each run.
            "empty.memory_format",
            "empty_strided",
            "empty_permuted",
            "empty_like",
            "new_empty",
            "new_empty_strided")) {
      table.put("aten::" + name, op -> op.fill(op.arguments.result(), 0));
    }
    for (var name : List.of("ones", "ones_like", "new_ones")) {
      table.put("aten::" + name, op -> op.fill(op.arguments.result(), 1));
    }
    table.put("aten::zero_", op -> op.fill(op.arguments.tensor("self"), 0));
    table.put(
        "aten::fill_.Scalar",
        op -> op.fill(op.arguments.tensor("self"), op.arguments.number("value")));
    table.put("prims::iota", op -> op.range("start", "step"));
    table.put("aten::arange", op -> op.range("", ""));
    table.put("aten::arange.start", op -> op.range("start", ""));
    table.put("aten::arange.start_step", op -> op.range("start", "step"));
    table.put("aten::eye", PositionOps::diagonal);
    table.put("aten::eye.m", PositionOps::diagonal);
    table.put("aten::tril", op -> op.triangle("<="));
    table.put("aten::triu", op -> op.triangle(">="));
    table.put("aten::constant_pad_nd", PositionOps::pad);
    table.put("aten::flip", op -> op.flip("self"));
    table.put("prims::rev", op -> op.flip("a"));
    table.put("aten::slice_scatter", op -> op.slice(true));
    table.put("aten::slice_backward", op -> op.slice(false));
    table.put("aten::select_scatter", op -> op.select(true));
    table.put("aten::select_backward", op -> op.select(false));
    for (var overload : List.of("", ".msg")) {
      table.put("aten::_assert_async" + overload, PositionOps::check);
    }
    table.put("aten::_assert_scalar", PositionOps::checkNumber);
    // Its checks are made before anything runs.
    table.put("aten::_assert_tensor_metadata", _ -> {});
    table.put("aten::embedding", IndexedOps::embedding);
    table.put("aten::index_select", IndexedOps::indexSelect);
    table.put("aten::gather", IndexedOps::gather);
    table.put("aten::one_hot", IndexedOps::oneHot);
    table.put("aten::index.Tensor", IndexedOps::index);
    table.put("aten::_unsafe_index.Tensor", IndexedOps::index);
    table.put("aten::scatter.value", op -> IndexedOps.scatter(op, "value"));
    table.put("aten::scatter.src", op -> IndexedOps.scatter(op, "src"));
    for (var name :
        List.of(
            "aten::index_put",
            "aten::index_put_",
            "aten::_unsafe_index_put",
            "prims::_unsafe_index_put_")) {
      table.put(name, IndexedOps::indexPut);
    }
    table.put("aten::embedding_dense_backward", IndexedOps::embeddingBackward);
    table.putAll(ArrangedOps.TABLE);
    table.putAll(ResampledOps.TABLE);
    table.putAll(WindowOps.TABLE);
    table.putAll(ConvolutionOps.TABLE);
    table.putAll(ScatteredOps.TABLE);
    table.putAll(MaskedOps.TABLE);
    table.putAll(OrderedOps.TABLE);
    table.putAll(CountedOps.TABLE);
    table.putAll(RandomNumbers.TABLE);
    return table.buildOrThrow();
  }

  PositionKernel kernel(ImmutableLongArray sizes) {
    return new PositionKernel(rank, sizes);
  }

  /**
   * {@return a kernel that moves elements of a tensor to the result, where the last index of an
   * element is the same in both and no other depends on it}
   */
  PositionKernel kernelOfRuns(TensorRef from) {
    var to = arguments.result();
    return new PositionKernel(
        rank,
        to.type().sizes(),
        Vectors.widest(
            List.of(from.type().dtype()),
            List.of(to.type().dtype()),
            wide -> Vectors.fit(wide, from) && Vectors.fit(wide, to)));
  }

  void launch(PositionKernel kernel, ImmutableLongArray sizes) {
    if (sizes.stream().noneMatch(size -> size == 0)) {
      steps.add(kernel.build(arguments.op().stream(), arguments.op().name()));
    }
  }

  /** Adds the steps of another op with tensors of this one. */
  void call(String name, List<Operand> args, TensorRef result) {
    var op = arguments.op();
    steps.addAll(
        LocalLowering.lower(
            rank,
            new LocalOp(
                op.stream(),
                BuiltinOps.registry().get(name),
                ImmutableList.copyOf(args),
                ImmutableList.of(Optional.of(result)),
                Optional.empty(),
                op.name(),
                op.span()),
            scratch));
  }

  void add(DeviceStep step) {
    steps.add(step);
  }

  void copy(TensorRef from, TensorRef to) {
    steps.addAll(Moves.copy(rank, arguments, from, to));
  }

  void fill(String param) {
    if (arguments.operand(param) instanceof Operand.Tensor(var ref)) {
      copy(Moves.expand(ref, arguments.result().type().sizes()), arguments.result());
    } else {
      fill(arguments.result(), arguments.number(param));
    }
  }

  void fill(TensorRef to, Number value) {
    arguments.checkComputes(to);
    var kernel = kernel(to.type().sizes());
    kernel.set(to, kernel.indices(), PositionKernel.number(to.type().dtype(), value));
    launch(kernel, to.type().sizes());
  }

  /** Floats are computed in double, whatever the result's type is. */
  private void range(String start, String step) {
    var result = arguments.result();
    var first = start.isEmpty() ? 0L : arguments.number(start);
    var distance = step.isEmpty() ? 1L : arguments.number(step);
    var kernel = kernel(result.type().sizes());
    boolean whole = !result.type().dtype().isFloat();
    kernel.set(
        result,
        kernel.indices(),
        whole
            ? "%s + i0 * %s"
                .formatted(
                    Literals.integer(first.longValue()), Literals.integer(distance.longValue()))
            : "(%s)(%s + (double)i0 * %s)"
                .formatted(
                    CTypes.computed(result.type().dtype()),
                    Literals.floating(first.doubleValue(), true),
                    Literals.floating(distance.doubleValue(), true)));
    launch(kernel, result.type().sizes());
  }

  private void diagonal() {
    var result = arguments.result();
    var kernel = kernel(result.type().sizes());
    kernel.set(result, kernel.indices(), "i0 == i1 ? 1 : 0");
    launch(kernel, result.type().sizes());
  }

  void triangle(String keeps) {
    var result = arguments.result();
    var self = arguments.tensor("self");
    var kernel = kernel(result.type().sizes());
    int last = result.type().rank() - 1;
    moveOrSet(
        kernel,
        "i%s - i%s %s %s".formatted(last, last - 1, keeps, arguments.integer("diagonal")),
        self,
        kernel.indices(),
        0);
  }

  /** Moves an element of self to each position where a condition holds, and sets the others. */
  void moveOrSet(
      PositionKernel kernel, String condition, TensorRef from, List<String> indices, Number value) {
    var result = arguments.result();
    var dtype = result.type().dtype();
    arguments.checkComputes(result);
    kernel.line("if (%s) {".formatted(condition));
    kernel.line(
        "  %s = %s;".formatted(kernel.bits(result, kernel.indices()), kernel.bits(from, indices)));
    kernel.line("} else {");
    kernel.line(
        "  %s = %s;"
            .formatted(
                kernel.stored(result, kernel.indices()),
                CTypes.narrow(dtype, PositionKernel.number(dtype, value))));
    kernel.line("}");
    launch(kernel, result.type().sizes());
  }

  void pad() {
    var pad = arguments.integers("pad");
    var self = arguments.tensor("self");
    var kernel = kernel(arguments.result().type().sizes());
    var indices = new ArrayList<String>();
    var inside = new ArrayList<String>();
    for (int dim = 0; dim < self.type().rank(); dim++) {
      int number = 2 * (self.type().rank() - 1 - dim);
      long before = number < pad.length() ? pad.get(number) : 0;
      indices.add("i%s - %s".formatted(dim, Literals.integer(before)));
      if (number < pad.length()) {
        inside.add(
            "i%1$s >= %2$s && i%1$s < %3$s".formatted(dim, before, before + self.type().size(dim)));
      }
    }
    moveOrSet(
        kernel,
        inside.isEmpty() ? "true" : String.join(" && ", inside),
        self,
        indices,
        arguments.has("value") ? arguments.number("value") : 0);
  }

  private void checkNumber() {
    if (arguments.number("self").doubleValue() == 0) {
      throw arguments.unsupported("%s of 0, which must not be,".formatted(arguments.name()));
    }
  }

  private void check() {
    var self = arguments.tensor("self");
    var kernel = kernel(self.type().sizes());
    kernel.line("if (%s == 0) {\n  __trap();\n}".formatted(kernel.value(self, kernel.indices())));
    launch(kernel, self.type().sizes());
  }

  private void flip(String param) {
    var self = arguments.tensor(param);
    int dims = self.type().rank();
    var flipped =
        arguments.integers("dims").stream().map(dim -> Math.floorMod(dim, dims)).boxed().toList();
    var kernel = kernel(self.type().sizes());
    var indices =
        IntStream.range(0, dims)
            .mapToObj(
                dim ->
                    flipped.contains((long) dim)
                        ? "%s - i%s".formatted(self.type().size(dim) - 1, dim)
                        : "i" + dim)
            .toList();
    move(kernel, self, indices);
  }

  void move(PositionKernel kernel, TensorRef from, List<String> indices) {
    var result = arguments.result();
    kernel.move(result, kernel.indices(), from, indices);
    launch(kernel, result.type().sizes());
  }

  private static long clamp(long index, long size) {
    return Math.clamp(index < 0 ? index + size : index, 0, size);
  }

  private void slice(boolean scatters) {
    var result = arguments.result();
    int dim = arguments.dim("dim", result.type().rank());
    long size = result.type().size(dim);
    long start = arguments.has("start") ? clamp(arguments.integer("start"), size) : 0;
    long end = arguments.has("end") ? clamp(arguments.integer("end"), size) : size;
    long step = arguments.integer("step");
    long count = Math.max(0, Math.ceilDiv(end - start, step));
    if (scatters && step == 1) {
      replace(dim, start, count, Moves.narrow(result, dim, start, count, step));
      return;
    }
    background(scatters);
    if (count > 0) {
      into(Moves.narrow(result, dim, start, count, step), scatters);
    }
  }

  private void select(boolean scatters) {
    var result = arguments.result();
    int dim = arguments.dim("dim", result.type().rank());
    long index = Math.floorMod(arguments.integer("index"), result.type().size(dim));
    var part = Moves.select(result, dim, index);
    if (scatters) {
      replace(dim, index, 1, part);
      return;
    }
    background(false);
    into(part, false);
  }

  /** Copies self but for a slice, and another tensor in its place. */
  private void replace(int dim, long start, long count, TensorRef part) {
    var self = arguments.tensor("self");
    var result = arguments.result();
    long behind = start + count;
    long rest = result.type().size(dim) - behind;
    steps.addAll(
        Moves.copy(
            rank,
            arguments,
            List.of(
                new Move(
                    Moves.narrow(self, dim, 0, start, 1), Moves.narrow(result, dim, 0, start, 1)),
                new Move(
                    Moves.narrow(self, dim, behind, rest, 1),
                    Moves.narrow(result, dim, behind, rest, 1)),
                new Move(Moves.expand(arguments.tensor("src"), part.type().sizes()), part))));
  }

  private void background(boolean scatters) {
    if (scatters) {
      copy(arguments.tensor("self"), arguments.result());
    } else {
      fill(arguments.result(), 0);
    }
  }

  /** Copies a tensor into a part of the result, the rest of which is there. */
  private void into(TensorRef part, boolean scatters) {
    var from = arguments.tensor(scatters ? "src" : "grad_output");
    copy(Moves.expand(from, part.type().sizes()), part);
  }
}
