package dev.symplan.runtime.cuda.cudnn;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.cuda.SlidingWindows;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.bytedeco.cuda.cudnn.cudnnContext;
import org.bytedeco.cuda.global.cudnn;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;

/**
 * Operations on tensors that cuDNN is to do in one kernel. Tensors in memory are those of the
 * caller; virtual ones are between two operations and never in memory.
 */
final class OperationGraph implements AutoCloseable {

  /** The alignment of every real tensor, in bytes. */
  private static final int ALIGNMENT = 16;

  /** A tensor of the graph; {@code uid} is its name in an execution. */
  record Tensor(long uid, ImmutableLongArray sizes, Descriptor descriptor) {}

  /**
   * The names of a graph's tensors in memory.
   *
   * @param uids in the order of the step's tensors, scratch memory after them
   * @param scratch bytes of each piece of scratch memory
   */
  record Built(ImmutableList<Long> uids, ImmutableList<Long> scratch) {}

  private final List<Descriptor> owned = new ArrayList<>();
  private final List<Descriptor> operations = new ArrayList<>();
  private final List<FloatPointer> scalars = new ArrayList<>();
  private final List<Long> scalarUids = new ArrayList<>();
  private long uids;

  /** {@return a tensor in memory, which an execution gives the address of} */
  Tensor real(TensorType type) {
    return tensor(type.sizes(), type.strides(), dataType(type.dtype()), false, false);
  }

  /** {@return a number that is a part of the graph} */
  Tensor scalar(double value) {
    var one = ImmutableLongArray.of(1, 1, 1, 1);
    var tensor = tensor(one, one, cudnn.CUDNN_DATA_FLOAT, false, true);
    scalars.add(new FloatPointer(new float[] {(float) value}));
    scalarUids.add(tensor.uid());
    return tensor;
  }

  /** {@return the product of two batches of matrices, which are [batch, heads, rows, columns]} */
  Tensor multiply(Tensor left, Tensor right) {
    var to =
        virtual(
            ImmutableLongArray.of(
                left.sizes().get(0),
                left.sizes().get(1),
                left.sizes().get(2),
                right.sizes().get(3)),
            cudnn.CUDNN_DATA_FLOAT);
    multiplyInto(left, right, to);
    return to;
  }

