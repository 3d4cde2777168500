package dev.symplan.cli.common;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableMap;
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
import java.util.Stack;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import picocli.CommandLine.IParameterConsumer;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** The graphs that a command reads: one, or several that are one program. */
public final class GraphInputs {
  private static final Pattern SIZES = Pattern.compile("[A-Za-z0-9_]*=.*|[0-9,.]+");
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
      arity = "0..1",
      parameterConsumer = SizesOrInput.class,
      description = {
        "Plan the graphs for each of these values of a symbolic size, as one program, whose graphs"
            + " are called NAME_SIZE_N. They share the inputs that do not depend on the size."
            + " Without values: the powers of two in a range, and its end (--dim s77=1..4096"
            + " --buckets)."
      })
  private Optional<String> buckets = Optional.empty();

  /** Takes what follows as sizes if it looks like them, as inputs may follow, too. */
  static final class SizesOrInput implements IParameterConsumer {
    @Override
    public void consumeParameters(Stack<String> left, ArgSpec option, CommandSpec command) {
      boolean given = !left.isEmpty() && SIZES.matcher(left.peek()).matches();
      option.setValue(Optional.of(given ? left.pop() : ""));
    }
  }

  /** Values of a symbolic size. */
  private record Sizes(String symbol, List<Long> values) {}

  /** {@return all files that are read} */
  public List<Path> files() {
    var files = new ArrayList<>(inputs);
    ties.ifPresent(files::add);
    return files;
  }

  /**
   * {@return the program}
   *
   * @param ranges of symbolic sizes
   * @throws ParameterException when the options do not fit each other
   */
  public Program read(
      CompileOptions options,
      ImmutableMap<String, SizeRange> ranges,
      Consumer<? super Diagnostic> warnings) {
    boolean several = areTogether();
    return sizes(ranges)
        .map(
            of ->
                ProgramReader.readBuckets(
                    inputs, ties, of.symbol(), of.values(), options, warnings))
        .orElseGet(
            () ->
                several
                    ? ProgramReader.readTogether(inputs, ties, options, warnings)
                    : ProgramReader.read(inputs.getFirst(), options, warnings));
  }

  /**
   * {@return the plan of the program}
   *
   * @param ranges of symbolic sizes
   * @throws ParameterException when the options do not fit each other
   */
  public Plan compile(Compiler compiler, ImmutableMap<String, SizeRange> ranges) {
    boolean several = areTogether();
    return sizes(ranges)
        .map(of -> compiler.compileBuckets(inputs, ties, of.symbol(), of.values()))
        .orElseGet(
            () ->
                several
                    ? compiler.compileTogether(inputs, ties)
                    : compiler.compile(inputs.getFirst()));
  }

  /** {@return the sizes to plan for; empty if the graphs are planned once} */
  private Optional<Sizes> sizes(ImmutableMap<String, SizeRange> ranges) {
    return buckets.map(text -> text.isEmpty() ? inRange(ranges) : listed(text, ranges));
  }

  private Sizes listed(String text, ImmutableMap<String, SizeRange> ranges) {
    if (!BUCKETS.matcher(text).matches()) {
      throw usage("--buckets: '%s' is not of the form s77=128,1024,4096".formatted(text));
    }
    if (!ranges.isEmpty()) {
      throw usage(
          "--buckets %s lists the sizes; leave out the range in --dim, or the list"
              .formatted(text));
    }
    int end = text.indexOf('=');
    return new Sizes(
        text.substring(0, end),
        Splitter.on(',').splitToStream(text.substring(end + 1)).map(Long::valueOf).toList());
  }

  private Sizes inRange(ImmutableMap<String, SizeRange> ranges) {
    if (ranges.size() != 1) {
      throw usage(
          "--buckets needs the range of one symbolic size (--dim s77=1..4096 --buckets), or sizes"
              + " (--buckets s77=128,1024,4096)");
    }
    var symbol = ranges.keySet().iterator().next();
    var range = ranges.values().iterator().next();
    var values = range.buckets();
    if (values.size() == 1) {
      throw usage(
          "--buckets: no power of two is in %s below its end; --dim %s=%s plans for that"
              .formatted(range, symbol, range.last()));
    }
    return new Sizes(symbol, values);
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
