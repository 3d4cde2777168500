package dev.symplan.runtime.cuda.cudnn;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Convolution;
import dev.symplan.ir.DType;
import dev.symplan.runtime.cuda.cudnn.OperationGraph.Built;
import dev.symplan.runtime.cuda.cudnn.OperationGraph.Tensor;
import org.bytedeco.cuda.global.cudnn;

/** The graphs of convolutions and their gradients: one operation, which sums up in f32 or f64. */
final class ConvolutionGraph {
  private ConvolutionGraph() {}

  /** Adds a convolution to a graph. */
  static Built build(OperationGraph graph, Convolution step) {
    var tensors =
        step.tensors().stream()
            .map(TensorRef::type)
            .map(graph::real)
            .collect(ImmutableList.toImmutableList());
    add(graph, step, tensors.get(0), tensors.get(1), tensors.get(2));
    return new Built(
        tensors.stream().map(Tensor::uid).collect(ImmutableList.toImmutableList()),
        ImmutableList.of());
  }

  private static void add(
      OperationGraph graph, Convolution step, Tensor large, Tensor weight, Tensor small) {
    boolean wide = step.small().type().dtype() == DType.F64;
    int computed = wide ? cudnn.CUDNN_DATA_DOUBLE : cudnn.CUDNN_DATA_FLOAT;
    switch (step.pass()) {
      case FORWARD ->
          graph
              .convolution(
                  cudnn.CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                  cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                  computed,
                  step.windows())
              .descriptor(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, large.descriptor())
              .descriptor(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, weight.descriptor())
              .descriptor(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, small.descriptor())
              .number(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1, wide)
              .number(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0, wide)
              .finish();
      case BACKWARD_DATA ->
          graph
              .convolution(
                  cudnn.CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                  cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                  computed,
                  step.windows())
              .descriptor(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, large.descriptor())
              .descriptor(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, weight.descriptor())
              .descriptor(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, small.descriptor())
              .number(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1, wide)
              .number(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0, wide)
              .finish();
      case BACKWARD_FILTER ->
          graph
              .convolution(
                  cudnn.CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                  cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                  computed,
                  step.windows())
              .descriptor(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, large.descriptor())
              .descriptor(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, weight.descriptor())
              .descriptor(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, small.descriptor())
              .number(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 1, wide)
              .number(cudnn.CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 0, wide)
              .finish();
    }
  }
}
