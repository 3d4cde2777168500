package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.rewrite.PackedFold.Part;
import dev.symplan.planner.pass.rewrite.PackedFold.Read;

/** Makes one collective of several tensors of one that takes them packed. */
final class PackFolding {
  private static final OpDef VIEW = BuiltinOps.registry().get("aten::view");
  private static final OpDef SLICE = BuiltinOps.registry().get("aten::slice.Tensor");

  private final GraphCopier copier;
  private final Collective collective;

  private PackFolding(GraphCopier copier, Collective collective) {
    this.copier = copier;
    this.collective = collective;
  }

  static void emit(PackedFold fold, Collective collective, GraphCopier copier) {
    new PackFolding(copier, collective).emit(fold);
  }

  private void emit(PackedFold fold) {
    var op = collective.op();
    var def =
        fold.widens()
            ? BuiltinOps.registry().get(Widening.SCATTER_OF_SEVERAL)
            : Merging.listForm(op.def());
    var sent =
        fold.parts().stream().<Arg>map(part -> new Arg.Ref(flat(part))).collect(toImmutableList());
    var args =
        def.schema().params().stream()
            .map(
                param ->
                    switch (param.name()) {
                      case "inputs" -> new Arg.Seq(sent);
                      case "dtype" -> new Arg.Dtype(collective.dtype());
                      default -> op.arg(param.name());
                    })
            .collect(toImmutableList());
    var types =
        fold.parts().stream()
            .map(
                part ->
                    collective.kind() == Kind.ALL_GATHER
                        ? part.size() * fold.ranks()
                        : part.size() / fold.ranks())
            .map(size -> TensorType.contiguous(collective.dtype(), size))
            .collect(toImmutableList());
    var got = copier.insert(def, args, collective.name(), types, op.span());
    fold.reads().forEach(read -> define(read, got.get(read.part())));
  }

  /** {@return the elements of a part, as a tensor of one dimension} */
  private Value flat(Part part) {
    var source = copier.now(part.source());
    long all = source.tensor().numel();
    var flat =
        source.tensor().rank() == 1
            ? source
            : insert(VIEW, ImmutableList.of(new Arg.Ref(source), Arg.Seq.of(all)), source, all);
    return part.isWhole() ? flat : slice(flat, part.start(), part.size());
  }

  private Value slice(Value flat, long start, long size) {
    var args =
        ImmutableList.<Arg>of(
            new Arg.Ref(flat),
            new Arg.Int(0),
            new Arg.Int(start),
            new Arg.Int(start + size),
            new Arg.Int(1));
    return insert(SLICE, args, flat, size);
  }

  private Value insert(OpDef def, ImmutableList<Arg> args, Value of, long size) {
    var type = TensorType.contiguous(of.tensor().dtype(), size);
    return copier.insert(def, args, of.name() + "_part", type, collective.op().span());
  }

  private void define(Read read, Value got) {
    var type = read.value().tensor();
    boolean whole = got.tensor().numel() == type.numel();
    var seen = whole ? got : slice(got, read.start(), type.numel());
    var args = ImmutableList.<Arg>of(new Arg.Ref(seen), Arg.Seq.of(type.sizes().stream()));
    copier.emit(ImmutableList.of(read.value()), VIEW, args, collective.op());
  }
}
