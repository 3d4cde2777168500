package dev.symplan.planner.report.page;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.common.base.CharMatcher;
import com.google.common.collect.ImmutableList;
import com.google.common.hash.Hashing;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.render.Format;
import dev.symplan.planner.report.render.JsonRenderer;
import dev.symplan.planner.report.render.JsonTables;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class HtmlRendererTest {
  private static final Path SAMPLES = Path.of(System.getProperty("symplan.root"), "samples");
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Pattern SCRIPT = Pattern.compile("(?s)<script([^>]*)>(.*?)</script>");
  private static final Pattern STYLE = Pattern.compile("(?s)<style>(.*?)</style>");

  private static PlanReport report(String sample) {
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT)
            .compile(SAMPLES.resolve(sample + ".graph"));
    return PlanReport.of(plan, Format.HTML.views());
  }

  private static PlanReport named(PlanReport report, String name) {
    return new PlanReport(
        name,
        report.target(),
        report.digest(),
        report.ranks(),
        report.planOfRank(),
        report.sections());
  }

  private static List<String> scripts(String page, String attributes) {
    return SCRIPT
        .matcher(page)
        .results()
        .filter(found -> found.group(1).equals(attributes))
        .map(found -> found.group(2))
        .toList();
  }

  private static String embedded(String page, String id) {
    return scripts(page, " type=\"application/json\" id=\"%s\"".formatted(id)).getFirst();
  }

  @Test
  void thePolicyAdmitsExactlyWhatThePageHas() {
    var page = HtmlRenderer.render(report("tp_mlp"));
    var executed = new ArrayList<>(scripts(page, ""));
    STYLE.matcher(page).results().forEach(found -> executed.add(found.group(1)));
    var hashes =
        Pattern.compile("'(sha256-[^']+)'")
            .matcher(page)
            .results()
            .map(found -> found.group(1))
            .toList();
    assertThat(hashes)
        .hasSize(3)
        .containsExactlyElementsOf(
            executed.stream()
                .map(text -> Hashing.sha256().hashString(text, StandardCharsets.UTF_8).asBytes())
                .map(hash -> "sha256-" + Base64.getEncoder().encodeToString(hash))
                .toList());
    assertThat(page).contains("default-src 'none'");
  }

  @Test
  void nothingIsLeftToBeFilledIn() {
    var second = report("fsdp_layer");
    var page = HtmlRenderer.render(report("tp_mlp"), second);
    assertThat(SCRIPT.matcher(STYLE.matcher(page).replaceAll("")).replaceAll(""))
        .contains("<title>mlp and " + second.name(), "Permission to use, copy, modify")
        .doesNotContain("{{", "src=", "href=");
    assertThat(embedded(page, "second")).isEqualTo(HtmlRenderer.data(second));
  }

  @Test
  void dataCannotEndItsElement() throws IOException {
    var name = "</script><script>alert(1)</script><!-- & \"";
    var report = report("tp_mlp");
    var page = HtmlRenderer.render(named(report, name));
    assertThat(scripts(page, "")).isEqualTo(scripts(HtmlRenderer.render(report), ""));
    assertThat(page).contains("<title>&lt;/script&gt;&lt;script&gt;alert(1)");
    assertThat(JSON.readTree(embedded(page, "first")).path("name").asText()).isEqualTo(name);
    assertThat(CharMatcher.is('<').countIn(embedded(page, "first"))).isZero();
  }

  @Test
  void columnsSayWhatRowsSay() throws IOException {
    for (var sample : ImmutableList.of("tp_mlp", "fsdp_layer", "data_parallel", "moe")) {
      var report = report(sample);
      var rows = JSON.readTree(JsonRenderer.render(report)).path("sections");
      var tables = JSON.readTree(JsonTables.render(report)).path("sections");
      assertThat(tables).hasSameSizeAs(rows);
      for (int i = 0; i < rows.size(); i++) {
        assertThat(tables.get(i).path("view")).isEqualTo(rows.get(i).path("view"));
        compare(tables.get(i).path("table"), ImmutableList.copyOf(rows.get(i).path("rows")));
      }
    }
  }

  private static void compare(JsonNode table, List<JsonNode> rows) {
    assertThat(table.path("count").asInt()).isEqualTo(rows.size());
    var children = new ArrayList<JsonNode>();
    var parents = new ArrayList<Integer>();
    for (int i = 0; i < rows.size(); i++) {
      var row = rows.get(i);
      assertThat(cell(table, "title", i)).isEqualTo(row.path("title"));
      for (Map.Entry<String, JsonNode> column : table.path("columns").properties()) {
        var fact = row.path("facts").path(column.getKey());
        if (!column.getKey().equals("title")) {
          assertThat(cell(table, column.getKey(), i)).isEqualTo(orNull(fact));
        }
      }
      for (Map.Entry<String, JsonNode> fact : row.path("facts").properties()) {
        assertThat(table.path("columns").has(fact.getKey())).isTrue();
      }
      for (var child : row.path("rows")) {
        children.add(child);
        parents.add(i);
      }
    }
    if (!children.isEmpty()) {
      assertThat(table.path("rows").path("parent"))
          .extracting(JsonNode::asInt)
          .containsExactlyElementsOf(parents);
      compare(table.path("rows"), children);
    }
  }

  private static JsonNode orNull(JsonNode node) {
    return node.isMissingNode() ? JSON.nullNode() : node;
  }

  private static JsonNode cell(JsonNode table, String name, int row) {
    var column = table.path("columns").path(name);
    return column.isArray()
        ? column.get(row)
        : column.path("of").get(column.path("at").get(row).asInt());
  }
}
