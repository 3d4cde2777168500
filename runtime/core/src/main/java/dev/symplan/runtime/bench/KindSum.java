package dev.symplan.runtime.bench;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.profile.ProfiledStep;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.OptionalDouble;

/**
 * Steps of one kind together.
 *
 * @param micros measured
 * @param roof microseconds that the device takes at least; empty if that of a step is unknown
 */
record KindSum(
    String kind,
    int steps,
    double micros,
    double predicted,
    long bytes,
    double flops,
    OptionalDouble roof) {

  static KindSum of(String kind, ProfiledStep step, Roof roof) {
    return new KindSum(
        kind,
        1,
        step.activity().micros(),
        step.predicted(),
        step.bytes(),
        step.work().map(work -> work.flops()).orElse(0.0),
        step.work().map(roof::micros).orElse(OptionalDouble.empty()));
  }

  /** {@return the sums of all kinds, the one that takes longest first} */
  static ImmutableList<KindSum> byKind(List<ProfiledStep> steps, Roof roof) {
    var sums = new LinkedHashMap<String, KindSum>();
    for (var step : steps) {
      sums.merge(step.kind(), of(step.kind(), step, roof), KindSum::plus);
    }
    return ImmutableList.sortedCopyOf(
        Comparator.comparingDouble(KindSum::micros).reversed(), sums.values());
  }

  KindSum plus(KindSum other) {
    return new KindSum(
        kind,
        steps + other.steps,
        micros + other.micros,
        predicted + other.predicted,
        bytes + other.bytes,
        flops + other.flops,
        roof.isPresent() && other.roof.isPresent()
            ? OptionalDouble.of(roof.getAsDouble() + other.roof.getAsDouble())
            : OptionalDouble.empty());
  }
}
