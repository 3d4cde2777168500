package dev.symplan.codegen.cuda;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Attention;
import dev.symplan.codegen.cuda.DeviceStep.AttentionBackward;
import dev.symplan.codegen.cuda.DeviceStep.Scores;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.LibraryAttention;
import java.util.Optional;
import java.util.stream.Stream;

/** Decides by the step alone which attention may go to cuDNN. */
final class AttentionForm {

  private AttentionForm() {}

  static boolean suitsLibrary(Attention step) {
    return suits(step.scores(), ImmutableList.of(step.value(), step.out()), step.logs());
  }

  static boolean suitsLibrary(AttentionBackward step) {
    return suits(
        step.scores(),
        ImmutableList.of(
            step.value(), step.out(), step.grad(), step.ofQuery(), step.ofKey(), step.ofValue()),
        Optional.of(step.logs()));
  }

  private static boolean suits(
      Scores scores, ImmutableList<TensorRef> others, Optional<TensorRef> logs) {
    return Stream.concat(scores.tensors().stream(), others.stream())
            .allMatch(ref -> ref.offset() % Alignment.VECTOR == 0)
        && LibraryAttention.suits(
            scores.query().type(),
            scores.key().type(),
            others.stream().map(TensorRef::type).collect(toImmutableList()),
            scores.bias().map(TensorRef::type),
            logs.map(TensorRef::type),
            scores.scale());
  }
}
