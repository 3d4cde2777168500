package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.ScatterKernel.Deposit;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The {@link PositionOps} whose elements a tensor of indices names: gathering and scattering. An
 * index that is out of range ends the kernel with an error.
 */
final class IndexedOps {
  private IndexedOps() {}

  /** Reads the index {@code at}, and checks it. */
  static void read(PositionKernel kernel, String value, long size) {
    kernel.line("long long at = %s;".formatted(value));
    kernel.line("if (at < 0 || at >= %s) {\n  __trap();\n}".formatted(size));
  }

  static void embedding(PositionOps op) {
    var weight = op.arguments.tensor("weight");
    var indices = op.arguments.tensor("indices");
    var kernel = op.kernelOfRuns(weight);
    int last = op.arguments.result().type().rank() - 1;
    read(kernel, kernel.value(indices, kernel.indices().subList(0, last)), weight.type().size(0));
    op.move(kernel, weight, List.of("at", "i" + last));
  }

  static void indexSelect(PositionOps op) {
    var self = op.arguments.tensor("self");
    var index = op.arguments.tensor("index");
    int dim = op.arguments.dim("dim", self.type().rank());
    var sizes = op.arguments.result().type().sizes();
    if (self.type().rank() == 0) {
      op.move(op.kernel(sizes), self, List.of());
      return;
    }
    var kernel = dim < self.type().rank() - 1 ? op.kernelOfRuns(self) : op.kernel(sizes);
    read(
        kernel,
        kernel.value(index, index.type().rank() == 0 ? List.of() : List.of("i" + dim)),
        self.type().size(dim));
    op.move(kernel, self, with(kernel.indices(), dim, "at"));
  }

  static List<String> with(List<String> indices, int dim, String index) {
    var changed = new ArrayList<>(indices);
    changed.set(dim, index);
    return changed;
  }

  static void gather(PositionOps op) {
    var self = op.arguments.tensor("self");
    var index = op.arguments.tensor("index");
    int dim = op.arguments.dim("dim", self.type().rank());
    var kernel = op.kernel(op.arguments.result().type().sizes());
    if (self.type().rank() == 0 || index.type().rank() == 0) {
      op.move(kernel, self, IntStream.range(0, self.type().rank()).mapToObj(_ -> "0").toList());
      return;
    }
    read(kernel, kernel.value(index, kernel.indices()), self.type().size(dim));
    op.move(kernel, self, with(kernel.indices(), dim, "at"));
  }

  static void oneHot(PositionOps op) {
    var self = op.arguments.tensor("self");
    var result = op.arguments.result();
    int last = result.type().rank() - 1;
    var kernel = op.kernel(result.type().sizes());
    read(kernel, kernel.value(self, kernel.indices().subList(0, last)), result.type().size(last));
    kernel.set(result, kernel.indices(), "at == i%s ? 1 : 0".formatted(last));
    op.launch(kernel, result.type().sizes());
  }

  static void index(PositionOps op) {
    var self = op.arguments.tensor("self");
    var indexing = indexing(op, self, op.arguments.tensors("indices"));
    int last = self.type().rank() - 1;
    var kernel =
        indexing.rest().contains(last)
            ? op.kernelOfRuns(self)
            : op.kernel(op.arguments.result().type().sizes());
    indexing.read(kernel, kernel.indices());
    op.move(kernel, self, indexing.indices(kernel.indices()));
  }

  private static Indexing indexing(
      PositionOps op, TensorRef self, List<Optional<TensorRef>> indices) {
    for (var index : indices) {
      if (index.isPresent() && index.get().type().dtype().bytes() == 1) {
        throw op.arguments.unsupported("%s by a mask".formatted(op.arguments.name()));
      }
    }
    return Indexing.of(self.type(), indices);
  }

  /** One thread for each row along the dimension, so that the last of equal indices counts. */
  static void scatter(PositionOps op, String source) {
    op.copy(op.arguments.tensor("self"), op.arguments.result());
    var result = Moves.atLeastVector(op.arguments.result());
    var index = Moves.atLeastVector(op.arguments.tensor("index"));
    int dims = result.type().rank();
    int dim = op.arguments.dim("dim", dims);
    var sizes = index.type().sizes().toArray();
    long count = sizes[dim];
    sizes[dim] = count == 0 ? 0 : 1;
    var kernel = op.kernel(ImmutableLongArray.copyOf(sizes));
    var own = with(kernel.indices(), dim, "k");
    kernel.line("for (long long k = 0; k < %s; k++) {".formatted(count));
    read(kernel, kernel.value(index, own), result.type().size(dim));
    var to = with(kernel.indices(), dim, "at");
    if (op.arguments.operand(source) instanceof Operand.Constant(Arg _)) {
      var dtype = result.type().dtype();
      kernel.set(result, to, PositionKernel.number(dtype, op.arguments.number(source)));
    } else {
      var from = op.arguments.tensor(source);
      kernel.move(result, to, from, from.type().rank() == 0 ? List.of() : own);
    }
    kernel.line("}");
    op.launch(kernel, ImmutableLongArray.copyOf(sizes));
  }

  static void indexPut(PositionOps op) {
    var self = op.arguments.tensor("self");
    var result = op.arguments.op().def().schema().mutates() ? self : op.arguments.result();
    var indexing = indexing(op, self, op.arguments.tensors("indices"));
    var values = Moves.expand(op.arguments.tensor("values"), indexing.sizes());
    deposit(
        op,
        new Deposit(
            Optional.of(self),
            indexing,
            values,
            result,
            op.arguments.flag("accumulate"),
            Optional.empty()));
  }

  static void deposit(PositionOps op, Deposit deposit) {
    if (deposit.result().type().numel() > 0) {
      if (deposit.isSparse()) {
        deposit
            .self()
            .ifPresentOrElse(
                self -> op.copy(self, deposit.result()), () -> op.fill(deposit.result(), 0));
      }
      if (!deposit.isEmpty()) {
        op.add(ScatterKernel.launch(op.rank, op.arguments, deposit));
      }
    }
  }

  static void embeddingBackward(PositionOps op) {
    var result = op.arguments.result();
    var indices = op.arguments.tensor("indices");
    boolean byFrequency = op.arguments.flag("scale_grad_by_freq");
    var sum =
        byFrequency ? op.scratch.take(result.type().contiguous().withDType(DType.F64)) : result;
    deposit(
        op,
        new Deposit(
            Optional.empty(),
            Indexing.of(result.type(), ImmutableList.of(Optional.of(indices))),
            op.arguments.tensor("grad_output"),
            sum,
            true,
            Optional.of(op.arguments.integer("padding_idx"))));
    if (byFrequency) {
      divideByCounts(op, indices, sum, result);
    }
  }

  /** Each row is divided by how often it was named. */
  private static void divideByCounts(
      PositionOps op, TensorRef indices, TensorRef sum, TensorRef result) {
    var flat = op.scratch.take(TensorType.contiguous(DType.I64, indices.type().numel()));
    op.copy(indices, flat.with(indices.type().contiguous().withDType(DType.I64)));
    var kernel = op.kernel(result.type().sizes());
    kernel.line("long long count = 0;");
    kernel.line(
        "for (long long j = 0; j < %s; j++) {\n  count += %s == i0;\n}"
            .formatted(flat.type().numel(), kernel.value(flat, List.of("j"))));
    kernel.set(
        result,
        kernel.indices(),
        "(%s)(%s / (count > 0 ? count : 1))"
            .formatted(
                CTypes.computed(result.type().dtype()), kernel.value(sum, kernel.indices())));
    op.launch(kernel, result.type().sizes());
  }
}
