package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.aten.Layouts;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.analysis.OperandConstraints;
import dev.symplan.planner.pass.select.SelectVariants;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * Lets collectives take parts of tensors where these lie, in place of copies that put the rows of a
 * part together: functional collectives of PyTorch only take contiguous tensors.
 *
 * <p>Where the selected variant cannot read rows that are apart, or the whole tensor would take
 * memory for too long, the copy comes back right before the collective.
 */
public final class SendParts extends GraphPass {
  private static final OpDef VIEW = BuiltinOps.registry().get("aten::view");

  private static final ImmutableSet<OpDef> COPIES =
      ImmutableSet.of(
          BuiltinOps.registry().get("aten::clone"), BuiltinOps.registry().get("aten::contiguous"));

  private final Predicate<Kind> kinds;

  private SendParts(String name, Predicate<Kind> kinds) {
    super(name, facts(), facts());
    this.kinds = kinds;
  }

  /** {@return the pass for collectives that send all they take to every rank} */
  public static SendParts ofGathers() {
    return new SendParts("send_gathered_parts", kind -> kind == Kind.ALL_GATHER);
  }

  /** {@return the pass for all collectives} */
  public static SendParts ofAll() {
    return new SendParts("send_parts", kind -> kind != Kind.CUSTOM);
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var layouts = context.options().rewrites().layouts();
    if (layouts == Mode.OFF
        || state.analyses().stream().noneMatch(own -> own.hasOp(COPIES::contains))) {
      return state;
    }
    var searches =
        state.analyses().stream().map(own -> new Search(own, layouts)).collect(toImmutableList());
    // Only graphs with such copies are worth the time.
    var selected = Suppliers.memoize(() -> new SelectVariants().run(state, context));
    var collectives = state.analyses().getFirst().collectives();
    for (int k = 0; k < collectives.size(); k++) {
      if (kinds.test(collectives.get(k).kind())) {
        takeParts(searches, k, selected);
      }
    }
    return searches.stream().allMatch(search -> search.parts.isEmpty())
        ? state
        : state.withGraphs(searches.stream().map(Search::graph).collect(toImmutableList()));
  }

  /** Whether a variant that can run reads an operand that lies so. */
  private static boolean isRead(GraphState state, int k, TensorType.Rows rows) {
    var kind = state.analyses().getFirst().collectives().get(k).kind();
    return state.get(SelectVariants.SELECTIONS).get(k).verdicts().stream()
        .filter(verdict -> verdict.reason().eligible())
        .filter(verdict -> verdict.reason() != Verdict.Reason.NOT_NAMED)
        .anyMatch(verdict -> VariantSpec.of(kind, verdict.variant()).reads(rows));
  }

  /** All ranks read the same rows. */
  private static void takeParts(
      ImmutableList<Search> searches, int k, Supplier<GraphState> selected) {
    int operands = searches.getFirst().own.collectives().get(k).operands().size();
    for (int i = 0; i < operands; i++) {
      int index = i;
      var found = searches.stream().map(search -> search.find(k, index)).collect(toImmutableList());
      if (found.stream().allMatch(Optional::isPresent)
          && found.stream().map(part -> part.get().type()).distinct().count() == 1
          && isRead(selected.get(), k, found.getFirst().get().rows())) {
        for (int s = 0; s < searches.size(); s++) {
          searches.get(s).take(k, index, found.get(s).orElseThrow());
        }
      }
    }
  }

  /**
   * A part of a tensor that a collective can send.
   *
   * @param copy the position of the op that copies it
   * @param source what that reads
   * @param type of the view of the source that the collective sends
   * @param rows in which it lies
   */
  private record Part(int copy, Value source, TensorType type, TensorType.Rows rows) {}

  private static final class Search extends GraphSearch {
    private final Analyses own;
    private final Mode layouts;

    /** By the operand that it takes the place of. */
    private final Map<Value, Part> parts = new HashMap<>();

    Search(Analyses own, Mode layouts) {
      super(own);
      this.own = own;
      this.layouts = layouts;
    }

