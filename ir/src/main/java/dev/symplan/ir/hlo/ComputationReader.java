package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Makes ops of the instructions of a computation, and of those that it calls. */
final class ComputationReader {
  /** Deepest nesting of calls. */
  private static final int MAX_DEPTH = 100;

  private final GraphEmitter emitter;
  private final Collectives collectives;
  private final Fusions fusions;
  private final Translations translations;
  private final Meanings meanings;
  private final OtherInstructions others;
  private final HostArrays hosts;
  private final Branches branches;
  private final Devices devices;
  private final ImmutableMap<String, HloComputation> computations;
  private final boolean hasOpaque;
  private int depth;

  /** The instructions that were read, those of loops in each round. */
  private long instructions;

  ComputationReader(
      HloModule module, GraphEmitter emitter, HostArrays hosts, Groups groups, Devices devices) {
    this.hosts = hosts;
    this.emitter = emitter;
    this.devices = devices;
    this.collectives = new Collectives(emitter, groups, module.computations());
    this.fusions = new Fusions(module.computations());
    this.translations = new Translations(emitter, module.computations());
    this.meanings = new Meanings(emitter, module.computations());
    this.others = new OtherInstructions(emitter);
    this.branches = new Branches(emitter, module.computations());
    this.computations = module.computations();
    this.hasOpaque = module.hasOpaque();
  }

  /**
   * {@return the result of a computation}
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
    private final Scope scope;

    /** The instructions that have started others than collectives. */
    private final Set<String> started = new HashSet<>();

    Frame(HloComputation computation) {
      this.computation = computation;
      this.scope = new Scope(emitter, computation);
    }

    Bound read(List<Bound> arguments) {
      if (++depth > MAX_DEPTH) {
        throw emitter.failure(
            DiagnosticCode.TOO_LARGE,
            "computations call each other more than %s deep".formatted(MAX_DEPTH),
            "does '%s' call itself?".formatted(computation.name()));
      }
      instructions += computation.instructions().size();
      if (instructions > GraphEmitter.MAX_OPS) {
        throw emitter.tooLarge();
      }
      for (var instruction : computation.instructions()) {
        emitter.at(instruction);
        scope.put(instruction, instruction(instruction, arguments));
      }
      depth--;
      emitter.at(computation.root());
      return scope.get(computation.root().name());
    }

    private Bound instruction(HloInstruction instruction, List<Bound> arguments) {
      var opcode = instruction.opcode();
      if (Collectives.UNSUPPORTED.contains(opcode)) {
        throw emitter.failure(
            DiagnosticCode.UNSUPPORTED,
            "'%s' is a %s, which is not planned".formatted(instruction.name(), opcode),
            "collectives that are: " + String.join(", ", Collectives.OPCODES));
      }
      try {
        checkCollective(instruction);
        return known(instruction, arguments);
      } catch (CompileException e) {
        throw e;
      } catch (IllegalArgumentException | ArithmeticException e) {
        throw emitter.wrong("%s: %s".formatted(opcode, e.getMessage()));
      }
    }

    private Bound known(HloInstruction instruction, List<Bound> arguments) {
      var operands = new ArrayList<Bound>(instruction.operands().size());
      for (var operand : instruction.operands()) {
        operands.add(scope.get(operand));
      }
      return placed(instruction, operands, arguments);
    }

    /** The result of an instruction, in the memory in which it is to be. */
    private Bound placed(HloInstruction instruction, List<Bound> operands, List<Bound> arguments) {
      var given =
          hosts
              .read(instruction, operands)
              .or(() -> devices.fold(instruction, operands))
              .orElseGet(
                  () -> added(instruction, hosts.readable(instruction, operands), arguments));
      return hosts.result(instruction, given);
    }

    private Bound added(HloInstruction instruction, List<Bound> operands, List<Bound> arguments) {
      var opcode = instruction.opcode();
      return switch (opcode) {
        case "parameter" -> parameter(instruction, arguments);
        case "constant" -> constant(instruction);
        case "tuple" -> new Bound.Tuple(ImmutableList.copyOf(operands));
        case "get-tuple-element" ->
            scope.part(
                only(operands),
                instruction.attributes().text("index").orElse(""),
                instruction.operands().getFirst());
        case "after-all" -> Bound.Nothing.NOTHING;
        case "opt-barrier", "optimization-barrier" -> only(operands);
        case "bitcast" -> bitcast(instruction, only(operands));
        case "add-dependency" -> only(operands.subList(0, Math.min(1, operands.size())));
        case "call" -> called(instruction, operands);
        case "while" -> loop(instruction, only(operands));
        case "conditional" -> conditional(instruction, operands);
        case "async-start" -> asyncStart(instruction, operands);
        case "async-update" -> only(operands);
        case "async-done", "fusion-done" -> done(only(operands), instruction.shape());
        case "all-reduce-start" ->
            collectives.start(
                Starts.started(instruction, instruction.shape()),
                tensors(instruction, operands),
                instruction.shape());
        case "fusion-start" -> fusionStart(instruction, operands);
        case "copy-start" -> only(operands);
        case "copy-done" -> copied(instruction, only(operands));
        case "fusion" -> fusion(instruction, operands);
        case "ragged-all-to-all" ->
            collectives.ragged(instruction, tensors(instruction, operands), instruction.shape());
        default -> {
          var base = Fusions.withoutPhase(opcode);
          if (!base.equals(opcode) && isStarted(instruction, base)) {
            yield opcode.endsWith("-start")
                ? started(instruction, operands)
                : done(only(operands), instruction.shape());
          }
          yield Collectives.OPCODES.contains(opcode)
              ? collectives.run(instruction, tensors(instruction, operands), instruction.shape())
              : Scalars.fold(instruction, operands)
                  .or(() -> devices.number(instruction))
                  .or(() -> translated(instruction, operands))
                  .orElseGet(() -> others.read(instruction, operands));
        }
      };
    }

