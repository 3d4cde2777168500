package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;
import static com.google.common.collect.ImmutableSet.toImmutableSet;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.rewrite.BufferContents.Piece;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Lets ops read what was copied instead of the buffer that it was copied into.
 *
 * <p>FSDP fills buffers piece by piece: {@code empty}, then a {@code copy_} into each part. What
 * reads a part reads what was copied there, and what reads several reads their {@code cat}. A
 * buffer of which that is known everywhere takes no memory.
 */
final class ForwardCopies extends GraphSearch {
  private static final OpDef VIEW = BuiltinOps.registry().get("aten::view");
  private static final OpDef SLICE = BuiltinOps.registry().get("aten::slice.Tensor");
  private static final OpDef CAT = BuiltinOps.registry().get("aten::cat");
  private static final OpDef CLONE = BuiltinOps.registry().get("aten::clone");
  private static final OpDef TO_COPY = BuiltinOps.registry().get("aten::_to_copy");

  private final GraphCopier copier;

  /** The storages that go. */
  private final ImmutableSet<Integer> buffers;

  private final Map<Integer, BufferContents> contents = new HashMap<>();

  /** The values that were copied, in the copy of the graph. */
  private final List<Value> copied = new ArrayList<>();

  /**
   * The value that stands for a tensor in a buffer, and the buffer's version that it belongs to.
   */
  private record Current(int version, Value value) {}

  private final Map<Integer, Current> current = new HashMap<>();

  private ForwardCopies(Analyses own) {
    super(own);
    this.copier = new GraphCopier(graph);
    this.buffers = buffers();
  }

  /** {@return the graph without buffers of which each read is known} */
  static Graph run(Analyses own) {
    if (!own.hasOp(ForwardCopies::copies)) {
      return own.graph();
    }
    var forward = new ForwardCopies(own);
    return forward.buffers.isEmpty() ? own.graph() : Normalize.removeDeadCode(forward.forward());
  }

  /** A copy of one tensor into another. */
  private record Copy(Value target, Value source) {}

  private static boolean copies(OpDef def) {
    return def.name().toString().equals("aten::copy_");
  }

  private static Optional<Copy> copy(Op op) {
    return copies(op.def())
        ? Optional.of(
            new Copy(
                op.args().get(0).operands().getFirst(), op.args().get(1).operands().getFirst()))
        : Optional.empty();
  }

  private ImmutableSet<Integer> buffers() {
    return ops.stream()
        .flatMap(op -> copy(op).stream())
        .map(copy -> aliases.id(copy.target()))
        .distinct()
        .filter(this::isKnown)
        .collect(toImmutableSet());
  }

  /** Whether it is known of each read of a storage which copies wrote what it reads. */
  private boolean isKnown(int storage) {
    int maker = aliases.storage(storage).def();
    if (maker == DataFlow.NONE
        || !isFresh(ops.get(maker))
        || !aliases.families().isAlone(storage)) {
      return false;
    }
    var written = new BufferContents();
    for (int i = maker + 1; i < ops.size(); i++) {
      var op = ops.get(i);
      if (aliases.isView(i) || op.def().has(OpTrait.WAIT) || !flow.reads(i, storage)) {
        continue;
      }
      var copy = copy(op).filter(own -> aliases.id(own.target()) == storage);
      if (copy.isPresent()) {
        if (aliases.id(copy.get().source()) == storage || !writesRun(copy.get())) {
          return false;
        }
        written.write(start(copy.get().target()), copy.get().target().tensor().numel(), i);
      } else if (op.written().stream().anyMatch(value -> aliases.id(value) == storage)
          || !op.operands().stream()
              .filter(value -> aliases.id(value) == storage)
              .allMatch(value -> isKnown(value, written))) {
        return false;
      }
    }
    return graph.outputValues().stream()
        .filter(value -> aliases.id(value) == storage)
        .allMatch(value -> isKnown(value, written));
  }

  private static boolean isFresh(Op op) {
    return op.results().size() == 1
        && op.result().isTensor()
        && op.result().tensor().isContiguous()
        && op.result().tensor().space() == MemorySpace.ANY
        && op.def().name().namespace().equals("aten")
        && op.def().rule().isPresent()
        && op.infer().getFirst().unspecified();
  }

