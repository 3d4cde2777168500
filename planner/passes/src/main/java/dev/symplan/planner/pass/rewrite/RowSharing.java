package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;
import dev.symplan.planner.pass.rewrite.RowShares.Share;
import dev.symplan.planner.pass.rewrite.RowShares.Shared;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * Makes a graph whose all_reduces are reduce_scatters, with ops on shares behind them, and gathers
 * of what other ops read ({@link RowShares}).
 */
final class RowSharing {
  private static final String WAIT = "_c10d_functional::wait_tensor";

  /**
   * A graph with shares.
   *
   * @param sources for each collective, the one of the source that it is made of
   */
  record Made(Graph graph, ImmutableIntArray sources) {}

  /** A rank's share of a tensor that all ranks have whole. */
  private record Cut(Value whole, int dim, String group) {}

  private final Analyses source;
  private final RowShares rows;
  private final PassContext context;
  private final GraphCopier copier;
  private final ImmutableIntArray.Builder sources = ImmutableIntArray.builder();

  /** By value of the source, its share. */
  private final Map<Integer, Value> shares = new HashMap<>();

  private final Map<Cut, Value> cuts = new HashMap<>();

  /** By group, the position of each rank in it. */
  private final Map<String, Value> groupRanks = new HashMap<>();

  private RowSharing(Analyses source, RowShares rows, PassContext context) {
    this.source = source;
    this.rows = rows;
    this.context = context;
    this.copier = new GraphCopier(source.graph());
  }

  static Made run(Analyses source, RowShares rows, PassContext context) {
    return new RowSharing(source, rows, context).run();
  }

  private Made run() {
    int k = 0;
    var ops = source.graph().ops();
    for (int i = 0; i < ops.size(); i++) {
      var op = ops.get(i);
      boolean collective =
          k < source.collectives().size() && source.collectives().get(k).index() == i;
      if (collective) {
        sources.add(k);
      }
      if (collective && rows.reduces().contains(k)) {
        cutBefore(i, k);
        scatter(source.collectives().get(k));
      } else if (rows.shared(i).orElse(null) instanceof Shared shared) {
        run(op, shared);
      } else {
        if (op.def().has(OpTrait.BORDER)) {
          // Only outputs of a graph are read by the next.
          cuts.clear();
          groupRanks.clear();
        }
        copier.keep(op);
      }
      k += collective ? 1 : 0;
    }
    return new Made(copier.finish(), sources.build());
  }

  private OpEmitter emitter(Op at) {
    return new OpEmitter(copier, at, context::groupSize);
  }

  /** Cuts come before the reduce_scatter, so that ops behind it can run in its kernel. */
  private void cutBefore(int index, int reduced) {
    for (int i = index + 1; i <= rows.lastBehind(reduced); i++) {
      if (rows.shared(i).orElse(null) instanceof Shared shared) {
        var first = shared.results().getFirst();
        for (var cut : shared.cut().entrySet()) {
          if (first.reduced() == reduced && rows.isMadeBefore(cut.getKey(), index)) {
            cut(cut.getKey(), cut.getValue(), first.group(), source.graph().ops().get(i));
          }
        }
      }
    }
  }

  private void scatter(Collective reduce) {
    var emitter = emitter(reduce.op());
    var result = reduce.op().result();
    var share = rows.share(result).orElseThrow();
    var scattered =
        emitter.reduceScatter(
            Target.of(result.name() + "_scattered"),
            flat(emitter, copier.now(reduce.operands().getFirst()), share.dim()),
            0,
            reduce.reduceOp().orElseThrow(),
            reduce.group(),
            Arg.None.NONE);
    var done = emitter.emit(Target.of(result.name() + "_share"), WAIT, new Arg.Ref(scattered));
    shares.put(result.id(), shaped(emitter, done, share.value()));
  }

  /** Without the leading dimensions that have one index. */
  private static Value flat(OpEmitter emitter, Value value, int dim) {
    var sizes = value.tensor().sizes();
    return dim == 0
        ? value
        : emitter.emit(
            Target.of(value.name() + "_rows"),
            "aten::view",
            new Arg.Ref(value),
            Arg.Seq.of(sizes.subArray(dim, sizes.length()).stream()));
  }

  private static Value shaped(OpEmitter emitter, Value value, Value like) {
    return value.tensor().sizes().equals(like.tensor().sizes())
        ? value
        : emitter.emit(
            Target.of(value.name() + "_view"), "aten::view", new Arg.Ref(value), sizes(like));
  }

