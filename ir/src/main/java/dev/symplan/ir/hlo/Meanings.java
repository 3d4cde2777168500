package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * Makes several ops of PyTorch of one instruction. That is for modules that run; if a module is
 * only planned, each step of XLA is one op.
 */
final class Meanings {
  private static final Pattern WINDOW = Pattern.compile("size=([0-9x]+)(?: pad=([0-9x_]+))?");

  private final GraphEmitter emitter;
  private final ImmutableMap<String, HloComputation> computations;
  private final DynamicSlices slices;
  private final Gathers gathers;
  private final LibraryCalls calls;
  private final Bits bits;

  Meanings(GraphEmitter emitter, ImmutableMap<String, HloComputation> computations) {
    this.emitter = emitter;
    this.computations = computations;
    this.slices = new DynamicSlices(emitter);
    this.gathers = new Gathers(emitter);
    this.calls = new LibraryCalls(emitter);
    this.bits = new Bits(emitter);
  }

  /** {@return the result of the instruction; absent if no ops of PyTorch compute the same} */
  Optional<Bound> read(HloInstruction instruction, List<Bound> operands) {
    if (operands.isEmpty() || !Elementwise.areExact(operands)) {
      return Optional.empty();
    }
    return switch (instruction.opcode()) {
      case "sort" -> sort(instruction, operands);
      case "custom-call" ->
          instruction.attributes().string("custom_call_target").equals("TopK")
              ? topK(instruction, operands)
              : calls.read(instruction, operands);
      case "reduce" ->
          operands.size() == 4 ? places(instruction, operands) : started(instruction, operands);
      default ->
          instruction.shape() instanceof Array shape && shape.exact()
              ? one(instruction, operands, shape).map(Bound.Tensor::new)
              : Optional.empty();
    };
  }

  private Optional<Value> one(HloInstruction instruction, List<Bound> operands, Array shape) {
    var name = instruction.name();
    return switch (instruction.opcode()) {
      case "dynamic-update-slice" -> slices.update(instruction, operands);
      case "gather" ->
          operands.size() == 2
              ? Optional.of(
                  gathers.gather(
                      instruction,
                      emitter.value(operands.getFirst(), name + ".array"),
                      emitter.value(operands.getLast(), name + ".starts"),
                      shape))
              : Optional.empty();
      case "scatter" -> scatter(instruction, operands);
      case "shift-left", "shift-right-arithmetic", "shift-right-logical" ->
          bits.shift(instruction, operands, shape);
      case "popcnt" -> bits.count(instruction, operands.getFirst(), shape);
      case "reverse" ->
          Optional.of(
              emitter.fresh(
                  name,
                  shape,
                  "aten::flip",
                  ref(operands.getFirst(), name + ".operand"),
                  Arg.Seq.of(instruction.attributes().integers("dimensions").toArray())));
      case "reduce-precision" -> reduced(instruction, operands.getFirst());
      case "reduce-window" -> running(instruction, operands, shape);
      case "bitcast-convert" ->
          Elementwise.dtype(operands.getFirst()).bytes() == shape.dtype().bytes()
              ? Optional.of(
                  emitter.op(
                      name,
                      "aten::view.dtype",
                      ref(operands.getFirst(), name + ".operand"),
                      new Arg.Dtype(shape.dtype())))
              : Optional.empty();
      default -> Optional.empty();
    };
  }

  /** Fewer bits in the same type: none if that has no more, or those of bf16 in f32. */
  private Optional<Value> reduced(HloInstruction instruction, Bound operand) {
    var name = instruction.name();
    long exponent = instruction.attributes().integer("exponent_bits").orElse(0L);
    long mantissa = instruction.attributes().integer("mantissa_bits").orElse(0L);
    var dtype = Elementwise.dtype(operand);
    boolean whole =
        switch (dtype) {
          case F64 -> exponent >= 11 && mantissa >= 52;
          case F32 -> exponent >= 8 && mantissa >= 23;
          case BF16 -> exponent >= 8 && mantissa >= 7;
          case F16 -> exponent >= 5 && mantissa >= 10;
          case F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU -> false;
          case I64, I32, I16, I8, U64, U32, U16, U8, BOOL, C32, C64, C128 -> false;
        };
    if (whole) {
      return Optional.of(emitter.value(operand, name));
    }
    if (dtype != DType.F32 || exponent != 8 || mantissa != 7) {
      return Optional.empty();
    }
    var rounded = emitter.converted(emitter.value(operand, name), DType.BF16, name + ".rounded");
    return Optional.of(emitter.converted(rounded, DType.F32, name));
  }

