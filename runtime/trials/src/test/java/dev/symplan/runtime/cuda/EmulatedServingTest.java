package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.runtime.Weights;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The Llama of {@code samples/serving}: caches and tokens stay in the memory of inputs. */
class EmulatedServingTest {
  private static final Path SERVING =
      Path.of(System.getProperty("symplan.root"), "samples", "serving");

  @ParameterizedTest
  @CsvSource({"., 2", "bf16, 2"})
  void generatesThePyTorchTokens(String type, int ranks) {
    var folder = SERVING.resolve(type);
    var program = folder.resolve("tp" + ranks);
    var expected =
        Json.parse(
            SourceReader.read(folder.resolve("expected.json")),
            new JsonErrors(DiagnosticCode.BAD_TENSORS));
    var prompt = expected.get("prompt").list(Json::integer);
    var wanted = expected.get("tokens").list(Json::integer);
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .compileTogether(
                List.of(
                    program.resolve("prefill_0_inference"), program.resolve("decode_0_inference")),
                Optional.of(program.resolve("ties.json")));
    try (var session = EmulatedSession.open(List.of(Lowering.lower(plan))).getFirst()) {
      var weights =
          Weights.read(folder.resolve("checkpoint"), program.resolve("weights.json"), plan);
      var constants = Weights.read(program.resolve("constants.safetensors"), plan);
      for (int rank = 0; rank < ranks; rank++) {
        for (var name : session.inputNames()) {
          var known = weights.tensor(name, rank).or(() -> constants.tensor(name, 0));
          if (known.isPresent()) {
            session.input(rank, name).copyFrom(known.get());
          }
          if (name.endsWith("_cache")) {
            session.input(rank, name).memory().fill((byte) 0);
          }
        }
        for (int i = 0; i < prompt.size(); i++) {
          session.input(rank, "tokens").setLong(prompt.get(i), 0, i);
        }
      }
      session.run("prefill_0_inference");
      session.run("decode_0_inference", wanted.size() - 1);
      var tokens =
          IntStream.range(prompt.size(), prompt.size() + wanted.size())
              .mapToObj(i -> session.input(ranks - 1, "tokens").getLong(0, i))
              .toList();
      int sure = expected.get("sure").intValue();
      assertThat(tokens).startsWith(wanted.subList(0, sure).toArray(Long[]::new));
    }
  }
}
