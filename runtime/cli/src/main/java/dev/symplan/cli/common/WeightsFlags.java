package dev.symplan.cli.common;

import dev.symplan.ir.pt2.ExportArchive;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Weights;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.Stream;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The options that say where weights are, and how ranks divide them. */
public final class WeightsFlags {
  private static final String LAYOUT = "weights.json";

  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Option(
      names = "--weights",
      paramLabel = "PATH",
      description = {
        "Take inputs by name from this archive, safetensors file, index of one"
            + " (model.safetensors.index.json) or directory of a checkpoint (default: INPUT, if it"
            + " is an archive). All ranks get the same tensors, unless there is a weights layout."
      })
  private Optional<Path> file = Optional.empty();

  @Option(
      names = "--weights-layout",
      paramLabel = "FILE",
      description = {
        "A weights.json: which tensor of --weights each input is, and which part of it each rank"
            + " gets (default: weights.json in INPUT, or beside it, if there is one)."
      })
  private Optional<Path> layout = Optional.empty();

  /**
   * Checks that the options fit each other.
   *
   * @throws ParameterException when they do not
   */
  public void check() {
    if (layout.isPresent() && (file.isEmpty() || ExportArchive.isArchive(file.get()))) {
      throw new ParameterException(
          spec.commandLine(), "--weights-layout needs --weights with a checkpoint");
    }
  }

  /** {@return the files that the options name} */
  public Stream<Path> files() {
    return Stream.concat(file.stream(), layout.stream());
  }

  /** {@return the archive or checkpoint of an input, if there is one} */
  public Optional<Path> source(Path input) {
    return file.or(() -> Weights.archiveOf(input));
  }

  /**
   * {@return the weights of a plan}
   *
   * @param input that the plan was made of
   */
  public Weights read(Path input, Plan plan) {
    return source(input).map(from -> read(from, input, plan)).orElse(Weights.NONE);
  }

  private Weights read(Path from, Path input, Plan plan) {
    if (ExportArchive.isArchive(from)) {
      return Weights.read(from, plan);
    }
    var beside =
        Files.isDirectory(input)
            ? input.resolve(LAYOUT)
            : input.toAbsolutePath().resolveSibling(LAYOUT);
    return layout
        .or(() -> Files.exists(beside) ? Optional.of(beside) : Optional.empty())
        .map(parts -> Weights.read(from, parts, plan))
        .orElseGet(() -> Weights.read(from, plan));
  }
}
