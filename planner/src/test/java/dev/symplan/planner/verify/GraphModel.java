package dev.symplan.planner.verify;

import dev.symplan.ir.Graph;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Op;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.Rows;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntPredicate;

/**
 * What a graph computes when each op is a hash of what it reads and every tensor has memory of its
 * own; elements take 4 bytes each.
 */
final class GraphModel {
  static final int CELL = 4;

  /** Where the elements of tensors are. */
  interface Memory {
    long get(Value value, int cell);

    void set(Value value, int cell, long number);
  }

  private final Graph graph;
  private final int[][] layouts;
  private final List<List<Value>> operands = new ArrayList<>();
  private final boolean[] isView;
  private final long[][] found;
  private final long[][] made;
  private final List<Value> kept;
  private final List<long[]> keptNumbers = new ArrayList<>();

  GraphModel(Graph graph) {
    this.graph = graph;
    this.layouts = new int[graph.valueCount()][];
    this.isView = new boolean[graph.ops().size()];
    this.found = new long[graph.ops().size()][];
    this.made = new long[graph.ops().size()][];
    this.kept = new ArrayList<>(graph.inputs());
    kept.removeIf(input -> input.tensor().space() == MemorySpace.DONATED);
    graph.outputs().forEach(output -> output.forEachValue(kept::add));
    graph.inputs().forEach(this::describe);
    for (int i = 0; i < isView.length; i++) {
      var op = graph.ops().get(i);
      op.results().forEach(this::describe);
      var given = new ArrayList<Value>();
      op.forEachOperand(given::add);
      operands.add(given);
      isView[i] =
          op.def().has(OpTrait.WAIT)
              || (!op.def().schema().mutates()
                  && op.infer().stream().allMatch(result -> result.view().isPresent()));
    }
    evaluate();
  }

  /** Notes the cells of a tensor behind its first, in the order of its elements. */
  private void describe(Value value) {
    var type = value.tensor();
    var cells = new int[(int) type.numel()];
    for (int i = 0; i < cells.length; i++) {
      int rest = i;
      for (int d = type.rank() - 1; d >= 0; d--) {
        cells[i] += (int) (rest % type.size(d) * type.stride(d));
        rest /= (int) type.size(d);
      }
    }
    layouts[value.id()] = cells;
  }

  private void evaluate() {
    var cells = new long[graph.valueCount()][];
    var begin = new int[graph.valueCount()];
    var memory =
        new Memory() {
          @Override
          public long get(Value value, int cell) {
            return cells[value.id()][begin[value.id()] + cell];
          }

          @Override
          public void set(Value value, int cell, long number) {
            cells[value.id()][begin[value.id()] + cell] = number;
          }
        };
    for (var input : graph.inputs()) {
      cells[input.id()] = new long[(int) (input.tensor().storageBytes() / CELL)];
      fill(memory, input);
    }
    for (int i = 0; i < isView.length; i++) {
      var op = graph.ops().get(i);
      var inferred = op.infer();
      for (int r = 0; r < op.results().size(); r++) {
        var value = op.results().get(r);
        var view = inferred.get(r).view();
        if (view.isPresent()) {
          cells[value.id()] = cells[view.get().of().id()];
          begin[value.id()] = begin[view.get().of().id()] + (int) view.get().offset();
        } else {
          cells[value.id()] = new long[(int) (value.tensor().storageBytes() / CELL)];
        }
      }
      if (!isView[i]) {
        found[i] = read(memory, operands.get(i));
        carryOut(i, memory, false, result -> false);
        made[i] = read(memory, op.results());
      }
    }
    kept.forEach(value -> keptNumbers.add(read(memory, List.of(value))));
  }

  boolean isView(int op) {
    return isView[op];
  }

  /** Gives an input its data. */
  void fill(Memory memory, Value input) {
    var layout = layouts[input.id()];
    for (int i = 0; i < layout.length; i++) {
      memory.set(input, layout[i], mix(input.id() + 1, i));
    }
  }

  boolean findsOperands(int op, Memory memory) {
    return same(memory, operands.get(op), found[op]);
  }

  boolean findsResults(int op, Memory memory) {
    return same(memory, graph.ops().get(op).results(), made[op]);
  }

  /** Whether inputs and outputs are at the end what they must be. */
  boolean findsKept(Memory memory) {
    for (int i = 0; i < kept.size(); i++) {
      if (!same(memory, List.of(kept.get(i)), keptNumbers.get(i))) {
        return false;
      }
    }
    return true;
  }

  private boolean same(Memory memory, List<Value> values, long[] numbers) {
    int next = 0;
    for (var value : values) {
      for (int cell : layouts[value.id()]) {
        if (memory.get(value, cell) != numbers[next++]) {
          return false;
        }
      }
    }
    return true;
  }

