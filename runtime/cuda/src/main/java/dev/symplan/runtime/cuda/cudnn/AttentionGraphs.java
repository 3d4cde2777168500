package dev.symplan.runtime.cuda.cudnn;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Attention;
import dev.symplan.codegen.cuda.DeviceStep.AttentionBackward;
import dev.symplan.codegen.cuda.DeviceStep.Scores;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.cuda.cudnn.OperationGraph.Built;
import dev.symplan.runtime.cuda.cudnn.OperationGraph.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.bytedeco.cuda.global.cudnn;

/**
 * The graphs of scaled dot-product attention for which cuDNN has fused kernels: softmax is a
 * maximum, a difference, exponentials, a sum and a quotient between two products. The single
 * operation that cuDNN also has lacks a bias and causal bounds before version 9.21.
 */
final class AttentionGraphs {

  private final OperationGraph graph;
  private final List<Long> uids = new ArrayList<>();
  private final List<Long> scratch = new ArrayList<>();
  private final int stored;
  private final Tensor query;
  private final Tensor key;
  private final Optional<Tensor> bias;
  private final Scores scores;

  private AttentionGraphs(OperationGraph graph, Scores scores) {
    this.graph = graph;
    this.scores = scores;
    this.stored = OperationGraph.dataType(scores.query().type().dtype());
    this.query = real(scores.query().type());
    this.key = real(flipped(scores.key().type()));
    this.bias = scores.bias().map(TensorRef::type).map(this::real);
  }

  private Built built() {
    return new Built(ImmutableList.copyOf(uids), ImmutableList.copyOf(scratch));
  }

  /** Adds attention to a graph. */
  static Built forward(OperationGraph graph, Attention step) {
    var attention = new AttentionGraphs(graph, step.scores());
    attention.forward(step);
    return attention.built();
  }

  private void forward(Attention step) {
    var value = real(step.value().type());
    var out = real(step.out().type());
    var scored = masked(scored());
    var most = graph.reduceRows(cudnn.CUDNN_REDUCE_TENSOR_MAX, scored);
    var exponentials =
        graph.map(cudnn.CUDNN_POINTWISE_EXP, graph.map(cudnn.CUDNN_POINTWISE_SUB, scored, most));
    var sum = graph.reduceRows(cudnn.CUDNN_REDUCE_TENSOR_ADD, exponentials);
    // The pattern that cuDNN knows has the logarithms even if nothing reads them.
    var logs =
        step.logs().isPresent()
            ? real(ofRows(sum.sizes()))
            : graph.virtual(sum.sizes(), cudnn.CUDNN_DATA_FLOAT);
    graph.mapInto(cudnn.CUDNN_POINTWISE_ADD, most, graph.map(cudnn.CUDNN_POINTWISE_LOG, sum), logs);
    var weights = graph.map(cudnn.CUDNN_POINTWISE_DIV, exponentials, sum, stored);
    graph.multiplyInto(weights, value, out);
  }

  /**
   * Adds the gradients of attention to a graph. Those of queries are added up in an order that does
   * not change from run to run, for which cuDNN keeps the gradients of all scores in its workspace.
   */
  static Built backward(OperationGraph graph, AttentionBackward step) {
    var attention = new AttentionGraphs(graph, step.scores());
    attention.backward(step);
    return attention.built();
  }

  private void backward(AttentionBackward step) {
    var value = real(flipped(step.value().type()));
    var out = real(step.out().type());
    var logs = real(ofRows(OperationGraph.rows(query)));
    var grad = real(step.grad().type());
    var ofQuery = real(step.ofQuery().type());
    var ofKey = real(step.ofKey().type());
    var ofValue = real(step.ofValue().type());
    var scale = graph.scalar(scores.scale());
    // cuDNN expects this one in memory.
    var delta = real(ofRows(OperationGraph.rows(query)));
    scratch.add(bytes(ofRows(OperationGraph.rows(query))));
    var products = graph.map(cudnn.CUDNN_POINTWISE_MUL, grad, out);
    graph.mapInto(
        cudnn.CUDNN_POINTWISE_MUL,
        graph.reduceRows(cudnn.CUDNN_REDUCE_TENSOR_ADD, products),
        graph.scalar(1),
        delta);
    var weights =
        graph.map(
            cudnn.CUDNN_POINTWISE_EXP,
            masked(graph.map(cudnn.CUDNN_POINTWISE_SUB, scored(), logs)));
    overQueries(weights, grad, ofValue);
    var slopes =
        graph.map(
            cudnn.CUDNN_POINTWISE_MUL,
            graph.map(
                cudnn.CUDNN_POINTWISE_MUL,
                graph.map(cudnn.CUDNN_POINTWISE_SUB, graph.multiply(grad, value), delta),
                weights),
            scale);
    overQueries(slopes, query, ofKey);
    var straight = scores.key().type();
    var straightKey = graph.virtual(straight.sizes(), straight.strides(), cudnn.CUDNN_DATA_FLOAT);
    graph.reshape(key, straightKey);
    graph.multiplyInto(slopes, straightKey, ofQuery);
  }

  /** Multiplies the transposed weights, and adds up heads that share a head of the result. */
  private void overQueries(Tensor weights, Tensor right, Tensor to) {
    var sizes = weights.sizes();
    var flipped = swapped(sizes);
    var transposed = graph.virtual(flipped, swapped(TensorType.contiguousStrides(sizes)), stored);
    graph.reshape(weights, transposed);
    long heads = sizes.get(1);
    if (to.sizes().get(1) == heads) {
      graph.multiplyInto(transposed, right, to);
    } else {
      var ofEachHead =
          graph.virtual(
              ImmutableLongArray.of(sizes.get(0), heads, to.sizes().get(2), to.sizes().get(3)),
              stored);
      graph.multiplyInto(transposed, right, ofEachHead);
      graph.reduce(cudnn.CUDNN_REDUCE_TENSOR_ADD, ofEachHead, to);
    }
  }

  private Tensor scored() {
    var scaled =
        graph.map(
            cudnn.CUDNN_POINTWISE_MUL, graph.multiply(query, key), graph.scalar(scores.scale()));
    return bias.map(b -> graph.map(cudnn.CUDNN_POINTWISE_ADD, scaled, b)).orElse(scaled);
  }

  private Tensor masked(Tensor scored) {
    return scores.causal()
        ? graph.lowerTriangle(scored, graph.scalar(Double.NEGATIVE_INFINITY))
        : scored;
  }

  private Tensor real(TensorType type) {
    var tensor = graph.real(type);
    uids.add(tensor.uid());
    return tensor;
  }

  private static TensorType ofRows(ImmutableLongArray sizes) {
    return TensorType.contiguous(DType.F32, sizes);
  }

  private static long bytes(TensorType type) {
    return type.storageBytes();
  }

  /** {@return a tensor with its last two dimensions swapped} */
  private static TensorType flipped(TensorType type) {
    return new TensorType(
        type.dtype(), swapped(type.sizes()), swapped(type.strides()), MemorySpace.ANY);
  }

  private static ImmutableLongArray swapped(ImmutableLongArray values) {
    return ImmutableLongArray.of(values.get(0), values.get(1), values.get(3), values.get(2));
  }
}
