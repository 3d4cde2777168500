package dev.symplan.cli.common;

import com.google.common.base.Ascii;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The options that say which collectives may become others. */
@Heading("Planning")
public final class RewriteFlags {
  @Option(
      names = "--bucket",
      paramLabel = "WHEN",
      description = {
        "Merge collectives of the same kind and group: auto (if it is predicted to be faster; the"
            + " default), on (wherever possible) or off."
      },
      defaultValue = "auto")
  private String bucket;

  @Option(
      names = "--chunk",
      paramLabel = "WHEN",
      description = {
        "Split a large product and the collective of its result by rows, so that they overlap: auto"
            + " (the default), on or off."
      },
      defaultValue = "auto")
  private String chunk;

  @Option(
      names = "--layouts",
      paramLabel = "WHEN",
      description = {
        "Let collectives write each rank's slice where it belongs, in place of the copies before or"
            + " after them that gather, scatter or join along a dimension other than the first:"
            + " auto (the default), on or off."
      },
      defaultValue = "auto")
  private String layouts;

  @Option(
      names = "--sequence-parallel",
      paramLabel = "WHEN",
      description = {
        "Run the ops behind an all_reduce that compute each row by itself, such as a norm, on a"
            + " share of the rows on each rank, between a reduce_scatter and an all_gather: auto"
            + " (if it is predicted to be faster; the default), on (wherever possible) or off. The"
            + " inputs that they read must be named by --replicated."
      },
      defaultValue = "auto")
  private String sequenceParallel;

  @Option(
      names = "--hierarchical",
      paramLabel = "WHEN",
      description = {
        "Run collectives between NVLink domains in phases, within domains and across them: auto (if"
            + " it is predicted to be faster; the default), on (wherever possible) or off."
      },
      defaultValue = "auto")
  private String hierarchical;

  /**
   * {@return the rewrites that may be made}
   *
   * @param command named in errors
   */
  RewriteOptions options(CommandSpec command) {
    return new RewriteOptions(
        mode("--bucket", bucket, command),
        mode("--chunk", chunk, command),
        mode("--layouts", layouts, command),
        mode("--hierarchical", hierarchical, command),
        mode("--sequence-parallel", sequenceParallel, command));
  }

  private static Mode mode(String option, String text, CommandSpec command) {
    return Mode.ofText(Ascii.toLowerCase(text))
        .orElseThrow(
            () ->
                new ParameterException(
                    command.commandLine(),
                    "%s: '%s' is not one of auto, on, off".formatted(option, text)));
  }
}