  /** Whether a copy writes elements one after the other, each from an element of its own. */
  private boolean writesRun(Copy copy) {
    var to = copy.target().tensor();
    return to.isContiguous()
        && to.numel() > 0
        && to.dtype() == aliases.of(copy.target()).value().tensor().dtype()
        && to.sizes().equals(copy.source().tensor().sizes());
  }

  private boolean isKnown(Value value, BufferContents written) {
    var type = value.tensor();
    if (type.dtype() != aliases.of(value).value().tensor().dtype() || type.numel() == 0) {
      return false;
    }
    if (type.isContiguous()) {
      return !written.read(start(value), type.numel()).isEmpty();
    }
    var base = flow.base(value);
    return base.isPresent() && isKnown(base.get(), written);
  }

  /** {@return where a tensor begins in its storage, in elements} */
  private long start(Value value) {
    return aliases.offset(value) / value.tensor().dtype().bytes();
  }

  private Graph forward() {
    for (int i = 0; i < ops.size(); i++) {
      var op = ops.get(i);
      if (ProgramGraph.isBorder(op)) {
        // The outputs of the graphs before it are there when these end.
        int given = Math.toIntExact(op.call().integer("outputs"));
        graph.outputs().subList(0, given).forEach(out -> out.operands().forEach(this::refresh));
      }
      boolean skipped =
          (aliases.isView(i) || op.def().has(OpTrait.WAIT) || isMaker(i))
              && isIn(op.results().getFirst());
      if (skipped) {
        continue;
      }
      var copy = copy(op).filter(own -> isIn(own.target()));
      if (copy.isPresent()) {
        take(copy.get(), i);
      } else {
        op.operands().forEach(this::refresh);
        copier.keep(op);
      }
    }
    graph.outputValues().forEach(this::refresh);
    return copier.finish(copier.now(graph.outputs()));
  }

  private boolean isIn(Value value) {
    return value.isTensor() && buffers.contains(aliases.id(value));
  }

  private boolean isMaker(int op) {
    return ops.get(op).results().stream()
        .anyMatch(value -> isIn(value) && aliases.of(value).def() == op);
  }

  private BufferContents contents(Value value) {
    return contents.computeIfAbsent(aliases.id(value), _ -> new BufferContents());
  }

  private void take(Copy copy, int index) {
    refresh(copy.source());
    var from = copier.now(copy.source());
    var to = copy.target().tensor();
    boolean same = from.tensor().dtype() == to.dtype() && from.tensor().isContiguous();
    contents(copy.target()).write(start(copy.target()), to.numel(), copied.size());
    copied.add(same && isStable(copy, index) ? from : materialize(to, from, ops.get(index)));
  }

  /** Whether what a copy reads stays as it is, and is not what the caller gets. */
  private boolean isStable(Copy copy, int index) {
    if (escapes(aliases.id(copy.target()))
        || !isOfProgram(copy.source()) && isReadBehindBorder(aliases.id(copy.target()), index)) {
      return false;
    }
    if (isIn(copy.source())) {
      return true;
    }
    int storage = aliases.id(copy.source());
    return aliases.families().isAlone(storage)
        && ops.subList(index + 1, ops.size()).stream()
            .flatMap(op -> op.written().stream())
            .noneMatch(value -> aliases.id(value) == storage);
  }

  /**
   * Whether the caller has no part in a tensor, and so leaves it as it is between two graphs. What
   * is in a buffer may stand for something of the caller's.
   */
  private boolean isOfProgram(Value value) {
    int storage = aliases.id(value);
    return !isIn(value) && !aliases.storage(storage).isInput() && !escapes(storage);
  }

  /** Whether another graph of the program, after that of an op, reads a storage. */
  private boolean isReadBehindBorder(int storage, int index) {
    boolean behind = false;
    for (int i = index + 1; i < ops.size(); i++) {
      behind |= ProgramGraph.isBorder(ops.get(i));
      if (behind && flow.reads(i, storage)) {
        return true;
      }
    }
    return false;
  }

