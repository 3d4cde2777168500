package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.rewrite.Chunking.Chunk;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** Splits products and their collectives in one graph; the pieces are put together after them. */
final class Splitting {
  private static final OpDef WAIT = BuiltinOps.registry().get("_c10d_functional::wait_tensor");
  private static final OpDef CAT = BuiltinOps.registry().get("aten::cat");

  private final Analyses source;
  private final GraphCopier copier;

  private Splitting(Analyses source) {
    this.source = source;
    this.copier = new GraphCopier(source.graph());
  }

  /** {@return the {@code index}-th graph with every chunk split} */
  static Graph run(Analyses source, int index, ImmutableList<Chunk> chunks) {
    return chunks.isEmpty() ? source.graph() : new Splitting(source).split(index, chunks);
  }

  private Graph split(int index, ImmutableList<Chunk> chunks) {
    Map<Integer, Chunk> at = new HashMap<>();
    Set<Integer> replaced = new HashSet<>();
    for (var chunk : chunks) {
      var product = chunk.products().get(index);
      at.put(source.collectives().get(chunk.collective()).index(), chunk);
      replaced.add(product.index());
      replaced.addAll(product.views());
    }
    var ops = source.graph().ops();
    for (int i = 0; i < ops.size(); i++) {
      if (at.get(i) instanceof Chunk chunk) {
        emit(ops.get(i), chunk.products().get(index), chunk.pieces());
      } else if (!replaced.contains(i)) {
        copier.keep(ops.get(i));
      }
    }
    return copier.finish();
  }

  private void emit(Op collective, ChunkableProduct product, int pieces) {
    var result = collective.result();
    var span = product.op().span();
    var left = copier.now(product.left());
    if (left.tensor().rank() != 2) {
      left =
          insert(
              ChunkableProduct.VIEW,
              span,
              left.name() + "_rows",
              ref(left),
              Arg.Seq.of(product.matrix().sizes().stream()));
    }
    long rows = product.rows() / pieces;
    var reduced = ImmutableList.<Arg>builder();
    for (int i = 0; i < pieces; i++) {
      var part =
          insert(
              ChunkableProduct.SLICE,
              span,
              left.name() + "_rows" + i,
              ref(left),
              new Arg.Int(0),
              new Arg.Int(i * rows),
              new Arg.Int((i + 1) * rows),
              new Arg.Int(1));
      var args = product.args(copier.now(product.op().args()), part);
      var name = product.op().result().name() + "_" + i;
      var made = insert(product.op().def(), args, span, name);
      var reducing = ImmutableList.<Arg>builder().add(ref(made));
      reducing.addAll(collective.args().subList(1, collective.args().size()));
      reduced.add(
          ref(
              insert(
                  collective.def(), reducing.build(), collective.span(), result.name() + "_" + i)));
    }
    var waited = ImmutableList.<Arg>builder();
    for (var piece : reduced.build()) {
      waited.add(
          ref(insert(WAIT, ImmutableList.of(piece), collective.span(), result.name() + "_done")));
    }
    var cat = ImmutableList.<Arg>of(new Arg.Seq(waited.build()), new Arg.Int(0));
    if (result.tensor().rank() == 2 && result.tensor().size(0) == product.rows()) {
      copier.emit(ImmutableList.of(result), CAT, cat, collective);
    } else {
      var whole = insert(CAT, cat, collective.span(), result.name() + "_rows");
      copier.emit(
          ImmutableList.of(result),
          ChunkableProduct.VIEW,
          ImmutableList.of(ref(whole), Arg.Seq.of(result.tensor().sizes().stream())),
          collective);
    }
  }

  private static Arg ref(Value value) {
    return new Arg.Ref(value);
  }

  private Value insert(OpDef def, Span span, String name, Arg... args) {
    return insert(def, ImmutableList.copyOf(args), span, name);
  }

  private Value insert(OpDef def, ImmutableList<Arg> args, Span span, String name) {
    var type = def.infer(args).orElseThrow().getFirst().type();
    return copier.insert(def, args, name, type, span);
  }
}
