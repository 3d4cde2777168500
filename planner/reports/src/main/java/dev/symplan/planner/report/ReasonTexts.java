package dev.symplan.planner.report;

import dev.symplan.ir.diag.Units;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.OrderDecision;
import dev.symplan.planner.plan.Rewrite;
import java.util.Arrays;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Every code by which plans give their reasons, in words. */
final class ReasonTexts {
  private ReasonTexts() {}

  /**
   * The meaning of a code.
   *
   * @param cause the fact behind the decision
   * @param consequence the consequence in the plan
   * @param remedy the change that leads to a better plan; {@code -} if none does
   */
  record Words(String cause, String consequence, String remedy) {}

  static Words words(String cause, String consequence, String remedy) {
    return new Words(cause, consequence, remedy);
  }

  static Words of(ArgDecision.Reason reason) {
    return switch (reason) {
      case PRODUCER_WRITES ->
          words(
              "An op of the graph computes the tensor.",
              "The op writes directly into symmetric memory: no copy.",
              "-");
      case PLANNED_INPUT ->
          words(
              "The tensor is an input that the plan may place.",
              "The caller fills it directly in the arena: no copy.",
              "-");
      case COLLECTIVE_RESULT ->
          words(
              "Another collective produces the tensor.",
              "The tensor is already in symmetric memory: no copy.",
              "-");
      case RESULT_WRITES ->
          words(
              "The tensor is the collective's result.",
              "It is written directly into symmetric memory: no copy.",
              "-");
      case IN_PLACE ->
          words(
              "Nothing reads the operand later, and the variant reads each element before it writes"
                  + " it.",
              "The result reuses the operand's memory.",
              "-");
      case EXTERNAL_INPUT ->
          words(
              "The tensor is an input in the caller's memory, which peers cannot access.",
              "It is copied into the arena if a variant that needs the copy is still the fastest.",
              "`--place NAME=symm`, `--inputs auto`, or `--donate NAME` if it is not needed"
                  + " again.");
      case EXTERNAL_OUTPUT ->
          words(
              "The tensor is an output in the caller's memory, which peers cannot access.",
              "It is copied out of the arena.",
              "`--results auto`, or `--place NAME=symm`: the caller then reads it in the arena.");
      case WRITES_ROWS ->
          words(
              "Only a later `cat` or `stack` reads the result, along a dimension after the first,"
                  + " and the variant can write rows that are apart.",
              "The rows are written where they are joined, and not copied. All that is joined is in"
                  + " use from then on.",
              "`--layouts off` copies them.");
      case NOT_CONTIGUOUS ->
          words(
              "The elements are not laid out as the collective moves them, in rows.",
              "A contiguous copy is made.",
              "Make the preceding op produce a contiguous tensor; split or gather along dimension"
                  + " 0.");
      case NOT_ALIGNED ->
          words(
              "The tensor is part of another and does not begin at a multiple of 16 bytes.",
              "A copy is made for variants that move vectors.",
              "Cut at multiples of 16 bytes.");
      case MAY_HAVE_MOVED ->
          words(
              "An unknown op may have moved the tensor out of the plan's memory.",
              "A copy is made for variants in which peers access the tensor.",
              "Declare the op's schema: `--declare FILE`.");
      case RANKS_DIFFER ->
          words(
              "The ranks' graphs slice or share the tensor's storage in different ways.",
              "A copy is made on all ranks, so that offsets agree.",
              "Make the ranks' graphs treat the tensor alike.");
      case READS_ROWS ->
          words(
              "The operand is rows of a larger tensor, such as a slice of its columns, and the"
                  + " variant can read rows that are apart.",
              "No copy is made.",
              "`--layouts off` copies the rows together.");
      case VARIANT_READS_ANYWHERE ->
          words(
              "No peer accesses this tensor in the chosen variant.",
              "It is placed wherever that is best.",
              "-");
    };
  }