  private Optional<Value> scatter(HloInstruction instruction, List<Bound> operands) {
    var how = applied(instruction);
    if (operands.size() != 3 || how.isEmpty()) {
      return Optional.empty();
    }
    boolean adds = Collectives.reduction(how.get()).filter("add"::equals).isPresent();
    var root = how.get().root();
    boolean overwrites = root.opcode().equals("parameter") && root.literal().equals("1");
    if (!adds && !overwrites || Elementwise.dtype(operands.getFirst()) == DType.BOOL) {
      return Optional.empty();
    }
    var name = instruction.name();
    return Optional.of(
        gathers.scatter(
            instruction,
            operands.getFirst(),
            emitter.value(operands.get(1), name + ".starts"),
            emitter.value(operands.get(2), name + ".updates"),
            adds));
  }

  private Optional<HloComputation> applied(HloInstruction instruction) {
    var names = instruction.attributes().names("to_apply");
    @Nullable HloComputation found = names.size() == 1 ? computations.get(names.getFirst()) : null;
    return Optional.ofNullable(found);
  }

  /** The first array is sorted; the others go along. */
  private Optional<Bound> sort(HloInstruction instruction, List<Bound> operands) {
    var dtype = Elementwise.dtype(operands.getFirst());
    var order = applied(instruction).flatMap(by -> Orders.of(by, dtype, operands.size()));
    var dim = instruction.attributes().integer("dimensions");
    if (order.isEmpty() || dim.isEmpty()) {
      return Optional.empty();
    }
    var name = instruction.name();
    var arrays = new ArrayList<Value>();
    for (int i = 0; i < operands.size(); i++) {
      arrays.add(emitter.value(operands.get(i), name + ".operand" + i));
    }
    // Positions are in order already.
    if (order.get().bySecond() && !emitter.counts(arrays.get(1), dim.get())) {
      var places = sorted(name + ".second", arrays.get(1), dim.get(), false).getLast();
      arrays.replaceAll(array -> gathered(name + ".in", array, dim.get(), places));
    }
    var sorted = sorted(name, arrays.getFirst(), dim.get(), order.get().descending());
    var all = ImmutableList.<Bound>builder().add(new Bound.Tensor(sorted.getFirst()));
    for (int i = 1; i < operands.size(); i++) {
      all.add(
          new Bound.Tensor(gathered(name + "." + i, arrays.get(i), dim.get(), sorted.getLast())));
    }
    var parts = all.build();
    return Optional.of(
        instruction.shape() instanceof Array ? parts.getFirst() : new Bound.Tuple(parts));
  }

  private Value gathered(String name, Value array, long dim, Value places) {
    return emitter.op(
        name, "aten::gather", new Arg.Ref(array), new Arg.Int(dim), new Arg.Ref(places));
  }

  private ImmutableList<Value> sorted(String name, Value operand, long dim, boolean descending) {
    return emitter.named(
        List.of(name + ".sorted", name + ".places"),
        "aten::sort.stable",
        new Arg.Ref(operand),
        new Arg.Bool(true),
        new Arg.Int(dim),
        new Arg.Bool(descending));
  }

  /** Of equal elements, the first ones. */
  private Optional<Bound> topK(HloInstruction instruction, List<Bound> operands) {
    var dtype = Elementwise.dtype(operands.getFirst());
    boolean largest =
        applied(instruction)
            .flatMap(by -> Orders.of(by, dtype, 1))
            .map(Orders.Order::descending)
            .orElse(true);
    if (!(instruction.shape() instanceof HloShape.Tuple(ImmutableList<HloShape> shapes))
        || shapes.size() != 2
        || operands.size() != 1
        || !(shapes.getFirst() instanceof Array values)
        || !(shapes.getLast() instanceof Array places)) {
      return Optional.empty();
    }
    var name = instruction.name();
    int dim = values.tensor().rank() - 1;
    var sorted = sorted(name, emitter.value(operands.getFirst(), name + ".operand"), dim, largest);
    var parts = ImmutableList.<Bound>builder();
    for (var part : sorted) {
      var first =
          emitter.op(
              name + ".first",
              "aten::narrow",
              new Arg.Ref(part),
              new Arg.Int(dim),
              new Arg.Int(0),
              new Arg.Int(values.tensor().size(dim)));
      parts.add(
          new Bound.Tensor(
              part == sorted.getLast()
                  ? emitter.converted(first, places.dtype(), name + ".indices")
                  : first));
    }
    return Optional.of(new Bound.Tuple(parts.build()));
  }

