package dev.symplan.ir.hlo;

import static java.util.Objects.requireNonNull;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.hlo.Bound.Started;
import dev.symplan.ir.hlo.HloShape.Array;
import dev.symplan.ir.op.Permutation;
import dev.symplan.ir.op.ReduceOp;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Makes functional collectives of XLA's. These take a tensor along any dimension in any layout; a
 * functional one takes it row by row. So an operand is seen with its dimensions in the order in
 * which they lie in memory, and the result is seen in the old order again: both are views.
 */
final class Collectives {
  static final ImmutableSet<String> OPCODES =
      ImmutableSet.of(
          "all-reduce",
          "all-gather",
          "reduce-scatter",
          "all-to-all",
          "collective-permute",
          "collective-broadcast",
          "ragged-all-to-all");

  /** Collectives that have no functional form here. */
  static final ImmutableSet<String> UNSUPPORTED =
      ImmutableSet.of("send", "recv", "infeed", "outfeed");

  private static final ImmutableMap<String, ReduceOp> REDUCTIONS =
      ImmutableMap.of(
          "add",
          ReduceOp.SUM,
          "multiply",
          ReduceOp.PRODUCT,
          "minimum",
          ReduceOp.MIN,
          "maximum",
          ReduceOp.MAX,
          "and",
          ReduceOp.BAND,
          "or",
          ReduceOp.BOR,
          "xor",
          ReduceOp.BXOR);

  private static final String FUNCTIONAL = "_c10d_functional::";

  private final GraphEmitter emitter;
  private final Groups groups;
  private final ImmutableMap<String, HloComputation> computations;

  Collectives(
      GraphEmitter emitter, Groups groups, ImmutableMap<String, HloComputation> computations) {
    this.emitter = emitter;
    this.groups = groups;
    this.computations = computations;
  }

  /**
   * {@return the reduction that a computation of two numbers stands for, as XLA calls it; absent if
   * it is none}
   */
  static Optional<String> reduction(@Nullable HloComputation computation) {
    if (computation == null || computation.instructions().size() != 3) {
      return Optional.empty();
    }
    var root = computation.root();
    boolean ofParameters =
        root.operands().size() == 2
            && !root.operands().getFirst().equals(root.operands().getLast())
            && computation.parameters().size() == 2
            && REDUCTIONS.containsKey(root.opcode());
    return ofParameters ? Optional.of(root.opcode()) : Optional.empty();
  }

  /** {@return the collective, done} */
  Bound run(HloInstruction instruction, List<Value> operands, HloShape shape) {
    return done(start(instruction, operands, shape), shape);
  }

  /** {@return the results of a collective that was started} */
  Bound done(Bound.Pending pending, HloShape shape) {
    var parts = ImmutableList.<Bound>builder();
    Map<Value, Value> finished = new HashMap<>();
    for (var started : pending.results()) {
      var waited =
          started.part(
              emitter,
              finished.computeIfAbsent(
                  started.physical(),
                  value ->
                      emitter.op(
                          started.name() + ".wait",
                          FUNCTIONAL + "wait_tensor",
                          new Arg.Ref(value))));
      var order = order(started.shape());
      var sizes = started.shape().tensor().sizes();
      var whole =
          emitter.reshaped(
              waited,
              ImmutableLongArray.copyOf(order.stream().mapToLong(sizes::get)),
              started.name() + ".whole");
      var seen = emitter.permuted(whole, inverse(order), started.name() + ".view");
      parts.add(new Bound.Tensor(emitter.laidOut(seen, started.shape(), started.name() + ".copy")));
    }
    var all = parts.build();
    return shape instanceof HloShape.Tuple ? new Bound.Tuple(all) : all.getFirst();
  }

  /** {@return the output of a {@code ragged-all-to-all}} */
  Bound ragged(HloInstruction instruction, List<Value> operands, HloShape shape) {
    if (!(shape instanceof Array array)) {
      throw emitter.wrong("%s gives one array".formatted(instruction.opcode()));
    }
    return new RaggedExchange(emitter)
        .exchange(instruction, operands, array, group(instruction, true));
  }

  private ProcessGroup group(HloInstruction instruction, boolean ofPartitions) {
    try {
      return groups.of(instruction, ofPartitions);
    } catch (IllegalArgumentException e) {
      throw emitter.failure(
          DiagnosticCode.BAD_GROUP,
          String.valueOf(e.getMessage()),
          "groups are disjoint, of the same size, and of devices of the module");
    }
  }