    /** Whether an instruction starts another, or waits for one that was started. */
    private boolean isStarted(HloInstruction instruction, String base) {
      if (Collectives.OPCODES.contains(base)) {
        return true;
      }
      if (instruction.opcode().endsWith("-start")) {
        started.add(instruction.name());
        return true;
      }
      return instruction.operands().stream().anyMatch(started::contains);
    }

    /** Whole bytes along the only dimension are moved as they are. */
    private void checkCollective(HloInstruction instruction) {
      if (!hasOpaque || !Fusions.isCollective(instruction.opcode())) {
        return;
      }
      var base = Fusions.withoutPhase(instruction.opcode());
      boolean reduces = base.equals("all-reduce") || base.equals("reduce-scatter");
      instruction
          .shape()
          .arrays()
          .filter(array -> !array.exact() && (reduces || array.minorToMajor().length() != 1))
          .findFirst()
          .ifPresent(
              array -> {
                throw emitter.failure(
                    DiagnosticCode.UNSUPPORTED,
                    "'%s' is a collective of %s, whose elements no type of PyTorch has"
                        .formatted(instruction.name(), array.element()),
                    "collectives move such arrays if these have one dimension, and do not reduce"
                        + " them");
              });
    }

    private Optional<Bound> translated(HloInstruction instruction, List<Bound> operands) {
      // No op has the elements of packed arrays, and others that PyTorch does not have.
      return hasOpaque && scope.readsOpaque(instruction)
          ? Optional.empty()
          : translations
              .read(instruction, operands, instruction.shape())
              .or(() -> meanings(instruction, operands));
    }

    private Optional<Bound> meanings(HloInstruction instruction, List<Bound> operands) {
      return emitter.reading() == Reading.OPENED
          ? meanings.read(instruction, operands)
          : Optional.empty();
    }

