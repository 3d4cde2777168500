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
 * Writes the copies of PyTorch's FSDP2, which it groups into {@code fsdp::} ops, as copies of parts
 * of tensors: what its {@code _fsdp_collectives.py} does.
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
    return FsdpOps.copies(op.def().schema());
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
      case "chunk_cat" -> own.concatenateChunks();
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

  private Value empty(long elements) {
    return emitter.emit(
        Target.of("all_gather_output"),
        "aten::empty.memory_format",
        Arg.Seq.of(elements),
        call.arg("dtype"));
  }

  private void copyOut() {
    var whole = call.value("all_gather_output");
    int dim = call.dim("dim", whole.tensor().rank());
    copyParts(whole, dim, call.integers("all_gather_input_split_sizes"), call.values("out"), false);
  }

  /** Copies between the parts of a tensor, along a dimension, and as many others. */
  private void copyParts(
      Value whole, int dim, ImmutableLongArray sizes, ImmutableList<Value> others, boolean in) {
    if (sizes.length() != others.size() || sizes.stream().sum() != whole.tensor().size(dim)) {
      throw emitter.error(
          "%s cannot be divided into parts of %s for %s"
              .formatted(whole.type(), sizes, Units.count(others.size(), "tensor")));
    }
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
    var made =
        emitter.emit(
            Target.of(call.value("out").name() + "_rows"),
            "aten::cat",
            new Arg.Seq(rows.build()),
            new Arg.Int(dim + 1));
    copy(inShape(call.value("out"), made), made);
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
