package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Makes ops of the instructions of a computation, and of those that it calls. */
final class ComputationReader {
  /** Deepest nesting of calls. */
  private static final int MAX_DEPTH = 100;

  /** Instructions that run computations as often as only a run knows. */
  private static final ImmutableMap<String, String> CONTROL =
      ImmutableMap.of("while", "a loop", "conditional", "a branch");

  private final HloModule module;
  private final GraphEmitter emitter;
  private final Collectives collectives;
  private final Fusions fusions;
  private final Views views;
  private final Elementwise elementwise;
  private final Products products;
  private final Reductions reductions;
  private int depth;

  ComputationReader(HloModule module, GraphEmitter emitter, Groups groups) {
    this.module = module;
    this.emitter = emitter;
    this.collectives = new Collectives(emitter, groups, module.computations());
    this.fusions = new Fusions(module.computations());
    this.views = new Views(emitter);
    this.elementwise = new Elementwise(emitter);
    this.products = new Products(emitter);
    this.reductions = new Reductions(emitter);
  }

  /**
   * {@return what a computation gives}
   *
   * @param arguments its parameters
   */
  Bound read(HloComputation computation, List<Bound> arguments) {
    if (depth == 0 && fusions.size(computation) > GraphEmitter.MAX_OPS) {
      throw emitter.tooLarge();
    }
    return new Frame(computation).read(arguments);
  }

  private final class Frame {
    private final HloComputation computation;
    private final Map<String, Bound> bound = new HashMap<>();

    /** The last instruction that reads each one. */
    private final Map<String, HloInstruction> lastUsers = new HashMap<>();

    Frame(HloComputation computation) {
      this.computation = computation;
      for (var instruction : computation.instructions()) {
        instruction.operands().forEach(operand -> lastUsers.put(operand, instruction));
      }
    }

    Bound read(List<Bound> arguments) {
      if (++depth > MAX_DEPTH) {
        throw emitter.failure(
            DiagnosticCode.TOO_LARGE,
            "computations call each other more than %s deep".formatted(MAX_DEPTH),
            "does '%s' call itself?".formatted(computation.name()));
      }
      for (var instruction : computation.instructions()) {
        emitter.at(instruction);
        bound.put(instruction.name(), instruction(instruction, arguments));
      }
      depth--;
      emitter.at(computation.root());
      return get(computation.root().name());
    }

    private Bound get(String operand) {
      int sign = operand.indexOf('#');
      @Nullable Bound found = bound.get(sign < 0 ? operand : operand.substring(0, sign));
      if (found == null) {
        throw new IllegalStateException(operand + " was checked when it was read");
      }
      while (sign >= 0) {
        int next = operand.indexOf('#', sign + 1);
        found =
            part(found, operand.substring(sign + 1, next < 0 ? operand.length() : next), operand);
        sign = next;
      }
      return found;
    }

    private Bound part(Bound of, String index, String operand) {
      int at = SourceTables.number(index).orElse(-1);
      if (of instanceof Bound.Tuple(ImmutableList<Bound> parts) && at >= 0 && at < parts.size()) {
        return parts.get(at);
      }
      throw wrong("'%s' has no part %s".formatted(operand, index));
    }

    private Bound instruction(HloInstruction instruction, List<Bound> arguments) {
      var opcode = instruction.opcode();
      if (CONTROL.containsKey(opcode)) {
        throw emitter.failure(
            DiagnosticCode.UNSUPPORTED,
            "'%s' is %s ('%s'), which is not planned"
                .formatted(instruction.name(), CONTROL.get(opcode), opcode),
            opcode.equals("while")
                ? "unroll it: jax.lax.scan(…, unroll=True), or a Python loop over the layers"
                : "choose the branch when the program is traced: a Python if, not jax.lax.cond");
      }
      if (Collectives.UNSUPPORTED.contains(opcode)) {
        throw emitter.failure(
            DiagnosticCode.UNSUPPORTED,
            "'%s' is a %s, which is not planned".formatted(instruction.name(), opcode),
            "collectives that are: " + String.join(", ", Collectives.OPCODES));
      }
      try {
        return known(instruction, arguments);
      } catch (CompileException e) {
        throw e;
      } catch (IllegalArgumentException | ArithmeticException e) {
        throw wrong("%s: %s".formatted(opcode, e.getMessage()));
      }
    }

