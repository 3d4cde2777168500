package dev.symplan.planner.report;

import dev.symplan.planner.ArgDecision;
import dev.symplan.planner.OrderDecision;
import dev.symplan.planner.Rewrite;
import dev.symplan.planner.Verdict;
import java.util.Arrays;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Every code by which plans give their reasons, in words. */
final class ReasonTexts {
  private ReasonTexts() {}

  /**
   * What a code means.
   *
   * @param cause what is so
   * @param consequence what the plan does about it
   * @param remedy what to change for something better; {@code -} where there is nothing to
   */
  record Words(String cause, String consequence, String remedy) {}

  private static Words words(String cause, String consequence, String remedy) {
    return new Words(cause, consequence, remedy);
  }

  static Words of(ArgDecision.Reason reason) {
    return switch (reason) {
      case PRODUCER_WRITES ->
          words(
              "An op of the graph computes the tensor.",
              "It writes into symmetric memory: no copy.",
              "-");
      case PLANNED_INPUT ->
          words(
              "The tensor is an input that the plan may place.",
              "The caller fills it in the arena: no copy.",
              "-");
      case COLLECTIVE_RESULT ->
          words(
              "Another collective gives the tensor.",
              "It leaves it in symmetric memory: no copy.",
              "-");
      case RESULT_WRITES ->
          words("The tensor is the collective's result.", "It is written there: no copy.", "-");
      case IN_PLACE ->
          words(
              "Nothing reads the operand later, and the variant reads each element before it writes"
                  + " it.",
              "The result takes the operand's place: no memory of its own.",
              "-");
      case EXTERNAL_INPUT ->
          words(
              "The tensor is an input in memory of the caller's, which peers cannot reach.",
              "It is copied into the arena, if a variant that needs that is still the fastest.",
              "`--place NAME=symm`, `--inputs auto`, or `--donate NAME` where it is not needed"
                  + " again.");
      case EXTERNAL_OUTPUT ->
          words(
              "The tensor is an output in memory of the caller's, which peers cannot reach.",
              "It is copied out of the arena.",
              "`--results auto`, or `--place NAME=symm`: the caller then reads it in the arena.");
      case NOT_CONTIGUOUS ->
          words(
              "The elements do not lie as the collective moves them, in rows.",
              "A contiguous copy is made.",
              "Have the op before it give a contiguous tensor; split or gather along dimension 0.");
      case NOT_ALIGNED ->
          words(
              "The tensor is part of another and does not begin at a multiple of 16 bytes.",
              "A copy is made for variants that move vectors.",
              "Cut at multiples of 16 bytes.");
      case MAY_HAVE_MOVED ->
          words(
              "An op that is not known may have left the tensor in other memory than the plan's.",
              "A copy is made for variants in which peers touch the tensor.",
              "Give the op's schema: `--declare FILE`.");
      case RANKS_DIFFER ->
          words(
              "The ranks' graphs slice or share the tensor's storage in different ways.",
              "A copy is made on all ranks, so that offsets agree.",
              "Make the ranks' graphs treat the tensor alike.");
      case VARIANT_READS_ANYWHERE ->
          words(
              "No peer touches this tensor in the chosen variant.",
              "It stays wherever it is best.",
              "-");
    };
  }

  static Words of(Verdict.Reason reason) {
    return switch (reason) {
      case CHOSEN ->
          words("No other variant is predicted to be faster.", "The collective runs so.", "-");
      case FORCED ->
          words(
              "`--variant` names it.",
              "The collective runs so, be it the fastest or not.",
              "Leave `--variant` out.");
      case SLOWER ->
          words(
              "Another variant is predicted to be faster, copies and hidden time included.",
              "It is not taken.",
              "`symplan calibrate` with measured times, if the prediction is wrong; `--variant` to"
                  + " try it.");
      case NOT_FORCED ->
          words("`--variant` names another.", "It is not taken.", "Leave `--variant` out.");
      case GROUP_SIZE ->
          words(
              "The group has one rank, or the variant is for groups of one.",
              "There is nothing to send, or somebody to send to.",
              "-");
      case NO_MULTICAST ->
          words(
              "The target has no NVLink multicast.",
              "Variants that let the switch work are left out.",
              "A target with multicast (`--target h200x8`), where the machine has it.");
      case MULTICAST_OFF ->
          words(
              "The target has NVLink multicast, but nobody switched it on.",
              "Variants that let the switch work are left out.",
              "`--multicast=on`, where backend and machine have it ([GPU hosts](gpu-hosts.md)).");
      case NO_COPY_ENGINE ->
          words(
              "The target's copy engines do not reach peers.",
              "Transfers take SMs.",
              "A target file that says `copy_engines`, where the machine has them.");
      case NO_PEER_ACCESS ->
          words(
              "The group, or a part of it, has ranks on different hosts, which do not reach each"
                  + " other's memory. Ranks fill hosts in order: rank r is on host r / `gpus`.",
              "It runs in plain NCCL. A custom op that must have symmetric memory is refused.",
              "Groups within one host; a target of more GPUs.");
      case REDUCTION ->
          words(
              "The variant's kernel does not know the reduction.",
              "It is left out.",
              "`sum`, which all know.");
      case DTYPE ->
          words(
              "The variant's kernel does not know the element type.",
              "It is left out.",
              "bf16, f16 or f32, which all know.");
      case SIZE ->
          words(
              "The collective is larger than the variant's kernel can count.",
              "It is left out.",
              "Smaller collectives: `--chunk on`.");
      case ROWS ->
          words(
              "The ranks send parts of different sizes.",
              "Variants that move equal parts are left out.",
              "Equal `split_sizes`.");
      case WORKSPACE ->
          words(
              "The workspace that it would push through is larger than the target allows.",
              "It is left out.",
              "`workspace_bytes` of the target file, if the memory is there.");
      case LIBRARY ->
          words(
              "The target's NCCL is too old to have it.",
              "It is left out.",
              "A newer NCCL, and its version in the target file.");
      case LIBRARY_GROUP ->
          words(
              "NCCL takes one such collective in a group of calls: its copy engines always, its"
                  + " symmetric kernels before 2.28.",
              "These are left out for coalesced collectives.",
              "NCCL 2.30.7, or `--bucket off`.");
      case LIBRARY_RACE ->
          words(
              "The target's NCCL does not order several symmetric kernels in a captured graph.",
              "They are left out: results could be wrong without an error.",
              "NCCL 2.30.7, or `--bucket off`.");
    };
  }

