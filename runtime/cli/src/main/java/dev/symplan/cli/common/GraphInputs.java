package dev.symplan.cli.common;

import com.google.common.base.Splitter;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** The graphs that a command reads: one, or several that are one program. */
public final class GraphInputs {
  private static final Pattern BUCKETS =
      Pattern.compile("[A-Za-z_][A-Za-z0-9_]*=[0-9]{1,15}(,[0-9]{1,15})*");

  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Parameters(
      arity = "1..*",
      paramLabel = "INPUT",
      description =
          "FX text, a log, an archive of torch.export (.pt2), a case directory, or a .graph file."
              + " Several inputs need --together.")
  private List<Path> inputs = new ArrayList<>();

  @Option(
      names = "--together",
      description = {
        "Take all graphs of the inputs as one program, such as the forward and the backward graph"
            + " of a training step. They run in the given order."
      })
  private boolean together;

  @Option(
      names = "--ties",
      paramLabel = "FILE",
      description =
          "A JSON file that says which inputs of a graph are outputs or inputs of an earlier one"
              + " (default: by the names that AOTAutograd gives).")
  private Optional<Path> ties = Optional.empty();

  @Option(
      names = "--buckets",
      paramLabel = "SIZE=N,N,…",
      description = {
        "Plan the graphs for each of these values of a symbolic size, as one program, whose graphs"
            + " are called NAME_SIZE_N. They share the inputs that do not depend on the size."
      })
  private Optional<String> buckets = Optional.empty();

  /** {@return all files that are read} */
  public List<Path> files() {
    var files = new ArrayList<>(inputs);
    ties.ifPresent(files::add);
    return files;
  }

  /**
   * {@return the program}
   *
   * @throws ParameterException when the options do not fit each other
   */
  public Program read(CompileOptions options, Consumer<? super Diagnostic> warnings) {
    boolean several = areTogether();
    return buckets.isPresent()
        ? ProgramReader.readBuckets(inputs, ties, size(), values(), options, warnings)
        : several
            ? ProgramReader.readTogether(inputs, ties, options, warnings)
            : ProgramReader.read(inputs.getFirst(), options, warnings);
  }

  /**
   * {@return the plan of the program}
   *
   * @throws ParameterException when the options do not fit each other
   */
  public Plan compile(Compiler compiler) {
    boolean several = areTogether();
    return buckets.isPresent()
        ? compiler.compileBuckets(inputs, ties, size(), values())
        : several ? compiler.compileTogether(inputs, ties) : compiler.compile(inputs.getFirst());
  }

  private String size() {
    var text = buckets.orElseThrow();
    if (!BUCKETS.matcher(text).matches()) {
      throw usage("--buckets: '%s' is not of the form s77=128,1024,4096".formatted(text));
    }
    return text.substring(0, text.indexOf('='));
  }

  private List<Long> values() {
    var text = buckets.orElseThrow();
    return Splitter.on(',')
        .splitToStream(text.substring(text.indexOf('=') + 1))
        .map(Long::valueOf)
        .toList();
  }

  private boolean areTogether() {
    if (!together && inputs.size() > 1) {
      throw usage(
          "%s inputs need --together, which plans them as one program".formatted(inputs.size()));
    }
    if (!together && ties.isPresent()) {
      throw usage("--ties needs --together");
    }
    return together;
  }

  private ParameterException usage(String message) {
    return new ParameterException(spec.commandLine(), message);
  }
}
