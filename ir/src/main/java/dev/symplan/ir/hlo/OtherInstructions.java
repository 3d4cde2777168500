package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.Iterator;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.IntStream;

/** Makes the ops {@code hlo::NAME} of instructions that no op of PyTorch stands for. */
final class OtherInstructions {
  private final GraphEmitter emitter;

  OtherInstructions(GraphEmitter emitter) {
    this.emitter = emitter;
  }

  /** {@return the result of an instruction that no op of PyTorch stands for} */
  Bound read(HloInstruction instruction, List<Bound> operands) {
    var values = flat(instruction, operands);
    return switch (instruction.opcode()) {
      case "custom-call" -> customCall(instruction, values);
      case "dynamic-update-slice" -> updating(instruction, "dynamic_update_slice", values, 0, 0);
      case "scatter" ->
          instruction.shape() instanceof Array && values.size() == 3
              ? updating(instruction, "updating_scatter", values, 0, 0)
              : plain(instruction, "scatter", values, 0);
      default -> {
        var name = instruction.opcode().replace('-', '_');
        if (emitter.find("hlo::" + name).isEmpty()) {
          throw emitter.failure(
              DiagnosticCode.UNKNOWN_OP,
              "instruction '%s' is not supported".formatted(instruction.opcode()),
              "'symplan ops hlo' lists those that can be planned");
        }
        yield plain(instruction, name, values, flops(instruction, values));
      }
    };
  }

  /**
   * {@return the same bytes as other elements}
   *
   * @param from how the module says that the operand lies, which a view of it may not do
   */
  Bound bitcast(HloInstruction instruction, Value operand, Array from) {
    if (!(instruction.shape() instanceof Array shape)) {
      throw new IllegalArgumentException("gives one array");
    }
    var name = instruction.name();
    var type = shape.tensor();
    var whole = from.exact() ? emitter.laidOut(operand, from, name + ".packed") : operand;
    if (type.bytes() != whole.tensor().bytes()) {
      throw new IllegalArgumentException(
          "%s bytes are not %s".formatted(whole.tensor().bytes(), type.bytes()));
    }
    var same = emitter.reading() == Reading.OPENED ? reinterpreted(name, whole, type) : whole;
    if (type.dtype() == same.tensor().dtype()) {
      return new Bound.Tensor(
          emitter.op(
              name,
              "aten::as_strided",
              new Arg.Ref(same),
              GraphEmitter.integers(type.sizes()),
              GraphEmitter.integers(type.strides())));
    }
    if (emitter.reading() == Reading.OPENED) {
      throw emitter.failure(
          DiagnosticCode.UNSUPPORTED, "no op of PyTorch computes '%s'".formatted(name), "");
    }
    return new Bound.Tensor(
        emitter.op(
            name,
            "hlo::bitcast",
            new Arg.Ref(whole),
            new Arg.Seq(ImmutableList.of(new Arg.Str(type.toString())))));
  }

  /** Reads the condition of a loop, which only XLA can run. */
  void condition(HloInstruction loop, Bound test, HloShape shape) {
    var reader =
        new HloInstruction(
            loop.name() + ".condition",
            shape,
            loop.opcode(),
            loop.operands(),
            "",
            HloAttributes.NONE,
            loop.span());
    plain(reader, "while_condition", flat(reader, List.of(test)), 0);
  }

  private Value reinterpreted(String name, Value value, TensorType type) {
    return value.tensor().dtype().bytes() == type.dtype().bytes()
            && value.tensor().dtype() != type.dtype()
        ? emitter.op(
            name + ".bits", "aten::view.dtype", new Arg.Ref(value), new Arg.Dtype(type.dtype()))
        : value;
  }

  /**
   * {@return the values that a loop carries from one round to the next; only their types are known}
   *
   * @param rounds how many there are, if the module says so
   */
  Bound carried(HloInstruction loop, Bound bound, OptionalLong rounds) {
    if (bound instanceof Bound.Tuple(ImmutableList<Bound> parts)) {
      return new Bound.Tuple(
          parts.stream()
              .map(part -> carried(loop, part, rounds))
              .collect(ImmutableList.toImmutableList()));
    }
    return bound instanceof Bound.Nothing
        ? bound
        : new Bound.Tensor(
            emitter.carried(
                loop,
                emitter.value(bound, loop.name() + ".start"),
                rounds.isPresent() ? "rounds=" + rounds.getAsLong() : "rounds=?"));
  }

