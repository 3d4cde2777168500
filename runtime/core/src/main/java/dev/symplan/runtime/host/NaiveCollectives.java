package dev.symplan.runtime.host;

import dev.symplan.ir.DType;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.ReduceOp;
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
              reduce(reduction(calls), operands, flat, 0);
            } else {
              flat.copyFrom(made.getFirst());
            }
          }
          case REDUCE_SCATTER ->
              reduce(reduction(calls), operands, flat, self * flat.type().numel());
          case ALL_GATHER -> gather(operands, flat);
          case BROADCAST -> move(operands.get(root(calls)), 0, flat, 0, flat.type().numel());
          case ALL_TO_ALL -> exchange(calls, operands, flat, self);
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

  private static void reduce(ReduceOp op, List<HostTensor> given, HostTensor result, long from) {
    long count = result.type().numel();
    for (long start = 0; start < count; start += BLOCK) {
      int block = (int) Math.min(BLOCK, count - start);
      if (result.dtype().isFloat()) {
        floats(op, given, from + start, result, start, block);
      } else {
        integers(op, given, from + start, result, start, block);
      }
    }
  }

  private static void floats(
      ReduceOp op, List<HostTensor> given, long from, HostTensor result, long at, int count) {
    var dtype = result.dtype();
    int width = dtype.bytes();
    var sums = new double[count];
    var next = new double[count];
    Elements.load(given.getFirst().memory(), from * width, width, dtype, sums, count);
    for (var operand : given.subList(1, given.size())) {
      Elements.load(operand.memory(), from * width, width, dtype, next, count);
      for (int i = 0; i < count; i++) {
        sums[i] = rounded(dtype, combine(op, sums[i], next[i]));
      }
    }
    for (int i = 0; i < count && op == ReduceOp.AVG; i++) {
      sums[i] = rounded(dtype, sums[i] / given.size());
    }
    Elements.store(sums, count, result.memory(), at * width, width, dtype);
  }

  private static void integers(
      ReduceOp op, List<HostTensor> given, long from, HostTensor result, long at, int count) {
    var dtype = result.dtype();
    int width = dtype.bytes();
    var sums = new long[count];
    var next = new long[count];
    Elements.load(given.getFirst().memory(), from * width, width, dtype, sums, count);
    for (var operand : given.subList(1, given.size())) {
      Elements.load(operand.memory(), from * width, width, dtype, next, count);
      for (int i = 0; i < count; i++) {
        sums[i] = combine(op, sums[i], next[i]);
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

  private static long combine(ReduceOp op, long a, long b) {
    return switch (op) {
      case SUM -> a + b;
      case PRODUCT -> a * b;
      case MIN -> Math.min(a, b);
      case MAX -> Math.max(a, b);
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

  private static void gather(List<HostTensor> operands, HostTensor result) {
    long at = 0;
    for (var operand : operands) {
      move(operand, 0, result, at, operand.type().numel());
      at += operand.type().numel();
    }
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
