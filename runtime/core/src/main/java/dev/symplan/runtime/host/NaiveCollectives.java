package dev.symplan.runtime.host;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Collectives by definition, element by element: what the variants are tested against. */
public final class NaiveCollectives {
  private static final int BLOCK = 4096;

  /** One rank's part. */
  public record Call(Op op, List<HostTensor> operands, List<HostTensor> results) {}

  private NaiveCollectives() {}

  /** Fills the results of every rank of a group, given in group order. */
  public static void run(CollectiveSpec spec, List<Call> calls) {
    for (int t = 0; t < calls.getFirst().operands().size(); t++) {
      int tensor = t;
      var operands = calls.stream().map(c -> c.operands().get(tensor).contiguous()).toList();
      // A result may be the operand: no one is written before all are read.
      var made = new ArrayList<HostTensor>();
      for (int self = 0; self < calls.size(); self++) {
        var result = calls.get(self).results().get(tensor);
        var flat = HostTensor.allocate(result.type().contiguous());
        switch (spec.kind()) {
          // All ranks get the same.
          case ALL_REDUCE -> {
            if (self == 0) {
              reduce(reduction(calls), operands, flat);
            } else {
              flat.copyFrom(made.getFirst());
            }
          }
          case REDUCE_SCATTER -> {
            int dim = collective(calls.getFirst()).sliceDims().operand();
            int part = self;
            var parts = operands.stream().map(all -> part(all, dim, calls.size(), part)).toList();
            reduce(reduction(calls), parts, flat);
          }
          case ALL_GATHER -> {
            int dim = collective(calls.getFirst()).sliceDims().result();
            for (int peer = 0; peer < operands.size(); peer++) {
              put(operands.get(peer), flat, dim, calls.size(), peer);
            }
          }
          case BROADCAST -> move(operands.get(root(calls)), 0, flat, 0, flat.type().numel());
          case COLLECTIVE_PERMUTE -> {
            var source = collective(calls.getFirst()).permutation().sourceOf(self);
            if (source.isPresent()) {
              move(operands.get(source.getAsInt()), 0, flat, 0, flat.type().numel());
            } else {
              flat.memory().fill((byte) 0);
            }
          }
          case ALL_TO_ALL -> {
            var dims = collective(calls.getFirst()).sliceDims();
            if (dims.equals(SliceDims.FIRST)) {
              exchange(calls, operands, flat, self);
            } else {
              for (int peer = 0; peer < operands.size(); peer++) {
                var sent = part(operands.get(peer), dims.operand(), calls.size(), self);
                put(sent, flat, dims.result(), calls.size(), peer);
              }
            }
          }
          case CUSTOM -> throw new IllegalArgumentException("a custom op has no definition");
        }
        made.add(flat);
      }
      for (int self = 0; self < calls.size(); self++) {
        calls.get(self).results().get(tensor).copyFrom(made.get(self));
      }
    }
  }

  private static ReduceOp reduction(List<Call> calls) {
    return collective(calls.getFirst()).reduceOp().orElseThrow();
  }

  private static int root(List<Call> calls) {
    return collective(calls.getFirst()).root().orElseThrow();
  }

  private static CollectiveCall collective(Call call) {
    return call.op().collective().orElseThrow();
  }

  private static void reduce(ReduceOp op, List<HostTensor> given, HostTensor result) {
    if (result.dtype().kind() == DType.Kind.COMPLEX) {
      reduce(op, given.stream().map(NaiveCollectives::parts).toList(), parts(result));
      return;
    }
    long count = result.type().numel();
    for (long start = 0; start < count; start += BLOCK) {
      int block = (int) Math.min(BLOCK, count - start);
      if (result.dtype().isFloat()) {
        floats(op, given, result, start, block);
      } else {
        integers(op, given, result, start, block);
      }
    }
  }

  /** {@return the parts of complex numbers} */
  private static HostTensor parts(HostTensor complex) {
    return complex.as(complex.type().parts());
  }

  private static void floats(
      ReduceOp op, List<HostTensor> given, HostTensor result, long at, int count) {
    var dtype = given.getFirst().dtype();
    var made = result.dtype();
    int width = dtype.bytes();
    var sums = new double[count];
    var next = new double[count];
    Elements.load(given.getFirst().memory(), at * width, width, dtype, sums, count);
    for (var operand : given.subList(1, given.size())) {
      Elements.load(operand.memory(), at * width, width, dtype, next, count);
      for (int i = 0; i < count; i++) {
        sums[i] = rounded(dtype, combine(op, sums[i], next[i]));
      }
    }
    for (int i = 0; i < count && op == ReduceOp.AVG; i++) {
      sums[i] = rounded(dtype, sums[i] / given.size());
    }
    Elements.store(sums, count, result.memory(), at * made.bytes(), made.bytes(), made);
  }