  /** The largest or smallest elements with their places. */
  private Optional<Bound> places(HloInstruction instruction, List<Bound> operands) {
    var dtype = Elementwise.dtype(operands.getFirst());
    var largest = applied(instruction).flatMap(by -> Orders.largest(by, dtype));
    var dim = instruction.attributes().integer("dimensions");
    if (largest.isEmpty()
        || dim.isEmpty()
        || !(instruction.shape() instanceof HloShape.Tuple(ImmutableList<HloShape> shapes))
        || shapes.size() != 2
        || !(shapes.getLast() instanceof Array second)
        || !(operands.get(2) instanceof Bound.Splat(Arg.Literal start, Array _))
        || !Reductions.isNeutral(largest.get() ? "maximum" : "minimum", dtype, start)) {
      return Optional.empty();
    }
    var name = instruction.name();
    var array = emitter.value(operands.getFirst(), name + ".operand");
    var named =
        emitter.op(
            name + ".at",
            largest.get() ? "aten::argmax" : "aten::argmin",
            new Arg.Ref(array),
            new Arg.Int(dim.get()),
            new Arg.Bool(true));
    var parts = ImmutableList.<Bound>builder();
    for (int i = 0; i < 2; i++) {
      var picked =
          gathered(
              name + ".kept" + i,
              emitter.value(operands.get(i), name + ".array" + i),
              dim.get(),
              named);
      parts.add(
          new Bound.Tensor(
              emitter.op(
                  name + "." + i,
                  "aten::squeeze.dim",
                  new Arg.Ref(picked),
                  new Arg.Int(dim.get()))));
    }
    return second.exact() ? Optional.of(new Bound.Tuple(parts.build())) : Optional.empty();
  }

  /** A reduction that starts with something other than what leaves each element as it is. */
  private Optional<Bound> started(HloInstruction instruction, List<Bound> operands) {
    var how = applied(instruction).flatMap(Collectives::reduction);
    if (operands.size() != 2
        || how.isEmpty()
        || !(instruction.shape() instanceof Array shape)
        || !Elementwise.dtype(operands.getFirst()).equals(shape.dtype())
        || shape.dtype() == DType.BOOL) {
      return Optional.empty();
    }
    var name = instruction.name();
    var array = ref(operands.getFirst(), name + ".operand");
    var dims = Arg.Seq.of(instruction.attributes().integers("dimensions").toArray());
    var keep = new Arg.Bool(false);
    Optional<Value> reduced =
        dims.items().isEmpty()
            ? Optional.empty()
            : switch (how.get()) {
              case "add" ->
                  Optional.of(
                      emitter.op(
                          name + ".sum",
                          "aten::sum.dim_IntList",
                          array,
                          dims,
                          keep,
                          new Arg.Dtype(shape.dtype())));
              case "maximum" ->
                  Optional.of(emitter.op(name + ".max", "aten::amax", array, dims, keep));
              case "minimum" ->
                  Optional.of(emitter.op(name + ".min", "aten::amin", array, dims, keep));
              default -> Optional.empty();
            };
    return reduced.map(
        value ->
            new Bound.Tensor(
                emitter.op(
                    name,
                    switch (how.get()) {
                      case "add" -> "aten::add.Tensor";
                      case "maximum" -> "aten::maximum";
                      default -> "aten::minimum";
                    },
                    new Arg.Ref(value),
                    ref(operands.getLast(), name + ".start"))));
  }

  /** Sums of all elements up to each one, or from each one on. */
  private Optional<Value> running(HloInstruction instruction, List<Bound> operands, Array shape) {
    var window = WINDOW.matcher(instruction.attributes().text("window").orElse(""));
    boolean sums =
        applied(instruction).flatMap(Collectives::reduction).filter("add"::equals).isPresent();
    if (!sums
        || operands.size() != 2
        || !(operands.getFirst() instanceof Bound.Tensor(Value array))
        || !(operands.getLast() instanceof Bound.Splat(Arg.Literal start, Array _))
        || !Reductions.isNeutral("add", shape.dtype(), start)
        || !array.tensor().sizes().equals(shape.tensor().sizes())
        || !window.find()
        || window.group(2) == null
        || instruction.attributes().text("window").orElse("").contains("stride")
        || instruction.attributes().text("window").orElse("").contains("dilate")) {
      return Optional.empty();
    }
    var sizes = window.group(1).split("x");
    var pads = window.group(2).split("x");
    int along = -1;
    boolean backward = false;
    for (int dim = 0; dim < sizes.length; dim++) {
      long size = array.tensor().size(dim);
      boolean before = pads[dim].equals((size - 1) + "_0");
      boolean after = pads[dim].equals("0_" + (size - 1));
      if (sizes[dim].equals("1") && pads[dim].equals("0_0")) {
        continue;
      }
      if (along >= 0 || !sizes[dim].equals(Long.toString(size)) || !before && !after) {
        return Optional.empty();
      }
      along = dim;
      backward = after;
    }
    if (along < 0) {
      return Optional.empty();
    }
    var name = instruction.name();
    var turned = backward ? flipped(name + ".turned", array, along) : array;
    var sum =
        emitter.op(
            name,
            "aten::cumsum",
            new Arg.Ref(turned),
            new Arg.Int(along),
            new Arg.Dtype(shape.dtype()));
    return Optional.of(backward ? flipped(name + ".back", sum, along) : sum);
  }

  private Value flipped(String name, Value value, int dim) {
    return emitter.op(name, "aten::flip", new Arg.Ref(value), Arg.Seq.of(LongStream.of(dim)));
  }

  private Arg ref(Bound bound, String name) {
    return new Arg.Ref(emitter.value(bound, name));
  }
}
