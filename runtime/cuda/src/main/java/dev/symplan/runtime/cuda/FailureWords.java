package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.ir.diag.Units;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * Words in host memory, one for each launch that waits for peers: a kernel that gives up says so in
 * its own, so that the host knows which collective it was.
 */
final class FailureWords {

  /** The words for a collective in messages. */
  private record Known(String text, ImmutableIntArray members) {}

  private final ImmutableMap<String, Known> collectives;
  private final MemorySegment words;
  private final long onDevice;
  private final List<String> labels = new ArrayList<>();

  /**
   * @param words memory that the GPU can write to, all 0
   * @param onDevice its address for the GPU
   */
  FailureWords(RankProgram program, MemorySegment words, long onDevice) {
    this.collectives = collectives(program);
    this.words = words;
    this.onDevice = onDevice;
  }

  private static ImmutableMap<String, Known> collectives(RankProgram program) {
    Map<String, Known> known = new HashMap<>();
    for (var instruction : program.instructions()) {
      if (instruction instanceof Collective c) {
        var text =
            "%s '%s' (%s)"
                .formatted(
                    c.kind().name().toLowerCase(Locale.ROOT), c.name(), c.span().shortForm());
        known.put(c.name(), new Known(text, c.group().members()));
      }
    }
    return ImmutableMap.copyOf(known);
  }

  /** {@return the address, for the GPU, of a new word for the launch of this label} */
  long watch(String label) {
    long at = (long) labels.size() * Integer.BYTES;
    if (at >= words.byteSize()) {
      throw new IllegalStateException("more launches wait than were counted: " + label);
    }
    labels.add(label);
    return onDevice + at;
  }

  /**
   * {@return why kernels gave up, for people; empty if none did}
   *
   * @param timeout how long they wait
   */
  Optional<String> failure(Duration timeout) {
    Optional<String> followed = Optional.empty();
    for (int i = 0; i < labels.size(); i++) {
      int value = words.get(ValueLayout.JAVA_INT, (long) i * Integer.BYTES);
      if (value >= DeviceProgram.FIRST_PEER) {
        return Optional.of(waited(labels.get(i), value - DeviceProgram.FIRST_PEER, timeout));
      }
      if (value != 0 && followed.isEmpty()) {
        followed = Optional.of(waited(labels.get(i), -1, timeout));
      }
    }
    return followed;
  }

  private String waited(String label, int peer, Duration timeout) {
    var known = collectives.get(label);
    var whom =
        known != null && peer >= 0 && peer < known.members().length()
            ? "rank " + known.members().get(peer)
            : "its peers";
    return "%s waited more than %s for %s"
        .formatted(known == null ? "'" + label + "'" : known.text(), Units.duration(timeout), whom);
  }

  /** {@return the words for NCCL's collectives, which say nothing themselves} */
  String describe(String label) {
    var known = collectives.get(label);
    return known == null ? "'" + label + "'" : known.text();
  }
}