  private static void integers(
      ReduceOp op, List<HostTensor> given, HostTensor result, long at, int count) {
    var dtype = result.dtype();
    int width = dtype.bytes();
    var sums = new long[count];
    var next = new long[count];
    Elements.load(given.getFirst().memory(), at * width, width, dtype, sums, count);
    for (var operand : given.subList(1, given.size())) {
      Elements.load(operand.memory(), at * width, width, dtype, next, count);
      for (int i = 0; i < count; i++) {
        sums[i] = combine(op, dtype, sums[i], next[i]);
      }
    }
    Elements.store(sums, count, result.memory(), at * width, width, dtype);
  }

  private static double rounded(DType dtype, double value) {
    return dtype == DType.F64 ? value : (float) value;
  }

  private static double combine(ReduceOp op, double a, double b) {
    return switch (op) {
      case SUM, AVG -> a + b;
      case PRODUCT -> a * b;
      case MIN -> Double.isNaN(a) || Double.isNaN(b) ? Double.NaN : Math.min(a, b);
      case MAX -> Double.isNaN(a) || Double.isNaN(b) ? Double.NaN : Math.max(a, b);
      case BAND, BOR, BXOR -> throw new IllegalArgumentException(op + " of floats");
    };
  }

  private static long combine(ReduceOp op, DType dtype, long a, long b) {
    int order = dtype == DType.U64 ? Long.compareUnsigned(a, b) : Long.compare(a, b);
    return switch (op) {
      case SUM -> a + b;
      case PRODUCT -> a * b;
      case MIN -> order <= 0 ? a : b;
      case MAX -> order >= 0 ? a : b;
      case BAND -> a & b;
      case BOR -> a | b;
      case BXOR -> a ^ b;
      case AVG -> throw new IllegalArgumentException(op + " of integers");
    };
  }

  private static void move(HostTensor from, long start, HostTensor to, long at, long count) {
    long width = from.dtype().bytes();
    MemorySegment.copy(from.memory(), start * width, to.memory(), at * width, count * width);
  }

  /** {@return one of so many equal parts along a dimension, row-major} */
  private static HostTensor part(HostTensor whole, int dim, int parts, int index) {
    return view(whole, along(whole.type(), dim, parts), dim, index).contiguous();
  }

  /** Fills one of so many equal parts along a dimension. */
  private static void put(HostTensor part, HostTensor whole, int dim, int parts, int index) {
    var type = along(whole.type(), dim, parts);
    view(whole, type, dim, index).copyFrom(part.as(type));
  }

  private static TensorType along(TensorType whole, int dim, int parts) {
    var sizes = whole.sizes().toArray();
    sizes[dim] /= parts;
    return TensorType.contiguous(whole.dtype(), sizes);
  }

  private static HostTensor view(HostTensor whole, TensorType part, int dim, int index) {
    var type = whole.type();
    long start =
        part.numel() == 0 ? 0 : index * part.size(dim) * type.stride(dim) * type.dtype().bytes();
    return new HostTensor(whole.memory().asSlice(start), part.withStrides(type.strides()));
  }

  private static void exchange(
      List<Call> calls, List<HostTensor> operands, HostTensor result, int self) {
    long at = 0;
    for (int peer = 0; peer < calls.size(); peer++) {
      var type = operands.get(peer).type();
      long row = type.size(0) == 0 ? 0 : type.numel() / type.size(0);
      long start = 0;
      for (int i = 0; i < self; i++) {
        start += rows(calls, peer, i);
      }
      move(operands.get(peer), start * row, result, at, rows(calls, peer, self) * row);
      at += rows(calls, peer, self) * row;
    }
  }

  /** Rows that {@code from} sends to {@code to}. */
  private static long rows(List<Call> calls, int from, int to) {
    var call = calls.get(from);
    var splits = collective(call).inputSplits();
    return splits.isEmpty()
        ? call.operands().getFirst().type().size(0) / calls.size()
        : splits.get(to);
  }
}