  static Words of(Verdict.Reason reason) {
    return switch (reason) {
      case CHOSEN ->
          words(
              "No other variant is predicted to be faster.",
              "The collective runs as this variant.",
              "-");
      case FORCED ->
          words(
              "`--variant`, or the collective's op, names this variant.",
              "The collective runs as this variant, even if another is faster.",
              "Remove `--variant`, or give `--free-variants`.");
      case SLOWER ->
          words(
              "Another variant is predicted to be faster, including copies and overlap.",
              "It is not used.",
              "If the prediction is wrong, run `symplan calibrate` with measured times; to try the"
                  + " variant, use `--variant`.");
      case NOT_FORCED ->
          words(
              "`--variant`, or the collective's op, names another variant.",
              "It is not used.",
              "Remove `--variant`, or give `--free-variants`.");
      case NOT_NAMED ->
          words(
              "Ranks may get different bits with this variant, and nothing names it.",
              "It is not used, even if it is faster: ranks that should agree could drift apart.",
              "`--variant`, or an op that names it.");
      case NOT_WORTH_MEMORY ->
          words(
              "The variant is predicted to be faster, but needs a workspace, and gains less than"
                  + " the plan must gain for that memory.",
              "It is not used.",
              "`--optimize time`, or `--variant` with its name.");
      case GROUP_SIZE ->
          words(
              "The group has one rank, or the variant is for groups of one.",
              "There is nothing to send, or the ranks must communicate.",
              "-");
      case NO_MULTICAST ->
          words(
              "The target has no NVLink multicast.",
              "Variants that reduce or replicate in the switch are ruled out.",
              "A target with multicast (`--target h200x8`), if the machine has it.");
      case MULTICAST_OFF ->
          words(
              "The target has NVLink multicast, but it is not switched on.",
              "Variants that reduce or replicate in the switch are ruled out.",
              "`--multicast=on`, if the machine supports it"
                  + " ([GPU hosts](gpu-hosts.md#nvlink-multicast)).");
      case NO_COPY_ENGINE ->
          words(
              "The target's copy engines cannot access peers.",
              "Transfers use SMs.",
              "A target file with `copy_engines`, if the machine has them.");
      case NOT_IN_BACKEND ->
          words(
              "The plan's backend does not support the variant.",
              "It is ruled out.",
              "Another `--backend`, if it will run the plan.");
      case NO_PEER_ACCESS ->
          words(
              "The group, or a part of it, has ranks in different NVLink domains, which cannot"
                  + " access each other's memory. A domain is one host, unless the target's"
                  + " `hosts_per_domain` says otherwise.",
              "The collective runs on plain NCCL. A custom op that requires symmetric memory is"
                  + " refused.",
              "Groups within one domain; other `--hosts`; a target of more GPUs.");
      case OTHER_STAGE ->
          words(
              "The group has ranks in stages of a pipeline whose graphs have different collectives."
                  + " Each stage is planned by itself, with its own tensors in symmetric memory.",
              "The collective runs on plain NCCL. A custom op that requires symmetric memory is"
                  + " refused.",
              "The same collectives, in the same order, in the graphs of all its ranks.");
      case NOT_SYMMETRIC ->
          words(
              "The op is registered (`symm_mem`) to have its operand or result in symmetric memory,"
                  + " and the variant takes it from anywhere.",
              "It is ruled out.",
              "Remove the registration.");
      case REDUCTION ->
          words(
              "The variant's kernel does not support the reduction.",
              "It is ruled out.",
              "`sum`, which all variants support.");
      case DTYPE ->
          words(
              "The variant's kernel does not support the element type.",
              "It is ruled out.",
              "bf16, f16 or f32, which all variants support.");
      case SIZE ->
          words(
              "The collective is larger than the variant's kernel can count.",
              "It is ruled out.",
              "Smaller collectives: `--chunk on`.");
      case ROWS ->
          words(
              "The ranks send parts of different sizes.",
              "Variants that move equal parts are ruled out.",
              "Equal `split_sizes`.");
      case ALIGNMENT ->
          words(
              "The ranks' slices are not a multiple of 16 bytes.",
              "NCCL's symmetric reduce_scatter is ruled out: its sums could be silently wrong.",
              "Sizes that the number of ranks divides into multiples of 16 bytes.");
      case LAYOUT ->
          words(
              "The ranks' slices lie along a dimension after the first, so each slice consists of"
                  + " separate rows.",
              "Variants that move only contiguous slices are ruled out.",
              "`--layouts off`: a copy beside the collective puts the slices in order.");
      case WORKSPACE ->
          words(
              "The variant's workspace would be larger than the target allows.",
              "It is ruled out.",
              "Increase `workspace_bytes` in the target file, if there is enough memory.");
      case LIBRARY ->
          words(
              "The target's NCCL is too old for the variant.",
              "It is ruled out.",
              "A newer NCCL, and its version in the target file.");
      case LIBRARY_GROUP ->
          words(
              "NCCL accepts only one such collective in a group of calls: always on its copy"
                  + " engines, and before 2.28 in its symmetric kernels.",
              "These variants are ruled out for coalesced collectives.",
              "NCCL 2.30.7, or `--bucket off`.");
      case LIBRARY_RACE ->
          words(
              "The target's NCCL does not order several symmetric kernels in a captured graph.",
              "They are ruled out: results could be silently wrong.",
              "NCCL 2.30.7, or `--bucket off`.");
    };
  }

