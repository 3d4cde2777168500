package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.rewrite.PackedFold.Part;
import dev.symplan.planner.pass.rewrite.PackedFold.Read;
import dev.symplan.planner.pass.rewrite.Traversal.Loop;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The collectives of one graph that take several tensors packed into one, as buckets of FSDP do.
 *
 * <p>Before such a gather, the shards of several parameters are put one after the other; after it,
 * each parameter is copied together from the parts that the ranks had of it. Before such a scatter,
 * the parts of several gradients that go to one rank are put one after the other.
 */
final class FoldablePacks {
  private final Analyses graph;
  private final Aliases aliases;
  private final ImmutableList<Op> ops;
  private final DataFlow flow;

  FoldablePacks(Analyses graph, DataFlow flow) {
    this.graph = graph;
    this.aliases = graph.aliases();
    this.ops = graph.graph().ops();
    this.flow = flow;
  }

  /**
   * {@return how a collective between so many ranks can take the tensors that it is packed of}
   *
   * @param widens whether a scatter may also convert what it reduces ({@link Widening}), be it
   *     packed or not
   */
  Optional<PackedFold> of(int k, int ranks, boolean widens) {
    var collective = graph.collectives().get(k);
    var name = collective.op().def().name();
    boolean listed =
        collective.kind() == Kind.ALL_GATHER || collective.kind() == Kind.REDUCE_SCATTER;
    return listed
            && ranks > 1
            && name.namespace().equals("_c10d_functional")
            && !name.name().endsWith("_coalesced")
            && !collective.op().def().schema().mutates()
            && collective.operands().getFirst().tensor().isContiguous()
            && collective.operands().getFirst().tensor().numel() > 0
            && aliases.isWhole(collective.results().getFirst())
            && aliases.families().isAlone(aliases.id(collective.results().getFirst()))
        ? new Search(k, collective, ranks, widens).find()
        : Optional.empty();
  }

  /** A result, or some of it, where it lies in the packed one. */
  private record Range(long start, long size) {
    long end() {
      return start + size;
    }

    boolean holds(Range other) {
      return start <= other.start && other.end() <= end();
    }
  }

  private final class Search {
    private final int number;
    private final Collective collective;
    private final int ranks;
    private final Value result;
    private final boolean gathers;
    private final boolean widens;

    /** The elements that the collective sends to, or gets from, each rank. */
    private final long slice;

    /** The tensors that are packed, and where each lies in a slice. */
    private final List<Value> sources = new ArrayList<>();

    private final List<Range> ranges = new ArrayList<>();

    /** By range, the tensors that the result becomes there. */
    private final Map<Integer, List<Read>> reads = new HashMap<>();

    /** The parts of which a copy takes all. */
    private final Set<Integer> copied = new HashSet<>();

    private final List<Integer> copies = new ArrayList<>();
    private boolean packed;

    Search(int number, Collective collective, int ranks, boolean widens) {
      this.number = number;
      this.collective = collective;
      this.ranks = ranks;
      this.result = collective.results().getFirst();
      this.gathers = collective.kind() == Kind.ALL_GATHER;
      this.widens = widens && !gathers;
      this.slice = collective.operands().getFirst().tensor().numel() / (gathers ? 1 : ranks);
    }

    Optional<PackedFold> find() {
      if (!unpackAll() && !gathers) {
        return Optional.empty();
      }
      int storage = aliases.id(result);
      for (int i = collective.index() + 1; i < ops.size(); i++) {
        if (aliases.runs(i) && flow.reads(i, storage) && !read(i, storage)) {
          return Optional.empty();
        }
      }
      for (var value : graph.graph().outputValues()) {
        if (aliases.id(value) == storage && !read(value)) {
          return Optional.empty();
        }
      }
      return fold();
    }

    private Optional<PackedFold> fold() {
      var parts = ImmutableList.<Part>builder();
      var all = ImmutableList.<Read>builder();
      int count = 0;
      for (int i = 0; i < ranges.size(); i++) {
        var own = reads.getOrDefault(i, List.of());
        if (own.isEmpty()) {
          continue;
        }
        var source = sources.get(i);
        var range = ranges.get(i);
        parts.add(
            packed
                ? new Part(source, 0, source.tensor().numel(), range.start())
                : new Part(source, range.start(), range.size(), range.start()));
        for (var read : own) {
          all.add(new Read(read.value(), count, read.start()));
        }
        count++;
      }
      return count == 0 || copies.isEmpty()
          ? Optional.empty()
          : Optional.of(
              new PackedFold(
                  number, ranks, parts.build(), all.build(), ImmutableIntArray.copyOf(copies)));
    }

    /** Finds out what was packed, and whether something was, or one tensor was converted. */
    private boolean unpackAll() {
      var operand = collective.operands().getFirst();
      var behind = widening(operand, collective.index());
      if (behind.isEmpty()) {
        packed = unpack(operand, collective.index());
        if (packed) {
          widenAll();
        }
        return packed;
      }
      var narrow = behind.get().narrow();
      packed = unpack(narrow, behind.get().op());
      if (!packed && narrow.tensor().isContiguous()) {
        sources.add(narrow);
        ranges.add(new Range(0, slice));
        packed = true;
      }
      copies.add(behind.get().op());
      return packed;
    }

    private Optional<Widening> widening(Value wide, int reader) {
      return widens ? Widening.of(wide, reader, collective.index(), graph, flow) : Optional.empty();
    }

    /** Takes what was packed before it was converted, if all of it was of one type then. */
    private void widenAll() {
      int cat = copies.getFirst();
      var all = sources.stream().flatMap(piece -> widening(piece, cat).stream()).toList();
      boolean alike =
          all.size() == sources.size()
              && all.stream().map(w -> w.narrow().tensor().dtype()).distinct().count() == 1
              && all.stream().allMatch(w -> w.narrow().tensor().isContiguous());
      if (alike) {
        sources.clear();
        all.forEach(widening -> sources.add(widening.narrow()));
        all.forEach(widening -> copies.add(widening.op()));
      }
    }

