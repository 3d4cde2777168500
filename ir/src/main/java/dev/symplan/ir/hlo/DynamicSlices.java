package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.Collections;
import java.util.List;
import java.util.Optional;

/** Makes PyTorch's ops of instructions that read or write a part of an array at an index. */
final class DynamicSlices {
  private final GraphEmitter emitter;

  DynamicSlices(GraphEmitter emitter) {
    this.emitter = emitter;
  }

  /** The part of one dimension. */
  private sealed interface Cut {
    /** It starts where the module says. */
    record At(int dim, long start, long count) implements Cut {}

    /** A tensor has the indexes of its elements. */
    record Among(int dim, Value indexes) implements Cut {}
  }

  /** {@return the part; absent if its start is not known, and the module is only planned} */
  Optional<Value> slice(HloInstruction instruction, List<Bound> operands, Array shape) {
    if (operands.isEmpty() || !(operands.getFirst() instanceof Bound.Tensor(Value operand))) {
      return Optional.empty();
    }
    var counts = instruction.attributes().integers("dynamic_slice_sizes");
    var starts = operands.subList(1, operands.size());
    if (counts.length() != operand.tensor().rank() || starts.size() != counts.length()) {
      throw new IllegalArgumentException("it needs a start and a size for each dimension");
    }
    return cuts(instruction.name(), operand, starts, Arg.Seq.of(counts.toArray()))
        .map(
            cuts -> {
              var value = operand;
              for (var cut : cuts) {
                value = part(instruction.name(), value, cut);
              }
              return Views.checkGives(shape, value);
            });
  }

  /** {@return the operand with a part overwritten} */
  Optional<Value> update(HloInstruction instruction, List<Bound> operands) {
    var name = instruction.name();
    if (operands.size() < 2) {
      throw new IllegalArgumentException("it needs an array and a part");
    }
    var operand = emitter.value(operands.getFirst(), name + ".operand");
    var part = emitter.value(operands.get(1), name + ".part");
    var starts = operands.subList(2, operands.size());
    if (part.tensor().rank() != operand.tensor().rank()
        || starts.size() != operand.tensor().rank()) {
      throw new IllegalArgumentException("it needs a start for each dimension of both");
    }
    return cuts(name, operand, starts, Arg.Seq.of(part.tensor().sizes().toArray()))
        .map(cuts -> updated(name, operand, part, cuts));
  }

  /** {@return the operand with a part overwritten that begins at some indexes, and fits} */
  Value written(String name, Value operand, Value part, ImmutableLongArray start) {
    var cuts = ImmutableList.<Cut>builder();
    for (int dim = 0; dim < start.length(); dim++) {
      if (part.tensor().size(dim) != operand.tensor().size(dim)) {
        cuts.add(new Cut.At(dim, start.get(dim), part.tensor().size(dim)));
      }
    }
    return updated(name, operand, part, cuts.build());
  }

  /** Writes the part into the last cut, that into the one before, and so on. */
  private Value updated(String name, Value operand, Value part, List<Cut> cuts) {
    if (cuts.isEmpty()) {
      return part;
    }
    var first = cuts.getFirst();
    var rest = cuts.subList(1, cuts.size());
    var inner = rest.isEmpty() ? part : updated(name, part(name, operand, first), part, rest);
    return switch (first) {
      case Cut.At(int dim, long start, long count) ->
          emitter.op(
              name,
              "aten::slice_scatter",
              new Arg.Ref(operand),
              new Arg.Ref(inner),
              new Arg.Int(dim),
              new Arg.Int(start),
              new Arg.Int(start + count));
      case Cut.Among(int dim, Value indexes) ->
          emitter.op(
              name,
              "aten::index_put",
              new Arg.Ref(operand),
              new Arg.Seq(
                  ImmutableList.<Arg>builder()
                      .addAll(Collections.nCopies(dim, Arg.None.NONE))
                      .add(new Arg.Ref(indexes))
                      .build()),
              new Arg.Ref(inner));
    };
  }

  private Value part(String name, Value of, Cut cut) {
    return switch (cut) {
      case Cut.At(int dim, long start, long count) ->
          emitter.op(
              name + ".d" + dim,
              "aten::narrow",
              new Arg.Ref(of),
              new Arg.Int(dim),
              new Arg.Int(start),
              new Arg.Int(count));
      case Cut.Among(int dim, Value indexes) ->
          emitter.op(
              name + ".d" + dim,
              "aten::index_select",
              new Arg.Ref(of),
              new Arg.Int(dim),
              new Arg.Ref(indexes));
    };
  }

  /** {@return the dimensions that are not taken as a whole} Starts are moved so that parts fit. */
  private Optional<List<Cut>> cuts(String name, Value operand, List<Bound> starts, Arg.Seq counts) {
    var cuts = ImmutableList.<Cut>builder();
    for (int dim = 0; dim < starts.size(); dim++) {
      long size = operand.tensor().size(dim);
      long count = counts.items().get(dim) instanceof Arg.Int(long value) ? value : -1;
      if (count < 0 || count > size) {
        throw new IllegalArgumentException("a part of %s of %s".formatted(count, size));
      }
      if (count == size) {
        continue;
      }
      switch (starts.get(dim)) {
        case Bound.Splat(Arg.Int(long at), Array _) ->
            cuts.add(new Cut.At(dim, Math.clamp(at, 0, size - count), count));
        case Bound.Tensor(Value start) when emitter.reading() == Reading.OPENED ->
            cuts.add(
                new Cut.Among(dim, indexes(name + ".start" + dim, start, size - count, count)));
        default -> {
          return Optional.empty();
        }
      }
    }
    return Optional.of(cuts.build());
  }

  /** {@return the indexes of as many elements, the first one at a start} */
  private Value indexes(String name, Value start, long last, long count) {
    var wide = emitter.converted(start, DType.I64, name + ".wide");
    var fitting =
        emitter.op(
            name + ".fits", "aten::clamp", new Arg.Ref(wide), new Arg.Int(0), new Arg.Int(last));
    var one = emitter.op(name + ".one", "aten::reshape", new Arg.Ref(fitting), Arg.Seq.of(1));
    if (count == 1) {
      return one;
    }
    var numbers =
        emitter.op(
            name + ".numbers",
            "aten::arange.start",
            new Arg.Int(0),
            new Arg.Int(count),
            new Arg.Dtype(DType.I64));
    return emitter.op(name, "aten::add.Tensor", new Arg.Ref(numbers), new Arg.Ref(one));
  }
}