  private Groups.Pairs pairs(HloInstruction instruction) {
    try {
      return groups.pairs(instruction);
    } catch (IllegalArgumentException e) {
      throw emitter.failure(
          DiagnosticCode.BAD_GROUP,
          String.valueOf(e.getMessage()),
          "each device of the module is at most once a source, and at most once a target");
    }
  }

  /** {@return the collective, started} */
  Bound.Pending start(HloInstruction instruction, List<Value> operands, HloShape shape) {
    var arrays = shape.arrays().toList();
    var opcode = instruction.opcode();
    boolean tupleExchange =
        opcode.equals("all-to-all") && !instruction.attributes().has("dimensions");
    if (operands.isEmpty() || arrays.size() != operands.size()) {
      throw emitter.wrong(
          "%s of %s operands gives %s results".formatted(opcode, operands.size(), arrays.size()));
    }
    boolean permutes = opcode.equals("collective-permute");
    if (permutes && instruction.attributes().has("slice_sizes")) {
      throw emitter.failure(
          DiagnosticCode.UNSUPPORTED,
          "collective-permute of slices into another array is not planned",
          "permute whole arrays, and slice before or update after");
    }
    var permutation = Permutation.NONE;
    ProcessGroup group;
    if (permutes) {
      var pairs = pairs(instruction);
      permutation = pairs.permutation();
      group = pairs.group();
    } else {
      group =
          group(instruction, opcode.equals("all-to-all") || opcode.equals("collective-broadcast"));
    }
    if (tupleExchange) {
      return exchanged(instruction, operands, arrays, group);
    }
    if (instruction.attributes().flag("has_dynamic_root")) {
      throw emitter.failure(
          DiagnosticCode.UNSUPPORTED,
          "collective-broadcast from a device that only a run knows is not planned",
          "broadcast from a device that is known when the program is traced");
    }
    if (opcode.equals("collective-broadcast")
        && group.members().stream().mapToInt(ImmutableIntArray::length).sum() != groups.world()) {
      throw emitter.failure(
          DiagnosticCode.BAD_GROUP,
          "collective-broadcast leaves out some devices, which get zeros",
          "name all devices of the module in its groups");
    }
    var started = ImmutableList.<Started>builder();
    for (int i = 0; i < operands.size(); i++) {
      var name = operands.size() == 1 ? instruction.name() : instruction.name() + "." + i;
      started.add(one(instruction, operands.get(i), arrays.get(i), group, permutation, name));
    }
    return new Bound.Pending(started.build());
  }

  private Started one(
      HloInstruction instruction,
      Value operand,
      Array shape,
      ProcessGroup group,
      Permutation permutation,
      String name) {
    if (operand.tensor().rank() != shape.minorToMajor().length()) {
      throw emitter.wrong("%s changes the number of dimensions".formatted(instruction.opcode()));
    }
    var order = order(shape);
    var seen = emitter.permuted(operand, order, name + ".operand");
    if (!seen.tensor().isContiguous()) {
      seen = emitter.op(name + ".packed", "aten::contiguous", new Arg.Ref(seen));
    }
    var opcode = instruction.opcode();
    if (opcode.equals("all-reduce")) {
      var reduced =
          emitter.op(
              name,
              FUNCTIONAL + "all_reduce",
              new Arg.Ref(seen),
              reduceOp(instruction, seen),
              new Arg.Str(group.name()));
      return Started.whole(reduced, shape, name);
    }
    if (opcode.equals("collective-broadcast")) {
      // The first device of each group is the source.
      var sent =
          emitter.op(
              name,
              FUNCTIONAL + "broadcast",
              new Arg.Ref(seen),
              new Arg.Int(0),
              new Arg.Str(group.name()));
      return Started.whole(sent, shape, name);
    }
    if (opcode.equals("collective-permute")) {
      var permuted =
          emitter.op(
              name,
              "symplan::collective_permute",
              new Arg.Ref(seen),
              permutation.arg(),
              new Arg.Str(group.name()));
      return Started.whole(permuted, shape, name);
    }
    long dim = instruction.attributes().integer("dimensions").orElse(-1L);
    int at =
        IntStream.range(0, order.length()).filter(i -> order.get(i) == dim).findFirst().orElse(-1);
    if (at < 0) {
      throw emitter.wrong("%s needs one of %s dimensions".formatted(opcode, order.length()));
    }
    var sizes = seen.tensor().sizes();
    boolean outermost = IntStream.range(0, at).allMatch(i -> sizes.get(i) == 1);
    return Started.whole(along(instruction, seen, group, name, at, outermost), shape, name);
  }

