package dev.symplan.samples;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.runtime.host.HostBackend;
import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GenerateTest {
  private static final Path SERVING =
      Path.of(System.getProperty("symplan.root", "..")).resolve("samples/serving");

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void generatesThePyTorchTokens(int ranks) {
    var expected =
        Json.parse(
            SourceReader.read(SERVING.resolve("expected.json")),
            new JsonErrors(DiagnosticCode.BAD_TENSORS));
    var tokens = expected.get("tokens").list(Json::integer);
    assertThat(tokens).hasSize(64);
    assertThat(tokens.stream().distinct()).hasSizeGreaterThan(30);
    var generated =
        Generate.run(
            SERVING.resolve("tp" + ranks),
            SERVING.resolve("checkpoint"),
            expected.get("prompt").list(Json::integer),
            tokens.size(),
            new HostBackend());
    assertThat(generated.tokens()).isEqualTo(tokens);
    assertThat(generated.tokensPerSecond()).isPositive();
  }
}
