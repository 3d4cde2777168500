package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Convolution;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.LibraryConvolution;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The tensors of a convolution as cuDNN knows them: with two or three dimensions beside batch and
 * channels, and strides that tell the layout.
 */
record ConvolutionForm(TensorRef large, TensorRef weight, TensorRef small, SlidingWindows windows) {

  /** {@return the form; empty if cuDNN has no kernel, by the tensors alone} */
  static Optional<ConvolutionForm> of(
      TensorRef large, TensorRef weight, TensorRef small, SlidingWindows windows) {
    if (windows.dims() == 1) {
      return of(withHeight(large), withHeight(weight), withHeight(small), windows.withDimension());
    }
    boolean suits =
        LibraryConvolution.suits(large.type(), weight.type(), small.type())
            && Convolution.fits(large.type(), weight.type(), small.type(), windows)
            && Stream.of(large, weight, small)
                .allMatch(ref -> ref.offset() % Alignment.VECTOR == 0);
    if (!suits) {
      return Optional.empty();
    }
    var all = ImmutableList.of(large.type(), weight.type(), small.type());
    return Optional.of(
        new ConvolutionForm(
            large.with(LibraryConvolution.canonical(large.type(), all)),
            weight.with(LibraryConvolution.canonical(weight.type(), all)),
            small.with(LibraryConvolution.canonical(small.type(), all)),
            windows));
  }

  private static TensorRef withHeight(TensorRef ref) {
    return Moves.unsqueeze(ref, 2);
  }

  Convolution step(LocalOp op, Convolution.Pass pass, ImmutableList<DeviceStep> otherwise) {
    return new Convolution(op.stream(), pass, large, weight, small, windows, otherwise, op.name());
  }
}
