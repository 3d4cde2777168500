package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.Bound.Hosted;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Reads and writes parts of arrays in the host's memory, as far as their tensors allow. */
final class HostedParts {
  private final GraphEmitter emitter;

  HostedParts(GraphEmitter emitter) {
    this.emitter = emitter;
  }

  /** {@return an array in the device's memory: its parts are copied there one by one} */
  Value brought(Hosted hosted, String name) {
    var parts = hosted.parts();
    boolean covered =
        !parts.isEmpty() && parts.getFirst().sizes().equals(hosted.shape().tensor().sizes());
    var value =
        covered
            ? emitter.op(name, "symplan::reload", new Arg.Ref(parts.getFirst().value()))
            : emitter.value(hosted.rest(), name);
    for (var part : parts.subList(covered ? 1 : 0, parts.size())) {
      var back = emitter.op(name + ".part", "symplan::reload", new Arg.Ref(part.value()));
      value = new DynamicSlices(emitter).written(name, value, back, part.start());
    }
    return value;
  }

  /** {@return an array with other dimensions, if its parts have them, too} */
  Optional<Hosted> seen(HloInstruction instruction, Hosted hosted, Array shape) {
    var sizes = shape.tensor().sizes();
    var parts = ImmutableList.<Hosted.Part>builder();
    boolean sameOrder = isRowMajor(shape) && isRowMajor(hosted.shape());
    if (hosted.shape().dtype() != shape.dtype()
        || hosted.shape().exact() != shape.exact()
        || !shape.exact()
        || !sameOrder && instruction.opcode().equals("bitcast")) {
      return Optional.empty();
    }
    for (var part : hosted.parts()) {
      var value = part.value();
      if (!value.tensor().isContiguous()) {
        return Optional.empty();
      }
      if (part.sizes().equals(hosted.shape().tensor().sizes())) {
        parts.add(Hosted.Part.first(viewed(instruction, value, sizes)));
        continue;
      }
      var start = renamed(part.start(), hosted.shape(), shape, 0);
      var size = renamed(part.sizes(), hosted.shape(), shape, 1);
      if (start.isEmpty() || size.isEmpty()) {
        return Optional.empty();
      }
      parts.add(new Hosted.Part(start.get(), viewed(instruction, value, size.get())));
    }
    var rest = new Bound.Splat(hosted.rest().number(), shape);
    return Optional.of(new Hosted(shape, rest, parts.build()));
  }

  private static boolean isRowMajor(Array shape) {
    return shape.tensor().isContiguous();
  }

  private Value viewed(HloInstruction instruction, Value value, ImmutableLongArray sizes) {
    return value.tensor().sizes().equals(sizes)
        ? value
        : emitter.op(
            instruction.name(), "aten::view", new Arg.Ref(value), GraphEmitter.integers(sizes));
  }

  /** {@return numbers of dimensions for a shape that has more or fewer of size 1; or none} */
  private static Optional<ImmutableLongArray> renamed(
      ImmutableLongArray numbers, Array from, Array to, long ofOne) {
    var kept = new ArrayList<Long>();
    var sizes = new ArrayList<Long>();
    for (int dim = 0; dim < numbers.length(); dim++) {
      if (from.tensor().size(dim) != 1) {
        kept.add(numbers.get(dim));
        sizes.add(from.tensor().size(dim));
      }
    }
    var renamed = ImmutableLongArray.builder();
    int next = 0;
    for (long size : to.tensor().sizes().toArray()) {
      if (size == 1) {
        renamed.add(ofOne);
      } else if (next < sizes.size() && sizes.get(next) == size) {
        renamed.add(kept.get(next++));
      } else {
        return Optional.empty();
      }
    }
    return next == sizes.size() ? Optional.of(renamed.build()) : Optional.empty();
  }

  /** {@return the part of an array at a place that the module says, if it is in one tensor} */
  Optional<Bound> sliced(
      HloInstruction instruction, Hosted hosted, List<Bound> starts, Array shape) {
    if (!shape.exact() || !hosted.shape().exact()) {
      return Optional.empty();
    }
    var sizes = shape.tensor().sizes();
    if (!instruction.attributes().integers("dynamic_slice_sizes").equals(sizes)
        || hosted.shape().dtype() != shape.dtype()) {
      throw new IllegalArgumentException("it does not give %s".formatted(shape.tensor()));
    }
    var start = starts(hosted.shape(), starts, sizes);
    if (start.isEmpty()) {
      return Optional.empty();
    }
    for (var part : hosted.parts().reversed()) {
      if (part.meets(start.get(), sizes)) {
        return part.contains(start.get(), sizes)
            ? within(instruction, part, start.get(), sizes).map(value -> Hosted.of(shape, value))
            : Optional.empty();
      }
    }
    return Optional.of(new Bound.Splat(hosted.rest().number(), shape));
  }

  /** A part of a tensor in the host's memory without gaps, which one copy moves. */
  private Optional<Value> within(
      HloInstruction instruction,
      Hosted.Part part,
      ImmutableLongArray start,
      ImmutableLongArray sizes) {
    var type = part.value().tensor();
    var cut = new TensorType(type.dtype(), sizes, type.strides(), type.space());
    if (!cut.isDense()) {
      return Optional.empty();
    }
    var value = part.value();
    for (int dim = 0; dim < sizes.length(); dim++) {
      if (sizes.get(dim) != type.size(dim)) {
        value =
            emitter.op(
                instruction.name() + ".d" + dim,
                "aten::narrow",
                new Arg.Ref(value),
                new Arg.Int(dim),
                new Arg.Int(start.get(dim) - part.start().get(dim)),
                new Arg.Int(sizes.get(dim)));
      }
    }
    return Optional.of(value);
  }

  /** {@return an array with a tensor written over the elements from a start on} */
  static Hosted updated(Hosted array, Value tensor, ImmutableLongArray start) {
    var written = new Hosted.Part(start, tensor);
    var parts =
        ImmutableList.<Hosted.Part>builder()
            .addAll(
                array.parts().stream()
                    .filter(old -> !written.contains(old.start(), old.sizes()))
                    .toList())
            .add(written)
            .build();
    return new Hosted(array.shape(), array.rest(), parts);
  }

  /** {@return where a part begins, moved so that it fits; or none} */
  static Optional<ImmutableLongArray> starts(
      Array whole, List<Bound> starts, ImmutableLongArray sizes) {
    if (starts.size() != whole.tensor().rank() || sizes.length() != starts.size()) {
      throw new IllegalArgumentException("it needs a start and a size for each dimension");
    }
    var numbers = new long[starts.size()];
    for (int dim = 0; dim < numbers.length; dim++) {
      long last = whole.tensor().size(dim) - sizes.get(dim);
      if (last < 0) {
        throw new IllegalArgumentException(
            "a part of %s of %s".formatted(sizes.get(dim), whole.tensor().size(dim)));
      }
      if (last == 0) {
        continue;
      }
      if (!(starts.get(dim) instanceof Bound.Splat(Arg.Int(long at), _))) {
        return Optional.empty();
      }
      numbers[dim] = Math.clamp(at, 0, last);
    }
    return Optional.of(ImmutableLongArray.copyOf(numbers));
  }
}