  static Words of(Epilogue.Reason reason) {
    return switch (reason) {
      case FUSED ->
          words(
              "The next step goes by rows of what the collective reduces.",
              "It runs in the collective's kernel: no further launch, and what is reduced is not"
                  + " read again.",
              "-");
      case OFF ->
          words(
              "`--no-epilogues` or `--no-fusion` is set.",
              "The next step has a kernel of its own.",
              "Remove it.");
      case VARIANT ->
          words(
              "The variant is not one by whose rows other ops can go: `one_shot` is, and for an"
                  + " all_reduce `two_shot` and those with a workspace.",
              "The next step has a kernel of its own.",
              "`--variant`, to try one of these; the cheapest, epilogue included, is chosen.");
      case LARGE ->
          words(
              "The variant is `two_shot`, and what it reduces is larger than %s."
                  .formatted(Units.bytes(Epilogue.MAX_STORED_BYTES)),
              "The next step has a kernel of its own, which has more blocks than one that meets"
                  + " peers.",
              "`--variant all_reduce=one_shot`, to try that.");
      case BESIDE_COMPUTE ->
          words(
              "The collective runs beside compute, and takes less time so.",
              "The next step has a kernel of its own.",
              "`--no-overlap`, to try it.");
      case ROWS ->
          words(
              "The next step does not go by rows of what the collective reduces, a copy comes"
                  + " between, or a row is not a multiple of 16 bytes, or longer than 32 KiB.",
              "The next step has a kernel of its own.",
              "Put the ops that read the result right behind the collective.");
    };
  }

  static Words of(OrderDecision.Outcome outcome) {
    return switch (outcome) {
      case OFF -> words("`--no-reorder` is set.", "The ops run as given.", "Remove it.");
      case NO_GAIN ->
          words(
              "No other order was found that needs at least 1 % less memory.",
              "The ops run as given.", "-");
      case TOO_SLOW ->
          words(
              "Another order needs less memory, but takes more time than the budget or `--optimize"
                  + " time` allows.",
              "The ops run as given.",
              "A larger `--reorder-budget`, or `--optimize memory`.");
      case REORDERED ->
          words("Another order needs less memory.", "The ops run in that order.", "-");
    };
  }

  /** {@return {@code docs/reasons.md}} */
  static String markdown() {
    return """
    # Reasons

    Every decision in a plan has a reason code. `symplan dump --view collectives` and `symplan explain` show reasons
    with the details of the case; plan files and reports contain the codes. This page is generated from the planner's
    own texts.

    ## How a tensor of a collective is realized

    `reason` of `args` in [plan files](plan.md).

    """
        + table(ArgDecision.Reason.values(), ReasonTexts::of)
        + """

        ## Why a variant was chosen or not

        `reason` of `verdicts`.

        """
        + table(Verdict.Reason.values(), ReasonTexts::of)
        + """

        ## Why the next step runs in a collective's kernel or not

        `reason` of `epilogue`, for each all_reduce and reduce_scatter of one tensor.

        """
        + table(Epilogue.Reason.values(), ReasonTexts::of)
        + """

        ## Why collectives were rewritten or not

        `reason` of `rewrites`.

        """
        + table(Rewrite.Reason.values(), RewriteReasonTexts::of)
        + """

        ## Why the ops run in this order

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
