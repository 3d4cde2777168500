/**
 * cuDNN's backend API: {@link dev.symplan.runtime.cuda.cudnn.OperationGraph} is built of tensors
 * and operations, and cuDNN makes an {@link dev.symplan.runtime.cuda.cudnn.ExecutionPlan} of it, or
 * refuses it. {@link dev.symplan.runtime.cuda.cudnn.AttentionGraphs} knows the graphs of attention
 * that cuDNN has fused kernels for, and {@link dev.symplan.runtime.cuda.cudnn.ConvolutionGraph}
 * those of convolutions.
 */
@NullMarked
package dev.symplan.runtime.cuda.cudnn;

import org.jspecify.annotations.NullMarked;
