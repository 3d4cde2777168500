package dev.symplan.samples;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.Weights;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.HostTensor;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Generates tokens with the Llama that {@code samples/pytorch/llama_serve.py} captured: reads a
 * prompt, and then decodes greedily with a cache. Both graphs are one plan, in which weights,
 * caches, the position and the tokens exist once. They stay on the device until all tokens are
 * there: the host asks for all steps of decoding at once.
 */
public final class Generate {

  /** The input that holds the prompt, and after it the tokens that both graphs add. */
  private static final String TOKENS = "tokens";

  /**
   * The generated tokens, and the speed of decoding.
   *
   * @param tokensPerSecond without the first token, which the prompt's graph makes
   */
  record Generated(List<Long> tokens, double tokensPerSecond) {}

  private Generate() {}

  /**
   * {@return the tokens after a prompt}
   *
   * @param program the folder of the captured graphs, {@code weights.json}, {@code ties.json} and
   *     {@code constants.safetensors}
   * @param checkpoint as Hugging Face's libraries save it
   * @param prompt as many tokens as {@code prefill} was captured with
   * @param count how many tokens to generate, at least 2; with the prompt, no more than the input
   *     of tokens holds
   */
  static Generated run(
      Path program, Path checkpoint, List<Long> prompt, int count, Backend backend) {
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .compileTogether(
                List.of(
                    program.resolve("prefill_0_inference"), program.resolve("decode_0_inference")),
                Optional.of(program.resolve("ties.json")));
    var weights = Weights.read(checkpoint, program.resolve("weights.json"), plan);
    var constants = Weights.read(program.resolve("constants.safetensors"), plan);

    try (Session session = Session.open(plan, backend)) {
      weights.fill(session, plan);
      for (int rank : session.localRanks()) {
        for (int i = 0; i < session.inputNames().size(); i++) {
          if (!weights.names().contains(session.inputNames().get(i))) {
            fill(session.input(rank, i), constants.tensor(session.inputNames().get(i), rank));
          }
        }
        var input = session.input(rank, TOKENS);
        for (int i = 0; i < prompt.size(); i++) {
          input.setLong(prompt.get(i), 0, i);
        }
      }

      session.run(session.graphs().getFirst().name());
      long begin = System.nanoTime();
      session.run(session.graphs().getLast().name(), count - 1);
      double seconds = (System.nanoTime() - begin) / 1e9;
      // All ranks have the same tokens.
      var tokens = session.input(session.localRanks().first(), TOKENS);
      var generated =
          IntStream.range(prompt.size(), prompt.size() + count)
              .mapToObj(i -> tokens.getLong(0, i))
              .toList();
      return new Generated(generated, (count - 1) / seconds);
    }
  }

  /** Caches begin with zeros. The prompt's graph sets the position. */
  private static void fill(Optional<HostTensor> input, Optional<HostTensor> constant) {
    input.ifPresent(
        tensor -> constant.ifPresentOrElse(tensor::copyFrom, () -> tensor.memory().fill((byte) 0)));
  }

  /** Takes the folder of the graphs, that of the checkpoint, and the backend. */
  public static void main(String[] args) {
    System.exit(generate(System.out, System.err, args));
  }

  /** {@return the exit code of {@link #main}; errors name the file and what to do} */
  static int generate(PrintStream out, PrintStream err, String... args) {
    var program = Path.of(args.length > 0 ? args[0] : "samples/serving/tp2");
    var checkpoint = Path.of(args.length > 1 ? args[1] : "samples/serving/checkpoint");
    var prompt = LongStream.range(0, 16).map(i -> i * 37 % 256).boxed().toList();
    try {
      var backend = backend(args.length > 2 ? args[2] : "host");
      var generated = run(program, checkpoint, prompt, 64, backend);
      out.println("tokens " + generated.tokens());
      out.println(Math.round(generated.tokensPerSecond()) + " tokens/s");
      return 0;
    } catch (CompileException | RunException e) {
      err.println(e.getMessage());
      return 1;
    }
  }

  private static Backend backend(String name) {
    return Backend.ofName(name)
        .orElseThrow(
            () ->
                new RunException(
                    "backend '%s' does not exist: use one of %s"
                        .formatted(name, Backend.all().map(Backend::name).toList())));
  }
}
