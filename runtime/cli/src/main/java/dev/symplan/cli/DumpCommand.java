package dev.symplan.cli;

import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Inputs;
import dev.symplan.cli.common.OutputFlag;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.page.HtmlRenderer;
import dev.symplan.planner.report.render.CsvRenderer;
import dev.symplan.planner.report.render.DotRenderer;
import dev.symplan.planner.report.render.Format;
import dev.symplan.planner.report.render.JsonRenderer;
import dev.symplan.planner.report.render.ModelExplorerRenderer;
import dev.symplan.planner.report.render.TextRenderer;
import dev.symplan.planner.report.render.TraceRenderer;
import dev.symplan.runtime.report.CodeSection;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Show a plan: which variant each collective runs, where every value lives, and when.",
      "Views: summary (arenas, counts), collectives (which variants were chosen or rejected, and"
          + " why), values (every buffer), memory (a map of offsets over steps), schedule (streams"
          + " and predicted times), peak (what is live when memory is fullest), code (instructions"
          + " and CUDA), graph (the planned graph, which can be compiled again)."
    })
final class DumpCommand extends ConsoleCommand {
  private static final String DUMP = "the dump";

  /** The maximum width that the environment can give, wider than any output. */
  private static final int MAX_COLUMNS = 9999;

  @Parameters(paramLabel = "INPUT", description = "A plan, or what compile takes.")
  private Path input;

  @Mixin private CompileFlags flags;

  @Option(
      names = "--view",
      split = ",",
      paramLabel = "VIEW",
      description =
          "The views to show: ${COMPLETION-CANDIDATES} (default: summary,collectives,values; in"
              + " JSON, all except code).",
      completionCandidates = ViewNames.class)
  private List<View> views = List.of();

  @Option(
      names = "--format",
      paramLabel = "FORMAT",
      description =
          "The format: ${COMPLETION-CANDIDATES} (default: text). html is a page for browsers, csv"
              + " has the buffers, dot and model-explorer the planned graph, perfetto the predicted"
              + " schedule.",
      completionCandidates = FormatNames.class,
      defaultValue = "text")
  private String format;

  @Mixin private OutputFlag output;

  @Option(
      names = "--width",
      paramLabel = "COLUMNS",
      description =
          "The maximum width of maps (default: the COLUMNS environment variable, or 100).")
  private Optional<Integer> width = Optional.empty();

  @Option(
      names = "--advice",
      negatable = true,
      description =
          "Whether the view peak shows what would need less memory. This plans again for each piece"
              + " of advice (default: only for html made from a graph).")
  private Optional<Boolean> advice = Optional.empty();

  DumpCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    var as =
        Format.ofText(format)
            .orElseThrow(
                () ->
                    usage(
                        "--format: unknown format '%s'; choose from %s"
                            .formatted(
                                format,
                                Arrays.stream(Format.values())
                                    .map(Format::text)
                                    .collect(Collectors.joining(", ")))));
    if (!views.isEmpty() && !as.takesViews()) {
      throw usage("--view: %s has only one view".formatted(as.text()));
    }
    if (width.filter(columns -> columns < 1 || columns > MAX_COLUMNS).isPresent()) {
      throw usage("--width must be 1 to " + MAX_COLUMNS);
    }
    var file = output.file(input);
    file.ifPresent(path -> AtomicFile.check(path, DUMP));
    var plan = Inputs.plan(input, flags, console);
    var shown = views.isEmpty() ? as.views() : views;
    var report = report(plan, shown);
    if (advised(as, shown)) {
      console.progress("trying other plans, to find what would need less memory");
      report = report.withAdvice(Inputs.advice(input, flags, plan));
    }
    console.result(file, render(as, report), DUMP);
    return ExitCode.OK;
  }

  private boolean advised(Format as, List<View> shown) {
    boolean isPlan = Inputs.isPlan(input);
    if (isPlan && advice.orElse(false)) {
      throw usage(
          "--advice: name the graph that the plan was compiled from; advice needs to plan it"
              + " again");
    }
    if (advice.orElse(false) && !shown.contains(View.PEAK)) {
      throw usage("--advice: requires the view peak");
    }
    return advice.orElse(as == Format.HTML && !isPlan);
  }

  private PlanReport report(Plan plan, List<View> shown) {
    var report = PlanReport.of(plan, shown);
    return views.contains(View.CODE) ? report.with(CodeSection.of(plan)) : report;
  }

  private String render(Format as, PlanReport report) {
    return switch (as) {
      case TEXT ->
          TextRenderer.render(
              report, columns(), output.file(input).isEmpty() && Ansi.AUTO.enabled());
      case JSON -> JsonRenderer.render(report);
      case HTML -> HtmlRenderer.render(report);
      case CSV -> CsvRenderer.render(report);
      case DOT -> DotRenderer.render(report);
      case MODEL_EXPLORER -> ModelExplorerRenderer.render(report);
      case MODEL_EXPLORER_DATA -> ModelExplorerRenderer.nodeData(report);
      case PERFETTO -> TraceRenderer.render(report);
    };
  }

  private int columns() {
    return width.orElseGet(
        () ->
            Optional.ofNullable(System.getenv("COLUMNS"))
                .filter(text -> text.matches("[1-9][0-9]{0,3}"))
                .map(Integer::parseInt)
                .orElse(TextRenderer.USUAL_WIDTH));
  }

  /** For completion and help. */
  static final class ViewNames implements Iterable<String> {
    @Override
    public Iterator<String> iterator() {
      return Arrays.stream(View.values()).map(View::text).iterator();
    }
  }

  /** For completion and help. */
  static final class FormatNames implements Iterable<String> {
    @Override
    public Iterator<String> iterator() {
      return Arrays.stream(Format.values()).map(Format::text).iterator();
    }
  }
}
