package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.ArgDecision.Reason;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** For each tensor of each collective of one graph, whether it can be symmetric without a copy. */
public final class OperandConstraints {

  /**
   * One operand or result.
   *
   * @param free whether its storage can be realized in symmetric memory as it is
   * @param always whether a copy is needed whatever the variant
   * @param rows the rows in which it lies, if a copy is needed for variants that cannot read them
   * @param reason why, or why not
   * @param cause the op or value behind the reason
   * @param signature the tensors that share its storage and where, to compare between ranks
   */
  public record OperandConstraint(
      Value value,
      boolean free,
      boolean always,
      Optional<TensorType.Rows> rows,
      Reason reason,
      String cause,
      String signature) {

    private OperandConstraint(
        Value value, boolean free, boolean always, Reason reason, String cause, String signature) {
      this(value, free, always, Optional.empty(), reason, cause, signature);
    }

    private OperandConstraint inRows(Optional<TensorType.Rows> apart) {
      return new OperandConstraint(value, free, always, apart, reason, cause, signature);
    }

    /** {@return whether another rank's graph realizes its tensor in the same way} */
    public boolean isPlacedLike(OperandConstraint other) {
      return free == other.free
          && always == other.always
          && rows.equals(other.rows)
          && signature.equals(other.signature);
    }
  }

  private final Aliases aliases;
  private final ImmutableList<Collective> collectives;
  private final SpaceChoice spaces;
  private final ExternalOutputs outputs;
  private final Mode layouts;
  private final List<List<String>> uses;
  private final List<String> signatures = new ArrayList<>();

  private OperandConstraints(
      Aliases aliases,
      ImmutableList<Collective> collectives,
      SpaceChoice spaces,
      ExternalOutputs outputs,
      Mode layouts) {
    this.aliases = aliases;
    this.collectives = collectives;
    this.spaces = spaces;
    this.outputs = outputs;
    this.layouts = layouts;
    this.uses = new ArrayList<>();
    for (int i = 0; i < aliases.count(); i++) {
      uses.add(new ArrayList<>());
    }
    for (int k = 0; k < collectives.size(); k++) {
      note(collectives.get(k).operands(), "o" + k);
      note(collectives.get(k).results(), "r" + k);
    }
    for (var storage : aliases.storages()) {
      signatures.add(
          (storage.isInput() ? "input " + storage.value().id() : "") + uses.get(storage.id()));
    }
  }

  public static OperandConstraints of(
      Aliases aliases,
      ImmutableList<Collective> collectives,
      SpaceChoice spaces,
      ExternalOutputs outputs,
      Mode layouts) {
    return new OperandConstraints(aliases, collectives, spaces, outputs, layouts);
  }

  private void note(List<Value> values, String role) {
    for (int i = 0; i < values.size(); i++) {
      var value = values.get(i);
      uses.get(aliases.id(value)).add(role + "." + i + "@" + aliases.offset(value));
    }
  }

  public ImmutableList<OperandConstraint> operands(int k) {
    var collective = collectives.get(k);
    var slots = ImmutableList.<OperandConstraint>builder();
    for (int i = 0; i < collective.operands().size(); i++) {
      slots.add(operand(collective, i));
    }
    return slots.build();
  }

  private OperandConstraint operand(Collective collective, int index) {
    var value = collective.operands().get(index);
    if (movesAsItLies(collective, index)) {
      return placed(collective, value);
    }
    var apart = rowsApart(collective, index, value.tensor(), layouts);
    return apart.isPresent()
        ? placed(collective, value).inRows(apart)
        : new OperandConstraint(
            value,
            false,
            true,
            Reason.NOT_CONTIGUOUS,
            value.name(),
            signatures.get(aliases.id(value)));
  }

