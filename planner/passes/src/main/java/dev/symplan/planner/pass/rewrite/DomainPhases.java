package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSetMultimap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.DomainGroups;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;

/**
 * Makes collectives of one graph out of others: phases between the ranks of each NVLink domain, and
 * phases between the ranks that are at the same position of each domain. Of d domains with m ranks
 * each, tensors are seen as slices [d, m] in the order of the group.
 *
 * <ul>
 *   <li>all_reduce: reduce_scatter within, all_reduce across, all_gather within;
 *   <li>all_gather: across, then within, whose slices go to [d, m] from [m, d];
 *   <li>reduce_scatter: within, of slices that go from [d, m] to [m, d], then across;
 *   <li>all_to_all: within, with [m, d] on both sides, then across;
 *   <li>broadcast: across, from the root's domain, then within, from the root's position.
 * </ul>
 *
 * <p>Each slice crosses the network once, on the rail of one rank. In a broadcast, the ranks at
 * other positions send across, too, what nobody reads: all ranks have the same collectives. What
 * follows a phase across domains comes right before its result is needed or the next collective
 * starts, so that compute runs beside that phase.
 */
final class DomainPhases {
  private static final String FUNCTIONAL = "_c10d_functional::";

  /**
   * A graph with phases.
   *
   * @param copies by collective of the source, the ids of what was copied to put slices in order
   */
  record Made(Graph graph, ImmutableSetMultimap<Integer, Integer> copies) {}

  private final Analyses source;
  private final GraphCopier copier;
  private final ImmutableSetMultimap.Builder<Integer, Integer> copies =
      ImmutableSetMultimap.builder();

  /** The last phase of a collective, which has yet to come; and the views that wait for it. */
  private Runnable last = () -> {};

  private final List<Op> waiting = new ArrayList<>();
  private final Set<Integer> awaited = new HashSet<>();

  private DomainPhases(Analyses source) {
    this.source = source;
    this.copier = new GraphCopier(source.graph());
  }

  /** {@return into how many collectives one becomes} */
  static int phases(Kind kind) {
    return kind == Kind.ALL_REDUCE ? 3 : 2;
  }

  /**
   * {@return the graph with phases}
   *
   * @param split the groups of each collective that is to have phases
   */
  static Made run(Analyses source, Map<Integer, DomainGroups> split) {
    return split.isEmpty()
        ? new Made(source.graph(), ImmutableSetMultimap.of())
        : new DomainPhases(source).split(split);
  }

  private Made split(Map<Integer, DomainGroups> split) {
    int k = 0;
    var ops = source.graph().ops();
    for (int i = 0; i < ops.size(); i++) {
      var op = ops.get(i);
      boolean awaits = op.operands().stream().anyMatch(value -> awaited.contains(value.id()));
      if (awaits && (source.aliases().isView(i) || op.def().has(OpTrait.WAIT))) {
        waiting.add(op);
        op.results().forEach(result -> awaited.add(result.id()));
        continue;
      }
      boolean collective =
          k < source.collectives().size() && source.collectives().get(k).index() == i;
      if (awaits || collective || op.def().isFence() || op.def().schema().mutates()) {
        finishLast();
      }
      if (collective && split.get(k) instanceof DomainGroups groups) {
        new Emitter(k, groups).emit();
      } else {
        copier.keep(op);
      }
      k += collective ? 1 : 0;
    }
    finishLast();
    return new Made(copier.finish(), copies.build());
  }

  private void finishLast() {
    last.run();
    last = () -> {};
    waiting.forEach(copier::keep);
    waiting.clear();
    awaited.clear();
  }

  /** Of one collective. */
  private final class Emitter {
    private final int k;
    private final Collective collective;
    private final DomainGroups groups;
    private final OpEmitter ops;
    private final long ranks;
    private final long domains;

    Emitter(int k, DomainGroups groups) {
      this.k = k;
      this.collective = source.collectives().get(k);
      this.groups = groups;
      this.ops = new OpEmitter(copier, collective.op(), _ -> groups.within().size());
      this.ranks = groups.within().size();
      this.domains = groups.across().size();
    }

