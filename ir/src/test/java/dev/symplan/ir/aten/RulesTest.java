package dev.symplan.ir.aten;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.base.Splitter;
import com.google.common.io.Resources;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.text.GraphParser;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Compares the rules with what PyTorch gives, which {@code ops/rules.py} wrote down. */
class RulesTest {
  private static final Pattern TYPE =
      Pattern.compile(
          "\\b(%s)(\\[[\\d, ]*\\](\\[[\\d, ]*\\])?)"
              .formatted(
                  Arrays.stream(DType.values())
                      .map(DType::shortName)
                      .collect(Collectors.joining("|"))));

  /** A call and what PyTorch gives for it. */
  private record Row(String call, String results) {
    static Row parse(String line) {
      int arrow = line.lastIndexOf(" -> ");
      return new Row(line.substring(0, arrow), line.substring(arrow + 4));
    }

    boolean isError() {
      return results.equals("error");
    }

    List<String> expected() {
      return results.isEmpty()
          ? List.of()
          : Splitter.on("; ").splitToStream(results).map(Row::normal).toList();
    }

    private static String normal(String result) {
      var matcher = TYPE.matcher(result);
      if (!matcher.lookingAt()) {
        return result;
      }
      var input = new Row("aten::alias(%s)".formatted(matcher.group()), "").graph().inputs();
      return describe(input.getFirst().type()) + result.substring(matcher.end());
    }

    /** A graph with one op; its inputs are the tensors of the call. */
    Graph graph() {
      var inputs = new ArrayList<String>();
      var call =
          TYPE.matcher(this.call)
              .replaceAll(
                  match -> {
                    inputs.add("t%s: %s".formatted(inputs.size(), match.group()));
                    return "t" + (inputs.size() - 1);
                  });
      var text =
          "graph version 1\ngroup '0' = [0, 1, 2, 3, 4, 5, 6, 7]\ngraph g(%s) {\n  %s\n  return\n}\n"
              .formatted(String.join(", ", inputs), call);
      return GraphParser.parse(new SourceFile("rules", text)).graphs().getFirst();
    }
  }

  private static Stream<Row> rows(String file) throws IOException {
    return Resources.readLines(Resources.getResource("ops/" + file), StandardCharsets.UTF_8)
        .stream()
        .filter(line -> !line.startsWith("#"))
        .map(Row::parse);
  }

  @TestFactory
  Stream<DynamicTest> givesWhatPyTorchGives() throws IOException {
    return rows("rules.txt")
        .filter(row -> !row.isError())
        .map(row -> DynamicTest.dynamicTest(row.call(), () -> checkResults(row)));
  }

  @TestFactory
  Stream<DynamicTest> refusesWhatPyTorchRefuses() throws IOException {
    return rows("rules.txt")
        .filter(Row::isError)
        .map(row -> DynamicTest.dynamicTest(row.call(), () -> checkRefused(row)));
  }

  @TestFactory
  Stream<DynamicTest> givesTheTypesOfCapturedPrograms() throws IOException {
    return rows("captured.txt")
        .map(row -> DynamicTest.dynamicTest(row.call(), () -> checkTypes(row)));
  }

  private static void checkResults(Row row) {
    var graph = row.graph();
    var op = graph.ops().getFirst();
    assertThat(op.infer().stream().map(r -> describe(r, graph)).toList())
        .isEqualTo(
            op.def().has(OpTrait.LAZY_VIEW)
                // Here, memory of their own.
                ? row.expected().stream().map(type -> type.replace(" of 0 + 0", "")).toList()
                : row.expected());
  }

  private static void checkRefused(Row row) {
    assertThatThrownBy(row::graph)
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("error[type-mismatch]");
  }

  private static void checkTypes(Row row) {
    var given = row.graph().ops().getFirst().infer();
    for (int i = 0; i < row.expected().size(); i++) {
      if (!row.expected().get(i).equals("?")) {
        assertThat(describe(given.get(i).type())).isEqualTo(row.expected().get(i));
      }
    }
  }

  private static String describe(OpResult result, Graph graph) {
    var type = describe(result.type());
    return result
        .view()
        .map(view -> "%s of %s + %s".formatted(type, view.of().id(), view.offset()))
        .orElse(type);
  }

  /** Strides mean nothing if there is nothing to step to, and are left out there. */
  private static String describe(Type type) {
    if (!(type instanceof TensorType tensor)) {
      return type.toString();
    }
    var strides =
        IntStream.range(0, tensor.rank())
            .mapToObj(
                i ->
                    tensor.numel() == 0 || tensor.size(i) == 1
                        ? "_"
                        : Long.toString(tensor.stride(i)))
            .toList();
    return tensor.dtype().shortName() + tensor.sizes() + strides;
  }
}