  private void run(Op op, Shared shared) {
    if (rows.shown(op.results().getFirst()).isPresent()) {
      // The view of a share is made where an op reads it.
      if (isWhole(op.result())) {
        copier.keep(op);
      }
      return;
    }
    if (op.def().has(OpTrait.WAIT)) {
      shares.put(op.result().id(), share(op.operands().getFirst(), op));
    } else {
      compute(op, shared);
    }
    for (var result : op.results()) {
      if (rows.isWhole(result)) {
        gather(result, rows.share(result).orElseThrow());
      }
    }
  }

  private boolean isWhole(Value view) {
    var value = view;
    while (rows.shown(value).orElse(null) instanceof Value base) {
      value = base;
    }
    return rows.isWhole(value);
  }

  private void compute(Op op, Shared shared) {
    var values = new HashMap<Integer, Value>();
    for (var operand : op.operands()) {
      if (rows.share(operand).isPresent()) {
        values.put(operand.id(), share(operand, op));
      } else if (shared.cut().get(operand) instanceof Integer dim) {
        values.put(operand.id(), cut(operand, dim, shared.results().getFirst().group(), op));
      }
    }
    var args =
        op.args().stream()
            .map(arg -> arg.map(v -> values.get(v.id()) instanceof Value own ? own : copier.now(v)))
            .collect(toImmutableList());
    var types =
        shared.results().stream().map(made -> made.value().type()).collect(toImmutableList());
    var name = op.results().getFirst().name() + "_share";
    var made = copier.insert(op.def(), args, name, types, op.span());
    for (int r = 0; r < made.size(); r++) {
      shares.put(op.results().get(r).id(), made.get(r));
    }
  }

  private Value share(Value of, Op at) {
    if (shares.get(of.id()) instanceof Value known) {
      return known;
    }
    var base = rows.shown(of).orElseThrow();
    var made =
        emitter(at)
            .emit(
                Target.of(of.name() + "_share"),
                "aten::view",
                new Arg.Ref(share(base, at)),
                sizes(rows.share(of).orElseThrow().value()));
    shares.put(of.id(), made);
    return made;
  }

  private Value cut(Value whole, int dim, String group, Op at) {
    var cut = new Cut(whole, dim, group);
    if (cuts.get(cut) instanceof Value known) {
      return known;
    }
    var emitter = emitter(at);
    int ranks = context.groupSize(group);
    var sizes = new ArrayList<>(whole.tensor().sizes().asList());
    sizes.set(dim, sizes.get(dim) / ranks);
    var shape = Arg.Seq.of(sizes.stream().mapToLong(size -> size));
    sizes.add(dim, (long) ranks);
    var name = whole.name() + "_share";
    var all =
        emitter.emit(
            Target.of(whole.name() + "_shares"),
            "aten::view",
            new Arg.Ref(copier.now(whole)),
            Arg.Seq.of(sizes.stream().mapToLong(size -> size)));
    var own =
        emitter.emit(
            Target.of(name),
            "aten::index_select",
            new Arg.Ref(all),
            new Arg.Int(dim),
            new Arg.Ref(groupRank(group, emitter)));
    var made = emitter.emit(Target.of(name), "aten::view", new Arg.Ref(own), shape);
    cuts.put(cut, made);
    return made;
  }

  /** The position of each rank in its group; of a rank that is not in the group, any. */
  private Value groupRank(String name, OpEmitter emitter) {
    if (groupRanks.get(name) instanceof Value known) {
      return known;
    }
    var group = context.group(name);
    var numbers =
        IntStream.range(0, context.graphOfRank().size())
            .mapToLong(
                rank ->
                    group.partOf(rank).isPresent()
                        ? group.members().get(group.partOf(rank).getAsInt()).indexOf(rank)
                        : 0);
    var number =
        emitter.emit(
            Target.of("group_rank"),
            "symplan::rank_number",
            Arg.Seq.of(numbers),
            new Arg.Dtype(DType.I64));
    var made =
        emitter.emit(Target.of("group_rank"), "aten::view", new Arg.Ref(number), Arg.Seq.of(1));
    groupRanks.put(name, made);
    return made;
  }

  private void gather(Value result, Share share) {
    var reduce = source.collectives().get(share.reduced());
    sources.add(share.reduced());
    var emitter = emitter(reduce.op());
    int dim = share.dim();
    var own = flat(emitter, Objects.requireNonNull(shares.get(result.id())), dim);
    var gathered =
        emitter.allGather(
            Target.of(result.name() + "_gathered"), own, 0, share.group(), Arg.None.NONE);
    var target = dim == 0 ? Target.of(result) : Target.of(result.name() + "_rows");
    var done = emitter.emit(target, WAIT, new Arg.Ref(gathered));
    if (dim > 0) {
      emitter.emit(Target.of(result), "aten::view", new Arg.Ref(done), sizes(result));
    }
  }

  private static Arg sizes(Value like) {
    return Arg.Seq.of(like.tensor().sizes().stream());
  }
}
