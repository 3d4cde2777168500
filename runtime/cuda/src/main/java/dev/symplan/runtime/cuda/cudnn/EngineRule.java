package dev.symplan.runtime.cuda.cudnn;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.DType;
import org.bytedeco.cuda.global.cudnn;

/**
 * Which engines may compute a graph.
 *
 * @param modes the heuristics to ask, in order
 * @param most how many engines to ask each of them for
 * @param forbidden what cuDNN must not note about an engine's numbers
 * @param workspaceBytes that one call may need beside its tensors
 */
record EngineRule(
    ImmutableList<Integer> modes, int most, ImmutableSet<Integer> forbidden, long workspaceBytes) {

  /** A few engines, the best first: those of attention, which hardly any engine knows. */
  static final EngineRule ATTENTION =
      new EngineRule(ImmutableList.of(cudnn.CUDNN_HEUR_MODE_A), 8, ImmutableSet.of(), 256L << 20);

  /** Most engines of convolutions copy images into the layout that they know. */
  private static final long CONVOLUTION_WORKSPACE = 512L << 20;

  /**
   * Engines that give the same bits in every run, and add up products of the elements as they are.
   * Transformed images (FFT, Winograd) lose digits, and spread infinities to other elements. cuDNN
   * 9.19 does not note Winograd for an engine of weights' gradients.
   */
  private static final ImmutableSet<Integer> INEXACT =
      ImmutableSet.of(
          cudnn.CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
          cudnn.CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
          cudnn.CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
          cudnn.CUDNN_NUMERICAL_NOTE_FFT,
          cudnn.CUDNN_NUMERICAL_NOTE_WINOGRAD,
          cudnn.CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
          cudnn.CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
          cudnn.CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);

  private static final int MOST = 64;

  /** {@return the rule for convolutions of a type, whose elements keep all their bits} */
  static EngineRule convolution(DType dtype) {
    var forbidden = ImmutableSet.<Integer>builder().addAll(INEXACT);
    if (dtype == DType.F32) {
      // For f32, these compute in TF32.
      forbidden.add(cudnn.CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    }
    return new EngineRule(
        ImmutableList.of(cudnn.CUDNN_HEUR_MODE_A, cudnn.CUDNN_HEUR_MODE_FALLBACK),
        MOST,
        forbidden.build(),
        CONVOLUTION_WORKSPACE);
  }

  boolean allows(ImmutableIntArray notes) {
    return notes.stream().noneMatch(forbidden::contains);
  }
}
