package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.FsdpOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpCall;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;
import java.util.stream.LongStream;

/**
 * Writes the copies of PyTorch's FSDP2, which it groups into {@code fsdp::} ops, and those of
 * Inductor's buckets as copies of parts of tensors: what its {@code _fsdp_collectives.py} and
 * {@code bucketing.py} do.
 */
final class FsdpOp {
  private final Op op;
  private final OpCall call;
  private final OpEmitter emitter;

  private FsdpOp(OpEmitter emitter) {
    this.op = emitter.at();
    this.call = new OpCall(op.def(), emitter.copier().now(op.args()));
    this.emitter = emitter;
  }

  static boolean is(Op op) {
    return FsdpOps.copies(op.def().schema()) && !mixesTypes(op);
  }

  /**
   * Whether the tensors of a bucket may keep types of their own in it: which ones is in numbers
   * that mean other types in each version of PyTorch.
   */
  private static boolean mixesTypes(Op op) {
    if (!op.def().schema().hasParam("ag_ins")) {
      return false;
    }
    return op.def().schema().hasParam("out_dtype_ints")
        ? op.arg("out_dtype_ints") instanceof Arg.Seq(var types)
            && types.stream().distinct().count() > 1
        : op.arg("ag_ins").operands().stream()
            .anyMatch(
                value ->
                    !(op.arg("dtype") instanceof Arg.Dtype(var dtype))
                        || value.tensor().dtype() != dtype);
  }

  /**
   * Emits what the op does.
   *
   * @throws CompileException when the tensors do not fit, or a result is not of its annotated type
   */
  static void emit(OpEmitter emitter) {
    var own = new FsdpOp(emitter);
    switch (own.op.def().name().name()) {
      case "all_gather_copy_in" -> own.copyIn();
      case "split_with_sizes_copy" -> own.copyOut();
      case "chunk_cat", "_chunk_cat" -> own.concatenateChunks();
      case "_foreach_copy_" -> own.copyEach();
      case "_pre_bucket_all_gather" -> own.bucketOfShards();
      case "_pre_bucket_reduce_scatter" -> own.bucketOfGradients();
      default -> own.copy(own.call.value("tensor"), own.call.value("data"));
    }
  }

  /** The operand of the gather is this rank's part of its result, and holds the inputs. */
  private void copyIn() {
    var given = op.results();
    long elements = call.integer("all_gather_input_numel");
    var whole =
        call.schema().hasParam("all_gather_output")
            ? call.value("all_gather_output")
            : empty(elements * call.integer("world_size"));
    long rank = call.integer("rank");
    var part =
        slice(Target.of(given.getFirst(), "all_gather_input"), whole, 0, rank * elements, elements);
    emitter.checkType(part, given.getFirst(), true);
    copyParts(part, 0, call.integers("inp_split_sizes"), call.values("all_gather_inputs"), true);
    if (given.size() > 1 && given.get(1).isTensor()) {
      emitter.checkType(whole, given.get(1), true);
      emitter.copier().replace(given.get(1), whole);
    }
  }

  /** The result of the gather, where this rank's part holds the inputs. */
  private void bucketOfShards() {
    var shards = call.values("ag_ins");
    var sizes =
        ImmutableLongArray.copyOf(shards.stream().mapToLong(shard -> shard.tensor().numel()));
    long elements = sizes.stream().sum();
    var whole = empty(elements * call.integer(FsdpOps.GROUP_SIZE));
    long rank = call.integer("rank");
    copyParts(
        slice(Target.of("all_gather_input"), whole, 0, rank * elements, elements),
        0,
        sizes,
        shards,
        true);
    emitter.checkType(whole, op.result(), true);
    emitter.copier().replace(op.result(), whole);
  }

  /** The parts of all gradients that go to one rank lie side by side. */
  private void bucketOfGradients() {
    long ranks = call.integer(FsdpOps.GROUP_SIZE);
    var rows = ImmutableList.<Arg>builder();
    for (var gradient : call.values("rs_ins")) {
      long elements = gradient.tensor().numel();
      if (ranks < 1 || elements % ranks != 0) {
        throw emitter.error(
            "%s cannot be divided evenly among %s"
                .formatted(gradient.tensor(), Units.count(ranks, "rank")));
      }
      rows.add(new Arg.Ref(view(gradient, ImmutableLongArray.of(ranks, elements / ranks))));
    }
    var made =
        emitter.emit(
            Target.of(op.result().name() + "_rows"),
            "aten::cat",
            new Arg.Seq(rows.build()),
            new Arg.Int(1));
    var flat =
        emitter.emit(
            Target.of(op.result()),
            "aten::view",
            new Arg.Ref(made),
            Arg.Seq.of(made.tensor().numel()));
    emitter.checkType(flat, op.result(), true);
  }

  private Value empty(long elements) {
    return emitter.emit(
        Target.of("all_gather_output"),
        "aten::empty.memory_format",
        Arg.Seq.of(elements),
        call.arg("dtype"));
  }

  private void copyOut() {
    boolean grouped = call.schema().hasParam("all_gather_output");
    var whole = call.value(grouped ? "all_gather_output" : "self");
    var sizes = call.integers(grouped ? "all_gather_input_split_sizes" : "split_sizes");
    int dim = call.dim("dim", whole.tensor().rank());
    if (call.schema().hasParam("out")) {
      copyParts(whole, dim, sizes, call.values("out"), false);
      return;
    }
    // Nothing reads the last parts if the op has fewer results.
    checkParts(whole, dim, sizes, Math.max(sizes.length(), op.results().size()));
    long start = 0;
    for (int i = 0; i < op.results().size(); i++) {
      var given = op.results().get(i);
      var part = slice(Target.of(given.name() + "_part"), whole, dim, start, sizes.get(i));
      var copy =
          emitter.emit(
              Target.of(given, given.name()),
              "aten::clone",
              new Arg.Ref(part),
              new Arg.Symbol("contiguous_format"));
      emitter.checkType(copy, given, true);
      start += sizes.get(i);
    }
  }