    void take(int k, int index, Part part) {
      parts.put(own.collectives().get(k).operands().get(index), part);
    }

    Optional<Part> find(int k, int index) {
      var collective = own.collectives().get(k);
      var operand = collective.operands().get(index);
      int storage = aliases.id(operand);
      int copy = aliases.storage(storage).def();
      if (copy == DataFlow.NONE
          || !COPIES.contains(ops.get(copy).def())
          || !operand.tensor().isContiguous()
          || !aliases.isWhole(operand)
          || flow.onlyReader(storage) != collective.index()
          || flow.mayWrite(copy + 1, collective.index())) {
        return Optional.empty();
      }
      var source = ops.get(copy).operands().getFirst();
      return Layouts.viewStrides(source.tensor(), operand.tensor().sizes())
          .map(
              strides ->
                  new TensorType(
                      source.tensor().dtype(), operand.tensor().sizes(), strides, MemorySpace.ANY))
          .filter(type -> type.dtype() == operand.tensor().dtype())
          .filter(_ -> isThere(source, copy, collective))
          .filter(type -> givesTheSame(collective, index, type))
          .flatMap(
              type ->
                  OperandConstraints.rowsApart(collective, index, type, layouts)
                      .map(rows -> new Part(copy, source, type, rows)));
    }

    /**
     * Whether the whole tensor has memory until the collective reads it, or nothing runs before.
     */
    private boolean isThere(Value source, int copy, Collective collective) {
      int storage = aliases.id(source);
      return aliases.storage(storage).value().tensor().space() != MemorySpace.HOST
          && aliases.families().isLocationKnown(storage, collective.index())
          && (own.uses().lastOpOrCaller(storage) > collective.index()
              || isNextTo(copy, collective.index()));
    }

    /** Whether the op gives tensors of the same types for an operand of another type. */
    private static boolean givesTheSame(Collective collective, int index, TensorType type) {
      var op = collective.op();
      var sent = new ArrayList<>(collective.operands());
      var old = sent.get(index);
      sent.set(index, new Value(old.id(), old.name(), type, old.span(), old.annotated()));
      try {
        return op.def().infer(collective.argsWith(op.args(), sent)).stream()
            .flatMap(List::stream)
            .map(OpResult::type)
            .toList()
            .equals(op.results().stream().map(Value::type).toList());
      } catch (OpTypeException e) {
        return false;
      }
    }

    /** Whether only other copies and collectives run between two ops. */
    private boolean isNextTo(int first, int second) {
      for (int i = first + 1; i < second; i++) {
        var def = ops.get(i).def();
        if (aliases.runs(i)
            && def.collective().isEmpty()
            && !def.has(OpTrait.WAIT)
            && !COPIES.contains(def)) {
          return false;
        }
      }
      return true;
    }

    Graph graph() {
      var copier = new GraphCopier(graph);
      var gone = parts.keySet().stream().map(aliases::id).collect(ImmutableSet.toImmutableSet());
      var copies = parts.values().stream().map(Part::copy).collect(ImmutableSet.toImmutableSet());
      for (int i = 0; i < ops.size(); i++) {
        var op = ops.get(i);
        boolean isGone =
            copies.contains(i)
                || (aliases.isView(i) && gone.contains(aliases.id(op.results().getFirst())));
        if (!isGone) {
          if (op.def().collective().isPresent()) {
            op.operands().forEach(operand -> send(operand, copier));
          }
          copier.keep(op);
        }
      }
      return Normalize.removeDeadCode(copier.finish());
    }

    private void send(Value operand, GraphCopier copier) {
      if (parts.get(operand) instanceof Part(_, Value source, TensorType type, _)) {
        var now = copier.now(source);
        var sent =
            now.tensor().sizes().equals(type.sizes())
                ? now
                : copier.insert(
                    VIEW,
                    ImmutableList.of(new Arg.Ref(now), Arg.Seq.of(type.sizes().stream())),
                    source.name() + "_part",
                    type,
                    operand.span());
        copier.replace(operand, sent);
      }
    }
  }
}