    /** Finds out what was packed, and whether something was, for its only reader. */
    private boolean unpack(Value operand, int reader) {
      int storage = aliases.id(operand);
      int maker = aliases.storage(storage).def();
      if (maker == DataFlow.NONE
          || flow.onlyReader(storage) != reader
          || !aliases.isWhole(operand)
          // A conversion may go through all of it in another order.
          || !operand.tensor().isContiguous()
          || flow.mayWrite(maker + 1, collective.index())
          || !isCat(ops.get(maker))) {
        return false;
      }
      var cat = ops.get(maker);
      var whole = cat.result().tensor();
      int dim = OpCall.wrapDim(((Arg.Int) cat.arg("dim")).value(), whole.rank(), "dim");
      long rows = whole.sizes().subArray(0, dim).stream().reduce(1, (a, b) -> a * b);
      var pieces =
          cat.args().getFirst().operands().stream()
              .filter(piece -> piece.tensor().numel() > 0)
              .toList();
      if (rows != (gathers ? 1 : ranks)
          || pieces.size() < 2
          || whole.dtype() != operand.tensor().dtype()
          || !pieces.stream().map(Value::tensor).allMatch(type -> isRunOf(type, whole))) {
        return false;
      }
      long start = 0;
      for (var piece : pieces) {
        long size = piece.tensor().numel() / rows;
        sources.add(piece);
        ranges.add(new Range(start, size));
        start += size;
      }
      copies.add(maker);
      return true;
    }

    private static boolean isRunOf(TensorType type, TensorType whole) {
      return type.isContiguous() && type.dtype() == whole.dtype();
    }

    private boolean isCat(Op op) {
      var name = op.def().name().toString();
      return (name.equals("aten::cat") || name.equals("aten::concat"))
          && op.result().tensor().isContiguous()
          && op.arg("dim") instanceof Arg.Int;
    }

    /** Whether an op can read the results of parts. */
    private boolean read(int op, int storage) {
      var taken = gathers ? taken(op) : Optional.<Range>empty();
      if (taken.isPresent()) {
        return add(op, taken.get());
      }
      return packed
          && ops.get(op).operands().stream()
              .filter(value -> aliases.id(value) == storage)
              .allMatch(this::read);
    }

    /**
     * {@return the values that an op copies together, if they are the same of what each rank sent}
     */
    private Optional<Range> taken(int op) {
      if (ops.get(op).results().size() != 1
          || !ops.get(op).result().isTensor()
          || ops.get(op).result().tensor().dtype() != result.tensor().dtype()
          || ops.get(op).result().tensor().numel() % ranks != 0) {
        return Optional.empty();
      }
      long size = ops.get(op).result().tensor().numel() / ranks;
      return Traversal.of(ops.get(op), aliases)
          .filter(order -> order.loops().equals(rows(size)) && size < slice)
          .map(order -> new Range(order.offset() / result.tensor().dtype().bytes(), size))
          .filter(range -> range.end() <= slice);
    }

    private ImmutableList<Loop> rows(long size) {
      return Traversal.of(0, List.of(new Loop(ranks, slice), new Loop(size, 1))).loops();
    }

    /** Whether a copy takes all of one part, which nothing else reads then. */
    private boolean add(int op, Range taken) {
      int part = packed ? ranges.indexOf(taken) : ranges.size();
      if (part < 0 || reads.containsKey(part)) {
        return false;
      }
      if (!packed) {
        if (ranges.stream().anyMatch(r -> r.start() < taken.end() && taken.start() < r.end())) {
          return false;
        }
        sources.add(collective.operands().getFirst());
        ranges.add(taken);
      }
      reads.put(part, new ArrayList<>(List.of(new Read(ops.get(op).result(), part, 0))));
      copied.add(part);
      copies.add(op);
      return true;
    }

    /** Whether a view is of what one rank sent of one part, and so looks the same there. */
    private boolean read(Value view) {
      Optional<Read> highest = Optional.empty();
      Optional<Value> value = Optional.of(view);
      while (value.isPresent()) {
        var place = place(value.get());
        highest = place.isPresent() ? place : highest;
        value = base(value.get());
      }
      if (highest.isEmpty() || copied.contains(highest.get().part())) {
        return false;
      }
      var others = reads.computeIfAbsent(highest.get().part(), _ -> new ArrayList<>());
      if (!others.contains(highest.get())) {
        others.add(highest.get());
      }
      return true;
    }

    /** {@return the value that a view shows, or that an op wrote into and gives} */
    private Optional<Value> base(Value value) {
      int maker = flow.maker(value);
      if (maker == DataFlow.NONE || !aliases.runs(maker) || aliases.of(value).def() == maker) {
        return flow.base(value);
      }
      var op = ops.get(maker);
      return op.infer().get(op.results().indexOf(value)).view().map(OpResult.View::of);
    }

    private Optional<Read> place(Value value) {
      var type = value.tensor();
      if (type.dtype() != result.tensor().dtype()
          || type.numel() == 0
          || !type.strides().equals(TensorType.contiguousStrides(type.sizes()))) {
        return Optional.empty();
      }
      long first = aliases.offset(value) / type.dtype().bytes();
      var range = new Range(first % slice, type.numel());
      for (int i = 0; i < ranges.size(); i++) {
        var part = ranges.get(i);
        if (part.holds(range)) {
          long start = first / slice * part.size() + range.start() - part.start();
          return Optional.of(new Read(value, i, start));
        }
      }
      return Optional.empty();
    }
  }
}
