package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.PositionOps.Rule;
import dev.symplan.codegen.cuda.ScatterKernel.Deposit;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.Optional;

/**
 * Ops that add to, replace or combine what indices along one dimension name, in the order of the
 * indices. Floats of 8 and 16 bits are kept in f32 meanwhile.
 */
final class ScatteredOps {
  static final ImmutableMap<String, Rule> TABLE =
      ImmutableMap.<String, Rule>builder()
          .put("aten::index_add", ScatteredOps::addAt)
          .put("aten::index_copy", ScatteredOps::copyAt)
          .put("aten::index_fill.int_Scalar", ScatteredOps::fillAt)
          .put("aten::index_fill.int_Tensor", ScatteredOps::fillAt)
          .put("aten::scatter_add", op -> scatter(op, "src", Combine.ADD, true))
          .put("aten::scatter.reduce", op -> scatter(op, "src", Combine.of(op), true))
          .put("aten::scatter.value_reduce", op -> scatter(op, "value", Combine.of(op), true))
          .put(
              "aten::scatter_reduce.two",
              op -> scatter(op, "src", Combine.of(op), op.arguments.flag("include_self")))
          .buildOrThrow();

  /** How an element {@code b} is combined with what is there, {@code a}. */
  private enum Combine {
    ADD("a + b"),
    MULTIPLY("a * b"),
    MEAN("a + b"),
    MAX("a != a ? a : b != b ? b : a > b ? a : b"),
    MIN("a != a ? a : b != b ? b : a < b ? a : b");

    private final String text;

    Combine(String text) {
      this.text = text;
    }

    static Combine of(PositionOps op) {
      var reduce =
          op.arguments.operand("reduce") instanceof Operand.Constant(Arg.Str(String name))
              ? name
              : "";
      return switch (reduce) {
        case "add", "sum" -> ADD;
        case "multiply", "prod" -> MULTIPLY;
        case "mean" -> MEAN;
        case "amax" -> MAX;
        case "amin" -> MIN;
        default ->
            throw op.arguments.unsupported(
                "%s with the reduction '%s'".formatted(op.arguments.name(), reduce));
      };
    }
  }

  private ScatteredOps() {}

  /** The type in which many values are added up. */
  private static DType wide(DType dtype) {
    return dtype.isFloat() && dtype.bytes() < DType.F32.bytes() ? DType.F32 : dtype;
  }

  /** Ends the run if an index is not one of a dimension's, counted from the front. */
  private static void check(PositionOps op, TensorRef index, long size) {
    var kernel = op.kernel(index.type().sizes());
    IndexedOps.read(kernel, kernel.value(index, kernel.indices()), size);
    op.launch(kernel, index.type().sizes());
  }

  private static void deposit(PositionOps op, TensorRef values, boolean fromTheEnd, boolean adds) {
    var self = Moves.atLeastVector(op.arguments.tensor("self"));
    var index = Moves.atLeastVector(op.arguments.tensor("index"));
    int dim = op.arguments.dim("dim", self.type().rank());
    if (!fromTheEnd) {
      check(op, index, self.type().size(dim));
    }
    var indices = new ArrayList<Optional<TensorRef>>();
    for (int i = 0; i <= dim; i++) {
      indices.add(i == dim ? Optional.of(index) : Optional.empty());
    }
    var indexing = Indexing.of(self.type(), indices);
    IndexedOps.deposit(
        op,
        new Deposit(
            Optional.of(self),
            indexing,
            Moves.expand(values, indexing.sizes()),
            Moves.atLeastVector(op.arguments.result()),
            adds,
            Optional.empty()));
  }

  private static void addAt(PositionOps op) {
    var source = Moves.atLeastVector(op.arguments.tensor("source"));
    var alpha = op.arguments.number("alpha");
    if (alpha.doubleValue() == 1) {
      deposit(op, source, false, true);
      return;
    }
    op.arguments.checkComputes(source);
    var dtype = wide(source.type().dtype());
    var scaled = op.scratch.take(source.type().contiguous().withDType(dtype));
    var kernel = op.kernel(source.type().sizes());
    kernel.set(
        scaled,
        kernel.indices(),
        "%s * %s"
            .formatted(
                PositionKernel.number(dtype, alpha), kernel.value(source, kernel.indices())));
    op.launch(kernel, source.type().sizes());
    deposit(op, scaled, false, true);
  }

