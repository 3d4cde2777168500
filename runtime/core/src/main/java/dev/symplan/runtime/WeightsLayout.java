package dev.symplan.runtime;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.runtime.tensor.HostTensor;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Optional;

/**
 * Which tensor of a checkpoint each input is, and which part of it each rank gets: a {@code
 * weights.json}, an object with a field for each input. Its {@code tensor} is the name in the
 * checkpoint. {@code shard} is the dimension that is divided among the ranks, as by PyTorch's
 * {@code Shard}; without it, all ranks get the whole tensor. {@code groups} are lists of the ranks
 * that each divide the tensor among them; without them, all ranks of the plan do.
 */
final class WeightsLayout {
  private static final ImmutableSet<String> FIELDS = ImmutableSet.of("tensor", "shard", "groups");

  /**
   * One input.
   *
   * @param tensor the name in the checkpoint
   * @param json where the file says so
   */
  record Entry(String tensor, Optional<Shard> shard, Json json) {

    /**
     * {@return the part of a tensor that a rank gets: the same memory}
     *
     * @throws CompileException when the tensor does not have the dimension, or no group has the
     *     rank
     */
    HostTensor part(HostTensor whole, int rank, int worldSize) {
      if (shard.isEmpty()) {
        return whole;
      }
      if (shard.get().dimension() >= whole.type().rank()) {
        throw json.wrong(
            "tensor '%s' is %s, which has no dimension %s"
                .formatted(tensor, whole.type(), shard.get().dimension()));
      }
      return shard
          .get()
          .part(whole, rank, worldSize)
          .orElseThrow(() -> json.wrong("rank %s is in none of the groups".formatted(rank)));
    }
  }

  /**
   * How a tensor is divided: into as many parts as a group has ranks. As with {@code torch.chunk},
   * the last ones may be smaller or empty.
   *
   * @param groups ranks in the order of the parts; empty if all ranks are one group
   */
  record Shard(int dimension, ImmutableList<ImmutableIntArray> groups) {
    Shard {
      if (dimension < 0) {
        throw new IllegalArgumentException("dimension %s is negative".formatted(dimension));
      }
      var seen = new HashSet<Integer>();
      for (var group : groups) {
        for (int rank : group.asList()) {
          if (rank < 0 || !seen.add(rank)) {
            throw new IllegalArgumentException(
                "rank %s %s".formatted(rank, rank < 0 ? "is negative" : "is in the groups twice"));
          }
        }
      }
    }

    private Optional<HostTensor> part(HostTensor whole, int rank, int worldSize) {
      if (groups.isEmpty()) {
        return Optional.of(chunk(whole, rank, worldSize));
      }
      return groups.stream()
          .filter(group -> group.contains(rank))
          .findFirst()
          .map(group -> chunk(whole, group.indexOf(rank), group.length()));
    }

    private HostTensor chunk(HostTensor whole, int index, int parts) {
      var type = whole.type();
      long size = type.size(dimension);
      long most = Math.ceilDiv(size, parts);
      long begin = Math.min(size, index * most);
      var sizes = type.sizes().toArray();
      sizes[dimension] = Math.min(size, begin + most) - begin;
      long skipped =
          sizes[dimension] == 0 ? 0 : begin * type.stride(dimension) * type.dtype().bytes();
      return new HostTensor(
          whole.memory().asSlice(skipped),
          new TensorType(
              type.dtype(), ImmutableLongArray.copyOf(sizes), type.strides(), type.space()));
    }
  }

  private final ImmutableMap<String, Entry> inputs;

  private WeightsLayout(ImmutableMap<String, Entry> inputs) {
    this.inputs = inputs;
  }

  /**
   * {@return the layout in a file}
   *
   * @throws CompileException when the file is malformed
   */
  static WeightsLayout read(Path file) {
    var inputs = ImmutableMap.<String, Entry>builder();
    var root = Json.parse(SourceReader.read(file), new JsonErrors(DiagnosticCode.BAD_TENSORS));
    if (root.find("weight_map").filter(map -> map.find("tensor").isEmpty()).isPresent()) {
      throw root.get("weight_map")
          .wrong(
              "this is the index of a checkpoint, not a weights layout",
              "give it to --weights, and a weights.json to --weights-layout");
    }
    root.fields().forEach((input, entry) -> inputs.put(input, entry(entry)));
    return new WeightsLayout(inputs.buildOrThrow());
  }

  private static Entry entry(Json json) {
    json.only(FIELDS);
    var groups =
        json.find("groups")
            .map(all -> all.list(group -> ImmutableIntArray.copyOf(group.list(Json::intValue))))
            .orElse(ImmutableList.of());
    if (!groups.isEmpty() && json.find("shard").isEmpty()) {
      throw json.wrong("'groups' needs 'shard', the dimension that the ranks divide");
    }
    try {
      return new Entry(
          json.get("tensor").text(),
          json.find("shard").map(dimension -> new Shard(dimension.intValue(), groups)),
          json);
    } catch (IllegalArgumentException e) {
      throw json.wrong(String.valueOf(e.getMessage()));
    }
  }

  /** {@return the entries of the inputs, by their names} */
  ImmutableMap<String, Entry> inputs() {
    return inputs;
  }
}
