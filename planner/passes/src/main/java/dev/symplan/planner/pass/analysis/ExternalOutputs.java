package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import java.util.Arrays;
import java.util.function.IntPredicate;

/**
 * The outputs that the caller wants in its own memory, and those among them that their producer can
 * write there directly: the first output that is all of a storage that an op defines.
 */
public final class ExternalOutputs {
  private final int[] outputOfStorage;
  private final boolean[] external;

  private ExternalOutputs(int[] outputOfStorage, boolean[] external) {
    this.outputOfStorage = outputOfStorage;
    this.external = external;
  }

  public static ExternalOutputs of(Aliases aliases, SpaceChoice spaces) {
    var outputs = aliases.graph().outputs();
    return of(
        aliases,
        i ->
            outputs.get(i) instanceof Arg.Ref(Value value)
                && value.isTensor()
                && spaces.output(i) == MemorySpace.EXTERNAL);
  }

  public static ExternalOutputs of(Aliases aliases, IntPredicate isExternal) {
    var outputs = aliases.graph().outputs();
    var outputOfStorage = new int[aliases.count()];
    Arrays.fill(outputOfStorage, -1);
    var external = new boolean[outputs.size()];
    for (int i = 0; i < outputs.size(); i++) {
      if (outputs.get(i) instanceof Arg.Ref(Value value) && value.isTensor()) {
        external[i] = isExternal.test(i);
        int storage = aliases.id(value);
        if (external[i]
            && outputOfStorage[storage] < 0
            && !aliases.storage(storage).isInput()
            && isLocationKnown(aliases, value)
            && aliases.isWhole(value)
            && value.tensor().isDense()) {
          outputOfStorage[storage] = i;
        }
      }
    }
    return new ExternalOutputs(outputOfStorage, external);
  }

  /** {@return whether an output is where the plan puts it when all ops have run} */
  public static boolean isLocationKnown(Aliases aliases, Value output) {
    return aliases.families().isLocationKnown(aliases.id(output), aliases.graph().ops().size());
  }

  /** {@return whether the caller wants the output in memory of its own} */
  public boolean isExternal(int output) {
    return external[output];
  }

  /** {@return whether the storage is written directly into an output of the caller} */
  public boolean isDirect(int storage) {
    return outputOfStorage[storage] >= 0;
  }

  /** {@return the output that the storage is written into; -1 if none} */
  public int outputOf(int storage) {
    return outputOfStorage[storage];
  }
}
