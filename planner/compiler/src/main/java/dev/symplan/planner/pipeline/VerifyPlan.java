package dev.symplan.planner.pipeline;

import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.PlanState;
import dev.symplan.planner.pass.ProgramPass;
import dev.symplan.planner.verify.PlanVerifier;

/** Checks the finished plan against the verifier's own rules. */
final class VerifyPlan extends ProgramPass {
  VerifyPlan() {
    super("verify", facts(SealPlan.PLAN), facts());
  }

  @Override
  public PlanState run(PlanState state, PassContext context) {
    var violations = PlanVerifier.verify(state.get(SealPlan.PLAN));
    if (!violations.isEmpty()) {
      throw new IllegalStateException("the plan is unsafe: " + violations.getFirst());
    }
    return state;
  }
}
