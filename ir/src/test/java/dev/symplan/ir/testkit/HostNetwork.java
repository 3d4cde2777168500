package dev.symplan.ir.testkit;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.collect.ImmutableList;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Hosts of a test, each with a network namespace of its own, joined by a switch. Where namespaces
 * are forbidden, the hosts are addresses of the loopback network, and no link can be changed.
 */
public final class HostNetwork implements AutoCloseable {
  private static final String HOLDER = "host ";

  /**
   * Runs in a namespace that has the switch. A line of its input is a command there; at the end of
   * the input, all processes end, and the namespaces with them.
   */
  private static final String SWITCH =
      """
      set -e
      holders=
      trap 'kill $holders 2>/dev/null' EXIT
      ip link add hub type bridge
      ip link set hub up
      for host in $(seq "$1"); do
        unshare --net sleep 600 >/dev/null 2>&1 &
        holders="$holders $!"
        while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.02; done
        ip link add "link$host" type veth peer name eth0 netns $!
        ip link set "link$host" master hub up
        nsenter --target $! --net sh -ec "
          ip link set lo up
          ip address add 10.22.0.$host/24 dev eth0
          ip link set eth0 up"
        echo "host $!"
      done
      echo ready
      while read -r command; do
        $command && echo done || echo failed
      done
      """;

  /**
   * The process that has the switch.
   *
   * @param holders by host, a process in its namespace
   */
  private record Hub(
      Process process, BufferedReader out, BufferedWriter in, ImmutableList<String> holders) {

    void command(String text) {
      try {
        in.write(text + "\n");
        in.flush();
        var answer = out.readLine();
        if (!"done".equals(answer)) {
          throw new AssertionError("%s: %s".formatted(text, answer));
        }
      } catch (IOException e) {
        throw new AssertionError(text, e);
      }
    }
  }

  private final Optional<Hub> hub;

  private HostNetwork(Optional<Hub> hub) {
    this.hub = hub;
  }

  /** {@return so many hosts; it prints the reason if they have no networks of their own} */
  public static HostNetwork of(int hosts) {
    var said = new ArrayList<String>();
    try {
      var process =
          new ProcessBuilder(
                  List.of(
                      "unshare",
                      "--user",
                      "--map-root-user",
                      "--net",
                      "bash",
                      "-c",
                      SWITCH,
                      "switch",
                      Integer.toString(hosts)))
              .redirectErrorStream(true)
              .start();
      var out = process.inputReader(UTF_8);
      var holders = ImmutableList.<String>builder();
      for (var line = out.readLine(); line != null; line = out.readLine()) {
        if (line.equals("ready")) {
          return new HostNetwork(
              Optional.of(new Hub(process, out, process.outputWriter(UTF_8), holders.build())));
        }
        if (line.startsWith(HOLDER)) {
          holders.add(line.substring(HOLDER.length()));
        } else {
          said.add(line);
        }
      }
    } catch (IOException e) {
      said.add(String.valueOf(e.getMessage()));
    }
    System.out.printf(
        "no network namespaces here (%s): hosts are addresses of 127.0.22.0%n",
        String.join("; ", said));
    return new HostNetwork(Optional.empty());
  }

  /** {@return whether the hosts have networks of their own, whose links can be changed} */
  public boolean hasLinks() {
    return hub.isPresent();
  }

  /** {@return the address of a host, from 0} */
  public String address(int host) {
    return (hasLinks() ? "10.22.0." : "127.0.22.") + (host + 1);
  }

  /** {@return the beginning of the command of a process of a host} */
  public ImmutableList<String> prefix(int host) {
    return hub.map(
            known ->
                ImmutableList.of(
                    "nsenter",
                    "--preserve-credentials",
                    "--user",
                    "--net",
                    "--target",
                    known.holders().get(host)))
        .orElse(ImmutableList.of());
  }

  /** Cuts the link of a host, as if somebody pulled its cable: no connection is closed. */
  public void cut(int host) {
    hub.orElseThrow().command("ip link set link%s down".formatted(host + 1));
  }

  /** Lets a link carry so many kilobits per second to a host, and no more. */
  public void slow(int host, int kilobits) {
    hub.orElseThrow()
        .command(
            "tc qdisc add dev link%s root tbf rate %skbit burst 16kb limit 1mb"
                .formatted(host + 1, kilobits));
  }

  @Override
  public void close() {
    hub.ifPresent(
        known -> {
          try {
            known.in().close();
            known.process().waitFor();
          } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
          }
        });
  }
}
