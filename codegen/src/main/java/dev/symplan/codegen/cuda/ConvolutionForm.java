package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Convolution;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.LibraryConvolution;

/**
 * The tensors of a convolution as cuDNN knows them: with two or three dimensions beside batch and
 * channels, and strides that tell the layout.
 */
record ConvolutionForm(TensorRef large, TensorRef weight, TensorRef small, SlidingWindows windows) {

  /** {@return whether cuDNN may have a kernel, by the tensors alone} */
  static boolean suits(TensorRef large, TensorRef weight, TensorRef small, SlidingWindows windows) {
    return LibraryConvolution.suits(large.type(), weight.type(), small.type())
        && windows.fit(large.type(), weight.type(), small.type());
  }

  /** {@return whether cuDNN can take a tensor where it is} */
  static boolean isKnown(TensorRef ref) {
    return LibraryConvolution.hasLayout(ref.type()) && ref.offset() % Alignment.VECTOR == 0;
  }

  /** {@return the form of tensors that cuDNN knows} */
  static ConvolutionForm of(
      TensorRef large, TensorRef weight, TensorRef small, SlidingWindows windows) {
    if (windows.dims() == 1) {
      return of(withHeight(large), withHeight(weight), withHeight(small), windows.withDimension());
    }
    var all = ImmutableList.of(large.type(), weight.type(), small.type());
    return new ConvolutionForm(
        large.with(LibraryConvolution.canonical(large.type(), all)),
        weight.with(LibraryConvolution.canonical(weight.type(), all)),
        small.with(LibraryConvolution.canonical(small.type(), all)),
        windows);
  }

  private static TensorRef withHeight(TensorRef ref) {
    return Moves.unsqueeze(ref, 2);
  }

  /** {@return the step; the library leaves alone what is in use beside the arenas} */
  Convolution step(
      OpArguments arguments, Convolution.Pass pass, ImmutableList<DeviceStep> otherwise) {
    var op = arguments.op();
    return new Convolution(
        op.stream(),
        pass,
        large,
        weight,
        small,
        windows,
        arguments.scratch().bytes(),
        otherwise,
        op.name());
  }
}
