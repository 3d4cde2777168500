package dev.symplan.planner.report;

import dev.symplan.ir.diag.Units;
import dev.symplan.planner.plan.Rewrite;
import java.util.stream.Collectors;

/** Describes the rewrite of some collectives of the source, or of a tensor, as a sentence. */
final class RewriteText {
  /** More parts than these are only counted. */
  private static final int NAMED = 8;

  private RewriteText() {}

  static String of(Rewrite rewrite) {
    var text =
        switch (rewrite.action()) {
          case MERGED -> "merged " + parts(rewrite) + " " + rewrite.detail();
          case APART -> {
            var first = rewrite.members().getFirst();
            var last = rewrite.members().getLast();
            yield "not merged with %s: %s: %s"
                .formatted(location(first), location(last), rewrite.detail());
          }
          case CHUNKED ->
              "split %s in %s, by rows: %s"
                  .formatted(parts(rewrite), rewrite.pieces(), rewrite.detail());
          case WHOLE -> "not split: %s: %s".formatted(parts(rewrite), rewrite.detail());
          case FOLDED ->
              "%s moves its slices to where they belong, without %s"
                  .formatted(parts(rewrite), rewrite.detail());
          case HIERARCHICAL ->
              "%s in %s phases, over %s"
                  .formatted(parts(rewrite), rewrite.pieces(), rewrite.detail());
          case SEQUENCE_PARALLEL ->
              "%s sequence parallel, with %s".formatted(parts(rewrite), rewrite.detail());
          case REPLICATED ->
              "not sequence parallel: %s: %s".formatted(parts(rewrite), rewrite.detail());
          case FLAT -> "not in phases: %s: %s".formatted(parts(rewrite), rewrite.detail());
          case UNFOLDED -> "copies around %s stay: %s".formatted(parts(rewrite), rewrite.detail());
          case RECOMPUTED ->
              "%s is computed again by %s".formatted(parts(rewrite), rewrite.detail());
          case OFFLOADED -> "%s %s".formatted(parts(rewrite), rewrite.detail());
        };
    if (rewrite.freesMemory()) {
      return "%s: %s more (%s)"
          .formatted(text, Units.micros(rewrite.afterMicros()), rewrite.reason().text());
    }
    return rewrite.made()
        ? "%s: %s before, %s now (%s)"
            .formatted(
                text,
                Units.micros(rewrite.beforeMicros()),
                Units.micros(rewrite.afterMicros()),
                rewrite.reason().text())
        : "%s (%s)".formatted(text, rewrite.reason().text());
  }

  private static String parts(Rewrite rewrite) {
    var named =
        rewrite.members().stream()
            .limit(NAMED)
            .map(RewriteText::location)
            .collect(Collectors.joining(", "));
    int more = rewrite.members().size() - NAMED;
    return more > 0 ? "%s and %s more".formatted(named, more) : named;
  }

  private static String location(Rewrite.Member part) {
    var source = part.source().replace('\\', '/');
    return "%s (%s, %s)"
        .formatted(
            part.name(), Units.bytes(part.bytes()), source.substring(source.lastIndexOf('/') + 1));
  }
}
