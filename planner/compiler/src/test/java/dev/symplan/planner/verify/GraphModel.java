package dev.symplan.planner.verify;

import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * The results of a graph when each op is a hash of what it reads and every tensor has memory of its
 * own; elements take 4 bytes each. Ops without a rule do one of the things that their schemas leave
 * open, chosen by their names. The hashes are the same for forms of an op that a rewrite may change
 * into each other, so that the models of two graphs can be compared.
 */
final class GraphModel {
  static final int CELL = 4;

  /** Where the elements of tensors are, and what ops change besides. */
  interface Memory {
    long get(Value value, int cell);

    void set(Value value, int cell, long number);

    /** Makes a result the tensor that an argument is. */
    void share(Value result, Value argument);

    /** Makes a result a view of all of an argument. */
    void view(Value result, Value argument);

    /** Moves an argument to where another one is. */
    void move(Value argument, Value other);

    /** {@return the state that ops that may do anything have left outside their arguments} */
    long state();

    void setState(long state);
  }

  /** Where a tensor begins: another object for each tensor, which ops may move. */
  private static final class Pointer {
    long[] cells;
    int begin;

    Pointer(long[] cells, int begin) {
      this.cells = cells;
      this.begin = begin;
    }
  }

  private final Graph graph;
  private final int[][] layouts;
  private final List<List<Value>> operands = new ArrayList<>();
  private final boolean[] isView;
  private final long[][] found;
  private final long[][] made;
  private final List<Value> kept;

  /** How many of these are inputs; outputs come after. */
  private final int keptInputs;

  private final List<long[]> keptNumbers = new ArrayList<>();

  GraphModel(Graph graph) {
    this.graph = graph;
    this.layouts = new int[graph.valueCount()][];
    this.isView = new boolean[graph.ops().size()];
    this.found = new long[graph.ops().size()][];
    this.made = new long[graph.ops().size()][];
    this.kept = new ArrayList<>(graph.inputs());
    kept.removeIf(input -> input.tensor().space() == MemorySpace.DONATED);
    this.keptInputs = kept.size();
    kept.addAll(graph.outputValues());
    graph.inputs().forEach(this::describe);
    for (int i = 0; i < isView.length; i++) {
      var op = graph.ops().get(i);
      op.results().forEach(this::describe);
      operands.add(op.operands());
      isView[i] =
          op.def().has(OpTrait.WAIT)
              || (op.def().rule().isPresent()
                  && !op.def().schema().mutates()
                  && op.infer().stream().allMatch(result -> result.view().isPresent()));
    }
    evaluate();
  }

