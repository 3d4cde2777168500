package dev.symplan.ir.hlo;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/** Makes PyTorch's ops of instructions that only move elements. */
final class Views {
  private static final Pattern RANGE =
      Pattern.compile("\\[(-?[0-9]{1,18}):(-?[0-9]{1,18})(?::([0-9]{1,18}))?]");
  private static final Pattern EDGE = Pattern.compile("(-?[0-9]{1,18})_(-?[0-9]{1,18})(_0)?");

  private final GraphEmitter emitter;

  Views(GraphEmitter emitter) {
    this.emitter = emitter;
  }

  Optional<Value> reshape(HloInstruction instruction, Value operand, Array shape) {
    if (operand.tensor().numel() != shape.tensor().numel()) {
      throw new IllegalArgumentException(
          "%s does not have the elements of %s".formatted(operand.type(), shape.tensor()));
    }
    return Optional.of(
        emitter.op(
            instruction.name(),
            "aten::reshape",
            new Arg.Ref(operand),
            GraphEmitter.integers(shape.tensor().sizes())));
  }

  Optional<Value> transpose(HloInstruction instruction, Value operand, Array shape) {
    return Optional.of(
        checkGives(
            shape,
            emitter.op(
                instruction.name(),
                "aten::permute",
                new Arg.Ref(operand),
                GraphEmitter.integers(instruction.attributes().integers("dimensions")))));
  }

  Optional<Value> broadcast(HloInstruction instruction, Value operand, Array shape) {
    var given = instruction.attributes().integers("dimensions");
    int rank = shape.tensor().rank();
    if (given.length() != operand.tensor().rank()
        || given.stream().anyMatch(dim -> dim < 0 || dim >= rank)
        || given.stream().distinct().count() != given.length()) {
      throw new IllegalArgumentException(
          "dimensions=%s does not place %s dimensions in %s"
              .formatted(given, operand.tensor().rank(), rank));
    }
    var order =
        IntStream.range(0, given.length())
            .boxed()
            .sorted(Comparator.comparing(given::get))
            .mapToInt(i -> i)
            .toArray();
    var name = instruction.name();
    var value = emitter.permuted(operand, ImmutableIntArray.copyOf(order), name + ".permuted");
    int first = given.isEmpty() ? rank : (int) given.get(order[0]);
    for (int dim = first; dim < rank; dim++) {
      if (!given.contains(dim)) {
        value =
            emitter.op(
                name + ".d" + dim, "aten::unsqueeze", new Arg.Ref(value), new Arg.Int(dim - first));
      }
    }
    var wide =
        emitter.op(
            name,
            "aten::expand",
            new Arg.Ref(value),
            GraphEmitter.integers(shape.tensor().sizes()));
    return Optional.of(wide);
  }

  Optional<Value> slice(HloInstruction instruction, Value operand, Array shape) {
    var value = operand;
    var ranges = RANGE.matcher(instruction.attributes().text("slice").orElse(""));
    int dim = 0;
    while (ranges.find()) {
      if (dim >= operand.tensor().rank()) {
        throw new IllegalArgumentException("slice has too many ranges");
      }
      long start = Long.parseLong(ranges.group(1));
      long end = Long.parseLong(ranges.group(2));
      long step = ranges.group(3) == null ? 1 : Long.parseLong(ranges.group(3));
      if (start < 0 || end < start || end > operand.tensor().size(dim) || step < 1) {
        throw new IllegalArgumentException(
            "%s is not a range of %s".formatted(ranges.group(), operand.tensor().size(dim)));
      }
      if (start > 0 || end < operand.tensor().size(dim) || step > 1) {
        value =
            emitter.op(
                instruction.name() + ".d" + dim,
                "aten::slice.Tensor",
                new Arg.Ref(value),
                new Arg.Int(dim),
                new Arg.Int(start),
                new Arg.Int(end),
                new Arg.Int(step));
      }
      dim++;
    }
    if (dim != operand.tensor().rank()) {
      throw new IllegalArgumentException("slice has too few ranges");
    }
    return Optional.of(checkGives(shape, value));
  }

  Optional<Value> concatenate(HloInstruction instruction, List<Value> operands, Array shape) {
    long dim =
        instruction
            .attributes()
            .integer("dimensions")
            .orElseThrow(() -> new IllegalArgumentException("it needs one dimension"));
    return Optional.of(
        emitter.fresh(
            instruction.name(), shape, "aten::cat", GraphEmitter.refs(operands), new Arg.Int(dim)));
  }

  Optional<Value> pad(HloInstruction instruction, List<Bound> operands, Array shape) {
    var written = instruction.attributes().text("padding").orElse("");
    if (operands.size() != 2
        || !(operands.getLast() instanceof Bound.Splat(Arg.Literal number, Array _))) {
      return Optional.empty();
    }
    var edges = new ArrayList<Long>();
    for (var edge : Splitter.on('x').split(written)) {
      var matcher = EDGE.matcher(edge.strip());
      if (!matcher.matches()) {
        return Optional.empty();
      }
      edges.addFirst(Long.parseLong(matcher.group(2)));
      edges.addFirst(Long.parseLong(matcher.group(1)));
    }
    if (edges.stream().anyMatch(edge -> edge < 0)) {
      return Optional.empty();
    }
    var operand = emitter.value(operands.getFirst(), instruction.name() + ".operand");
    if (edges.size() != 2 * operand.tensor().rank()) {
      throw new IllegalArgumentException(
          "padding=%s is not for %s dimensions".formatted(written, operand.tensor().rank()));
    }
    return Optional.of(
        emitter.fresh(
            instruction.name(),
            shape,
            "aten::constant_pad_nd",
            new Arg.Ref(operand),
            new Arg.Seq(
                edges.stream().<Arg>map(Arg.Int::new).collect(ImmutableList.toImmutableList())),
            number));
  }

  Optional<Value> iota(HloInstruction instruction, Array shape) {
    long dim = instruction.attributes().integer("iota_dimension").orElse(0L);
    int rank = shape.tensor().rank();
    if (dim < 0 || dim >= rank) {
      throw new IllegalArgumentException("iota_dimension=%s is not below %s".formatted(dim, rank));
    }
    var name = instruction.name();
    var value =
        emitter.op(
            rank == 1 ? name : name + ".numbers",
            "aten::arange.start",
            new Arg.Int(0),
            new Arg.Int(shape.tensor().size((int) dim)),
            new Arg.Dtype(shape.dtype()));
    if (rank == 1) {
      return Optional.of(emitter.counting(value, dim));
    }
    for (int i = (int) dim + 1; i < rank; i++) {
      value = emitter.op(name + ".d" + i, "aten::unsqueeze", new Arg.Ref(value), new Arg.Int(-1));
    }
    var wide =
        emitter.op(
            name,
            "aten::expand",
            new Arg.Ref(value),
            GraphEmitter.integers(shape.tensor().sizes()));
    return Optional.of(emitter.counting(wide, dim));
  }

  static Value checkGives(Array shape, Value value) {
    if (!value.tensor().sizes().equals(shape.tensor().sizes())) {
      throw new IllegalArgumentException(
          "it gives %s, not %s".formatted(value.type(), shape.tensor()));
    }
    return value;
  }
}
