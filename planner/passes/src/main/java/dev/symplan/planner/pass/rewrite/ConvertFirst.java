package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;
import static com.google.common.collect.ImmutableSet.toImmutableSet;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Converts floats to a smaller type before ranks gather them, where all that is gathered is
 * converted afterwards: weights that each rank keeps a part of in f32, for example. Less is sent
 * then, and the whole takes less memory. Each element is converted as before.
 */
public final class ConvertFirst extends GraphPass {
  private static final OpDef CLONE = BuiltinOps.registry().get("aten::clone");

  /** Ops that give the elements of one tensor in another order. */
  private static final ImmutableSet<OpDef> COPIES =
      ops("aten::clone", "aten::contiguous", "aten::reshape");

  public ConvertFirst() {
    super("convert_first", facts(), facts());
  }

  private static ImmutableSet<OpDef> ops(String... names) {
    return ImmutableList.copyOf(names).stream()
        .map(BuiltinOps.registry()::get)
        .collect(toImmutableSet());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    if (context.options().rewrites().layouts() == Mode.OFF) {
      return state;
    }
    var graphs = state.analyses().stream().map(Search::new).collect(toImmutableList());
    int count = state.analyses().getFirst().collectives().size();
    for (int k = 0; k < count; k++) {
      int collective = k;
      if (state.analyses().stream()
          .anyMatch(own -> context.isBetweenStages(own.collectives().get(collective).group()))) {
        continue;
      }
      var found = graphs.stream().map(graph -> graph.find(collective)).collect(toImmutableList());
      // All ranks must gather the same type.
      if (found.stream().allMatch(Optional::isPresent)
          && found.stream().map(gather -> gather.get().dtype()).distinct().count() == 1) {
        for (int g = 0; g < found.size(); g++) {
          graphs.get(g).gathers.put(k, found.get(g).orElseThrow());
        }
      }
    }
    return state.withGraphs(graphs.stream().map(Search::converted).collect(toImmutableList()));
  }

  /**
   * A gather of which all is converted.
   *
   * @param copies views and copies of what is gathered, by position
   * @param conversions by position, and whether the tensor that each reads can take its place
   */
  private record Gather(
      DType dtype, ImmutableSet<Integer> copies, ImmutableMap<Integer, Boolean> conversions) {}

  private static final class Search extends GraphSearch {
    private final Analyses own;
    private final Map<Integer, Gather> gathers = new HashMap<>();

    Search(Analyses own) {
      super(own);
      this.own = own;
    }

    Optional<Gather> find(int k) {
      var collective = own.collectives().get(k);
      return isPlain(collective) ? new Reads(collective).find() : Optional.empty();
    }

    private static boolean isPlain(Collective collective) {
      var op = collective.op();
      return collective.kind() == Kind.ALL_GATHER
          && op.def().name().namespace().equals("_c10d_functional")
          && !op.def().schema().mutates()
          && collective.operands().size() == 1
          && op.results().size() == 1
          && collective.operands().getFirst().tensor().dtype().isFloat()
          && collective.operands().getFirst().tensor().isContiguous();
    }

    /** The ops that read what a collective gathers. */
    private final class Reads {
      private final Collective collective;
      private final Set<Integer> storages = new HashSet<>();
      private final Set<Integer> copies = new HashSet<>();
      private final List<Integer> conversions = new ArrayList<>();

      Reads(Collective collective) {
        this.collective = collective;
        storages.add(aliases.id(collective.op().result()));
      }

      Optional<Gather> find() {
        for (int i = collective.index() + 1; i < ops.size(); i++) {
          if (ops.get(i).def().has(OpTrait.BORDER)) {
            // A tensor that later graphs read stays as it is.
            break;
          }
          if (ops.get(i).operands().stream().anyMatch(this::isPart) && !take(i)) {
            return Optional.empty();
          }
        }
        var types = conversions.stream().map(i -> ops.get(i).result().tensor().dtype()).distinct();
        var all = types.toList();
        boolean alone =
            all.size() == 1
                && storages.stream().allMatch(aliases.families()::isAlone)
                && graph.outputValues().stream().noneMatch(this::isPart)
                && isReadHere();
        if (!alone) {
          return Optional.empty();
        }
        var places = ImmutableMap.<Integer, Boolean>builder();
        conversions.forEach(i -> places.put(i, takesPlace(i)));
        return Optional.of(
            new Gather(all.getFirst(), ImmutableSet.copyOf(copies), places.buildOrThrow()));
      }