    private Bound known(HloInstruction instruction, List<Bound> arguments) {
      var operands = instruction.operands().stream().map(this::get).toList();
      var opcode = instruction.opcode();
      return switch (opcode) {
        case "parameter" -> parameter(instruction, arguments);
        case "constant" -> constant(instruction);
        case "tuple" -> new Bound.Tuple(ImmutableList.copyOf(operands));
        case "get-tuple-element" ->
            part(
                only(operands),
                instruction.attributes().text("index").orElse(""),
                instruction.operands().getFirst());
        case "after-all" -> Bound.Nothing.NOTHING;
        case "opt-barrier", "optimization-barrier" -> only(operands);
        case "add-dependency" -> operands.getFirst();
        case "call" -> called(instruction, operands);
        case "async-start" -> asyncStart(instruction, operands);
        case "async-update" -> only(operands);
        case "async-done", "all-reduce-done", "all-gather-done" ->
            done(only(operands), instruction.shape());
        case "all-reduce-start" ->
            collectives.start(
                renamed(instruction), tensors(instruction, operands), instruction.shape());
        case "all-gather-start" ->
            collectives.start(
                renamed(instruction), tensors(instruction, operands), lastPart(instruction));
        case "copy-start" -> only(operands);
        case "copy-done" -> copied(instruction, only(operands));
        case "fusion" -> fusion(instruction, operands);
        default ->
            Collectives.OPCODES.contains(opcode)
                ? collectives.run(instruction, tensors(instruction, operands), instruction.shape())
                : array(instruction, operands);
      };
    }

    private Bound parameter(HloInstruction instruction, List<Bound> arguments) {
      int number = SourceTables.number(instruction.literal()).orElse(-1);
      if (number < 0 || number >= arguments.size()) {
        throw wrong("there is no argument %s".formatted(instruction.literal()));
      }
      return arguments.get(number);
    }

    private Bound constant(HloInstruction instruction) {
      if (!(instruction.shape() instanceof Array shape)) {
        return Bound.Nothing.NOTHING;
      }
      var number = Literals.number(instruction.literal(), shape);
      if (shape.exact() && number.isPresent()) {
        return new Bound.Splat(number.get(), shape);
      }
      return bind(
          instruction,
          emitter.hlo(instruction, "constant", List.of(new Arg.Seq(ImmutableList.of())), shape, 0));
    }

    private Bound called(HloInstruction instruction, List<Bound> operands) {
      var given = ComputationReader.this.read(callee(instruction), operands);
      emitter.at(instruction);
      return given;
    }

    private HloComputation callee(HloInstruction instruction) {
      var called = fusions.called(instruction);
      if (called.size() != 1) {
        throw emitter.failure(
            DiagnosticCode.UNKNOWN_VALUE,
            "'%s' calls %s computations of the module".formatted(instruction.name(), called.size()),
            "the text seems to be cut: dump the whole module");
      }
      return called.iterator().next();
    }

    /** Starts a computation of nothing but a collective; others are over when they have started. */
    private Bound asyncStart(HloInstruction instruction, List<Bound> operands) {
      var callee = callee(instruction);
      var root = callee.root();
      boolean alone =
          Collectives.OPCODES.contains(root.opcode())
              && callee.instructions().size() == callee.parameters().size() + 1;
      if (!alone) {
        return called(instruction, operands);
      }
      var order =
          root.operands().stream()
              .map(name -> numberOf(callee, name))
              .map(
                  number -> number < operands.size() ? operands.get(number) : Bound.Nothing.NOTHING)
              .toList();
      var named =
          new HloInstruction(
              instruction.name(),
              root.shape(),
              root.opcode(),
              root.operands(),
              "",
              root.attributes(),
              instruction.span());
      return collectives.start(named, tensors(instruction, order), root.shape());
    }

    private static int numberOf(HloComputation callee, String name) {
      return callee.parameters().stream()
          .filter(parameter -> parameter.name().equals(name))
          .findFirst()
          .map(parameter -> Integer.parseInt(parameter.literal()))
          .orElse(Integer.MAX_VALUE);
    }

