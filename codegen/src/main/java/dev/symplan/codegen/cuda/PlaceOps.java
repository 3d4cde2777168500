package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DepositKernel.Deposit;
import dev.symplan.ir.Arg;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Ops that make or move elements by where they are: creation, padding, indexing, gathering and
 * scattering. An index that is out of range ends the kernel with an error.
 */
final class PlaceOps {
  private interface Rule {
    void lower(PlaceOps op);
  }

  private static final ImmutableMap<String, Rule> TABLE = table();

  private final int rank;
  private final OpArguments arguments;
  private final ImmutableList.Builder<DeviceStep> steps = ImmutableList.builder();

  private PlaceOps(int rank, OpArguments arguments) {
    this.rank = rank;
    this.arguments = arguments;
  }

  static boolean supports(String op) {
    return TABLE.containsKey(op);
  }

  /**
   * {@return what a rank does for an op}
   *
   * @throws UnsupportedOnGpu when there is no CUDA implementation for its types
   */
  static ImmutableList<DeviceStep> lower(int rank, OpArguments arguments) {
    var rule = TABLE.get(arguments.name());
    if (rule == null) {
      throw arguments.unsupported();
    }
    var op = new PlaceOps(rank, arguments);
    rule.lower(op);
    return op.steps.build();
  }

  /** {@return what sets all elements of a tensor} */
  static ImmutableList<DeviceStep> fill(
      int rank, OpArguments arguments, TensorRef to, Number value) {
    var op = new PlaceOps(rank, arguments);
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
            // As on the host: what nobody wrote is the same in each run.
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
    table.put("aten::eye", PlaceOps::diagonal);
    table.put("aten::eye.m", PlaceOps::diagonal);
    table.put("aten::tril", op -> op.triangle("<="));
    table.put("aten::triu", op -> op.triangle(">="));
    table.put("aten::constant_pad_nd", PlaceOps::pad);
    table.put("aten::flip", op -> op.flip("self"));
    table.put("prims::rev", op -> op.flip("a"));
    table.put("aten::slice_scatter", op -> op.slice(true));
    table.put("aten::slice_backward", op -> op.slice(false));
    table.put("aten::select_scatter", op -> op.select(true));
    table.put("aten::select_backward", op -> op.select(false));
    for (var overload : List.of("", ".msg")) {
      table.put("aten::_assert_async" + overload, PlaceOps::check);
    }
    table.put("aten::embedding", PlaceOps::embedding);
    table.put("aten::index_select", PlaceOps::indexSelect);
    table.put("aten::gather", PlaceOps::gather);
    table.put("aten::one_hot", PlaceOps::oneHot);
    table.put("aten::index.Tensor", PlaceOps::index);
    table.put("aten::_unsafe_index.Tensor", PlaceOps::index);
    table.put("aten::scatter.value", op -> op.scatter("value"));
    table.put("aten::scatter.src", op -> op.scatter("src"));
    for (var name : List.of("index_put", "_unsafe_index_put")) {
      table.put("aten::" + name, op -> op.indexPut(op.arguments.result()));
    }
    table.put("aten::embedding_dense_backward", PlaceOps::embeddingBackward);
    return table.buildOrThrow();
  }

  private PlaceKernel kernel(ImmutableLongArray sizes) {
    return new PlaceKernel(rank, sizes);
  }

  private void launch(PlaceKernel kernel, ImmutableLongArray sizes) {
    if (sizes.stream().noneMatch(size -> size == 0)) {
      steps.add(kernel.build(arguments.op().stream(), arguments.op().name()));
    }
  }

  private void copy(TensorRef from, TensorRef to) {
    steps.addAll(Moves.copy(rank, arguments, from, to));
  }

  private void fill(String param) {
    if (arguments.operand(param) instanceof Operand.Tensor(var ref)) {
      copy(Moves.expand(ref, arguments.result().type().sizes()), arguments.result());
    } else {
      fill(arguments.result(), arguments.number(param));
    }
  }