  /**
   * {@return the rows in which an operand lies, if a collective can find its slices among them}
   *
   * @param index the operand's number
   * @param type the operand's, or that of a tensor that may take its place
   * @param layouts when rows may be apart
   */
  public static Optional<TensorType.Rows> rowsApart(
      Collective collective, int index, TensorType type, Mode layouts) {
    boolean reads =
        layouts != Mode.OFF
            && collective.kind() != Kind.CUSTOM
            && collective.results().get(index).tensor().isContiguous();
    return type.rowsApart()
        .filter(_ -> reads)
        .map(rows -> ofSlices(collective, type).filter(own -> !own.areEven()).orElse(rows))
        .filter(rows -> layouts == Mode.ON || isLong(rows, type.dtype().bytes()));
  }

  /**
   * {@return the rows of each slice, which may be at several distances where the whole's are not}
   */
  private static Optional<TensorType.Rows> ofSlices(Collective collective, TensorType type) {
    return switch (collective.kind()) {
      case ALL_REDUCE, ALL_GATHER, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM -> Optional.empty();
      case REDUCE_SCATTER, ALL_TO_ALL -> {
        var call = collective.op().collective().orElseThrow();
        int dim = call.sliceDims().operand();
        // Without a size, slices are parts of the first dimension, and lie as the whole does.
        long ranks = call.groupSize().orElse(1);
        yield type.part(dim, type.size(dim) / ranks).rowsApart();
      }
    };
  }

  private static boolean isLong(TensorType.Rows rows, int bytes) {
    return rows.elements() * bytes >= Alignment.BYTES
        && rows.elements() * bytes % Alignment.VECTOR == 0
        && rows.loops().stream().allMatch(loop -> loop.pitch() * bytes % Alignment.VECTOR == 0);
  }

  private OperandConstraint placed(Collective collective, Value value) {
    var storage = aliases.of(value);
    var signature = signatures.get(storage.id());
    if (!aliases.families().isLocationKnown(storage.id(), collective.index())) {
      return new OperandConstraint(
          value, false, false, Reason.MAY_HAVE_MOVED, storage.value().name(), signature);
    }
    if (aliases.offset(value) % Alignment.VECTOR != 0) {
      return new OperandConstraint(
          value, false, false, Reason.NOT_ALIGNED, value.name(), signature);
    }
    if (storage.isInput()) {
      var space = spaces.input(storage.value());
      boolean planned =
          space == MemorySpace.ANY
              || space == MemorySpace.SYMMETRIC
              || space == MemorySpace.DONATED;
      return new OperandConstraint(
          value,
          planned,
          false,
          planned ? Reason.PLANNED_INPUT : Reason.EXTERNAL_INPUT,
          storage.value().name(),
          signature);
    }
    if (outputs.isDirect(storage.id())) {
      return new OperandConstraint(
          value, false, false, Reason.EXTERNAL_OUTPUT, storage.value().name(), signature);
    }
    var producer = aliases.graph().ops().get(storage.def());
    boolean collectiveResult = producer.def().collective().isPresent();
    return new OperandConstraint(
        value,
        true,
        false,
        collectiveResult ? Reason.COLLECTIVE_RESULT : Reason.PRODUCER_WRITES,
        producer.def().name().toString(),
        signature);
  }

  /** An elementwise collective takes any dense layout, if the result has it; others move rows. */
  private static boolean movesAsItLies(Collective collective, int index) {
    var operand = collective.operands().get(index).tensor();
    if (collective.kind().keepsLayout()) {
      var result = collective.results().get(index).tensor();
      return operand.isDense()
          && (operand.strides().equals(result.strides())
              || (operand.isContiguous() && result.isContiguous()));
    }
    return operand.isContiguous();
  }

  public ImmutableList<OperandConstraint> results(int k) {
    var slots = ImmutableList.<OperandConstraint>builder();
    for (var value : collectives.get(k).results()) {
      var storage = aliases.of(value);
      boolean external = outputs.isDirect(storage.id());
      slots.add(
          new OperandConstraint(
              value,
              !external,
              false,
              external ? Reason.EXTERNAL_OUTPUT : Reason.RESULT_WRITES,
              value.name(),
              ""));
    }
    return slots.build();
  }
}
