package dev.symplan.planner.pass;

import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.planner.CompileOptions;

/** Where the caller wants inputs and outputs: by name, by annotation, by default, in this order. */
record SpaceChoice(CompileOptions options) {

  MemorySpace input(Value value) {
    return choose(value, options.inputs());
  }

  /** {@return never {@code ANY}: {@code LOCAL} stands for "planned, in whichever arena"} */
  MemorySpace output(Value value) {
    var space = choose(value, options.outputs());
    return space == MemorySpace.ANY ? MemorySpace.LOCAL : space;
  }

  private MemorySpace choose(Value value, MemorySpace otherwise) {
    var named = options.spaces().get(value.name());
    if (named != null) {
      return named;
    }
    var annotated = value.isTensor() ? value.tensor().space() : MemorySpace.ANY;
    return annotated == MemorySpace.ANY ? otherwise : annotated;
  }
}