    private Bound done(Bound started, HloShape shape) {
      return started instanceof Bound.Pending pending ? collectives.done(pending, shape) : started;
    }

    /** {@code all-reduce-start} is an {@code all-reduce} for what follows. */
    private static HloInstruction renamed(HloInstruction start) {
      return new HloInstruction(
          start.name(),
          start.shape(),
          start.opcode().substring(0, start.opcode().length() - "-start".length()),
          start.operands(),
          start.literal(),
          start.attributes(),
          start.span());
    }

    /** The results among what an {@code all-gather-start} gives, behind its operands. */
    private HloShape lastPart(HloInstruction instruction) {
      if (instruction.shape() instanceof HloShape.Tuple(ImmutableList<HloShape> parts)
          && !parts.isEmpty()) {
        return parts.getLast();
      }
      throw wrong("all-gather-start gives its operands and results");
    }

    private Bound copied(HloInstruction instruction, Bound operand) {
      var value = emitter.value(operand, instruction.name());
      return instruction.shape() instanceof Array shape && shape.exact()
          ? new Bound.Tensor(
              emitter.fresh(instruction.name(), shape, "aten::clone", new Arg.Ref(value)))
          : operand;
    }

    private Bound fusion(HloInstruction instruction, List<Bound> operands) {
      var callee = callee(instruction);
      if (fusions.communicates(callee)) {
        return called(instruction, operands);
      }
      var values = flat(instruction, operands);
      double flops = fusions.flops(callee);
      var self = fusions.replaceable(callee, candidates(instruction, operands));
      return self.isPresent()
          ? updating(instruction, "updating_fusion", values, self.getAsInt(), flops)
          : plain(instruction, "fusion", values, flops);
    }

    /** The operands that this instruction reads last, and once. */
    private Set<Integer> candidates(HloInstruction instruction, List<Bound> operands) {
      var found = new HashSet<Integer>();
      var names = instruction.operands();
      for (int i = 0; i < names.size(); i++) {
        var name = names.get(i);
        if (lastUsers.get(name) == instruction
            && names.indexOf(name) == names.lastIndexOf(name)
            && operands.get(i) instanceof Bound.Tensor) {
          found.add(i);
        }
      }
      // A parameter's number is the position of a value only if nothing is a tuple.
      return operands.stream()
              .allMatch(
                  operand -> operand instanceof Bound.Tensor || operand instanceof Bound.Splat)
          ? found
          : Set.of();
    }

    private Bound updating(
        HloInstruction instruction, String op, List<Value> values, int self, double flops) {
      var others =
          IntStream.range(0, values.size()).filter(i -> i != self).mapToObj(values::get).toList();
      var args = List.<Arg>of(new Arg.Ref(values.get(self)), GraphEmitter.refs(others));
      return bind(instruction, emitter.hlo(instruction, op, args, instruction.shape(), flops));
    }

    private Bound plain(HloInstruction instruction, String op, List<Value> values, double flops) {
      return bind(
          instruction,
          emitter.hlo(
              instruction, op, List.of(GraphEmitter.refs(values)), instruction.shape(), flops));
    }