  private static void copyAt(PositionOps op) {
    deposit(op, Moves.atLeastVector(op.arguments.tensor("source")), false, false);
  }

  /** Here, unlike in its relatives, negative indices count from the end. */
  private static void fillAt(PositionOps op) {
    if (op.arguments.operand("value") instanceof Operand.Tensor(var value)) {
      deposit(op, value, true, false);
    } else {
      var one = op.scratch.take(TensorType.contiguous(op.arguments.result().type().dtype()));
      op.fill(one, op.arguments.number("value"));
      deposit(op, one, true, false);
    }
  }

  /** One thread for each row along the dimension. */
  private static void scatter(PositionOps op, String source, Combine combine, boolean withSelf) {
    var result = Moves.atLeastVector(op.arguments.result());
    var index = Moves.atLeastVector(op.arguments.tensor("index"));
    op.arguments.checkComputes(result);
    var dtype = result.type().dtype();
    var sum =
        wide(dtype) == dtype
            ? result
            : op.scratch.take(result.type().contiguous().withDType(wide(dtype)));
    op.copy(Moves.atLeastVector(op.arguments.tensor("self")), sum);
    var named =
        combine == Combine.MEAN || !withSelf
            ? Optional.of(op.scratch.take(sum.type().contiguous().withDType(DType.I64)))
            : Optional.<TensorRef>empty();
    named.ifPresent(ref -> op.fill(ref, 0));
    combine(op, source, combine, withSelf, index, sum, named);
    if (combine == Combine.MEAN) {
      divide(op, sum, named.orElseThrow(), withSelf);
    }
    op.copy(sum, result);
  }

  private static void combine(
      PositionOps op,
      String source,
      Combine combine,
      boolean withSelf,
      TensorRef index,
      TensorRef sum,
      Optional<TensorRef> named) {
    int dim = op.arguments.dim("dim", sum.type().rank());
    var dtype = sum.type().dtype();
    var sizes = index.type().sizes().toArray();
    long count = sizes[dim];
    sizes[dim] = count == 0 ? 0 : 1;
    var kernel = op.kernel(ImmutableLongArray.copyOf(sizes));
    var own = IndexedOps.with(kernel.indices(), dim, "k");
    kernel.line("for (long long k = 0; k < %s; k++) {".formatted(count));
    IndexedOps.read(kernel, kernel.value(index, own), sum.type().size(dim));
    var to = IndexedOps.with(kernel.indices(), dim, "at");
    var type = CTypes.computed(dtype);
    kernel.line("const %s a = %s;".formatted(type, kernel.value(sum, to)));
    var value =
        op.arguments.operand(source) instanceof Operand.Constant(Arg _)
            ? PositionKernel.number(dtype, op.arguments.number(source))
            : kernel.value(Moves.atLeastVector(op.arguments.tensor(source)), own);
    kernel.line("const %s b = %s;".formatted(type, value));
    if (named.isPresent()) {
      kernel.line("const long long before = %s;".formatted(kernel.value(named.get(), to)));
      kernel.set(named.get(), to, "before + 1");
    }
    kernel.set(
        sum,
        to,
        withSelf
            ? "(%s)".formatted(combine.text)
            : "(before == 0 ? b : %s)".formatted(combine.text));
    kernel.line("}");
    op.launch(kernel, ImmutableLongArray.copyOf(sizes));
  }

  private static void divide(PositionOps op, TensorRef sum, TensorRef named, boolean withSelf) {
    var kernel = op.kernel(sum.type().sizes());
    var indices = kernel.indices();
    kernel.line("long long count = %s;".formatted(kernel.value(named, indices)));
    kernel.line(withSelf ? "count += 1;" : "count = count > 1 ? count : 1;");
    kernel.line(
        "const %s a = %s;"
            .formatted(CTypes.computed(sum.type().dtype()), kernel.value(sum, indices)));
    kernel.set(
        sum,
        indices,
        sum.type().dtype().isFloat()
            ? "a / count"
            : "(long long)a / count - ((long long)a % count < 0)");
    op.launch(kernel, sum.type().sizes());
  }
}