  static Words of(Rewrite.Reason reason) {
    return switch (reason) {
      case FASTER -> words("It is predicted to be faster.", "The collectives become others.", "-");
      case WANTED ->
          words(
              "`--bucket on` or `--chunk on` asks for it wherever it can be.",
              "The collectives become others, faster or not.",
              "`auto`, to let predicted times decide.");
      case NO_GAIN ->
          words(
              "It is predicted to be no faster.",
              "The collectives stay.",
              "`--bucket on` or `--chunk on` to try it.");
      case DEPENDENT -> words("One works on what the other gives.", "They stay apart.", "-");
      case NEEDED_EARLIER ->
          words(
              "A result is read, or an operand written over, before all operands are ready.",
              "They stay apart.",
              "An order of the source in which the collectives stand together.");
      case MEMORY ->
          words(
              "Tensors would wait for each other, and too much would be live at once.",
              "They stay apart.",
              "`--bucket on`, if the memory is there.");
      case SIZE ->
          words(
              "One collective would be too large or have too many tensors; or the pieces too"
                  + " small.",
              "The collectives stay.",
              "-");
      case FORCED_VARIANT ->
          words(
              "`--variant` names one of them.",
              "It stays, so that it can run so.",
              "Force the variant by its kind rather than by its name.");
      case PLAN ->
          words(
              "The collectives would be faster, but the plan slower or much larger.",
              "All that was predicted is taken back.",
              "`--bucket on` or `--chunk on` to have it all the same.");
      case OTHER_KIND ->
          words(
              "Group, reduction or element type differ.",
              "They stay apart.",
              "One group and one type for what belongs together.");
    };
  }

  static Words of(OrderDecision.Outcome outcome) {
    return switch (outcome) {
      case OFF -> words("`--no-reorder` says so.", "The ops run as given.", "Leave it out.");
      case NO_GAIN ->
          words(
              "No other order was found that needs at least 1 % less memory.",
              "The ops run as given.", "-");
      case TOO_SLOW ->
          words(
              "Another order needs less memory, but more time than the budget allows.",
              "The ops run as given.",
              "A larger `--reorder-budget`.");
      case REORDERED -> words("Another order needs less memory.", "The ops run in that one.", "-");
    };
  }

  /** {@return {@code docs/reasons.md}} */
  static String markdown() {
    return """
    # Reasons

    Every decision of a plan has a code that says why. `symplan dump --view collectives` and `symplan explain`
    show them with the facts of the case at hand, plan files and reports with the codes themselves. This page is
    generated from the planner's.

    ## How a tensor of a collective is realized

    `reason` of `args` in [plan files](plan.md).

    """
        + table(ArgDecision.Reason.values(), ReasonTexts::of)
        + """

        ## Why a variant runs, or does not

        `reason` of `verdicts`.

        """
        + table(Verdict.Reason.values(), ReasonTexts::of)
        + """

        ## Why collectives became others, or did not

        `reason` of `rewrites`.

        """
        + table(Rewrite.Reason.values(), ReasonTexts::of)
        + """

        ## Why the ops run in their order

        `outcome` of `reordering`.

        """
        + table(OrderDecision.Outcome.values(), ReasonTexts::of);
  }

  private static <E extends Enum<E>> String table(E[] codes, Function<? super E, Words> words) {
    return Arrays.stream(codes)
        .map(
            code -> {
              var text = words.apply(code);
              return "| `%s` | %s | %s | %s |\n"
                  .formatted(Codes.of(code), text.cause(), text.consequence(), text.remedy());
            })
        .collect(
            Collectors.joining(
                "", "| code | cause | consequence | remedy |\n|---|---|---|---|\n", ""));
  }
}
