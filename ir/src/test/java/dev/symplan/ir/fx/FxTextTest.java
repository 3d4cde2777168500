package dev.symplan.ir.fx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticSink;
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
    return FxText.listings(new SourceFile("log.txt", text), new DiagnosticSink());
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
  void skipsJointAndDynamoGraphsAmongOthers() {
    var sink = new DiagnosticSink();
    var joint =
        """
        class inner_f(torch.nn.Module):
            def forward(
                self,
                primals,
                tangents,
            ):
                primals_1: "f32[4]"; tangents_1: "f32[4]";
                primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
                a: "f32[4]" = torch.ops.aten.abs.default(primals_1)
                return pytree.tree_unflatten([
                    a,
                ], self._out_spec)
        """;
    var dynamo =
        """
        class GraphModule(torch.nn.Module):
            def forward(self, L_x_: "f32[4]"):
                y = torch.abs(L_x_)
                return (y,)
            class inner(torch.nn.Module):
                def forward(self, x: "f32[4]"):
                    a = torch.ops.aten.abs.default(x)
                    return (a,)
        """;
    var found =
        FxText.listings(new SourceFile("log.txt", joint + dynamo + LISTING), sink).getFirst();
    assertThat(found.file().text()).contains("aten.neg").doesNotContain("abs");
    assertThat(sink.diagnostics())
        .extracting(Diagnostic::message)
        .satisfiesExactly(
            one -> assertThat(one).contains("this function is skipped: it is the joint graph"),
            two -> assertThat(two).contains("this function is skipped: it is Dynamo's graph"));
    assertThatThrownBy(() -> listings(joint))
        .hasMessageContaining("log.txt:2:5: error[unsupported]: this is the joint graph")
        .hasMessageContaining("TORCH_LOGS=post_grad_graphs");
    assertThatThrownBy(() -> listings(dynamo))
        .hasMessageContaining("log.txt:3:9: error[unsupported]: this is Dynamo's graph");
  }

  @Test
  void leavesColoursOut() {
    var coloured =
        LISTING
            .replace("x:", "\u001B[34mx\u001B[0m:")
            .replace("[4]", "\u001B[2m[4]\u001B[0m\u001B[1;31m")
            .replace("return", "\u001B[mreturn");
    assertThat(coloured).contains("\u001B");
    assertThat(only(coloured)).isEqualTo(only(LISTING));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "HloModule jit_f | a module of XLA begins here",
        "  func.func public @main( | a module of MLIR",
        "graph(%x : Tensor): | a graph of TorchScript",
        "<!DOCTYPE html><pre>def forward( | an HTML page",
        "async_compile = AsyncCompile() | Inductor's output code",
        "opcode         name  target | print_tabular()",
      })
  void namesOtherTextsOfCompilers(String textAndName) {
    int bar = textAndName.indexOf(" | ");
    assertThatThrownBy(() -> listings("\n" + textAndName.substring(0, bar) + "\n"))
        .hasMessageContaining("log.txt:2:")
        .hasMessageContaining(textAndName.substring(bar + 3))
        .hasMessageContaining("hint: ");
  }

  @Test
  void readsTheRecordsOfTorchTrace() {
    var trace = new StringBuilder();
    for (int rank = 0; rank < 2; rank++) {
      var op = rank == 0 ? "neg" : "abs";
      trace
          .append(record(rank, "\"dynamo_output_graph\": {}", LISTING.replace("neg", "sin")))
          .append(
              record(rank, "\"artifact\": {\"name\": \"other\"}", LISTING.replace("neg", "cos")))
          .append(record(rank, "\"inductor_post_grad_graph\": {}", LISTING.replace("neg", op)))
          .append(record(rank, "\"chromium_event\": {}", "{\n\"a\": 1\n}\n"));
    }
    var found = listings(trace.toString());
    assertThat(found)
        .extracting(FxText.Listing::rank)
        .containsExactly(OptionalInt.of(0), OptionalInt.of(1));
    assertThat(found.getFirst().file().text()).contains("aten.neg").doesNotContain("sin", "cos");
    assertThat(found.getLast().file().text()).contains("aten.abs").doesNotContain("sin", "cos");
  }

  private static String record(int rank, String head, String payload) {
    return "V1206 15:18:21.230000 1500233 torch/_inductor/compile_fx.py:898] {%s, \"rank\": %s}\n%s"
        .formatted(
            head, rank, payload.lines().map(line -> "\t" + line + "\n").reduce("", String::concat));
  }

  @Test
  void saysWhyThereIsNoGraph() {
    assertThatThrownBy(() -> listings("graph():\n  %a = call_function[target=torch.x](args)\n"))
        .hasMessageContaining(
            "log.txt:2:8: error[unsupported]: this is a node as str(graph) prints")
        .hasMessageContaining("print_readable(include_stride=True");
    assertThatThrownBy(() -> listings("\n  a = torch.ops.aten.neg.default(x)\n"))
        .hasMessageContaining("log.txt:2:4: error[syntax]: no def forward");
    assertThatThrownBy(() -> listings(LISTING.indent(0).replaceAll("(?m)^", "(Worker pid=7) ")))
        .hasMessageContaining("the lines of the graph begin with '(Worker pid=7)', a prefix");
    assertThatThrownBy(() -> listings("\n"))
        .hasMessageContaining("log.txt: error[syntax]: the text contains no graph: it is empty");
    assertThatThrownBy(() -> listings("hello\n"))
        .hasMessageContaining(
            "the text contains no graph: it neither begins with 'graph version 1' nor contains");
    assertThatThrownBy(() -> listings("x\n  Node[rank=0](op=placeholder, name=x)\n"))
        .hasMessageContaining("log.txt:2:3: error[unsupported]: this is a list of torch.fx nodes");
    assertThat(only(LISTING + "# call_function[target=\n")).contains("return (a,)");
  }
}
