package dev.symplan.planner.verify;

import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * {@link Rule#PLACEMENT} within one rank: views lie where their op says, values inside their
 * buffers, buffers are as large as what they hold, and the caller's buffers are those of the
 * signature.
 */
final class PlacementRules {
  private final AliasModel facts;
  private final Findings findings;
  private final long[] bytes;
  private final boolean[] used;

  private PlacementRules(AliasModel facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
    this.bytes = new long[facts.plan.buffers().size()];
    this.used = new boolean[bytes.length];
  }

  static void check(AliasModel facts, Findings findings) {
    new PlacementRules(facts, findings).check();
  }

  private void wrong(String message) {
    findings.add(Rule.PLACEMENT, facts.rank(), message);
  }

  private void check() {
    for (int id = 0; id < facts.plan.placements().size(); id++) {
      if (facts.plan.placements().get(id).exists()) {
        checkValue(facts.value(id));
      }
    }
    facts.plan.graph().outputValues().forEach(this::checkOutput);
    Map<String, Buffer> external = new HashMap<>();
    for (int i = 0; i < bytes.length; i++) {
      var buffer = facts.plan.buffers().get(i);
      checkBuffer(buffer, i);
      if (buffer.arena().isExternal()) {
        @Nullable Buffer other = external.put(buffer.arena() + " " + buffer.offset(), buffer);
        if (other != null) {
          wrong(
              "the buffers %s and %s are both the caller's %s %s"
                  .formatted(other.name(), buffer.name(), signature(buffer), buffer.offset()));
        }
      }
    }
  }

  /** The caller reads an output where the plan says, so it must not have been moved. */
  private void checkOutput(Value output) {
    if (output.isTensor()
        && facts
            .mayAlias()
            .mayHaveMoved(facts.storageOf(output.id()), facts.plan.graph().ops().size())) {
      wrong(
          "the output %s may be elsewhere: an op that may do anything may have moved it"
              .formatted(output.name()));
    }
  }

  private void checkValue(Value value) {
    int storage = facts.storageOf(value.id());
    var base = facts.storage(storage);
    var placement = facts.plan.placements().get(value.id());
    var basePlacement = facts.plan.placements().get(base.id());
    long offset = facts.offsetInStorage(value.id());
    long size = value.tensor().storageBytes();
    int index = placement.buffer();
    if (value.id() == base.id()) {
      used[index] = true;
      checkAligned(value);
      long extent = facts.end(value.id()) - facts.begin(value.id());
      bytes[index] = Math.max(bytes[index], placement.offset() + extent);
      if (facts.definedBy(storage) < 0) {
        checkInput(value, index);
      } else {
        checkElementsApart(value, facts.op(facts.definedBy(storage)));
      }
      return;
    }
    if (size == 0) {
      return;
    }
    if (offset < 0 || offset > base.tensor().storageBytes() - size) {
      wrong(
          "%s takes %s at byte %s of %s, which has %s"
              .formatted(
                  value.name(),
                  Units.count(size, "byte"),
                  offset,
                  base.name(),
                  base.tensor().storageBytes()));
    }
    if (index != basePlacement.buffer()
        || placement.offset() != basePlacement.offset() + offset
        || !facts.shiftAlike(value.id(), base.id())) {
      wrong(
          "%s must be at byte %s of %s, which is at %s, but is at %s"
              .formatted(
                  value.name(),
                  offset,
                  base.name(),
                  facts.words.address(base.id()),
                  facts.words.address(value.id())));
    }
  }

  private void checkAligned(Value value) {
    int bytes = value.tensor().dtype().bytes();
    var placement = facts.plan.placements().get(value.id());
    if (facts.begin(value.id()) % bytes != 0
        || placement.stride() % bytes != 0
        || placement.pitch() % bytes != 0) {
      wrong(
          "%s, with elements of %s, is misaligned at %s%s"
              .formatted(
                  value.name(),
                  Units.count(bytes, "byte"),
                  facts.words.address(value.id()),
                  further(placement)));
    }
  }

  private static String further(Placement placement) {
    if (placement.isInRows()) {
      return ", in rows of %s, %s apart".formatted(placement.stride(), placement.pitch());
    }
    return placement.stride() == 0
        ? ""
        : ", and %s further on each rank".formatted(placement.stride());
  }

  /**
   * A tensor that an op writes has memory for each element: a stride passes all that lie within it.
   */
  private void checkElementsApart(Value value, Op op) {
    var type = value.tensor();
    for (int dim = 0; dim < type.rank() && type.storageBytes() > 0; dim++) {
      if (type.size(dim) > 1
          && type.stride(dim) <= extentWithin(type, dim)
          && !op.infer().get(op.results().indexOf(value)).unspecified()) {
        wrong(
            "%s is %s, and its elements overlap: the stride %s of dimension %s does not"
                    .formatted(value.name(), type, type.stride(dim), dim)
                + " exceed the extent of the dimensions within it");
        return;
      }
    }
  }

  private static long extentWithin(TensorType type, int dim) {
    long extent = 0;
    for (int other = 0; other < type.rank(); other++) {
      if (other != dim && type.stride(other) <= type.stride(dim)) {
        extent += (type.size(other) - 1) * type.stride(other);
      }
    }
    return extent;
  }

  private void checkInput(Value input, int index) {
    var buffer = facts.plan.buffers().get(index);
    boolean inHost = input.tensor().space() == MemorySpace.HOST;
    boolean fits =
        switch (buffer.arena()) {
          // HostCopyRules know who may be on the host.
          case SYMMETRIC, LOCAL, HOST -> true;
          case EXTERNAL_INPUT -> isInput(buffer.offset(), input);
          case EXTERNAL_OUTPUT -> false;
        };
    if ((buffer.arena() == ArenaKind.HOST) != inHost) {
      wrong(
          "the input %s is %s, but is %s the host's memory"
              .formatted(input.name(), input.tensor(), inHost ? "not in" : "in"));
    } else if (!fits) {
      wrong(
          "the input %s is in %s, the caller's %s %s"
              .formatted(input.name(), buffer.name(), signature(buffer), buffer.offset()));
    }
  }

  private boolean isInput(long position, Value value) {
    var inputs = facts.plan.graph().inputs();
    return position < inputs.size() && inputs.get((int) position).id() == value.id();
  }

  private static String signature(Buffer buffer) {
    return buffer.arena() == ArenaKind.EXTERNAL_INPUT ? "input" : "output";
  }

  private void checkBuffer(Buffer buffer, int index) {
    if (facts.isWorkspace(index)) {
      return;
    }
    if (!used[index]) {
      wrong("the buffer %s holds nothing".formatted(buffer.name()));
      return;
    }
    // A symmetric buffer is as large as the rank needs it that needs most.
    if (buffer.symmetric() ? bytes[index] > buffer.bytes() : bytes[index] != buffer.bytes()) {
      wrong(
          "the buffer %s has %s, but its contents take %s"
              .formatted(buffer.name(), Units.count(buffer.bytes(), "byte"), bytes[index]));
    }
    switch (buffer.arena()) {
      case SYMMETRIC, LOCAL, HOST -> {
        if (buffer.offset() % Alignment.BYTES != 0) {
          wrong(
              "the buffer %s begins at byte %s, which is not a multiple of %s"
                  .formatted(buffer.name(), buffer.offset(), Alignment.BYTES));
        }
      }
      case EXTERNAL_INPUT -> {
        var inputs = facts.plan.graph().inputs();
        if (buffer.offset() >= inputs.size()
            || !startsIn(inputs.get((int) buffer.offset()), buffer, index)) {
          wrong(
              "the buffer %s is the caller's input %s, but does not hold it"
                  .formatted(buffer.name(), buffer.offset()));
        }
      }
      case EXTERNAL_OUTPUT -> {
        var outputs = facts.plan.graph().outputs();
        if (buffer.offset() >= outputs.size()
            || !(outputs.get((int) buffer.offset()) instanceof Arg.Ref(Value value))
            || !startsIn(value, buffer, index)) {
          wrong(
              "the buffer %s is the caller's output %s, but does not hold it"
                  .formatted(buffer.name(), buffer.offset()));
        }
      }
    }
  }

  /** Whether a value of the caller's is all of its buffer. */
  private boolean startsIn(Value value, Buffer buffer, int index) {
    var placement = facts.plan.placements().get(value.id());
    return placement.buffer() == index
        && placement.offset() == 0
        && value.isTensor()
        && value.tensor().storageBytes() == buffer.bytes();
  }
}