    void emit() {
      var sent = map(collective.operands(), copier::now);
      switch (collective.kind()) {
        case ALL_REDUCE -> {
          var parts = within(Kind.REDUCE_SCATTER, map(sent, this::flat), "_within");
          var sums = across(Kind.ALL_REDUCE, parts);
          later(() -> give(within(Kind.ALL_GATHER, sums, "_whole")));
        }
        case ALL_GATHER -> {
          var own = across(Kind.ALL_GATHER, map(sent, this::flat));
          later(() -> give(turned(within(Kind.ALL_GATHER, own, "_by_rank"), ranks, "_within")));
        }
        case REDUCE_SCATTER -> {
          var byRank = turned(sent, domains, "_by_rank");
          give(across(Kind.REDUCE_SCATTER, within(Kind.REDUCE_SCATTER, byRank, "_within")));
        }
        case ALL_TO_ALL -> {
          var byRank = turned(sent, domains, "_for_rank");
          var received = within(Kind.ALL_TO_ALL, byRank, "_by_rank");
          give(across(Kind.ALL_TO_ALL, turned(received, ranks, "_within")));
        }
        case BROADCAST -> {
          var roots = across(Kind.BROADCAST, sent);
          later(() -> give(within(Kind.BROADCAST, roots, "_within")));
        }
        case COLLECTIVE_PERMUTE, CUSTOM ->
            throw new IllegalArgumentException(collective.name() + " has no phases");
      }
    }

    private void later(Runnable phase) {
      last = phase;
      collective.results().forEach(result -> awaited.add(result.id()));
    }

    private ImmutableList<Value> within(Kind kind, List<Value> sent, String suffix) {
      return phase(kind, sent, groups.within().name(), suffix, ranks);
    }

    private ImmutableList<Value> across(Kind kind, List<Value> sent) {
      return phase(kind, sent, groups.across().name(), "_across", domains);
    }

    /** A collective, and the waits for it. */
    private ImmutableList<Value> phase(
        Kind kind, List<Value> sent, String group, String suffix, long size) {
      var args = ImmutableList.<Arg>builder();
      boolean several = sent.size() > 1;
      args.add(
          several
              ? new Arg.Seq(map(sent, value -> (Arg) new Arg.Ref(value)))
              : new Arg.Ref(sent.getFirst()));
      var reduceOp = new Arg.Str(ReduceOp.text(collective.reduceOp()));
      var op =
          switch (kind) {
            case ALL_REDUCE -> {
              args.add(reduceOp);
              yield "all_reduce";
            }
            case REDUCE_SCATTER -> {
              args.add(reduceOp, new Arg.Int(size));
              yield "reduce_scatter_tensor";
            }
            case ALL_GATHER -> {
              args.add(new Arg.Int(size));
              yield "all_gather_into_tensor";
            }
            case ALL_TO_ALL -> {
              // Equal parts.
              args.add(Arg.Seq.of(), Arg.Seq.of());
              yield "all_to_all_single";
            }
            case BROADCAST -> {
              boolean within = group.equals(groups.within().name());
              long root = collective.root();
              args.add(new Arg.Int(within ? root % ranks : root / ranks));
              yield "broadcast";
            }
            case COLLECTIVE_PERMUTE, CUSTOM ->
                throw new IllegalArgumentException(kind + " is not a phase");
          };
      args.add(new Arg.Str(group));
      var def = BuiltinOps.registry().get(FUNCTIONAL + op + (several ? "_coalesced" : ""));
      var name = collective.name() + suffix;
      return map(ops.emitAll(name, def, args.build()), this::waited);
    }

    private Value waited(Value value) {
      return insert(value.name() + "_done", FUNCTIONAL + "wait_tensor", new Arg.Ref(value));
    }

    private Value flat(Value value) {
      return value.tensor().rank() == 1 ? value : seen(value, value.tensor().numel());
    }

    private Value seen(Value value, long... sizes) {
      return insert(value.name() + "_slices", "aten::view", new Arg.Ref(value), Arg.Seq.of(sizes));
    }

    /** Copies with [outer, other] slices as [other, outer]. */
    private ImmutableList<Value> turned(List<Value> values, long outer, String suffix) {
      return map(
          values,
          value -> {
            long inner = ranks * domains / outer;
            long slice = value.tensor().numel() / (ranks * domains);
            var turned =
                insert(
                    value.name() + "_turned",
                    "aten::transpose.int",
                    new Arg.Ref(seen(value, outer, inner, slice)),
                    new Arg.Int(0),
                    new Arg.Int(1));
            var copy =
                insert(
                    collective.name() + suffix,
                    "aten::clone",
                    new Arg.Ref(turned),
                    new Arg.Symbol("contiguous_format"));
            copies.put(k, copy.id());
            return seen(copy, value.tensor().numel());
          });
    }

    /** From here on, what was made stands for the results. */
    private void give(List<Value> made) {
      for (int i = 0; i < made.size(); i++) {
        var result = collective.results().get(i);
        ops.emit(
            OpEmitter.Target.of(result),
            "aten::view",
            new Arg.Ref(made.get(i)),
            Arg.Seq.of(result.tensor().sizes().stream()));
      }
    }

    private Value insert(String name, String op, Arg... args) {
      return ops.emit(OpEmitter.Target.of(name), op, args);
    }

    private static <T, R> ImmutableList<R> map(List<T> values, Function<T, R> function) {
      return values.stream().map(function).collect(ImmutableList.toImmutableList());
    }
  }
}