      private boolean isPart(Value value) {
        return value.isTensor() && storages.contains(aliases.id(value));
      }

      /** Whether no op behind a border reads what is gathered. */
      private boolean isReadHere() {
        for (int i = collective.index() + 1; i < ops.size(); i++) {
          if (!copies.contains(i)
              && !conversions.contains(i)
              && ops.get(i).operands().stream().anyMatch(this::isPart)) {
            return false;
          }
        }
        return true;
      }

      private boolean take(int index) {
        var op = ops.get(index);
        if (isConversion(op)) {
          conversions.add(index);
          return true;
        }
        boolean copied = op.def().has(OpTrait.CONCATENATION) || COPIES.contains(op.def());
        boolean same =
            op.operands().stream().filter(Value::isTensor).allMatch(this::isPart)
                && op.results().stream()
                    .allMatch(
                        result ->
                            result.isTensor() && result.tensor().dtype() == collective.dtype());
        if (!same || !(aliases.isView(index) || op.def().has(OpTrait.WAIT) || copied)) {
          return false;
        }
        copies.add(index);
        op.results().forEach(result -> storages.add(aliases.id(result)));
        return true;
      }

      private boolean isConversion(Op op) {
        return Widening.CONVERSIONS.contains(op.def())
            && op.result().tensor().dtype().isFloat()
            && op.result().tensor().dtype().bytes() < collective.dtype().bytes()
            && op.result()
                .tensor()
                .strides()
                .equals(TensorType.contiguousStrides(op.result().tensor().sizes()));
      }

      /** Whether nothing else reads the tensor, which lies as the converted one does. */
      private boolean takesPlace(int conversion) {
        var read = ops.get(conversion).operands().getFirst();
        return flow.onlyReader(aliases.id(read)) == conversion
            && aliases.isWhole(read)
            && read.tensor().isContiguous();
      }
    }

    Graph converted() {
      if (gathers.isEmpty()) {
        return graph;
      }
      var copier = new GraphCopier(graph);
      Map<Integer, Gather> at = new HashMap<>();
      Map<Integer, DType> copies = new HashMap<>();
      Map<Integer, Boolean> conversions = new HashMap<>();
      gathers.forEach(
          (k, gather) -> {
            at.put(own.collectives().get(k).index(), gather);
            gather.copies().forEach(copy -> copies.put(copy, gather.dtype()));
            conversions.putAll(gather.conversions());
          });
      for (int i = 0; i < ops.size(); i++) {
        var op = ops.get(i);
        if (at.get(i) instanceof Gather gather) {
          gather(op, gather, copier);
        } else if (copies.get(i) instanceof DType dtype) {
          again(op, copier.now(op.args()), dtype, copier);
        } else if (conversions.get(i) instanceof Boolean takesPlace) {
          var read = copier.now(op.operands().getFirst());
          if (takesPlace) {
            copier.replace(op.result(), read);
          } else {
            copier.emit(
                op,
                CLONE,
                ImmutableList.of(new Arg.Ref(read), new Arg.Symbol("contiguous_format")));
          }
        } else {
          copier.keep(op);
        }
      }
      return copier.finish();
    }

    private void gather(Op op, Gather gather, GraphCopier copier) {
      var conversion = ops.get(gather.conversions().keySet().iterator().next());
      var operand = op.operands().getFirst();
      var sent =
          copier.insert(
              conversion.def(),
              with(conversion, copier.now(operand)),
              operand.name() + "_converted",
              TensorType.contiguous(gather.dtype(), operand.tensor().sizes()),
              conversion.span());
      again(op, with(op, sent), gather.dtype(), copier);
    }

    private static ImmutableList<Arg> with(Op op, Value operand) {
      return op.args().stream()
          .map(arg -> arg instanceof Arg.Ref ? new Arg.Ref(operand) : arg)
          .collect(toImmutableList());
    }

    /** The same op of operands of another type. */
    private static void again(Op op, ImmutableList<Arg> args, DType dtype, GraphCopier copier) {
      copier.emit(
          op,
          op.def(),
          args,
          op.results().stream().map(result -> result.tensor().withDType(dtype)).toList());
    }
  }
}