  void multiplyInto(Tensor left, Tensor right, Tensor to) {
    var how =
        own(cudnn.CUDNN_BACKEND_MATMUL_DESCRIPTOR)
            .dataType(cudnn.CUDNN_ATTR_MATMUL_COMP_TYPE, cudnn.CUDNN_DATA_FLOAT)
            .finish();
    operation(cudnn.CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_MATMUL_ADESC, left.descriptor())
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_MATMUL_BDESC, right.descriptor())
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_MATMUL_CDESC, to.descriptor())
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_MATMUL_DESC, how)
        .finish();
  }

  /** {@return the results of a function of each element, in f32} */
  Tensor map(int mode, Tensor operand) {
    var to = virtual(operand.sizes(), cudnn.CUDNN_DATA_FLOAT);
    pointwise(mode, cudnn.CUDNN_DATA_FLOAT, Optional.empty(), operand, to).finish();
    return to;
  }

  /** {@return the results of a function of two operands; the right one may be broadcast} */
  Tensor map(int mode, Tensor left, Tensor right) {
    return map(mode, left, right, cudnn.CUDNN_DATA_FLOAT);
  }

  /**
   * @param stored the type of the result, which is computed in f32
   */
  Tensor map(int mode, Tensor left, Tensor right, int stored) {
    var to = virtual(left.sizes(), stored);
    mapInto(mode, left, right, to);
    return to;
  }

  void mapInto(int mode, Tensor left, Tensor right, Tensor to) {
    pointwise(mode, cudnn.CUDNN_DATA_FLOAT, Optional.empty(), left, to)
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_BDESC, right.descriptor())
        .finish();
  }

  /** {@return the scores where the row is not above the column, and elsewhere another number} */
  Tensor lowerTriangle(Tensor scores, Tensor elsewhere) {
    var row = index(scores, 2);
    var column = index(scores, 3);
    var seen = virtual(scores.sizes(), cudnn.CUDNN_DATA_BOOLEAN);
    pointwise(cudnn.CUDNN_POINTWISE_CMP_GE, cudnn.CUDNN_DATA_BOOLEAN, Optional.empty(), row, seen)
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_BDESC, column.descriptor())
        .finish();
    var to = virtual(scores.sizes(), cudnn.CUDNN_DATA_FLOAT);
    pointwise(
            cudnn.CUDNN_POINTWISE_BINARY_SELECT,
            cudnn.CUDNN_DATA_FLOAT,
            Optional.empty(),
            scores,
            to)
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_BDESC, elsewhere.descriptor())
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_TDESC, seen.descriptor())
        .finish();
    return to;
  }

  private Tensor index(Tensor like, long axis) {
    var to = virtual(like.sizes(), cudnn.CUDNN_DATA_INT32);
    pointwise(cudnn.CUDNN_POINTWISE_GEN_INDEX, cudnn.CUDNN_DATA_FLOAT, Optional.of(axis), like, to)
        .finish();
    return to;
  }

  private Descriptor pointwise(
      int mode, int computed, Optional<Long> axis, Tensor operand, Tensor to) {
    var how =
        own(cudnn.CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
            .choice(cudnn.CUDNN_ATTR_POINTWISE_MODE, cudnn.CUDNN_TYPE_POINTWISE_MODE, mode)
            .dataType(cudnn.CUDNN_ATTR_POINTWISE_MATH_PREC, computed);
    axis.ifPresent(dim -> how.longs(cudnn.CUDNN_ATTR_POINTWISE_AXIS, dim));
    how.finish();
    return operation(cudnn.CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how)
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_XDESC, operand.descriptor())
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to.descriptor());
  }

  /** {@return each row reduced to one number} */
  Tensor reduceRows(int operator, Tensor operand) {
    var to = virtual(rows(operand), cudnn.CUDNN_DATA_FLOAT);
    reduce(operator, operand, to);
    return to;
  }

  /** {@return sizes with one column} */
  static ImmutableLongArray rows(Tensor operand) {
    var sizes = operand.sizes();
    return ImmutableLongArray.of(sizes.get(0), sizes.get(1), sizes.get(2), 1);
  }

  /** Reduces the dimensions in which the target has size 1, or fewer heads than the operand. */
  void reduce(int operator, Tensor operand, Tensor to) {
    var how =
        own(cudnn.CUDNN_BACKEND_REDUCTION_DESCRIPTOR)
            .choice(
                cudnn.CUDNN_ATTR_REDUCTION_OPERATOR,
                cudnn.CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                operator)
            .dataType(cudnn.CUDNN_ATTR_REDUCTION_COMP_TYPE, cudnn.CUDNN_DATA_FLOAT)
            .finish();
    operation(cudnn.CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_REDUCTION_XDESC, operand.descriptor())
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to.descriptor())
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
        .finish();
  }

  /** Has cuDNN read the elements of a tensor as another one, which has other strides. */
  void reshape(Tensor from, Tensor to) {
    operation(cudnn.CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_RESHAPE_XDESC, from.descriptor())
        .descriptor(cudnn.CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to.descriptor())
        .finish();
  }

  /**
   * {@return a new operation that computes a convolution or a gradient; it lacks its attributes}
   *
   * @param computed the type of sums
   */
  Descriptor convolution(int kind, int attribute, int computed, SlidingWindows windows) {
    var how =
        own(cudnn.CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
            .dataType(cudnn.CUDNN_ATTR_CONVOLUTION_COMP_TYPE, computed)
            .choice(
                cudnn.CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                cudnn.CUDNN_TYPE_CONVOLUTION_MODE,
                cudnn.CUDNN_CROSS_CORRELATION)
            .longs(cudnn.CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, windows.dims())
            .longs(cudnn.CUDNN_ATTR_CONVOLUTION_DILATIONS, windows.dilation().toArray())
            .longs(cudnn.CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, windows.stride().toArray())
            .longs(cudnn.CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, windows.padding().toArray())
            .longs(cudnn.CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, windows.padding().toArray())
            .finish();
    return operation(kind).descriptor(attribute, how);
  }

  /** {@return a tensor between two operations, row by row} */
  Tensor virtual(ImmutableLongArray sizes, int stored) {
    return virtual(sizes, TensorType.contiguousStrides(sizes), stored);
  }

  Tensor virtual(ImmutableLongArray sizes, ImmutableLongArray strides, int stored) {
    return tensor(sizes, strides, stored, true, false);
  }

  private Tensor tensor(
      ImmutableLongArray sizes,
      ImmutableLongArray strides,
      int stored,
      boolean virtual,
      boolean byValue) {
    uids++;
    var descriptor =
        own(cudnn.CUDNN_BACKEND_TENSOR_DESCRIPTOR)
            .dataType(cudnn.CUDNN_ATTR_TENSOR_DATA_TYPE, stored)
            .longs(cudnn.CUDNN_ATTR_TENSOR_DIMENSIONS, sizes.toArray())
            .longs(cudnn.CUDNN_ATTR_TENSOR_STRIDES, strides.toArray())
            .longs(cudnn.CUDNN_ATTR_TENSOR_UNIQUE_ID, uids)
            .longs(cudnn.CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT)
            .flag(cudnn.CUDNN_ATTR_TENSOR_IS_VIRTUAL, virtual)
            .flag(cudnn.CUDNN_ATTR_TENSOR_IS_BY_VALUE, byValue)
            .finish();
    return new Tensor(uids, sizes, descriptor);
  }

  private Descriptor own(int kind) {
    var made = new Descriptor(kind);
    owned.add(made);
    return made;
  }

  private Descriptor operation(int kind) {
    var made = own(kind);
    operations.add(made);
    return made;
  }

  static int dataType(DType dtype) {
    return switch (dtype) {
      case F32 -> cudnn.CUDNN_DATA_FLOAT;
      case F64 -> cudnn.CUDNN_DATA_DOUBLE;
      case F16 -> cudnn.CUDNN_DATA_HALF;
      case BF16 -> cudnn.CUDNN_DATA_BFLOAT16;
      default -> throw new IllegalArgumentException(dtype.shortName());
    };
  }

  /**
   * {@return the best plan that the rule allows; it needs this graph to stay open}
   *
   * @throws CudnnException where cuDNN has none, with the reason that the last engine gave
   */
  ExecutionPlan plan(cudnnContext handle, EngineRule rule) {
    var graph =
        own(cudnn.CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
            .handle(cudnn.CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle)
            .descriptors(cudnn.CUDNN_ATTR_OPERATIONGRAPH_OPS, operations)
            .finish();
    Optional<CudnnException> refusal = Optional.empty();
    for (int mode : rule.modes()) {
      ImmutableList<Descriptor> engines = ImmutableList.of();
      try {
        engines = engines(graph, mode, rule);
      } catch (CudnnException e) {
        refusal = Optional.of(e);
      }
      for (var engine : engines) {
        var plan = own(cudnn.CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        try {
          plan.handle(cudnn.CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle)
              .descriptor(cudnn.CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine)
              .finish();
        } catch (CudnnException e) {
          refusal = Optional.of(e);
          continue;
        }
        long workspace = plan.readLong(cudnn.CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
        if (workspace <= rule.workspaceBytes()) {
          return new ExecutionPlan(
              handle,
              plan,
              workspace,
              ImmutableList.copyOf(scalarUids),
              ImmutableList.<Pointer>copyOf(scalars));
        }
      }
    }
    throw refusal.orElseGet(
        () ->
            CudnnException.refused(
                "no engine of cuDNN within %s bytes".formatted(rule.workspaceBytes())));
  }

  /** {@return the engines that cuDNN proposes and the rule allows, the best first} */
  private ImmutableList<Descriptor> engines(Descriptor graph, int mode, EngineRule rule) {
    var heuristic =
        own(cudnn.CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
            .descriptor(cudnn.CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
            .choice(cudnn.CUDNN_ATTR_ENGINEHEUR_MODE, cudnn.CUDNN_TYPE_HEUR_MODE, mode)
            .finish();
    var engines =
        Stream.generate(() -> own(cudnn.CUDNN_BACKEND_ENGINECFG_DESCRIPTOR))
            .limit(rule.most())
            .toList();
    int found = heuristic.read(cudnn.CUDNN_ATTR_ENGINEHEUR_RESULTS, engines);
    return engines.subList(0, found).stream()
        .filter(engine -> rule.forbidden().isEmpty() || rule.allows(notes(engine)))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return what cuDNN notes about the numbers that an engine computes} */
  private ImmutableIntArray notes(Descriptor configuration) {
    var engine = own(cudnn.CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int found = configuration.read(cudnn.CUDNN_ATTR_ENGINECFG_ENGINE, List.of(engine));
    if (found != 1) {
      throw CudnnException.refused("an engine configuration of %s engines".formatted(found));
    }
    return engine.readChoices(
        cudnn.CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
        cudnn.CUDNN_TYPE_NUMERICAL_NOTE,
        cudnn.CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  }

  @Override
  public void close() {
    owned.reversed().forEach(Descriptor::close);
    scalars.forEach(FloatPointer::close);
  }
}