  private long[] read(Memory memory, List<Value> values) {
    var numbers = new long[values.stream().mapToInt(v -> layouts[v.id()].length).sum()];
    int next = 0;
    for (var value : values) {
      for (int cell : layouts[value.id()]) {
        numbers[next++] = memory.get(value, cell);
      }
    }
    return numbers;
  }

  private static long mix(long a, long b) {
    long z = (a ^ Long.rotateLeft(b, 31)) * 0x9E3779B97F4A7C15L + b;
    z = (z ^ (z >>> 29)) * 0xBF58476D1CE4E5B9L;
    return z ^ (z >>> 32);
  }

  /**
   * Carries out an op. One that may not write over its operands spoils its results first; one that
   * goes by elements or rows takes them forwards or backwards.
   */
  void carryOut(int index, Memory memory, boolean backwards, IntPredicate replacesOperand) {
    Op op = graph.ops().get(index);
    if (Rows.of(op) > 0 || op.def().has(OpTrait.ELEMENTWISE)) {
      byRows(memory, backwards, Rows.of(op), index);
      return;
    }
    if (!op.def().schema().mutates()) {
      for (int r = 0; r < op.results().size(); r++) {
        if (!replacesOperand.test(r)) {
          spoil(memory, op.results().get(r));
        }
      }
    }
    long digest = index;
    for (var operand : operands.get(index)) {
      for (int cell : layouts[operand.id()]) {
        digest = mix(digest, memory.get(operand, cell));
      }
    }
    for (int r = 0; r < op.results().size(); r++) {
      var result = op.results().get(r);
      var layout = layouts[result.id()];
      for (int i = 0; i < layout.length; i++) {
        memory.set(result, layout[i], mix(mix(digest, r), i));
      }
    }
  }

  /** Leaves what nobody may read. */
  void spoil(Memory memory, Value value) {
    for (int cell : layouts[value.id()]) {
      memory.set(value, cell, -1 - cell);
    }
  }

  /** Carries out ops row by row: each row passes all of them. */
  void byRows(Memory memory, boolean backwards, int rows, int... ops) {
    var first = graph.ops().get(ops[0]).results().getFirst();
    int count = rowCount(first, rows);
    for (int n = 0; n < count; n++) {
      int row = backwards ? count - 1 - n : n;
      for (int index : ops) {
        var op = graph.ops().get(index);
        boolean elementwise = op.def().has(OpTrait.ELEMENTWISE);
        var result = op.results().getFirst();
        int parts =
            (elementwise ? layouts[result.id()].length : rowCount(result, Rows.of(op))) / count;
        for (int m = 0; m < parts; m++) {
          int part = row * parts + (backwards ? parts - 1 - m : m);
          if (elementwise) {
            element(index, memory, part);
          } else {
            row(index, memory, part);
          }
        }
      }
    }
  }

  private static int rowCount(Value value, int rows) {
    int count = 1;
    for (int dim = 0; dim < rows; dim++) {
      count *= (int) value.tensor().size(dim);
    }
    return count;
  }

  /** One row of a row-wise op, which may not write over its own operands. */
  private void row(int index, Memory memory, int row) {
    var op = graph.ops().get(index);
    int own = Rows.of(op);
    int count = rowCount(op.results().getFirst(), own);
    for (var result : op.results()) {
      int length = layouts[result.id()].length / count;
      for (int i = row * length; i < (row + 1) * length; i++) {
        memory.set(result, layouts[result.id()][i], -1 - i);
      }
    }
    long digest = index;
    for (var operand : operands.get(index)) {
      boolean carries = Rows.carries(op, operand, own);
      int length = carries ? layouts[operand.id()].length / count : layouts[operand.id()].length;
      int from = carries ? row * length : 0;
      for (int i = from; i < from + length; i++) {
        digest = mix(digest, memory.get(operand, layouts[operand.id()][i]));
      }
    }
    for (int r = 0; r < op.results().size(); r++) {
      var result = op.results().get(r);
      int length = layouts[result.id()].length / count;
      for (int i = row * length; i < (row + 1) * length; i++) {
        memory.set(result, layouts[result.id()][i], mix(mix(digest, r), i));
      }
    }
  }

  private void element(int index, Memory memory, int i) {
    var result = graph.ops().get(index).result();
    long number = index;
    for (var operand : operands.get(index)) {
      int from = layouts[operand.id()][broadcast(result, operand, i)];
      number = mix(number, memory.get(operand, from));
    }
    memory.set(result, layouts[result.id()][i], number);
  }

  private static int broadcast(Value result, Value operand, int element) {
    var to = result.tensor();
    var from = operand.tensor();
    if (from.sizes().equals(to.sizes())) {
      return element;
    }
    int rest = element;
    int index = 0;
    int step = 1;
    for (int d = to.rank() - 1, e = from.rank() - 1; e >= 0; d--, e--) {
      index += (int) (rest % to.size(d) % from.size(e)) * step;
      step *= (int) from.size(e);
      rest /= (int) to.size(d);
    }
    return index;
  }
}
