package dev.symplan.ir.pt2;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.pt2.Model.Stored;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Reads the tensors of a program: {@code data/weights} has the state of the module, {@code
 * data/constants} the rest; a configuration beside them says in which storage each tensor lies.
 */
final class WeightReader {
  private static final String RESAVE =
      "load it with torch.export.load, and save it again with PyTorch 2.11 to 2.13";

  private final ArchiveFile archive;
  private final String model;

  /** Where a tensor lies. */
  private record Region(Stored stored, String entry, TensorType type, long offset) {}

  WeightReader(ArchiveFile archive, String model) {
    this.archive = archive;
    this.model = model;
  }

  /**
   * {@return the tensors}
   *
   * @throws dev.symplan.ir.diag.CompileException when one is missing, pickled or damaged
   */
  ImmutableList<Weight> read(List<Stored> wanted) {
    if (wanted.isEmpty()) {
      return ImmutableList.of();
    }
    var state = config("data/weights/", "_weights_config.json");
    var constants = config("data/constants/", "_constants_config.json");
    var regions = ImmutableList.<Region>builder();
    Set<String> entries = new LinkedHashSet<>();
    for (var stored : wanted) {
      var region =
          stored.constant()
              ? region(stored, constants, "data/constants/")
              : region(stored, state, "data/weights/");
      regions.add(region);
      entries.add(region.entry);
    }
    var memory = archive.memory(entries);
    var weights = ImmutableList.<Weight>builder();
    for (var region : regions.build()) {
      weights.add(weight(region, Objects.requireNonNull(memory.get(region.entry))));
    }
    return weights.build();
  }

  private ImmutableMap<String, Json> config(String folder, String suffix) {
    var entry = folder + model + suffix;
    if (!archive.has(entry) && archive.has(folder + model + ".pt")) {
      throw archive.wrong(
          "entry '%s%s.pt' holds pickled tensors, which are not read: a pickle can run any code"
              .formatted(folder, model),
          RESAVE);
    }
    return EntryErrors.read(archive, entry).get("config").fields();
  }

  private Region region(Stored stored, ImmutableMap<String, Json> config, String folder) {
    @Nullable Json payload = config.get(stored.qualifiedName());
    if (payload == null) {
      throw archive.wrong(
          "%s has no tensor '%s' for input '%s'"
              .formatted(folder, stored.qualifiedName(), stored.input()));
    }
    if (payload.get("use_pickle").bool()) {
      throw payload.wrong("the tensor is pickled, which is not read: a pickle can run any code");
    }
    var path = payload.get("path_name");
    var meta = payload.get("tensor_meta");
    var type = Types.concrete(meta);
    long offset = Types.number(meta.get("storage_offset"));
    if (offset < 0 || offset > TensorType.MAX_BYTES / type.dtype().bytes()) {
      throw meta.wrong("the offset %s is out of range".formatted(offset));
    }
    if (!archive.has(folder + path.text())) {
      throw path.wrong("entry '%s%s' is missing".formatted(folder, path.text()));
    }
    return new Region(stored, folder + path.text(), type, offset * type.dtype().bytes());
  }

  private Weight weight(Region region, MemorySegment storage) {
    long bytes = region.type.storageBytes();
    if (bytes > storage.byteSize() - region.offset && bytes > 0) {
      throw archive.wrong(
          "tensor '%s' is %s at byte %s of entry '%s', which has %s"
              .formatted(
                  region.stored.qualifiedName(),
                  region.type,
                  region.offset,
                  region.entry,
                  Units.count(storage.byteSize(), "byte")),
          storage.byteSize() == 0 ? "it was saved without data: export with real tensors" : "");
    }
    return new Weight(
        region.stored.input(),
        region.stored.qualifiedName(),
        region.type,
        storage.asSlice(Math.min(region.offset, storage.byteSize()), bytes));
  }
}
