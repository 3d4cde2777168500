package dev.symplan.planner.verify;

import dev.symplan.ir.diag.Units;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Step;

/** The names of a rank plan's ops, steps and addresses in findings. */
record Wording(AliasModel facts) {

  /** {@return an address, as {@code symm+0x400}} */
  String address(int space, long begin) {
    var hex = "+0x" + Long.toHexString(begin);
    return switch (space) {
      case AliasModel.SYMMETRIC_SPACE -> "symm" + hex;
      case AliasModel.LOCAL_SPACE -> "local" + hex;
      case AliasModel.HOST_SPACE -> "host" + hex;
      default -> {
        var buffer = facts.plan.buffers().get(space - AliasModel.ARENAS);
        yield (buffer.arena() == ArenaKind.EXTERNAL_INPUT ? "input " : "output ")
            + buffer.name()
            + hex;
      }
    };
  }

  String address(int value) {
    return address(facts.space(value), facts.begin(value));
  }

  /** {@return a value's bytes, as {@code symm+0x400 (128 bytes)}} */
  String extent(int value) {
    return "%s (%s)"
        .formatted(address(value), Units.count(facts.end(value) - facts.begin(value), "byte"));
  }

  /** {@return an op, as {@code aten::mul → mul_3}} */
  String text(int op) {
    var name = facts.op(op).def().name().toString();
    return facts.op(op).results().isEmpty()
        ? name
        : name + " → " + facts.op(op).results().getFirst().name();
  }

  /** {@return a step, with its line, as {@code step 12 (aten::mul → m, a.graph:9)}} */
  String event(int step) {
    if (step < 0 || step >= facts.plan.steps().size()) {
      return stepText(step);
    }
    var text = stepText(step);
    return "%s, %s)".formatted(text.substring(0, text.length() - 1), span(step));
  }

  /** {@return a step of this rank for a trace, as {@code rank 1, in step 12 (…, a.graph:9),}} */
  String rankEvent(int step) {
    return step < 0
        ? stepText(step)
        : step >= facts.plan.steps().size()
            ? "the caller of rank %s, after the last step,".formatted(facts.rank())
            : "rank %s, in %s,".formatted(facts.rank(), event(step));
  }

  private String span(int step) {
    return switch (facts.plan.steps().get(step)) {
      case Step.Compute(int op) -> facts.op(op).span().shortForm();
      case Step.Fused(var ops) -> facts.op(ops.get(0)).span().shortForm();
      case Step.Start(int k) -> facts.op(facts.plan.collectives().get(k).op()).span().shortForm();
      case Step.Join(int k) -> facts.op(facts.plan.collectives().get(k).op()).span().shortForm();
    };
  }

  /** {@return a step, as {@code step 12 (aten::mul → mul_3)}} */
  String stepText(int step) {
    if (step < 0) {
      return "the caller, before the program,";
    }
    if (step == facts.plan.steps().size()) {
      return "the end";
    }
    return "step %s (%s)"
        .formatted(
            step,
            switch (facts.plan.steps().get(step)) {
              case Step.Compute(int op) -> text(op);
              case Step.Fused(var ops) ->
                  "%s fused ops … %s".formatted(ops.length(), text(ops.get(ops.length() - 1)));
              case Step.Start(int k) ->
                  (facts.plan.collectives().get(k).isAsync() ? "start " : "")
                      + text(facts.plan.collectives().get(k).op());
              case Step.Join(int k) -> "join " + text(facts.plan.collectives().get(k).op());
            });
  }
}