  private void fill(TensorRef to, Number value) {
    arguments.checkComputes(to);
    var kernel = kernel(to.type().sizes());
    kernel.set(to, kernel.indices(), PlaceKernel.number(to.type().dtype(), value));
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

  private void triangle(String keeps) {
    var result = arguments.result();
    var self = arguments.tensor("self");
    var kernel = kernel(result.type().sizes());
    int last = result.type().rank() - 1;
    moveOrSet(
        kernel,
        "i%d - i%d %s %d".formatted(last, last - 1, keeps, arguments.integer("diagonal")),
        self,
        kernel.indices(),
        0);
  }

  /** Moves an element of self to each place where a condition holds, and sets the others. */
  private void moveOrSet(
      PlaceKernel kernel, String condition, TensorRef from, List<String> indices, Number value) {
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
                kernel.place(result, kernel.indices()),
                CTypes.narrow(dtype, PlaceKernel.number(dtype, value))));
    kernel.line("}");
    launch(kernel, result.type().sizes());
  }

  private void pad() {
    var pad = arguments.integers("pad");
    var self = arguments.tensor("self");
    var kernel = kernel(arguments.result().type().sizes());
    var indices = new ArrayList<String>();
    var inside = new ArrayList<String>();
    for (int dim = 0; dim < self.type().rank(); dim++) {
      int number = 2 * (self.type().rank() - 1 - dim);
      long before = number < pad.length() ? pad.get(number) : 0;
      indices.add("i%d - %s".formatted(dim, Literals.integer(before)));
      if (number < pad.length()) {
        inside.add(
            "i%1$d >= %2$d && i%1$d < %3$d".formatted(dim, before, before + self.type().size(dim)));
      }
    }
    moveOrSet(
        kernel,
        inside.isEmpty() ? "true" : String.join(" && ", inside),
        self,
        indices,
        arguments.number("value"));
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
                        ? "%d - i%d".formatted(self.type().size(dim) - 1, dim)
                        : "i" + dim)
            .toList();
    move(kernel, self, indices);
  }

  private void move(PlaceKernel kernel, TensorRef from, List<String> indices) {
    var result = arguments.result();
    kernel.line(
        "%s = %s;".formatted(kernel.bits(result, kernel.indices()), kernel.bits(from, indices)));
    launch(kernel, result.type().sizes());
  }

  private static long clamp(long index, long size) {
    return Math.clamp(index < 0 ? index + size : index, 0, size);
  }

  /** Copies self, or zeros, and then a tensor into a slice of it. */
  private void slice(boolean scatters) {
    var result = arguments.result();
    int dim = arguments.dim("dim", result.type().rank());
    long size = result.type().size(dim);
    long start = arguments.has("start") ? clamp(arguments.integer("start"), size) : 0;
    long end = arguments.has("end") ? clamp(arguments.integer("end"), size) : size;
    long step = arguments.integer("step");
    long count = Math.max(0, Math.ceilDiv(end - start, step));
    background(scatters);
    if (count > 0) {
      into(Moves.narrow(result, dim, start, count, step), scatters);
    }
  }

  private void select(boolean scatters) {
    var result = arguments.result();
    int dim = arguments.dim("dim", result.type().rank());
    long index = Math.floorMod(arguments.integer("index"), result.type().size(dim));
    background(scatters);
    into(Moves.select(result, dim, index), scatters);
  }

  private void background(boolean scatters) {
    if (scatters) {
      copy(arguments.tensor("self"), arguments.result());
    } else {
      fill(arguments.result(), 0);
    }
  }

  private void into(TensorRef part, boolean scatters) {
    var from = arguments.tensor(scatters ? "src" : "grad_output");
    copy(Moves.expand(from, part.type().sizes()), part);
  }

  /**
   * Reads an index and checks it.
   *
   * @param wraps whether negative ones count from the end
   */
  private static void index(
      PlaceKernel kernel, String name, String value, long size, boolean wraps) {
    kernel.line("long long %s = %s;".formatted(name, value));
    if (wraps) {
      kernel.line("%1$s += %1$s < 0 ? %2$d : 0;".formatted(name, size));
    }
    kernel.line("if (%1$s < 0 || %1$s >= %2$d) {\n  __trap();\n}".formatted(name, size));
  }

  private void embedding() {
    var weight = arguments.tensor("weight");
    var indices = arguments.tensor("indices");
    var kernel = kernel(arguments.result().type().sizes());
    int last = arguments.result().type().rank() - 1;
    index(
        kernel,
        "at",
        kernel.value(indices, kernel.indices().subList(0, last)),
        weight.type().size(0),
        false);
    move(kernel, weight, List.of("at", "i" + last));
  }

  private void indexSelect() {
    var self = arguments.tensor("self");
    var index = arguments.tensor("index");
    int dim = arguments.dim("dim", self.type().rank());
    var kernel = kernel(arguments.result().type().sizes());
    if (self.type().rank() == 0) {
      move(kernel, self, List.of());
      return;
    }
    index(
        kernel,
        "at",
        kernel.value(index, index.type().rank() == 0 ? List.of() : List.of("i" + dim)),
        self.type().size(dim),
        false);
    move(kernel, self, with(kernel.indices(), dim, "at"));
  }

  private static List<String> with(List<String> indices, int dim, String index) {
    var changed = new ArrayList<>(indices);
    changed.set(dim, index);
    return changed;
  }

  private void gather() {
    var self = arguments.tensor("self");
    var index = arguments.tensor("index");
    int dim = arguments.dim("dim", self.type().rank());
    var kernel = kernel(arguments.result().type().sizes());
    if (self.type().rank() == 0 || index.type().rank() == 0) {
      move(kernel, self, IntStream.range(0, self.type().rank()).mapToObj(_ -> "0").toList());
      return;
    }
    index(kernel, "at", kernel.value(index, kernel.indices()), self.type().size(dim), false);
    move(kernel, self, with(kernel.indices(), dim, "at"));
  }

  private void oneHot() {
    var self = arguments.tensor("self");
    var result = arguments.result();
    int last = result.type().rank() - 1;
    var kernel = kernel(result.type().sizes());
    index(
        kernel,
        "at",
        kernel.value(self, kernel.indices().subList(0, last)),
        result.type().size(last),
        false);
    kernel.set(result, kernel.indices(), "at == i%d ? 1 : 0".formatted(last));
    launch(kernel, result.type().sizes());
  }

  private void index() {
    var self = arguments.tensor("self");
    var indexing = indexing(self, arguments.tensors("indices"));
    var kernel = kernel(arguments.result().type().sizes());
    indexing.read(kernel, kernel.indices());
    move(kernel, self, indexing.indices(kernel.indices()));
  }

  private Indexing indexing(TensorRef self, List<Optional<TensorRef>> indices) {
    for (var index : indices) {
      if (index.isPresent() && index.get().type().dtype().bytes() == 1) {
        throw arguments.unsupported("%s by a mask".formatted(arguments.name()));
      }
    }
    return Indexing.of(self.type(), indices);
  }

  /** One thread for each row along the dimension, so that the last of equal indices counts. */
  private void scatter(String source) {
    var result = arguments.result();
    var index = arguments.tensor("index");
    copy(arguments.tensor("self"), result);
    int dims = result.type().rank();
    if (dims == 0 || index.type().rank() == 0) {
      throw arguments.unsupported("%s of a number".formatted(arguments.name()));
    }
    int dim = arguments.dim("dim", dims);
    var sizes = index.type().sizes().toArray();
    long count = sizes[dim];
    sizes[dim] = count == 0 ? 0 : 1;
    var kernel = kernel(ImmutableLongArray.copyOf(sizes));
    var own = with(kernel.indices(), dim, "k");
    kernel.line("for (long long k = 0; k < %d; k++) {".formatted(count));
    index(kernel, "at", kernel.value(index, own), result.type().size(dim), false);
    var place = with(kernel.indices(), dim, "at");
    if (arguments.operand(source) instanceof Operand.Constant(Arg _)) {
      var dtype = result.type().dtype();
      kernel.set(result, place, PlaceKernel.number(dtype, arguments.number(source)));
    } else {
      var from = arguments.tensor(source);
      kernel.line(
          "%s = %s;"
              .formatted(
                  kernel.bits(result, place),
                  kernel.bits(from, from.type().rank() == 0 ? List.of() : own)));
    }
    kernel.line("}");
    launch(kernel, ImmutableLongArray.copyOf(sizes));
  }

  private void indexPut(TensorRef result) {
    var self = arguments.tensor("self");
    var indexing = indexing(self, arguments.tensors("indices"));
    var values = Moves.expand(arguments.tensor("values"), indexing.sizes());
    if (result.type().numel() > 0) {
      steps.add(
          DepositKernel.launch(
              rank,
              arguments,
              new Deposit(
                  Optional.of(self),
                  indexing,
                  values,
                  result,
                  arguments.flag("accumulate"),
                  Optional.empty())));
    }
  }

  private void embeddingBackward() {
    if (arguments.flag("scale_grad_by_freq")) {
      throw arguments.unsupported("%s by frequency".formatted(arguments.name()));
    }
    var result = arguments.result();
    var indices = arguments.tensor("indices");
    if (result.type().numel() > 0) {
      steps.add(
          DepositKernel.launch(
              rank,
              arguments,
              new Deposit(
                  Optional.empty(),
                  Indexing.of(result.type(), ImmutableList.of(Optional.of(indices))),
                  arguments.tensor("grad_output"),
                  result,
                  true,
                  Optional.of(arguments.integer("padding_idx")))));
    }
  }
}