  /** Exchanges one operand with each device of the group. */
  private Bound.Pending exchanged(
      HloInstruction instruction, List<Value> operands, List<Array> arrays, ProcessGroup group) {
    var name = instruction.name();
    if (operands.size() != group.size()
        || arrays.stream().anyMatch(array -> !array.equals(arrays.getFirst()))) {
      throw emitter.wrong(
          "all-to-all of %s operands is among %s devices, or of several types"
              .formatted(operands.size(), group.size()));
    }
    var order = order(arrays.getFirst());
    var seen =
        operands.stream()
            .map(operand -> emitter.permuted(operand, order, name + ".operand"))
            .toList();
    var stacked =
        emitter.op(name + ".operands", "aten::stack", GraphEmitter.refs(seen), new Arg.Int(0));
    var sent =
        emitter.op(
            name,
            FUNCTIONAL + "all_to_all_single",
            new Arg.Ref(stacked),
            Arg.Seq.of(),
            Arg.Seq.of(),
            new Arg.Str(group.name()));
    return new Bound.Pending(
        IntStream.range(0, operands.size())
            .mapToObj(i -> new Started(sent, arrays.get(i), name + "." + i, OptionalInt.of(i)))
            .collect(ImmutableList.toImmutableList()));
  }

  /** Those that cut or join along a dimension. */
  private Value along(
      HloInstruction instruction,
      Value seen,
      ProcessGroup group,
      String name,
      int dim,
      boolean outermost) {
    var args = new ArrayList<Arg>();
    var groupName = new Arg.Str(group.name());
    var size = new Arg.Int(group.size());
    var sizes = seen.tensor().sizes();
    // Dimensions of one element before it change nothing: the collective takes the rows after.
    var flat =
        outermost && dim > 0
            ? emitter.reshaped(seen, sizes.subArray(dim, sizes.length()), name + ".rows")
            : seen;
    args.add(new Arg.Ref(flat));
    boolean reduces = instruction.opcode().equals("reduce-scatter");
    boolean exchanges = instruction.opcode().equals("all-to-all");
    if (reduces) {
      args.add(reduceOp(instruction, seen));
    }
    if (outermost && exchanges) {
      args.addAll(List.of(Arg.Seq.of(), Arg.Seq.of(), groupName));
      return emitter.op(name, FUNCTIONAL + "all_to_all_single", args.toArray(Arg[]::new));
    }
    if (!outermost) {
      args.add(new Arg.Int(dim));
      if (exchanges) {
        args.add(new Arg.Int(dim));
      }
    }
    args.addAll(List.of(size, groupName));
    var forms =
        reduces
            ? List.of(FUNCTIONAL + "reduce_scatter_tensor", "symplan::reduce_scatter_dim")
            : exchanges
                ? List.of("", "symplan::all_to_all_dim")
                : List.of(FUNCTIONAL + "all_gather_into_tensor", "symplan::all_gather_dim");
    return emitter.op(name, forms.get(outermost ? 0 : 1), args.toArray(Arg[]::new));
  }

  private Arg reduceOp(HloInstruction instruction, Value operand) {
    var names = instruction.attributes().names("to_apply");
    var opcode =
        names.size() == 1
            ? reduction(computations.get(names.getFirst()))
            : Optional.<String>empty();
    if (opcode.isEmpty()) {
      throw emitter.failure(
          DiagnosticCode.UNSUPPORTED,
          "%s reduces with something other than one of %s"
              .formatted(instruction.opcode(), String.join(", ", REDUCTIONS.keySet())),
          "reduce with one of them");
    }
    var op = requireNonNull(REDUCTIONS.get(opcode.get()));
    return new Arg.Str((operand.tensor().dtype() == DType.BOOL ? ofBools(op) : op).text());
  }

  private static ReduceOp ofBools(ReduceOp op) {
    return switch (op) {
      case SUM, MAX -> ReduceOp.BOR;
      case PRODUCT, MIN -> ReduceOp.BAND;
      case AVG, BAND, BOR, BXOR -> op;
    };
  }

  /** {@return the dimensions of an array, outermost in memory first} */
  private static ImmutableIntArray order(Array shape) {
    var minor = shape.minorToMajor();
    return ImmutableIntArray.copyOf(
        IntStream.range(0, minor.length()).map(i -> minor.get(minor.length() - 1 - i)));
  }

  private static ImmutableIntArray inverse(ImmutableIntArray order) {
    int[] inverse = new int[order.length()];
    for (int i = 0; i < order.length(); i++) {
      inverse[order.get(i)] = i;
    }
    return ImmutableIntArray.copyOf(inverse);
  }
}
