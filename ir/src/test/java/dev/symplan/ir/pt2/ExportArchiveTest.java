package dev.symplan.ir.pt2;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.fx.ImportOptions;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ExportArchiveTest {
  @TempDir private Path folder;

  private static ImportOptions options(Map<String, Long> dims, Map<String, Long> dimMax) {
    var named = ImportOptions.named("m");
    return new ImportOptions(
        named.name(),
        named.groups(),
        2,
        ImmutableMap.copyOf(dims),
        ImmutableMap.copyOf(dimMax),
        named.registry());
  }

  private static Program program(Path file) {
    return ExportArchive.open(file).program(options(Map.of(), Map.of()), _ -> {});
  }

  private static Program program(String sample) {
    return program(Archives.sample(sample));
  }

  private static String error(Path file) {
    var e =
        catchThrowableOfType(
            CompileException.class,
            () -> {
              var archive = ExportArchive.open(file);
              archive.program(options(Map.of("s27", 4L), Map.of()), _ -> {});
              archive.models().forEach(archive::weights);
            });
    assertThat(e).as("an error of %s", file).isNotNull();
    assertThat(e.diagnostics().getFirst().span().file().name()).isEqualTo(file.toString());
    return e.getMessage();
  }

  private String errorOf(String sample, String entry, String from, String to) throws IOException {
    return error(Archives.edited(folder, sample, entry, from, to));
  }

  private static List<String> names(List<Value> values) {
    return values.stream().map(Value::name).toList();
  }

  @Test
  void parametersBuffersAndConstantsAreInputsInTheArchivesOrder() {
    var archive = ExportArchive.open(Archives.sample("block"));
    var graph = archive.program(options(Map.of("s27", 4L), Map.of()), _ -> {}).graphs().getFirst();
    assertThat(names(graph.inputs()))
        .containsExactly(
            "p_embed_weight",
            "p_norm_weight",
            "p_norm_bias",
            "p_qkv_weight",
            "p_out_weight",
            "p_out_bias",
            "p_head_weight",
            "b_scale",
            "b_bias",
            "c_shift",
            "ids",
            "options_gain");
    var weights = archive.weights("model");
    assertThat(weights)
        .extracting(Weight::input)
        .containsExactlyElementsOf(names(graph.inputs()).subList(0, 10));
    assertThat(weights)
        .extracting(Weight::qualifiedName)
        .contains("embed.weight", "scale", "bias", "shift");
    for (int i = 0; i < weights.size(); i++) {
      assertThat(weights.get(i).type()).isEqualTo(graph.inputs().get(i).tensor());
    }
  }

  @Test
  void tiedWeightsShareTheirMemory() {
    var weights = ExportArchive.open(Archives.sample("block")).weights("model");
    assertThat(weights.get(6).qualifiedName()).isEqualTo("head.weight");
    assertThat(weights.get(6).memory().address()).isEqualTo(weights.get(0).memory().address());
  }

  @Test
  void tensorsOfOneStorageHaveTheirOffsetsAndStrides() {
    var weights = ExportArchive.open(Archives.sample("shared")).weights("model");
    var whole = weights.get(1);
    var rows = weights.get(2);
    var turned = weights.get(3);
    assertThat(rows.memory().address()).isEqualTo(whole.memory().address() + 2 * 8 * 4);
    assertThat(turned.memory().address()).isEqualTo(whole.memory().address() + 4);
    assertThat(turned.type()).hasToString("f32[3, 6][1, 8]");
    assertThat(rows.memory().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0))
        .isEqualTo(whole.memory().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 64));
  }

  @Test
  void changedBuffersAndInputsAreOutputsThatSayWhatTheyAre() {
    assertThat(GraphPrinter.print(program("counter")))
        .contains(
            """
              # add: the new value of total
              # mul: the new value of input x
              return add, mul, add_1
            """);
  }

  @Test
  void collectivesAndCommentsAreKept() {
    var text = GraphPrinter.print(program("tp_mlp"));
    assertThat(text)
        .contains(
            "group \"0\" = [0, 1]",
            "  # File: make_archives.py:",
            " in forward, code: return fc.all_reduce(",
            "= _c10d_functional::all_reduce(linear_1, \"sum\", \"0\")");
    assertThat(GraphPrinter.print(GraphParser.parse(new SourceFile("m.graph", text))))
        .isEqualTo(text);
  }

  @Test
  void resultsThatNothingReadsHaveNeitherNamesNorTypes() {
    assertThat(GraphPrinter.print(program("batch_norm")))
        .contains("  getitem: f32[3, 4], _, _ = aten::_native_batch_norm_legit_no_training(");
  }

  @Test
  void sizesNeedValuesOrBounds() {
    var archive = ExportArchive.open(Archives.sample("block"));
    var e =
        catchThrowableOfType(
            CompileException.class, () -> archive.program(options(Map.of(), Map.of()), _ -> {}));
    assertThat(e).hasMessageContaining("the size s27 has no value; input 'ids' provides it");
    assertThat(e).hasMessageContaining("--dim s27=128").hasMessageContaining("--dim-max s27=4096");
    assertThat(GraphPrinter.print(archive.program(options(Map.of("s27", 6L), Map.of()), _ -> {})))
        .contains("ids: i64[2, 6]", "return linear_2, add_2, 6");
    assertThat(GraphPrinter.print(archive.program(options(Map.of(), Map.of("s27", 9L)), _ -> {})))
        .contains("ids: i64[2, 9]");
  }

  @Test
  void sizesOutOfTheArchivesRangeAreRefused() throws IOException {
    var file =
        Archives.edited(folder, "block", Archives.MODEL, "\"max_val\": null", "\"max_val\": 64");
    var archive = ExportArchive.open(file);
    var e =
        catchThrowableOfType(
            CompileException.class,
            () -> archive.program(options(Map.of("s27", 65L), Map.of()), _ -> {}));
    assertThat(e)
        .hasMessageContaining("--dim s27=65 is out of range")
        .hasMessageContaining("from 0 to 64");
    archive.program(options(Map.of("s27", 64L), Map.of()), _ -> {});
  }

  @Test
  void unknownOpsAreOpaqueWithOneWarning() throws IOException {
    var file =
        Archives.edited(
            folder,
            "tp_mlp",
            Archives.MODEL,
            "torch.ops.aten.gelu.default",
            "torch.ops.my.g.default");
    var warnings = new ArrayList<Diagnostic>();
    var program = ExportArchive.open(file).program(options(Map.of(), Map.of()), warnings::add);
    assertThat(warnings).singleElement();
    assertThat(warnings.getFirst().render())
        .startsWith(file + ":6:")
        .contains("warning[opaque-op]: my.g.default is not known")
        .contains("torch.ops.my.g.default(linear)")
        .contains("^^^^");
    assertThat(GraphPrinter.print(program)).contains("gelu: f32[4, 32] = my::g(linear)");
  }

  @Test
  void severalProgramsOfOneArchiveAreGraphsOfTheirNames() throws IOException {
    var entries = new LinkedHashMap<String, byte[]>();
    for (var sample : List.of("counter", "shared")) {
      Archives.entries(Archives.sample(sample))
          .forEach(
              (name, bytes) ->
                  entries.put(
                      name.replace("models/model.", "models/" + sample + ".")
                          .replace("/model_", "/" + sample + "_")
                          .replace("/weight_", "/" + sample + "_weight_"),
                      new String(bytes, StandardCharsets.ISO_8859_1)
                          .replace("\"weight_", "\"" + sample + "_weight_")
                          .getBytes(StandardCharsets.ISO_8859_1)));
    }
    var archive = ExportArchive.open(Archives.write(folder.resolve("two.pt2"), entries, false));
    assertThat(archive.models()).containsExactly("counter", "shared");
    assertThat(archive.program(options(Map.of(), Map.of()), _ -> {}).graphs())
        .extracting(graph -> graph.name())
        .containsExactly("counter", "shared");
    assertThat(archive.weights("counter")).hasSize(1);
    assertThat(archive.weights("shared")).hasSize(4);
    assertThat(catchThrowableOfType(CompileException.class, () -> archive.weights("model")))
        .hasMessageContaining("no program 'model'; it has [counter, shared]");
  }

  @Test
  void namesThatAreNoWordsAreMadeLegal() throws IOException {
    var file = Archives.edited(folder, "counter", Archives.MODEL, "\"b_total\"", "\"b.total\"");
    var archive = ExportArchive.open(file);
    var graph = archive.program(options(Map.of(), Map.of()), _ -> {}).graphs().getFirst();
    assertThat(names(graph.inputs())).containsExactly("b_total", "x");
    assertThat(archive.weights("model")).extracting(Weight::input).containsExactly("b_total");
  }

  @Test
  void compressedArchivesAreRead() throws IOException {
    var sample = Archives.sample("shared");
    var file = Archives.write(folder.resolve("deflated.pt2"), Archives.entries(sample), true);
    assertThat(GraphPrinter.print(program(file))).isEqualTo(GraphPrinter.print(program(sample)));
    var weights = ExportArchive.open(file).weights("model");
    var expected = ExportArchive.open(sample).weights("model");
    for (int i = 0; i < weights.size(); i++) {
      assertThat(weights.get(i).memory().mismatch(expected.get(i).memory())).isEqualTo(-1);
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      value = {
        "\"major\": 8; \"major\": 9; version 9 of torch.export's schema",
        "torch.ops.aten.add.Tensor; torch.ops.higher_order.cond; node 'add' calls other"
            + " graphs: higher_order.cond",
        "\"buffer_mutation\"; \"token\"; an output is a token",
        "{\"buffer\": ; {\"custom_obj\": ; an input is a custom_obj",
        "\"as_tensor\": {\"name\": \"b_total\"}; \"as_graph\": {\"name\": \"b_total\"}; of kind"
            + " 'as_graph'",
        "\"layout\": 7; \"layout\": 2; not sparse",
        "\"dtype\": 7; \"dtype\": 99; unknown element type 99",
        "\"sizes\": [{\"as_int\": 4}]; \"sizes\": [{\"as_int\": -4}]; size -4",
        "\"sizes\": [{\"as_int\": 4}]; \"sizes\": [4]; not a union with one case",
        "\"tensor_values\"; \"tensors\"; graph_module.graph: it has no 'tensor_values'",
        "\"nodes\": [; \"nodes\": [7, ; nodes[0]",
        "\"target\": \"torch.ops.aten.add.Tensor\"; \"target\": \"print\"; 'print' is not an"
            + " operator",
        "\"target\": \"torch.ops.aten.add.Tensor\"; \"target\": \"torch.ops.a(b).c\"; target: it is"
            + " not a name",
        "\"graph_module\"; graph_module; is not JSON",
      })
  void wrongModelsAreRefusedWithTheirPlace(String from, String to, String message)
      throws IOException {
    assertThat(errorOf("counter", Archives.MODEL, from, to)).contains(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      value = {
        "\"total\"; \"other\"; no tensor 'total' for input 'b_total'",
        "\"use_pickle\": false; \"use_pickle\": true; a pickle can run any code",
        "\"weight_0\"; \"../weight_0\"; entry 'data/weights/../weight_0' is missing",
        "\"weight_0\"; \"weight_9\"; entry 'data/weights/weight_9' is missing",
        "\"storage_offset\": {\"as_int\": 0}; \"storage_offset\": {\"as_int\": 1}; which has 16"
            + " bytes",
        "\"storage_offset\": {\"as_int\": 0}; \"storage_offset\": {\"as_int\": -1}; offset -1 is"
            + " out of range",
        "\"storage_offset\": {\"as_int\": 0}; \"storage_offset\": {\"as_int\":"
            + " 9223372036854775807}; out of range",
        "\"strides\": [{\"as_int\": 1}]; \"strides\": [{\"as_int\": 2}]; which has 16 bytes",
        "\"sizes\": [{\"as_int\": 4}]; \"sizes\": [{\"as_int\": 99999999999999}]; more than 2^48"
            + " bytes",
      })
  void wrongWeightsAreRefused(String from, String to, String message) throws IOException {
    assertThat(errorOf("counter", Archives.WEIGHTS, from, to)).contains(message);
  }

  @Test
  void weightsOfOlderLayoutsAreNotUnpickled() throws IOException {
    var entries = Archives.entries(Archives.sample("counter"));
    entries.remove(Archives.WEIGHTS);
    entries.put("graph/data/weights/model.pt", new byte[] {1});
    assertThat(error(Archives.write(folder.resolve("a.pt2"), entries, false)))
        .contains("'data/weights/model.pt' holds pickled tensors", "torch.export.load");
  }

  @Test
  void otherFilesAreRefused() throws IOException {
    var old = Map.of("version", bytes("5.1"), "serialized_exported_program.json", bytes("{}"));
    assertThat(error(Archives.write(folder.resolve("old.pt2"), old, false)))
        .contains("unsupported-version", "older PyTorch");
    var saved = Map.of("m/data.pkl", bytes("x"), "m/version", bytes("3"));
    assertThat(error(Archives.write(folder.resolve("s.pt2"), saved, false)))
        .contains("a file of torch.save");
    var inductor = Map.of("m/archive_format", bytes("pt2"), "m/archive_version", bytes("0"));
    assertThat(error(Archives.write(folder.resolve("i.pt2"), inductor, false)))
        .contains("no exported program", "AOTInductor");
    assertThat(error(Archives.write(folder.resolve("e.pt2"), Map.of(), false)))
        .contains("bad-archive");
    assertThat(error(Files.writeString(folder.resolve("t.pt2"), "text")))
        .contains("this is not a zip file, or it is damaged");
    assertThat(error(folder.resolve("missing.pt2"))).contains("the file does not exist");
    var big = Archives.edited(folder, "counter", "graph/byteorder", "little", "big");
    assertThat(error(big)).contains("byte order is 'big'");
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"graph/../../x", "/graph/x", "graph\\x", "graph/./x", "graph/\nx", "../x"})
  void namesThatLeadOutAreRefused(String name) throws IOException {
    var entries = Archives.entries(Archives.sample("counter"));
    entries.put(name, new byte[1]);
    assertThat(error(Archives.write(folder.resolve("a.pt2"), entries, false)))
        .contains("leads out of the archive");
  }

  @Test
  void entriesThatComeTwiceAreRefused() throws IOException {
    var entries = Archives.entries(Archives.sample("counter"));
    entries.put("graph/models/modex.json", bytes("{}"));
    var file = Archives.write(folder.resolve("a.pt2"), entries, false);
    Archives.patched(file, "modex.json", "model.json");
    assertThat(error(file)).contains("entry 'graph/models/model.json' occurs twice");
  }

  @Test
  void entriesOutsideOfTheFolderAreRefused() throws IOException {
    var entries = Archives.entries(Archives.sample("counter"));
    entries.put("other/x", new byte[1]);
    assertThat(error(Archives.write(folder.resolve("a.pt2"), entries, false)))
        .contains("entry 'other/x' is not in the folder 'graph'");
  }

  @Test
  void bombsAreRefusedBeforeTheyUnpack() throws IOException {
    var entries = Archives.entries(Archives.sample("counter"));
    entries.put("graph/data/weights/weight_0", new byte[1 << 20]);
    var file = Archives.write(folder.resolve("bomb.pt2"), entries, true);
    var bytes = Files.readAllBytes(file);
    assertThat(bytes.length).isLessThan(1 << 14);
    // The directory says 2 GiB less one byte.
    int at = lastHeader(bytes, "graph/data/weights/weight_0");
    System.arraycopy(new byte[] {-1, -1, -1, 127}, 0, bytes, at + 24, 4);
    Files.write(file, bytes);
    assertThat(error(file))
        .contains("too-large", "entry 'graph/data/weights/weight_0' exceeds the limit");
  }

  @Test
  void modelsOfTooManyValuesAreRefused() throws IOException {
    var entries = Archives.entries(Archives.sample("counter"));
    entries.put(Archives.MODEL, bytes("{\"nodes\": [" + "0,".repeat(1 << 23) + "0]}"));
    assertThat(error(Archives.write(folder.resolve("a.pt2"), entries, true)))
        .contains("too-large", "entry 'models/model.json'", "Token count", "the maximum allowed")
        .doesNotContain("getMaxTokenCount");
  }

  @Test
  void sizesThatLieAreFound() throws IOException {
    var entries = Archives.entries(Archives.sample("counter"));
    var file = Archives.write(folder.resolve("a.pt2"), entries, true);
    var bytes = Files.readAllBytes(file);
    int at = lastHeader(bytes, "graph/data/weights/weight_0");
    bytes[at + 24] += 4;
    Files.write(file, bytes);
    assertThat(error(file)).contains("'data/weights/weight_0' is damaged: it has 16 of the 20");
    bytes[at + 24] -= 8;
    Files.write(file, bytes);
    assertThat(error(file))
        .contains("'data/weights/weight_0' is damaged: it is longer than the 12");
  }

  @Test
  void damagedTensorsAreFound() throws IOException {
    var bytes = Files.readAllBytes(Archives.sample("counter"));
    // Four ones: the tensor of the buffer.
    int at = new String(bytes, StandardCharsets.ISO_8859_1).indexOf("\0\0\u0080?\0\0\u0080?");
    bytes[at + 2] ^= 1;
    assertThat(error(Files.write(folder.resolve("a.pt2"), bytes)))
        .contains("entry 'data/weights/weight_0' is damaged: its checksum");
  }

  /** Where the entry's header in the directory begins. */
  private static int lastHeader(byte[] bytes, String name) {
    var text = new String(bytes, StandardCharsets.ISO_8859_1);
    return text.lastIndexOf("PK\1\2", text.lastIndexOf(name));
  }
}
