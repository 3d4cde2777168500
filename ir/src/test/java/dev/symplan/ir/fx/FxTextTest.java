package dev.symplan.ir.fx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.SourceFile;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FxTextTest {
  private static final String LISTING =
      FxTexts.listing("x: \"f32[4][1]cuda:0\"", "a = torch.ops.aten.neg.default(x)\nreturn (a,)");

  private static List<FxText.Listing> listings(String text) {
    return FxText.listings(new SourceFile("log.txt", text));
  }

  private static String only(String text) {
    var found = listings(text);
    assertThat(found).hasSize(1);
    return found.getFirst().file().text();
  }

  @Test
  void keepsEachLineInItsPlace() {
    var log = "noise\n" + FxTexts.logged(0, "post_grad_graphs", LISTING) + "more noise (\n";
    var lines = only(log).lines().toList();
    var logLines = log.lines().toList();
    for (int i = 0; i < lines.size(); i++) {
      var line = lines.get(i);
      if (!line.isBlank()) {
        assertThat(logLines.get(i)).endsWith(line.strip()).hasSameSizeAs(line);
      }
    }
    assertThat(lines.stream().filter(line -> !line.isBlank()).map(String::strip))
        .containsExactly(
            "def forward(self, x: \"f32[4][1]cuda:0\"):",
            "a = torch.ops.aten.neg.default(x)",
            "return (a,)");
  }

  @Test
  void takesLinesOfSeveralRanksApart() {
    var first = FxTexts.logged(0, "post_grad_graphs", LISTING).lines().toList();
    var second = FxTexts.logged(11, "post_grad_graphs", LISTING).lines().toList();
    var log = new StringBuilder();
    for (int i = 0; i < first.size(); i++) {
      log.append(second.get(i)).append("\nout of order\n").append(first.get(i)).append('\n');
    }
    var found = listings(log.toString());
    assertThat(found)
        .extracting(FxText.Listing::rank)
        .containsExactly(OptionalInt.of(0), OptionalInt.of(11));
    for (var listing : found) {
      assertThat(listing.file().text().lines().filter(line -> !line.isBlank())).hasSize(3);
    }
  }

  @Test
  void prefersTheStageBehindInductorsPasses() {
    var early = LISTING.replace("neg", "abs");
    var log =
        FxTexts.logged(0, "graph_code", early)
            + FxTexts.logged(0, "aot_graphs", early)
            + FxTexts.logged(0, "post_grad_graphs", LISTING)
            + FxTexts.logged(0, "aot_graphs", early);
    assertThat(only(log)).contains("aten.neg").doesNotContain("aten.abs");
    assertThat(only(FxTexts.logged(0, "aot_graphs", early))).contains("aten.abs");
  }

  @Test
  void skipsMessagesAmongTheLinesOfAListing() {
    var lines = FxTexts.logged(0, "post_grad_graphs", LISTING).lines().toList();
    var message = "\n[rank0]:W1120 21:20:19.500000 7731 torch/_dynamo/x.py:9] a = warning (\n";
    assertThat(only(String.join(message, lines))).contains("aten.neg").doesNotContain("warning");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "[rank3]:",
        "[default1]:",
        "[default1]:[rank3]:",
        "[default1]: [rank3]:",
        "V1120 21:20:19.453000 7731 a.py:1] [0/0] [__post_grad_graphs] ",
        "[rank3]:V1120 21:20:19.453000 7731 a.py:1] [__post_grad_graphs] "
      })
  void knowsThePrefixesOfLoggersAndLaunchers(String prefix) {
    var text = LISTING.lines().map(line -> prefix + line + "\n").reduce("", String::concat);
    assertThat(only(text)).contains("return (a,)");
    if (prefix.contains("rank3")) {
      assertThat(listings(text).getFirst().rank()).hasValue(3);
    }
  }

  @Test
  void takesSeveralGraphsOfOneText() {
    var text = LISTING + "\n\nForward graph above, backward below: (\n" + LISTING;
    assertThat(only(text)).doesNotContain("Forward").contains("def forward(");
    assertThat(only(text).split("def forward", -1)).hasSize(3);
  }

  @Test
  void textsThatDifferInDevicesAndPlaceOnlyAreTheSame() {
    var text =
        """
        def forward(self, x: "f32[4][1]cuda:0"):
            a: "f32[4][1]cuda:0" = torch.ops.aten.full.default([4], 0, device = device(type='cuda', index=0))
            return (a,)
        """;
    var moved = "\n\n" + text.replace("cuda:0", "cuda:13").replace("index=0", "index=13").indent(9);
    assertThat(FxText.withoutDevices(moved)).isEqualTo(FxText.withoutDevices(text));
    assertThat(FxText.withoutDevices(text.replace("[4], 0", "[4], 1")))
        .isNotEqualTo(FxText.withoutDevices(text));
    assertThat(FxText.withoutDevices("x: \"f32[s0][1]cuda:0\""))
        .isEqualTo("x: \"f32[s0][1]cuda:\"");
  }

  @Test
  void saysWhyThereIsNoGraph() {
    assertThatThrownBy(() -> listings("graph():\n  %a = call_function[target=torch.x](args)\n"))
        .hasMessageContaining("log.txt:2:8: error[unsupported]: this is str(graph)")
        .hasMessageContaining("print_readable(include_stride=True");
    assertThatThrownBy(() -> listings("\n  a = torch.ops.aten.neg.default(x)\n"))
        .hasMessageContaining("log.txt:2:4: error[syntax]: there is no def forward");
    assertThatThrownBy(() -> listings("hello\n"))
        .hasMessageContaining("log.txt: error[syntax]: there is no graph");
    assertThat(only(LISTING + "# call_function[target=\n")).contains("return (a,)");
  }
}
