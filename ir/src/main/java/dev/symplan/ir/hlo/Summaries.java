package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableSet;
import java.util.stream.Collectors;

/** The parts of an instruction's attributes that the ops {@code hlo::NAME} keep. */
final class Summaries {
  /** About where an instruction comes from, how XLA runs it, or of any length. */
  private static final ImmutableSet<String> LEFT_OUT =
      ImmutableSet.of(
          "metadata", "backend_config", "frontend_attributes", "sharding", "statistics");

  private Summaries() {}

  static String of(HloInstruction instruction) {
    return instruction.attributes().values().entrySet().stream()
        .filter(entry -> !LEFT_OUT.contains(entry.getKey()))
        .map(entry -> entry.getKey() + "=" + entry.getValue())
        .collect(Collectors.joining(", "));
  }
}
