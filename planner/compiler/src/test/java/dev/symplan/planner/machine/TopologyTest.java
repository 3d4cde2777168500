package dev.symplan.planner.machine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.planner.machine.Topology.Reach;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class TopologyTest {
  private static Topology topology(String hosts) {
    return Topology.ofHosts(Hosts.parse(hosts).orElseThrow(), Target.H200_X8);
  }

  private static Target pairs() {
    return TargetFile.read(
        new SourceFile(
            "pairs.json",
            """
            {"format": "symplan-target", "version": 3, "name": "pairs", "base": "h200x4",
             "hosts_per_domain": 2}
            """));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          4x8       | 4x8     | 8 8 8 8
          8,4       | 8,4     | 8 4
          8,8,4     | 2x8,4   | 8 8 4
          1x8       | 8       | 8
          2x1,2,1x2 | 2x1,2x2 | 1 1 2 2
          """)
  void textIsReadAndWritten(String text, String written, String ranks) {
    var topology = topology(text);
    assertThat(topology.text()).isEqualTo(written);
    assertThat(topology(written)).isEqualTo(topology);
    assertThat(topology.hosts().asList()).isEqualTo(ints(ranks).asList());
    assertThat(topology.ranks()).isEqualTo(ints(ranks).stream().sum());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "0",
        "8,",
        ",8",
        "0x8",
        "4x0",
        "x8",
        "4x",
        "4X8",
        "8 4",
        "-1",
        "[]",
        "[0",
        "[0]]",
        "[[0]]",
        "[0] [1]",
        "[0],",
        "[a]",
        "[0:2:0]",
        "[0:99999]",
        "[1:0]",
        "[0], [-1]"
      })
  void otherTextIsNot(String text) {
    assertThat(Hosts.parse(text)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"65537", "9x9999", "65536, 1"})
  void noJobHasMoreRanks(String text) {
    assertThatThrownBy(() -> Hosts.parse(text)).hasMessage("more than 65536 ranks");
  }

  @Test
  void ranksFillHostsInOrder() {
    var topology = topology("3,1,4");
    assertThat(IntStream.range(0, 8).map(topology::host)).containsExactly(0, 0, 0, 1, 2, 2, 2, 2);
    assertThat(IntStream.range(0, 8).map(topology::domain)).containsExactly(0, 0, 0, 1, 2, 2, 2, 2);
  }

  /** As launchers deal ranks out, and in any other way. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          [0, 2], [1, 3]          | [0, 2], [1, 3] | 0 1 0 1
          [0:4:2],[1:4:2]         | [0, 2], [1, 3] | 0 1 0 1
          [2, 1, 4] , [0], [3]    | [1, 2, 4], [0], [3] | 1 0 0 2 0
          [0:3], [3]              | 3,1 | 0 0 0 1
          3, 1                    | 3,1 | 0 0 0 1
          """)
  void ranksOfEachHost(String text, String written, String hosts) {
    var topology = topology(text);
    assertThat(topology.text()).isEqualTo(written);
    assertThat(topology(written)).isEqualTo(topology);
    assertThat(IntStream.range(0, topology.ranks()).map(topology::host).toArray())
        .isEqualTo(ints(hosts).toArray());
  }

  @Test
  void longListsHaveSlices() {
    var dealt = new Hosts(ImmutableIntArray.copyOf(IntStream.range(0, 1024).map(rank -> rank % 2)));
    assertThat(dealt.text()).isEqualTo("[0:1024:2], [1:1025:2]");
    assertThat(Hosts.parse(dealt.text())).contains(dealt);
  }

  @Test
  void whereNobodyStatesHostsEachIsFull() {
    assertThat(Topology.of(10, Target.H200_X4).text()).isEqualTo("2x4,2");
    assertThat(Topology.of(4, Target.H200_X4).unlike(Target.H200_X4)).isEmpty();
    assertThat(topology("2x2").unlike(Target.H200_X4)).contains("2x2");
    assertThat(topology("2x4").unlike(Target.H200_X4)).isEmpty();
  }

  @Test
  void domainsMayHaveSeveralHosts() {
    var topology = Topology.of(20, pairs());
    assertThat(topology.text()).isEqualTo("5x4");
    assertThat(IntStream.of(0, 4, 7, 8, 15, 16, 19).map(topology::domain))
        .containsExactly(0, 0, 0, 1, 1, 2, 2);
    assertThat(TargetFile.read(new SourceFile("t.json", TargetFile.toJson(pairs()))))
        .isEqualTo(pairs());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          2x4 | 0 1 2 3, 4 5 6 7 | 4 | 1 | 4
          2x4 | 0 4, 1 5         | 2 | 2 | 1
          2x4 | 0 1 2 3 4 5 6 7  | 8 | 2 | 4
          2x4 | 0 1, 3 4         | 2 | 2 | 1
          8,4 | 0 1 2 3 8 9      | 6 | 2 | 2
          4x2 | 0 2 4 6          | 4 | 4 | 1
          """)
  void groupsReachOverDomains(String hosts, String parts, int ranks, int domains, int fewest) {
    var members = ImmutableList.<ImmutableIntArray>builder();
    for (var part : parts.split(", ")) {
      members.add(ints(part));
    }
    assertThat(topology(hosts).reach(new ProcessGroup("g", members.build())))
        .isEqualTo(new Reach(ranks, domains, fewest));
  }

  @Test
  void wrongOnesAreRefused() {
    assertThatThrownBy(() -> new Hosts(ImmutableIntArray.of()))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Hosts(ImmutableIntArray.of(0, 2)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("host 1 has no rank");
    assertThatThrownBy(() -> Hosts.filled(ImmutableIntArray.of(4, 0)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("each host needs a rank");
    assertThatThrownBy(() -> new Topology(Hosts.filled(ImmutableIntArray.of(4)), 0))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Reach(4, 2, 5)).isInstanceOf(IllegalArgumentException.class);
  }

  private static ImmutableIntArray ints(String text) {
    var ints = ImmutableIntArray.builder();
    for (var item : text.split(" ")) {
      ints.add(Integer.parseInt(item));
    }
    return ints.build();
  }
}