  /**
   * {@return the result of an op {@code hlo::NAME} that may take the memory of an operand}
   *
   * @param self which operand
   */
  Bound updating(
      HloInstruction instruction, String op, List<Value> values, int self, double flops) {
    if (self >= values.size()) {
      throw new IllegalArgumentException("operand %s does not exist".formatted(self));
    }
    var others =
        IntStream.range(0, values.size()).filter(i -> i != self).mapToObj(values::get).toList();
    var args = List.<Arg>of(new Arg.Ref(values.get(self)), GraphEmitter.refs(others));
    return bind(instruction, emitter.hlo(instruction, op, args, instruction.shape(), flops));
  }

  /** {@return the result of an op {@code hlo::NAME}, in memory of its own} */
  Bound plain(HloInstruction instruction, String op, List<Value> values, double flops) {
    return bind(
        instruction,
        emitter.hlo(
            instruction, op, List.of(GraphEmitter.refs(values)), instruction.shape(), flops));
  }

  private Bound customCall(HloInstruction instruction, List<Value> values) {
    var attributes = instruction.attributes();
    if (attributes.flag("custom_call_has_side_effect")) {
      return plain(instruction, "custom_call_with_side_effect", values, 0);
    }
    var aliases = attributes.integers("output_to_operand_aliasing");
    boolean whole =
        attributes
            .text("output_to_operand_aliasing")
            .orElse("")
            .replace(" ", "")
            .startsWith("{{}:(");
    return whole && aliases.length() == 1 && isSelf(instruction, values, aliases)
        ? updating(instruction, "updating_custom_call", values, (int) aliases.get(0), 0)
        : plain(instruction, "custom_call", values, gemmFlops(instruction, values));
  }

  private static boolean isSelf(
      HloInstruction instruction, List<Value> values, ImmutableLongArray aliases) {
    return aliases.get(0) >= 0
        && aliases.get(0) < values.size()
        && instruction.shape() instanceof Array;
  }

  /** Of a product of cuBLAS: it contracts what the sizes of operands and result leave over. */
  private static double gemmFlops(HloInstruction instruction, List<Value> values) {
    var target = instruction.attributes().string("custom_call_target");
    var result = instruction.shape().arrays().findFirst();
    if (!target.startsWith("__cublas$") || values.size() < 2 || result.isEmpty()) {
      return 0;
    }
    double lhs = values.getFirst().tensor().numel();
    double rhs = values.get(1).tensor().numel();
    double out = result.get().tensor().numel();
    double batch = 1;
    var given = instruction.attributes().text("backend_config").orElse("");
    int at = given.indexOf("\"lhs_batch_dimensions\":[");
    if (at >= 0) {
      int end = given.indexOf(']', at);
      for (long dim : HloAttributes.integersIn(given.substring(at, Math.max(at, end))).toArray()) {
        var sizes = values.getFirst().tensor().sizes();
        batch *= dim >= 0 && dim < sizes.length() ? sizes.get((int) dim) : 1;
      }
    }
    return out == 0 ? 0 : 2 * Math.sqrt(lhs * rhs * out / batch);
  }

  private Bound bind(HloInstruction instruction, ImmutableList<Value> values) {
    var iterator = values.iterator();
    return bind(instruction.shape(), iterator);
  }

  private static Bound bind(HloShape shape, Iterator<Value> values) {
    return switch (shape) {
      case Array _ -> new Bound.Tensor(values.next());
      case HloShape.Tuple(ImmutableList<HloShape> parts) ->
          new Bound.Tuple(
              parts.stream()
                  .map(part -> bind(part, values))
                  .collect(ImmutableList.toImmutableList()));
      case HloShape.Token _ -> Bound.Nothing.NOTHING;
    };
  }

  /** {@return all arrays among some operands} */
  ImmutableList<Value> flat(HloInstruction instruction, List<Bound> operands) {
    var values = ImmutableList.<Value>builder();
    for (int i = 0; i < operands.size(); i++) {
      flatten(instruction.name() + "." + i, operands.get(i), values);
    }
    return values.build();
  }

  private void flatten(String name, Bound bound, ImmutableList.Builder<Value> to) {
    switch (bound) {
      case Bound.Tuple(ImmutableList<Bound> parts) ->
          parts.forEach(part -> flatten(name, part, to));
      case Bound.Nothing _ -> {}
      case Bound.Tensor _,
          Bound.Splat _,
          Bound.ByRank _,
          Bound.Table _,
          Bound.Hosted _,
          Bound.Pending _ ->
          to.add(emitter.value(bound, name));
    }
  }

  private double flops(HloInstruction instruction, List<Value> values) {
    return instruction.opcode().equals("dot")
            && !values.isEmpty()
            && instruction.shape() instanceof Array result
        ? Products.flops(
            instruction,
            new Array("", values.getFirst().tensor(), true, ImmutableIntArray.of(), 0),
            result)
        : 0;
  }
}
