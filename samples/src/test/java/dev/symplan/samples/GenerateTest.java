package dev.symplan.samples;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.runtime.host.HostBackend;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GenerateTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "checkpoint | checkpoint | host | checkpoint/prefill_0_inference: error[unreadable-file]",
        "tp2 | bf16/checkpoint | host | but the input 'model_embed_tokens_weight' is f32",
        "tp2 | checkpoint | gpu | backend 'gpu' does not exist: use one of [",
      })
  void wrongArgumentsAreNamed(String program, String checkpoint, String backend, String message) {
    var error = new ByteArrayOutputStream();
    int code =
        Generate.generate(
            new PrintStream(OutputStream.nullOutputStream(), false, UTF_8),
            new PrintStream(error, true, UTF_8),
            SERVING.resolve(program).toString(),
            SERVING.resolve(checkpoint).toString(),
            backend);
    assertThat(code).isEqualTo(1);
    assertThat(error.toString(UTF_8)).contains(message).doesNotContain("\tat ");
  }

  private static final Path SERVING =
      Path.of(System.getProperty("symplan.root", "..")).resolve("samples/serving");

  @ParameterizedTest
  @CsvSource({"., tp1, 64", "., tp2, 64", "bf16, tp2, 37"})
  void generatesThePyTorchTokens(String type, String program, int sure) {
    var folder = SERVING.resolve(type);
    var expected =
        Json.parse(
            SourceReader.read(folder.resolve("expected.json")),
            new JsonErrors(DiagnosticCode.BAD_TENSORS));
    var tokens = expected.get("tokens").list(Json::integer);
    assertThat(tokens).hasSize(64);
    assertThat(tokens.stream().distinct()).hasSizeGreaterThan(30);
    assertThat(expected.get("sure").intValue()).isEqualTo(sure);
    var generated =
        Generate.run(
            folder.resolve(program),
            folder.resolve("checkpoint"),
            expected.get("prompt").list(Json::integer),
            tokens.size(),
            new HostBackend());
    assertThat(generated.tokens())
        .hasSize(64)
        .startsWith(tokens.subList(0, sure).toArray(Long[]::new));
    assertThat(generated.tokensPerSecond()).isPositive();
  }
}