  private boolean escapes(int storage) {
    return graph.outputValues().stream().anyMatch(value -> aliases.id(value) == storage);
  }

  private Value materialize(TensorType to, Value from, Op copy) {
    var def = from.tensor().dtype() == to.dtype() ? CLONE : TO_COPY;
    var args =
        def.schema().params().stream()
            .map(
                param ->
                    switch (param.name()) {
                      case "self" -> new Arg.Ref(from);
                      case "dtype" -> new Arg.Dtype(to.dtype());
                      case "memory_format" -> new Arg.Symbol("contiguous_format");
                      default -> param.defaultValue().orElseThrow();
                    })
            .collect(toImmutableList());
    return copier.insert(
        def,
        args,
        from.name() + "_copy",
        TensorType.contiguous(to.dtype(), to.sizes()),
        copy.span());
  }

  /** From here on, a tensor of a buffer is what was copied there. */
  private void refresh(Value value) {
    if (isIn(value)) {
      copier.replace(value, now(value));
    }
  }

  private Value now(Value value) {
    int version = contents(value).version();
    @Nullable Current known = current.get(value.id());
    if (known != null && known.version() == version) {
      return known.value();
    }
    if (!value.tensor().isContiguous()) {
      return seenAgain(value);
    }
    var found = joined(value);
    current.put(value.id(), new Current(version, found));
    return found;
  }

  private Value joined(Value value) {
    var pieces = contents(value).read(start(value), value.tensor().numel());
    var only = made(pieces.getFirst());
    if (pieces.size() == 1 && pieces.getFirst().size() == only.tensor().numel()) {
      return seen(only, value);
    }
    var flat =
        pieces.stream().<Arg>map(piece -> new Arg.Ref(flat(piece))).collect(toImmutableList());
    return seen(
        pieces.size() == 1
            ? ((Arg.Ref) flat.getFirst()).value()
            : insert(CAT, value, value.tensor().numel(), new Arg.Seq(flat), new Arg.Int(0)),
        value);
  }

  private Value made(Piece piece) {
    return copied.get(piece.copy());
  }

  /** {@return the elements of a piece, in one dimension} */
  private Value flat(Piece piece) {
    var made = made(piece);
    long all = made.tensor().numel();
    var flat =
        made.tensor().rank() == 1
            ? made
            : insert(VIEW, made, all, new Arg.Ref(made), Arg.Seq.of(all));
    return piece.size() == all
        ? flat
        : insert(
            SLICE,
            made,
            piece.size(),
            new Arg.Ref(flat),
            new Arg.Int(0),
            new Arg.Int(piece.from()),
            new Arg.Int(piece.from() + piece.size()),
            new Arg.Int(1));
  }

  private Value insert(OpDef def, Value like, long size, Arg... args) {
    return copier.insert(
        def,
        ImmutableList.copyOf(args),
        like.name() + "_flat",
        TensorType.contiguous(like.tensor().dtype(), size),
        like.span());
  }

  private Value seen(Value made, Value value) {
    var type = value.tensor();
    if (made.tensor().sizes().equals(type.sizes())) {
      return made;
    }
    var args = ImmutableList.<Arg>of(new Arg.Ref(made), Arg.Seq.of(type.sizes().stream()));
    // Later versions need other names.
    return current.containsKey(value.id())
        ? copier.insert(VIEW, args, value.name(), type, value.span())
        : copier.emit(ImmutableList.of(value), VIEW, args, ops.get(flow.maker(value))).result();
  }

  /** The same view of what stands for the tensor that it is of. */
  private Value seenAgain(Value view) {
    var op = ops.get(flow.maker(view));
    op.operands().forEach(this::refresh);
    var types = op.results().stream().map(Value::type).toList();
    var args = copier.now(op.args());
    var seen =
        op.results().stream().anyMatch(result -> current.containsKey(result.id()))
            ? copier.insert(op.def(), args, view.name(), types, op.span())
            : copier.emit(op, op.def(), args).results();
    int version = contents(view).version();
    for (int i = 0; i < seen.size(); i++) {
      current.put(op.results().get(i).id(), new Current(version, seen.get(i)));
    }
    return seen.get(op.results().indexOf(view));
  }
}
