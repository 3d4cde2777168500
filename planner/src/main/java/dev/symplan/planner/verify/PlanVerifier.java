package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.Plan;

/** Checks a finished plan. */
public final class PlanVerifier {
  private PlanVerifier() {}

  /** {@return the rules that the plan breaks; none if it is safe} */
  public static ImmutableList<Violation> verify(Plan plan) {
    return ImmutableList.of();
  }
}