    private Bound array(HloInstruction instruction, List<Bound> operands) {
      if (instruction.shape() instanceof Array shape
          && shape.exact()
          && operands.stream().allMatch(Elementwise::isExact)) {
        var known = translated(instruction, operands, shape);
        if (known.isPresent()) {
          return known.get();
        }
      }
      var values = flat(instruction, operands);
      return switch (instruction.opcode()) {
        case "bitcast" -> bitcast(instruction, values);
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
                "there is no instruction '%s' here".formatted(instruction.opcode()),
                "'symplan ops hlo' lists those that can be planned");
          }
          yield plain(instruction, name, values, flops(instruction, values));
        }
      };
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

    /** The ops of PyTorch that compute the same. */
    private Optional<Bound> translated(
        HloInstruction instruction, List<Bound> operands, Array shape) {
      var name = instruction.name();
      Optional<Value> value =
          switch (instruction.opcode()) {
            case "broadcast" -> {
              if (only(operands) instanceof Bound.Splat(Arg.Literal number, Array _)) {
                // What it is a broadcast of does not matter any more.
                yield Optional.empty();
              }
              yield views.broadcast(instruction, emitter.value(only(operands), name), shape);
            }
            case "reshape" ->
                views.reshape(instruction, emitter.value(only(operands), name), shape);
            case "transpose" ->
                views.transpose(instruction, emitter.value(only(operands), name), shape);
            case "slice" -> views.slice(instruction, emitter.value(only(operands), name), shape);
            case "dynamic-slice" -> views.dynamicSlice(instruction, operands, shape);
            case "concatenate" ->
                views.concatenate(instruction, tensors(instruction, operands), shape);
            case "pad" -> views.pad(instruction, operands, shape);
            case "iota" -> views.iota(instruction, shape);
            case "dot" ->
                operands.size() == 2
                    ? products.read(
                        instruction,
                        emitter.value(operands.getFirst(), name + ".lhs"),
                        emitter.value(operands.getLast(), name + ".rhs"),
                        shape)
                    : Optional.empty();
            case "reduce" -> reduce(instruction, operands, shape);
            default -> elementwise.read(instruction, operands, shape);
          };
      if (value.isEmpty()
          && (instruction.opcode().equals("broadcast") || instruction.opcode().equals("reshape"))
          && operands.getFirst() instanceof Bound.Splat(Arg.Literal number, Array _)) {
        return Optional.of(new Bound.Splat(number, shape));
      }
      return value.map(made -> new Bound.Tensor(emitter.conform(made, shape, name + ".copy")));
    }

    private Optional<Value> reduce(HloInstruction instruction, List<Bound> operands, Array shape) {
      var names = instruction.attributes().names("to_apply");
      var opcode =
          names.size() == 1
              ? Collectives.reduction(module.computations().get(names.getFirst()))
              : Optional.<String>empty();
      return operands.size() == 2 && opcode.isPresent()
          ? reductions.read(
              instruction,
              opcode.get(),
              emitter.value(operands.getFirst(), instruction.name() + ".operand"),
              operands.getLast(),
              shape)
          : Optional.empty();
    }

    private Bound bitcast(HloInstruction instruction, List<Value> values) {
      if (values.size() != 1 || !(instruction.shape() instanceof Array shape)) {
        throw wrong("a bitcast takes one array and gives one");
      }
      var whole = values.getFirst();
      var name = instruction.name();
      var type = shape.tensor();
      if (!whole.tensor().isDense()) {
        whole = emitter.op(name + ".packed", "aten::contiguous", new Arg.Ref(whole));
      }
      if (type.bytes() != whole.tensor().bytes()) {
        throw wrong(
            "a bitcast of %s bytes gives %s".formatted(whole.tensor().bytes(), type.bytes()));
      }
      if (type.dtype() == whole.tensor().dtype()) {
        return new Bound.Tensor(
            emitter.op(
                name,
                "aten::as_strided",
                new Arg.Ref(whole),
                GraphEmitter.integers(type.sizes()),
                GraphEmitter.integers(type.strides())));
      }
      return new Bound.Tensor(
          emitter.op(
              name,
              "hlo::bitcast",
              new Arg.Ref(whole),
              new Arg.Seq(ImmutableList.of(new Arg.Str(type.toString())))));
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
        for (long dim :
            HloAttributes.integersIn(given.substring(at, Math.max(at, end))).toArray()) {
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

    private static Bound bind(HloShape shape, java.util.Iterator<Value> values) {
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

    private ImmutableList<Value> flat(HloInstruction instruction, List<Bound> operands) {
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
        case Bound.Tensor _, Bound.Splat _, Bound.Pending _ -> to.add(emitter.value(bound, name));
      }
    }

    private List<Value> tensors(HloInstruction instruction, List<Bound> operands) {
      return operands.stream().map(operand -> emitter.value(operand, instruction.name())).toList();
    }

    private Bound only(List<Bound> operands) {
      if (operands.size() != 1) {
        throw wrong("this instruction takes one operand, not %s".formatted(operands.size()));
      }
      return operands.getFirst();
    }

    private CompileException wrong(String message) {
      return emitter.failure(DiagnosticCode.TYPE_MISMATCH, message, "");
    }
  }
}