    private Bound parameter(HloInstruction instruction, List<Bound> arguments) {
      int number = SourceTables.number(instruction.literal()).orElse(-1);
      if (number < 0 || number >= arguments.size()) {
        throw emitter.wrong("argument %s does not exist".formatted(instruction.literal()));
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
      var table =
          emitter.reading() == Reading.OPENED
              ? Tables.read(instruction.literal(), shape)
              : Optional.<Bound>empty();
      if (table.isPresent()) {
        return table.get();
      }
      return others.plain(instruction, "constant", List.of(), 0);
    }

    private Bound called(HloInstruction instruction, List<Bound> operands) {
      return called(instruction, callee(instruction), operands);
    }

    private Bound called(HloInstruction instruction, HloComputation callee, List<Bound> operands) {
      var given = ComputationReader.this.read(callee, operands);
      emitter.at(instruction);
      return given;
    }

    /** Its rounds, one after the other; two stand for a number that is not known, or large. */
    private Bound loop(HloInstruction instruction, Bound operand) {
      var condition = named(instruction, "condition");
      var body = named(instruction, "body");
      var rounds = Loops.rounds(instruction, condition, body, operand);
      boolean written = rounds.isPresent() && rounds.getAsLong() <= Loops.MAX_ROUNDS;
      var carried = written ? operand : hosts.readable(instruction, operand);
      if (!written) {
        hosts.enterLoop();
      }
      for (long round = 0; round < (written ? rounds.getAsLong() : 2); round++) {
        if (!written) {
          carried = others.carried(instruction, carried, rounds);
          var test = called(instruction, condition, List.of(carried));
          others.condition(instruction, test, condition.root().shape());
        }
        carried = called(instruction, body, List.of(carried));
      }
      if (written) {
        return carried;
      }
      hosts.leaveLoop();
      return others.carried(instruction, carried, rounds);
    }

    private HloComputation named(HloInstruction instruction, String attribute) {
      var names = instruction.attributes().names(attribute);
      @Nullable HloComputation found =
          names.size() == 1 ? computations.get(names.getFirst()) : null;
      if (found == null) {
        throw missing(instruction, names.size());
      }
      return found;
    }

    /** The branch that the module chooses; or all of them, of whose results a run picks. */
    private Bound conditional(HloInstruction instruction, List<Bound> operands) {
      var all = branches.of(instruction);
      if (all.isEmpty() || operands.size() != all.size() + 1) {
        throw missing(instruction, all.size());
      }
      var chosen = branches.chosen(operands.getFirst(), all.size());
      if (chosen.isPresent() && chosen.get() < all.size()) {
        return called(instruction, all.get(chosen.get()), List.of(operands.get(chosen.get() + 1)));
      }
      var results = new ArrayList<Bound>();
      for (int i = 0; i < all.size(); i++) {
        results.add(called(instruction, all.get(i), List.of(operands.get(i + 1))));
      }
      if (results.stream().distinct().count() > 1) {
        results.replaceAll(result -> hosts.readable(instruction, result));
      }
      return branches.picked(instruction, operands.getFirst(), results);
    }

    private CompileException missing(HloInstruction instruction, int found) {
      return emitter.failure(
          DiagnosticCode.UNKNOWN_VALUE,
          "'%s' calls %s computations of the module".formatted(instruction.name(), found),
          "the text seems to be truncated: dump the whole module");
    }

    private HloComputation callee(HloInstruction instruction) {
      var called = fusions.called(instruction);
      if (called.size() != 1) {
        throw missing(instruction, called.size());
      }
      return called.iterator().next();
    }

    /** Starts a computation of nothing but a collective; others are over when they have started. */
    private Bound asyncStart(HloInstruction instruction, List<Bound> operands) {
      var callee = callee(instruction);
      var root = callee.root();
      boolean alone =
          Collectives.OPCODES.contains(root.opcode())
              && !root.opcode().equals("ragged-all-to-all")
              && callee.instructions().size() == callee.parameters().size() + 1;
      if (!alone) {
        return called(instruction, operands);
      }
      var order =
          root.operands().stream()
              .map(name -> Starts.parameter(callee, name))
              .map(
                  number -> number < operands.size() ? operands.get(number) : Bound.Nothing.NOTHING)
              .toList();
      var named = Starts.root(instruction, callee);
      checkCollective(named);
      return collectives.start(named, tensors(instruction, order), root.shape());
    }

    private Bound done(Bound started, HloShape shape) {
      return started instanceof Bound.Pending pending ? collectives.done(pending, shape) : started;
    }

    private Bound started(HloInstruction instruction, List<Bound> operands) {
      var named = inner(instruction);
      return named.opcode().equals("ragged-all-to-all")
              || !Collectives.OPCODES.contains(named.opcode())
          ? placed(named, operands, List.of())
          : collectives.start(named, tensors(instruction, operands), named.shape());
    }

    /** A collective in a fusion of its own is started; other fusions are over when they have. */
    private Bound fusionStart(HloInstruction instruction, List<Bound> operands) {
      return fusions.communicates(callee(instruction))
          ? asyncStart(instruction, operands)
          : fusion(inner(instruction), operands);
    }

    /** The instruction that another starts, with its results only. */
    private HloInstruction inner(HloInstruction start) {
      return Starts.started(
          start,
          Starts.results(start)
              .orElseThrow(
                  () ->
                      emitter.wrong(
                          "%s gives its operands and results".formatted(start.opcode()))));
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
      if (emitter.reading() == Reading.OPENED
          || fusions.communicates(callee)
          || HostArrays.onlyMoves(instruction, callee, operands)) {
        return called(instruction, operands);
      }
      return step(
          instruction,
          operands.stream().map(operand -> hosts.readable(instruction, operand)).toList(),
          callee);
    }

    private Bound step(HloInstruction instruction, List<Bound> operands, HloComputation callee) {
      var values = others.flat(instruction, operands);
      double flops = fusions.flops(callee);
      var self = fusions.replaceable(callee, scope.readLast(instruction, operands));
      return self.isPresent()
          ? others.updating(instruction, "updating_fusion", values, self.getAsInt(), flops)
          : others.plain(instruction, "fusion", values, flops);
    }

    private Bound bitcast(HloInstruction instruction, Bound operand) {
      if (operand instanceof Bound.Splat splat
          && instruction.shape() instanceof Array shape
          && emitter.reading() == Reading.OPENED
          && splat.shape().dtype() == shape.dtype()
          && splat.shape().tensor().numel() == shape.tensor().numel()) {
        return new Bound.Splat(splat.number(), shape);
      }
      var value = emitter.value(operand, instruction.name() + ".operand");
      if (!(scope.shapeOf(instruction.operands().getFirst()) instanceof Array from)) {
        throw emitter.wrong("a bitcast takes one array");
      }
      return others.bitcast(instruction, value, from);
    }

    private List<Value> tensors(HloInstruction instruction, List<Bound> operands) {
      return operands.stream().map(operand -> emitter.value(operand, instruction.name())).toList();
    }

    private Bound only(List<Bound> operands) {
      if (operands.size() != 1) {
        throw emitter.wrong(
            "this instruction takes one operand, not %s".formatted(operands.size()));
      }
      return operands.getFirst();
    }
  }
}