  /** Copies between the parts of a tensor, along a dimension, and as many others. */
  private void copyParts(
      Value whole, int dim, ImmutableLongArray sizes, ImmutableList<Value> others, boolean in) {
    checkParts(whole, dim, sizes, others.size());
    long start = 0;
    for (int i = 0; i < sizes.length(); i++) {
      var other = others.get(i);
      var part = slice(Target.of(other.name() + "_part"), whole, dim, start, sizes.get(i));
      if (in) {
        copy(part, view(other, ImmutableLongArray.of(other.tensor().numel())));
      } else {
        copy(other, part);
      }
      start += sizes.get(i);
    }
  }

  private void checkParts(Value whole, int dim, ImmutableLongArray sizes, int tensors) {
    if (sizes.length() != tensors || sizes.stream().sum() != whole.tensor().size(dim)) {
      throw emitter.error(
          "%s cannot be divided into parts of %s for %s"
              .formatted(whole.type(), sizes, Units.count(tensors, "tensor")));
    }
  }

  /**
   * Each tensor in equal chunks along a dimension, the last ones filled up with zeros; chunks of
   * the same number lie side by side.
   */
  private void concatenateChunks() {
    var tensors = call.values("tensors");
    if (tensors.isEmpty()) {
      throw emitter.error("needs at least one tensor");
    }
    long chunks = call.integer("num_chunks");
    int dim = call.dim("dim", tensors.getFirst().tensor().rank());
    var rows = ImmutableList.<Arg>builder();
    for (var tensor : tensors) {
      var type = tensor.tensor();
      if (chunks < 1 || dim >= type.rank()) {
        throw emitter.error(
            "%s cannot be divided into %s chunks along dimension %s".formatted(type, chunks, dim));
      }
      var padded = padded(tensor, dim, Math.ceilDiv(type.size(dim), chunks) * chunks);
      var leading = type.sizes().subArray(0, dim).stream();
      rows.add(
          new Arg.Ref(
              view(
                  padded,
                  ImmutableLongArray.copyOf(
                      LongStream.concat(
                          leading, LongStream.of(chunks, elementsOfChunk(padded, dim, chunks)))))));
    }
    boolean fresh = !call.schema().hasParam("out");
    var made =
        emitter.emit(
            fresh ? Target.of(op.result()) : Target.of(call.value("out").name() + "_rows"),
            "aten::cat",
            new Arg.Seq(rows.build()),
            new Arg.Int(dim + 1));
    if (fresh) {
      emitter.checkType(made, op.result(), true);
      return;
    }
    copy(inShape(call.value("out"), made), made);
    // The form of aten:: gives what it has written.
    for (var given : op.results()) {
      emitter.checkType(call.value("out"), given, true);
      emitter.copier().replace(given, call.value("out"));
    }
  }

  /** The op resizes {@code out}; where it has as many elements, these are written. */
  private Value inShape(Value out, Value made) {
    var sizes = made.tensor().sizes();
    return out.tensor().sizes().equals(sizes)
        ? out
        : emitter.emit(
            Target.of(out.name() + "_chunks"),
            "aten::view",
            new Arg.Ref(out),
            Arg.Seq.of(sizes.stream()));
  }

  private static long elementsOfChunk(Value tensor, int dim, long chunks) {
    return tensor.tensor().sizes().subArray(dim, tensor.tensor().rank()).stream()
            .reduce(1, (a, b) -> a * b)
        / chunks;
  }

  private Value padded(Value tensor, int dim, long size) {
    long missing = size - tensor.tensor().size(dim);
    if (missing == 0) {
      return tensor;
    }
    // Pairs of paddings come from the last dimension on.
    var pads = new long[2 * (tensor.tensor().rank() - dim)];
    pads[pads.length - 1] = missing;
    return emitter.emit(
        Target.of(tensor.name() + "_padded"),
        "aten::constant_pad_nd",
        new Arg.Ref(tensor),
        Arg.Seq.of(pads));
  }

  private void copyEach() {
    var to = call.values("self");
    var from = call.values("src");
    if (to.size() != from.size()) {
      throw emitter.error(
          "%s cannot be copied to %s"
              .formatted(Units.count(from.size(), "tensor"), Units.count(to.size(), "other")));
    }
    for (int i = 0; i < to.size(); i++) {
      copy(to.get(i), from.get(i));
    }
  }

  private void copy(Value to, Value from) {
    emitter.emit(
        Target.of(to.name() + "_copied"), "aten::copy_", new Arg.Ref(to), new Arg.Ref(from));
  }

  private Value view(Value tensor, ImmutableLongArray sizes) {
    return tensor.tensor().sizes().equals(sizes)
        ? tensor
        : emitter.emit(
            Target.of(tensor.name() + "_flat"),
            "aten::reshape",
            new Arg.Ref(tensor),
            Arg.Seq.of(sizes.stream()));
  }

  private Value slice(Target target, Value whole, int dim, long start, long size) {
    return emitter.emit(
        target,
        "aten::slice.Tensor",
        new Arg.Ref(whole),
        new Arg.Int(dim),
        new Arg.Int(start),
        new Arg.Int(start + size));
  }
}
