package dev.symplan.planner.report;

import static dev.symplan.planner.report.ReasonTexts.words;

import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.report.ReasonTexts.Words;

/** The reasons why collectives were rewritten or not, for people ({@link ReasonTexts}). */
final class RewriteReasonTexts {
  private RewriteReasonTexts() {}

  static Words of(Rewrite.Reason reason) {
    return switch (reason) {
      case FASTER -> words("It is predicted to be faster.", "The collectives are rewritten.", "-");
      case WANTED ->
          words(
              "`--bucket on`, `--chunk on`, `--layouts on`, `--sequence-parallel on` or"
                  + " `--hierarchical on` asks for it wherever it is possible.",
              "The collectives are rewritten, faster or not.",
              "`auto`, to let predicted times decide.");
      case NO_GAIN ->
          words(
              "It is not predicted to be faster.",
              "The collectives stay.",
              "`--bucket on`, `--chunk on`, `--layouts on`, `--sequence-parallel on` or"
                  + " `--hierarchical on` to try it.");
      case DEPENDENT -> words("One uses the other's result.", "They stay separate.", "-");
      case NEEDED_EARLIER ->
          words(
              "A result is read, or an operand overwritten, before all operands are ready.",
              "They stay separate.",
              "Put the collectives next to each other in the source.");
      case MEMORY ->
          words(
              "Tensors would wait for each other, and too much would be live at once.",
              "They stay separate.",
              "`--bucket on`, if there is enough memory.");
      case SIZE ->
          words(
              "The merged collective would be too large or have too many tensors, or the pieces"
                  + " would be too small.",
              "The collectives stay.",
              "-");
      case FORCED_VARIANT ->
          words(
              "`--variant`, or an op, names the variant of one of them.",
              "It stays, so that it can run as that variant.",
              "Force the variant by its kind rather than by its name.");
      case PLAN ->
          words(
              "The collectives would be faster, but the plan would be slower or much larger.",
              "The predicted rewrites are undone.",
              "`--bucket on`, `--chunk on`, `--layouts on`, `--sequence-parallel on` or"
                  + " `--hierarchical on` to rewrite anyway.");
      case OTHER_KIND ->
          words(
              "The groups, reductions or element types differ.",
              "They stay separate.",
              "Use one group and one type for collectives that belong together.");
      case MEMORY_LIMIT ->
          words(
              "The plan would take more memory than `--memory-limit` allows.",
              "The tensor gives up its memory at the peak; ops compute it again, or it comes back"
                  + " from the host's memory, where an input may be from the start.",
              "A larger `--memory-limit`.");
      case LAYOUT ->
          words(
              "The slices consist of separate rows, which no variant that can run moves; NCCL never"
                  + " does.",
              "The copies around the collective stay.",
              "A group within one NVLink domain; another `--backend` or `--variant`.");
      case UNEQUAL_DOMAINS ->
          words(
              "The group, or a part of it, has more ranks in one NVLink domain than in another.",
              "The collective runs on NCCL, between all ranks.",
              "`--hosts` or groups with the same number of ranks in each domain.");
      case OTHER_STAGE ->
          words(
              "The group has ranks in stages of a pipeline whose graphs have different"
                  + " collectives. Each stage is planned by itself.",
              "The collective stays as it is, which all its ranks can count on.",
              "The same collectives, in the same order, in the graphs of all its ranks.");
      case RANK_ORDER ->
          words(
              "The ranks of an NVLink domain do not follow each other in the group, so phases would"
                  + " give slices in another order.",
              "The collective runs on NCCL, between all ranks.",
              "A group that lists the ranks of one domain after those of another.");
      case UNEVEN ->
          words(
              "What the collective moves does not divide into equal, contiguous slices.",
              "The collective stays: between NVLink domains, it runs on NCCL.",
              "Sizes that the number of ranks, or that of a domain, divides.");
      case NEEDED_WHOLE ->
          words(
              "Other ops, or the caller, read all rows of more bytes than the all_reduce reduces.",
              "The ops behind the all_reduce run on all rows on each rank.",
              "-");
      case MAY_DIFFER ->
          words(
              "The ops behind the all_reduce read an input, or what is computed from it, that may"
                  + " differ from rank to rank.",
              "They run on all rows on each rank.",
              "`--replicated NAME`, if the input is the same on all ranks.");
    };
  }
}
