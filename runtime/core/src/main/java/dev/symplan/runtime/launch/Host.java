package dev.symplan.runtime.launch;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.runtime.failure.RunException;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;

/**
 * A host of a run, by what distinguishes it from the others.
 *
 * @param id the same for all processes of a host, and for no other host
 * @param name for people
 */
public record Host(String id, String name) {
  private static final char END = '\0';

  public Host {
    if (id.isEmpty() || id.indexOf(END) >= 0 || name.indexOf(END) >= 0) {
      throw new IllegalArgumentException("the host '%s' (%s)".formatted(id, name));
    }
  }

  /**
   * {@return the host of this process}
   *
   * @param override the name by which it is known, as {@code NCCL_HOSTID} says; empty for its own
   */
  static Host here(String override) {
    if (!override.isEmpty()) {
      return new Host(override, override);
    }
    var name = read("/proc/sys/kernel/hostname", "");
    if (name.isEmpty()) {
      try {
        name = InetAddress.getLocalHost().getHostName();
      } catch (IOException e) {
        throw new RunException("this host has no name: " + e.getMessage(), e);
      }
    }
    // Containers may give several hosts the same name, or one host several names.
    return new Host(read("/proc/sys/kernel/random/boot_id", name), name);
  }

  /** {@return the host of each rank, hosts numbered in the order of their first ranks} */
  static Hosts ofRanks(List<Host> hosts) {
    var numbers = new HashMap<String, Integer>();
    return new Hosts(
        ImmutableIntArray.copyOf(
            hosts.stream()
                .mapToInt(
                    host -> {
                      int next = numbers.size();
                      return numbers.computeIfAbsent(host.id(), _ -> next);
                    })));
  }

  private static String read(String file, String otherwise) {
    var path = Path.of(file);
    try {
      return Files.isReadable(path) ? Files.readString(path).strip() : otherwise;
    } catch (IOException e) {
      return otherwise;
    }
  }

  byte[] toBytes() {
    return (id + END + name).getBytes(StandardCharsets.UTF_8);
  }

  /**
   * @throws RunException when the bytes are something else
   */
  static Host of(byte[] bytes) {
    var text = new String(bytes, StandardCharsets.UTF_8);
    int end = text.indexOf(END);
    if (end <= 0 || text.indexOf(END, end + 1) >= 0) {
      throw new RunException("a rank does not say on which host it is");
    }
    return new Host(text.substring(0, end), text.substring(end + 1));
  }
}
