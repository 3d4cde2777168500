package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableMap.toImmutableMap;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Role;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Makes collectives along other dimensions of some of one graph, and leaves out their copies. */
final class LayoutFolding {
  private static final OpDef VIEW = BuiltinOps.registry().get("aten::view");

  private final Analyses source;
  private final GraphCopier copier;

  private LayoutFolding(Analyses source) {
    this.source = source;
    this.copier = new GraphCopier(source.graph());
  }

  /** {@return the graph with every fold made} */
  static Graph run(Analyses source, List<Fold> folds) {
    return folds.isEmpty() ? source.graph() : new LayoutFolding(source).fold(folds);
  }

  private Graph fold(List<Fold> folds) {
    var aliases = source.aliases();
    Map<Integer, Fold> at = new HashMap<>();
    Set<Integer> copies = new HashSet<>();
    // Values that only the copies read: they get no memory.
    Set<Integer> gone = new HashSet<>();
    // Views of these that exist all the same.
    Set<Integer> defined = new HashSet<>();
    for (var fold : folds) {
      var collective = source.collectives().get(fold.collective());
      at.put(collective.index(), fold);
      fold.copies().forEach(copies::add);
      fold.copies().stream()
          .filter(copy -> copy < collective.index())
          .forEach(copy -> gone.add(aliases.id(source.graph().ops().get(copy).result())));
      int sent = aliases.id(collective.operands().getFirst());
      int received = aliases.id(collective.results().getFirst());
      switch (fold) {
        case LayoutFold rows -> {
          if (aliases.id(rows.source()) != sent) {
            gone.add(sent);
          }
          if (aliases.id(rows.target()) != received) {
            gone.add(received);
          }
        }
        case PackedFold packed -> {
          if (packed.parts().stream().noneMatch(part -> aliases.id(part.source()) == sent)) {
            gone.add(sent);
          }
          gone.add(received);
          packed.reads().forEach(read -> defined.add(read.value().id()));
        }
      }
    }
    var ops = source.graph().ops();
    for (int i = 0; i < ops.size(); i++) {
      var op = ops.get(i);
      if (at.get(i) instanceof Fold fold) {
        emit(fold, source.collectives().get(fold.collective()));
      } else if (copies.contains(i)) {
        continue;
      } else if (isKept(op, i, gone, defined)) {
        copier.keep(op);
        op.results().forEach(result -> defined.add(result.id()));
      }
    }
    return Normalize.removeDeadCode(copier.finish(copier.now(source.graph().outputs())));
  }

  /** Of what views what is gone, only views of what stands for a part of it are kept. */
  private boolean isKept(Op op, int index, Set<Integer> gone, Set<Integer> defined) {
    var aliases = source.aliases();
    return !aliases.isView(index)
        || !gone.contains(aliases.id(op.results().getFirst()))
        || (!defined.contains(op.results().getFirst().id())
            && op.operands().stream().anyMatch(value -> defined.contains(value.id())));
  }

  private void emit(Fold fold, Collective collective) {
    switch (fold) {
      case LayoutFold rows -> emitRows(rows, collective);
      case PackedFold packed -> PackFolding.emit(packed, collective, copier);
    }
  }

  private void emitRows(LayoutFold fold, Collective collective) {
    var at = collective.op();
    var def = BuiltinOps.registry().get("symplan::" + name(collective));
    var sent = seen(copier.now(fold.source()), fold.sizes(), at);
    var args = args(fold, collective, def, sent);
    var target = fold.target();
    if (target.tensor().sizes().equals(fold.resultSizes())) {
      copier.emit(ImmutableList.of(target), def, args, at);
      return;
    }
    var type = TensorType.contiguous(target.tensor().dtype(), fold.resultSizes());
    var rows = copier.insert(def, args, target.name() + "_rows", type, at.span());
    copier.emit(ImmutableList.of(target), VIEW, view(rows, target.tensor().sizes()), at);
  }

  private Value seen(Value value, ImmutableLongArray sizes, Op at) {
    if (value.tensor().sizes().equals(sizes)) {
      return value;
    }
    var args = view(value, sizes);
    var type = VIEW.infer(args).orElseThrow().getFirst().type();
    return copier.insert(VIEW, args, value.name() + "_rows", type, at.span());
  }

  private static ImmutableList<Arg> view(Value value, ImmutableLongArray sizes) {
    return ImmutableList.of(new Arg.Ref(value), Arg.Seq.of(sizes.stream()));
  }

  private static String name(Collective collective) {
    return collective.kind().text() + "_dim";
  }

  /** Those that both ops have stay as they are. */
  private static ImmutableList<Arg> args(
      LayoutFold fold, Collective collective, OpDef def, Value sent) {
    var op = collective.op();
    var spec = def.collective().orElseThrow();
    var own =
        ImmutableMap.<Role, Arg>of(
                Role.OPERAND,
                new Arg.Ref(sent),
                Role.DIM,
                new Arg.Int(fold.dims().operand() + fold.dims().result()),
                Role.SPLIT_DIM,
                new Arg.Int(fold.dims().operand()),
                Role.CONCAT_DIM,
                new Arg.Int(fold.dims().result()),
                Role.GROUP_SIZE,
                new Arg.Int(fold.ranks()),
                Role.DTYPE,
                fold.source().tensor().dtype() == fold.target().tensor().dtype()
                    ? Arg.None.NONE
                    : new Arg.Dtype(fold.target().tensor().dtype()))
            .entrySet()
            .stream()
            .filter(entry -> spec.has(entry.getKey()))
            .collect(toImmutableMap(entry -> spec.param(entry.getKey()), Map.Entry::getValue));
    var args = ImmutableList.<Arg>builder();
    for (var param : def.schema().params()) {
      if (own.get(param.name()) instanceof Arg arg) {
        args.add(arg);
      } else if (op.def().schema().hasParam(param.name())) {
        args.add(op.arg(param.name()));
      } else {
        args.add(param.defaultValue().orElseThrow());
      }
    }
    return args.build();
  }
}