  /** Notes the cells of a tensor after its first, in the order of its elements. */
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
    var memory = new OwnMemory(graph.valueCount());
    for (var input : graph.inputs()) {
      memory.allocate(input);
      fill(memory, input);
    }
    for (int i = 0; i < isView.length; i++) {
      var op = graph.ops().get(i);
      var inferred = op.infer();
      for (int r = 0; r < op.results().size(); r++) {
        var value = op.results().get(r);
        var view = inferred.get(r).view();
        if (view.isPresent()) {
          var base = memory.pointers[view.get().of().id()];
          memory.pointers[value.id()] =
              op.def().rule().isEmpty()
                  ? base
                  : new Pointer(base.cells, base.begin + (int) view.get().offset());
        } else {
          memory.allocate(value);
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

  /** Every tensor in memory of its own. */
  private static final class OwnMemory implements Memory {
    private final Pointer[] pointers;
    private long state;

    OwnMemory(int count) {
      this.pointers = new Pointer[count];
    }

    void allocate(Value value) {
      pointers[value.id()] = new Pointer(new long[(int) (value.tensor().storageBytes() / CELL)], 0);
    }

    @Override
    public long get(Value value, int cell) {
      return pointers[value.id()].cells[pointers[value.id()].begin + cell];
    }

    @Override
    public void set(Value value, int cell, long number) {
      pointers[value.id()].cells[pointers[value.id()].begin + cell] = number;
    }

    @Override
    public void share(Value result, Value argument) {
      pointers[result.id()] = pointers[argument.id()];
    }

    @Override
    public void view(Value result, Value argument) {
      var base = pointers[argument.id()];
      pointers[result.id()] = new Pointer(base.cells, base.begin);
    }

    @Override
    public void move(Value argument, Value other) {
      pointers[argument.id()].cells = pointers[other.id()].cells;
      pointers[argument.id()].begin = pointers[other.id()].begin;
    }

    @Override
    public long state() {
      return state;
    }

    @Override
    public void setState(long newState) {
      state = newState;
    }
  }

  /**
   * {@return whether the outputs are those of another graph's, and so is what this one leaves in
   * its inputs; it may keep fewer of them}
   */
  boolean computesLike(GraphModel other) {
    int outputs = kept.size() - keptInputs;
    for (int i = 1; i <= outputs; i++) {
      if (!Arrays.equals(
          keptNumbers.get(kept.size() - i), other.keptNumbers.get(other.kept.size() - i))) {
        return false;
      }
    }
    for (int i = 0; i < keptInputs; i++) {
      int index = graph.inputs().indexOf(kept.get(i));
      int there = other.kept.indexOf(other.graph.inputs().get(index));
      if (!Arrays.equals(keptNumbers.get(i), other.keptNumbers.get(there))) {
        return false;
      }
    }
    return true;
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

  /** A hash of what an op does, whatever its results are called. */
  private static long key(Op op) {
    var collective = op.def().collective();
    var name = op.def().name();
    var text = new StringBuilder();
    if (hasSlices(op)) {
      // Where the slices lie does not depend on what is done to them.
      var call = op.collective().orElseThrow();
      text.append(call.kind()).append(call.group()).append(call.reduceOp());
      text.append(call.inputSplits()).append(call.outputSplits());
      return text.toString().hashCode();
    }
    if (collective.isPresent() && collective.get().kind() != CollectiveSpec.Kind.CUSTOM) {
      text.append(collective.get().kind());
    } else {
      text.append(name);
    }
    for (int i = 0; i < op.args().size(); i++) {
      boolean[] tensors = {false};
      op.args().get(i).operands().forEach(value -> tensors[0] = true);
      if (!tensors[0] && !(op.args().get(i) instanceof Arg.None)) {
        text.append(op.args().get(i));
      }
    }
    return text.toString().hashCode();
  }

  private static boolean hasSlices(Op op) {
    return op.collective()
        .filter(
            call ->
                switch (call.kind()) {
                  case ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL -> true;
                  case ALL_REDUCE, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM -> false;
                })
        .isPresent();
  }

  /**
   * {@return for each element of a collective's slices, one slice after the other, which one it is
   * of the operand or result}
   */
  private static int[] slices(Op op, TensorType type, int dim) {
    var numbers = IntStream.range(0, (int) type.numel()).toArray();
    if (dim == 0 || numbers.length == 0) {
      return numbers;
    }
    int ranks = (int) op.collective().orElseThrow().groupSize().orElseThrow();
    int rows = 1;
    for (int i = 0; i < dim; i++) {
      rows *= (int) type.size(i);
    }
    int row = numbers.length / rows / ranks;
    int next = 0;
    for (int slice = 0; slice < ranks; slice++) {
      for (int r = 0; r < rows; r++) {
        for (int i = 0; i < row; i++) {
          numbers[next++] = (r * ranks + slice) * row + i;
        }
      }
    }
    return numbers;
  }

  /**
   * Carries out an op. One that may not write over its operands spoils its results first; one that
   * goes by elements or rows takes them forwards or backwards.
   */
  void carryOut(int index, Memory memory, boolean backwards, IntPredicate replacesOperand) {
    Op op = graph.ops().get(index);
    if (op.def().rule().isEmpty()) {
      carryOutUnruled(index, memory);
      return;
    }
    if (op.def().has(OpTrait.HOST_COPY_END)) {
      return;
    }
    boolean joins = op.def().has(OpTrait.CONCATENATION);
    if (Rows.of(op) > 0 && !joins || op.def().has(OpTrait.ELEMENTWISE)) {
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
    boolean again = op.results().stream().anyMatch(result -> result.name().endsWith("_again"));
    if (op.def().collective().isPresent() && !again) {
      // In any order, as side streams are, and in any pieces, as rewrites make them. What is
      // gathered again leaves nothing behind but its result.
      long elements = operands.get(index).stream().mapToLong(v -> v.tensor().numel()).sum();
      memory.setState(memory.state() + key(op) * elements);
    }
    var inputs = new ArrayList<long[]>();
    operands.get(index).forEach(operand -> inputs.add(read(memory, List.of(operand))));
    compute(op, inputs, memory);
  }

  private static long[] sideBySide(Op op, List<long[]> pieces) {
    var type = op.result().tensor();
    int outer = 1;
    for (int i = 0; i < Math.floorMod(op.call().integer("dim"), type.rank()); i++) {
      outer *= (int) type.size(i);
    }
    var numbers = new long[(int) type.numel()];
    int next = 0;
    for (int i = 0; i < outer; i++) {
      for (var piece : pieces) {
        int length = piece.length / outer;
        System.arraycopy(piece, i * length, numbers, next, length);
        next += length;
      }
    }
    return numbers;
  }

  private void compute(Op op, List<long[]> inputs, Memory memory) {
    var name = op.def().name().toString();
    var kind = op.def().collective().map(CollectiveSpec::kind);
    boolean byTensor = kind.isPresent() && kind.get() != CollectiveSpec.Kind.CUSTOM;
    for (int r = 0; r < op.results().size(); r++) {
      var result = op.results().get(r);
      var layout = layouts[result.id()];
      var numbers = new long[layout.length];
      if (numbers.length == 0) {
        continue;
      }
      if (name.equals("symplan::stage")
          || name.equals("aten::clone")
          || op.def().has(OpTrait.HOST_COPY)) {
        numbers = inputs.getFirst();
      } else if (name.equals("aten::copy_")) {
        numbers = inputs.get(1);
      } else if (name.equals("aten::cat")) {
        numbers = sideBySide(op, inputs);
      } else if (kind.isPresent() && kind.get() == CollectiveSpec.Kind.ALL_REDUCE) {
        long key = key(op);
        numbers = Arrays.stream(inputs.get(r)).map(number -> mix(key, number)).toArray();
      } else if (name.equals("aten::mm")) {
        int columns = numbers.length / (int) result.tensor().size(0);
        int inner = inputs.getFirst().length / (int) result.tensor().size(0);
        for (int i = 0; i < numbers.length; i++) {
          int row = i / columns;
          long digest = key(op);
          for (int k = 0; k < inner; k++) {
            digest = mix(digest, inputs.getFirst()[row * inner + k]);
          }
          numbers[i] = mix(mix(digest, Arrays.hashCode(inputs.get(1))), i % columns);
        }
      } else if (hasSlices(op)) {
        var dims = op.collective().orElseThrow().sliceDims();
        var sent = inputs.get(r);
        long digest = key(op);
        var operand = op.operands().get(r).tensor();
        for (int at : slices(op, operand, dims.operand())) {
          digest = mix(digest, sent[at]);
        }
        int next = 0;
        for (int at : slices(op, result.tensor(), dims.result())) {
          numbers[at] = mix(mix(digest, 0), next++);
        }
      } else {
        long digest = key(op);
        for (var input : byTensor ? inputs.subList(r, r + 1) : inputs) {
          for (long number : input) {
            digest = mix(digest, number);
          }
        }
        for (int i = 0; i < numbers.length; i++) {
          numbers[i] = mix(mix(digest, byTensor ? 0 : r), i);
        }
      }
      write(memory, result, numbers);
    }
  }

  private void write(Memory memory, Value value, long[] numbers) {
    for (int i = 0; i < numbers.length; i++) {
      memory.set(value, layouts[value.id()][i], numbers[i]);
    }
  }

  /** Does one of the things that the schema of an op without a rule leaves open. */
  private void carryOutUnruled(int index, Memory memory) {
    var op = graph.ops().get(index);
    var random = new Random(key(op));
    var schema = op.def().schema();
    long digest = key(op);
    for (var operand : operands.get(index)) {
      for (long number : read(memory, List.of(operand))) {
        digest = mix(digest, number);
      }
    }
    if (op.def().isUnbounded()) {
      digest = mix(digest, memory.state());
      memory.setState(mix(memory.state(), digest));
    }
    var anywhere = new ArrayList<Value>();
    for (int i = 0; i < op.args().size(); i++) {
      var alias = schema.params().get(i).alias();
      if (op.args().get(i) instanceof Arg.Ref(Value value)) {
        if (alias.write() && (!alias.isAnything() || random.nextBoolean())) {
          write(memory, value, numbers(digest, i, value));
        }
        if (alias.isAnything()) {
          anywhere.add(value);
        }
      }
    }
    for (var argument : anywhere) {
      var other = anywhere.get(random.nextInt(anywhere.size()));
      if (random.nextInt(3) == 0 && isLike(argument, other)) {
        memory.move(argument, other);
      }
    }
    for (int r = 0; r < op.results().size(); r++) {
      var result = op.results().get(r);
      if (schema.returned(r).isPresent()) {
        continue;
      }
      var sources = new ArrayList<Value>();
      op.sources(r).forEach(sources::add);
      sources.removeIf(source -> op.results().contains(source) || !isLike(result, source));
      int choice = random.nextInt(3);
      if (choice == 0 || sources.isEmpty()) {
        write(memory, result, numbers(digest, -1 - r, result));
      } else if (choice == 1) {
        memory.share(result, sources.get(random.nextInt(sources.size())));
      } else {
        memory.view(result, sources.get(random.nextInt(sources.size())));
      }
    }
  }

  private static boolean isLike(Value a, Value b) {
    return a.tensor().sizes().equals(b.tensor().sizes())
        && a.tensor().strides().equals(b.tensor().strides());
  }

  private long[] numbers(long digest, int salt, Value value) {
    return IntStream.range(0, layouts[value.id()].length)
        .mapToLong(i -> mix(mix(digest, salt), i))
        .toArray();
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
    if (op.def().has(OpTrait.CONCATENATION)) {
      joinRow(op, memory, row, count);
      return;
    }
    long digest = key(op);
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

  private void joinRow(Op op, Memory memory, int row, int count) {
    var to = layouts[op.result().id()];
    int next = row * (to.length / count);
    for (var piece : op.operands()) {
      var from = layouts[piece.id()];
      int length = from.length / count;
      for (int i = row * length; i < (row + 1) * length; i++) {
        memory.set(op.result(), to[next++], memory.get(piece, from[i]));
      }
    }
  }

  private void element(int index, Memory memory, int i) {
    var result = graph.ops().get(index).result();
    long number = key(graph.ops().get(index));
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
