package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Attention;
import dev.symplan.codegen.cuda.DeviceStep.AttentionBackward;
import dev.symplan.codegen.cuda.DeviceStep.Scores;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.machine.Alignment;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Which attention may go to cuDNN, as far as the step itself decides it: floats of 16 bits, rows
 * that all begin at a multiple of 16 bytes, and a positive scale, as its kernels take the largest
 * score before they scale. What cuDNN has no kernel for, it refuses itself when a session opens.
 */
final class AttentionForm {

  /** cuDNN's kernels count features in eights. */
  private static final int FEATURES = 8;

  private AttentionForm() {}

  static boolean suitsLibrary(Attention step) {
    return suits(step.scores(), ImmutableList.of(step.value(), step.out()), step.logs());
  }

  /** Not with a bias: one of minus infinity may hide whole rows, whose gradients must be 0. */
  static boolean suitsLibrary(AttentionBackward step) {
    return step.scores().bias().isEmpty()
        && suits(
            step.scores(),
            ImmutableList.of(
                step.value(),
                step.out(),
                step.grad(),
                step.ofQuery(),
                step.ofKey(),
                step.ofValue()),
            Optional.of(step.logs()));
  }

  private static boolean suits(
      Scores scores, ImmutableList<TensorRef> others, Optional<TensorRef> logs) {
    var query = scores.query().type();
    var key = scores.key().type();
    long heads = key.size(1);
    return (query.dtype() == DType.F16 || query.dtype() == DType.BF16)
        && scores.scale() > 0
        && query.numel() > 0
        && key.numel() > 0
        && query.size(1) % heads == 0
        && Stream.concat(Stream.of(scores.query(), scores.key()), others.stream())
            .allMatch(ref -> ref.type().dtype() == query.dtype() && hasAlignedRows(ref))
        && Stream.concat(Stream.of(scores.query()), others.stream())
            .allMatch(ref -> ref.type().size(3) % FEATURES == 0)
        && scores.bias().stream()
            .allMatch(bias -> isWhole(bias.type(), query, key) && hasAlignedRows(bias))
        && logs.stream()
            .allMatch(ref -> ref.type().dtype() == DType.F32 && ref.type().isContiguous())
        && logs.stream().allMatch(ref -> ref.type().numel() == query.numel() / query.size(3));
  }

  /** cuDNN broadcasts a bias over batches and heads. */
  private static boolean isWhole(TensorType bias, TensorType query, TensorType key) {
    return (bias.dtype() == query.dtype() || bias.dtype() == DType.F32)
        && bias.size(2) == query.size(2)
        && bias.size(3) == key.size(2);
  }

  private static boolean hasAlignedRows(TensorRef ref) {
    var type = ref.type();
    if (type.stride(3) != 1 && type.size(3) != 1 || ref.offset() % Alignment.VECTOR != 0) {
      return false;
    }
    for (int dim = 0; dim < 3; dim++) {
      if (type.size(dim) > 1
          && (type.stride(dim) <= 0
              || type.stride(dim) * type.dtype().bytes() % Alignment.VECTOR != 0)) {
        return false;
      }
    }
    return true;
  }
}
