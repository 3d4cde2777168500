package dev.symplan.planner.pass.order;

import dev.symplan.ir.Value;
import dev.symplan.planner.pass.analysis.Aliases;
import java.util.BitSet;

/** A way in which the memory of one storage is free at the peak. */
sealed interface Saving permits Recomputation.Again, Offloading.RoundTrip, HostHomes.Visits {
  /** The storage that is given up from its last use before the peak to its next one. */
  Aliases.Storage storage();

  /** Other storages that must not be given up with it. */
  default BitSet leaves() {
    return new BitSet();
  }

  /** The predicted time that it adds, in µs. */
  double micros();

  /** {@return the same, taken to add so many µs at least} */
  Saving atLeast(double micros);

  /** {@return the decision, for people} */
  PeakReduction.Made made();

  /** {@return the tensor as it was defined first} */
  default Value value() {
    return storage().value();
  }

  /** {@return microseconds a byte} */
  default double price() {
    return micros() / storage().bytes();
  }
}
