package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.Permutation;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * Makes a {@code collective_permute} of each {@code all_to_all_single} in which all ranks send all
 * their rows to one rank: what PyTorch's {@code permute_tensor} is.
 *
 * <p>Each rank must send as many rows of the same size as the others do, and every rank must get
 * some: without a source, an {@code all_to_all_single} gives no rows, and a {@code
 * collective_permute} gives zeros. Others stay, as do those whose variant is named.
 */
final class Permutations {
  private static final OpName EXCHANGE = new OpName("_c10d_functional", "all_to_all_single", "");

  private final List<Graph> graphs;
  private final List<ImmutableIntArray> ranks;
  private final PassContext context;

  private Permutations(List<Graph> graphs, List<ImmutableIntArray> ranks, PassContext context) {
    this.graphs = graphs;
    this.ranks = ranks;
    this.context = context;
  }

  /**
   * {@return the graphs with permutations; the same graphs if they have none}
   *
   * @param graphs functional ones, with the same collectives in the same order
   * @param ranks the ranks that run each of them
   */
  static ImmutableList<Graph> found(
      List<Graph> graphs, List<ImmutableIntArray> ranks, PassContext context) {
    return new Permutations(graphs, ranks, context).found();
  }

  private ImmutableList<Graph> found() {
    var collectives = graphs.stream().map(graph -> Collective.allOf(graph.ops())).toList();
    var permuted = new TreeMap<Integer, Permutation>();
    for (int k = 0; k < collectives.getFirst().size(); k++) {
      int position = k;
      pairs(collectives.stream().map(all -> all.get(position)).toList())
          .ifPresent(pairs -> permuted.put(position, pairs));
    }
    if (permuted.isEmpty()) {
      return ImmutableList.copyOf(graphs);
    }
    return IntStream.range(0, graphs.size())
        .mapToObj(g -> replaced(graphs.get(g), collectives.get(g), permuted))
        .collect(toImmutableList());
  }

  private static Graph replaced(
      Graph graph, List<Collective> collectives, Map<Integer, Permutation> permuted) {
    var copier = new GraphCopier(graph);
    int k = 0;
    for (int i = 0; i < graph.ops().size(); i++) {
      var op = graph.ops().get(i);
      boolean communicates = k < collectives.size() && collectives.get(k).index() == i;
      if (communicates && permuted.containsKey(k)) {
        emit(copier, op, permuted.get(k));
      } else {
        copier.keep(op);
      }
      k += communicates ? 1 : 0;
    }
    return copier.finish();
  }

  private static void emit(GraphCopier copier, Op op, Permutation permutation) {
    var def = BuiltinOps.registry().get("symplan::collective_permute").demandingAs(op.def());
    var call = op.collective().orElseThrow();
    copier.emit(
        op,
        def,
        ImmutableList.of(
            copier.now(op.arg(call.spec().operand())),
            permutation.arg(),
            new Arg.Str(call.group()),
            Arg.None.NONE),
        ImmutableList.of(op.result().type()));
  }

  /** {@return who sends to whom in a collective, as each graph has it, if it is a permutation} */
  private Optional<Permutation> pairs(List<Collective> versions) {
    if (!versions.stream().allMatch(this::mayBeReplaced)) {
      return Optional.empty();
    }
    var targets = new TreeMap<Integer, Integer>();
    var type = versions.getFirst().operands().getFirst().tensor();
    for (int g = 0; g < versions.size(); g++) {
      var collective = versions.get(g);
      var operand = collective.operands().getFirst().tensor();
      var result = collective.results().getFirst().tensor();
      var call = collective.op().collective().orElseThrow();
      var to = only(call.inputSplits());
      if (to.isEmpty()
          || only(call.outputSplits()).isEmpty()
          || operand.dtype() != type.dtype()
          || !operand.sizes().equals(type.sizes())
          || !result.sizes().equals(type.sizes())) {
        return Optional.empty();
      }
      var group = context.group(collective.group());
      for (int rank : ranks.get(g).asList()) {
        int self = group.members().get(group.partOf(rank).orElseThrow()).indexOf(rank);
        var other = Optional.ofNullable(targets.put(self, to.getAsInt()));
        if (other.isPresent() && other.get() != to.getAsInt()) {
          return Optional.empty();
        }
      }
    }
    return Optional.of(
        new Permutation(
            targets.entrySet().stream()
                .map(pair -> new Permutation.Pair(pair.getKey(), pair.getValue()))
                .collect(toImmutableList())));
  }

  private boolean mayBeReplaced(Collective collective) {
    return collective.op().def().name().equals(EXCHANGE) && context.whyFixed(collective).isEmpty();
  }

  /** {@return the only rank of the group that has rows; empty if none or several have} */
  private static OptionalInt only(ImmutableLongArray rows) {
    var having = IntStream.range(0, rows.length()).filter(i -> rows.get(i) > 0).toArray();
    return having.length == 1 ? OptionalInt.of(having[0]) : OptionalInt.empty();
  }
}
