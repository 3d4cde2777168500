package dev.symplan.planner.report;

import com.google.common.base.Joiner;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.DType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.CollectiveSpec.Foreign;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * The variants that each functional collective can run as, and the needs of each: from the registry
 * of ops and the rows of {@link VariantSpec}.
 */
public final class CollectivesTable {
  private static final ImmutableList<String> COLUMNS =
      ImmutableList.of(
          "variant", "symmetric", "reductions", "types", "in place", "barriers", "needs");

  private static final String TAKEN_APART =
      """

      ## Ops that are taken apart

      | op | becomes | needs |
      |---|---|---|
      | `symm_mem::fused_all_gather_matmul`, `fused_all_gather_scaled_matmul` | an all_gather, and a product for each `B` | a result type that is written out; scales of the whole tensor or of its rows |
      | `symm_mem::fused_matmul_reduce_scatter`, `fused_scaled_matmul_reduce_scatter` | a product, and a reduce_scatter | as above |
      | `symm_mem::all_to_all_vdev`, `all_to_all_vdev_2d`, `all_to_all_vdev_2d_offset` | an all_to_all of the splits, one of as many rows for each rank as the input has, and indices that pick the rows that count | splits that fit into `out`, which the run checks; on GPUs, a `major_align` that is a power of two |

      The planner overlaps the parts where it pays, and chooses a variant for each collective. NCCL has no
      call for these ops.

      ## Needs of the ops of symm_mem

      - The ops of `symm_mem` that reduce only add up, as PyTorch's do; `_low_contention_reduce_scatter` also averages.
      - A `symm_buffer` has the element type of the tensor that is reduced, and at least as many elements.
      - `multimem_one_shot_reduce_out` writes only the root's `out`, which must have no values yet.
      - No argument has to be in symmetric memory already: the planner places it there, or copies it.
      - Tests compare the results of these ops with those of eager PyTorch 2.11 on two GPUs (`samples/cases/symm_mem`), but
        those of `multimem_*` (multicast) and `all_to_all_vdev*` (NVSHMEM) with their definitions.
      """;

  private static final String PERMUTATIONS =
      """

      ## Permutations

      In a `collective_permute`, each rank sends its operand to at most one rank, and gets at most one. The pairs
      `[source, target]` are positions in the group. A rank that nobody sends to gets zeros; a rank may send to itself.
      `symplan::collective_permute` means what HLO's `collective-permute` means.

      - An `all_to_all_single` is planned as a `collective_permute` if its split sizes say that every rank sends all its
        rows to one rank and gets as many from one. PyTorch's `permute_tensor` is such an exchange. The exchange stays if a
        rank gets nothing, if the ranks' tensors differ in size, or if a variant is named for it.
      - The barriers of `one_shot`, `push` and `copy_engine` are between all ranks of the group, not only between those of
        a pair. In a module of HLO, ranks that no pairs connect are in different parts of the group, if all parts have the
        same pairs.
      - A target without measured curves predicts the times from those of an all_to_all of two ranks
        ([targets.md](targets.md)). `symplan bench collectives` measures a ring.
      """;

  private static final String SLICES =
      """

      ## Slices along other dimensions

      A collective moves slices that follow each other in memory: along the first dimension. For another dimension, PyTorch
      makes a copy: of the result of a gather (`all_gather_into_tensor`, `split`, `cat`), or of the operand of a scatter or an
      exchange (`split`, `cat`, `reduce_scatter_tensor`). Symplan's own kernels and copies between GPUs do not need this copy:
      each rank writes, or reads, the rows of its slice where they belong. The plan then has one of `symplan::all_gather_dim`,
      `symplan::reduce_scatter_dim` and `symplan::all_to_all_dim`, and no copies.

      - A copy is folded into a collective if it only changes the order of equal slices. It may be made by `cat` or `stack` of
        pieces, by `clone`, `contiguous` or `reshape` of a permuted view, or by the collective itself, for a view. It must copy
        the result of the collective or its operand, and nothing else may read that tensor.
      - The copy stays if the pieces come in another order, if something else reads the tensor in between, or if the element
        type changes on the way in another way than below.
      - If bf16 or f16 is converted to f32 before a scatter, and only the scatter reads that, ranks send the short floats.
        The scatter (`dtype=torch.float32`) converts each element, adds in f32, and does not round its result: the sums are
        the same, bit for bit. Only `one_shot` converts. The conversion of a result stays: before it, the sum is rounded to
        the type that was scattered.
      - If all that is gathered is then converted to a smaller type of floats, each rank converts its shard first: of weights
        that are kept in f32, bf16 is sent.
      - The copy also stays if no variant that can run moves rows: between hosts, for example, only NCCL can run. It stays if
        a variant is named that does not move rows, or if a variant is named for that collective alone. It stays if a row has
        less than 128 bytes or is not a multiple of 16, or if the plan is not predicted to be faster without the copy.
        `symplan explain` shows the reason.
      - The result of a product (`mm`, `addmm`, `bmm`) or of a single elementwise op that is then gathered is written where
        the whole has its columns, if nothing else reads it and its rows are a multiple of 16 bytes. Other shards that would
        consist of rows get memory of their own.
      - An operand may be a part of a tensor, such as the queries among the columns of fused queries, keys and values.
        `one_shot`, `two_shot`, `one_shot_push`, `two_shot_push`, `push` and `copy_engine` read its rows where they lie
        (`reads_rows`); the other variants need a copy. Rows have at least 128 bytes, and they and their distances are
        multiples of 16. The whole tensor stays in memory until the collective has read it. If the plan is not predicted to
        be faster this way, it copies the operand. Rows have the same layout on all ranks.
      - All rows may be equally far apart, and those of each slice, too. `one_shot`, `one_shot_push` and `push` also read
        rows at several distances, or in another order: some rows of each of several matrices, or heads before tokens.
        Before an `all_reduce` or a `broadcast`, the copy of a whole tensor in another order stays, as the result would
        lie in that order.
      - PyTorch's collectives take contiguous tensors, so graphs copy a part before they send it (`clone`, `contiguous`).
        The plan has no such copy where a variant that can run reads rows, if only the collective reads the copy. Nothing
        else may run between the two, unless something reads the whole tensor later.
      - A result that only a later `cat` or `stack` reads, along a dimension after the first, is written into its rows of the
        joined tensor (`writes_rows`), by the variants that can read rows. The `cat` copies only the other pieces, or nothing.
        The joined tensor is in memory from its first piece on. The piece is copied if the plan would need more
        memory otherwise; if its rows or the distances between them are not multiples of 16 bytes; if peers would store rows
        of less than 128 bytes, or ranks run different graphs and peers would store any; and if the `cat` runs in one kernel
        with other ops, or its result is in the caller's memory.
      - A graph may have such a gather or scatter itself, as modules of HLO do. In a group with ranks in several NVLink
        domains, it is planned along the first dimension, with a copy.

      ## Packed tensors

      FSDP packs the shards of several parameters into one tensor (`cat`), gathers that, and copies each parameter out of
      the result; it packs the gradients in the same way and scatters their sum. A collective of several tensors needs no
      copy. `all_gather_into_tensor_coalesced` sends the shards from where they are, and each parameter is contiguous in its
      own result. `reduce_scatter_tensor_coalesced` takes the gradients from where their products put them.

      - Before a gather, the `cat` joins contiguous tensors along the first dimension, or one tensor already holds all shards.
        After the gather, each part is copied out whole (`clone`, `contiguous`, `reshape`, `cat`), or read as views of what one
        rank sent. A part that nothing reads is not gathered.
      - Before a scatter, the `cat` puts as many rows side by side as there are ranks. After the scatter, views of single parts
        are read.
      - The `cat` before a gather stays if something else reads its result, or if something may write between the `cat` and the
        gather. All copies stay if something else reads the result of the collective, or if there are more than 64 tensors.
        They stay if a variant is named that takes only one tensor, or if a variant is named for that collective alone. They
        stay if the plan is not predicted to be faster without them. Plain NCCL takes several tensors, too.

      `--layouts off` keeps all copies; `--layouts on` folds them wherever it is possible, faster or not.
      """;

  private static final String EPILOGUES =
      """

      ## Epilogues

      The ops behind an all_reduce or reduce_scatter of one tensor may run in its kernel: elementwise ops and ops by rows,
      such as the sum with a residual, RMSNorm or LayerNorm, and conversions, with several results. A rank takes each row
      through them as soon as it has reduced it. That saves a launch, and what is reduced is neither stored nor read again unless
      something else needs it.

      - The variants `one_shot` and `one_shot_push` of an all_reduce can do so, since each rank reduces every row, and
        `one_shot` of a reduce_scatter, since each rank reduces every row that it gets. The saving counts when variants
        are compared: of two GPUs, `one_shot` moves as many bytes as `two_shot`, and so is often chosen with an
        epilogue.
      - `two_shot` can do so if the number of rows is a multiple of the number of ranks. Each rank stores the rows that it
        reduces to all ranks, and they meet. Then each takes all rows through the ops, from its own result. That saves
        the launch only, so a result of more than 4 MiB has a kernel of its own for the ops. In 8 MLP blocks of
        128 tokens, it gained between nothing and 2 %.
      - `two_shot_push` can do so under the same condition. A rank takes the rows of its own slice through the ops while it
        sends them to its peers, and then theirs as they arrive. No rank meets another.
      - The ops are the step right after the collective, and one of them reads all of the result, row by row. A row is a
        multiple of 16 bytes, and at most 32 KiB. The result is contiguous, of f16, bf16, f32 or f64.
      - Each row is rounded to the element type between the collective and the ops, so the results are those of two
        kernels, bit for bit.
      - Without a workspace, peers may read a rank's operand until the epilogue has run, so nothing in it writes there. The end
        barrier comes after the epilogue, or before it in `two_shot`. With a workspace, it may write over the rows that
        it reads.
      - If a row does not lie for vectors, or an op has no such form on GPUs, the two run as kernels apart, with the
        same results.

      `symplan explain` shows the predicted saving, or the [reason](reasons.md) why the ops have a kernel of their own.
      `--no-epilogues` leaves them out.
      """;

  private static final String SEQUENCE_PARALLEL =
      """

      ## Sequence parallelism

      Behind an all_reduce, all ranks compute the same residual and the same norm. With many rows, each rank can do so for
      its share of the rows: the all_reduce becomes a reduce_scatter, and an all_gather collects what other ops read. The
      sum with the residual stays a share from one all_reduce to the next, which saves memory, too.

      - All ranks run the same graph.
      - The planner must know that the other operands of those ops are the same on all ranks. Results of an all_reduce, an
        all_gather or a broadcast of the group are. Inputs may differ, so you have to vouch for them: `--replicated x,w`
        names those that are the same on every rank in every run. The plan records the names. `run` makes up such inputs
        once for all ranks, and refuses a case in which they differ; a program that fills them itself must give
        all ranks the same.
      - The ops are elementwise, or go by rows: reductions along later dimensions, softmax, RMSNorm, LayerNorm. The tensor
        has at least two dimensions, and the first dimension with more than one index divides by the number of ranks.
      - No more bytes are gathered than the all_reduce reduces. If two tensors would have to be gathered, as in the forward
        graph of a training step, which saves both, the all_reduce stays.
      - `--sequence-parallel auto` (the default) considers all_reduces of at least 1 MiB. It takes those whose predicted
        time, with the ops behind them, falls by 5 % or more, if the plan as a whole is faster. `on` takes all that it can,
        `off` none. `symplan dump` shows both predicted times, and `symplan explain NAME` why an all_reduce stays.
      - Alternating runs on two H100s: four Llama layers of 2,048 tokens took 3,438 and 3,478 µs in this form, and 3,475 and
        3,440 µs with all_reduces that have the ops in their kernels. Eight MLP blocks took 4,956, 4,954 and 4,930 µs in this
        form, and 4,941, 4,976 and 4,919 µs with such all_reduces. Two ranks gain memory (81 instead of 89 MiB),
        but no time. On more GPUs, it has not been measured.
      """;

  private static final String HIERARCHICAL =
      """

      ## Collectives between hosts

      A group with ranks in several NVLink domains ([targets.md](targets.md#hosts-and-domains)) runs on NCCL, or in phases:
      some within each domain, which can use every variant, and one across domains on NCCL. In the phase across domains, a
      rank meets those at the same position of the other domains, so each slice crosses the network once, on the rail of
      one GPU. The plan has two more groups for it, `NAME.within` and `NAME.across`.

      | collective | phases | numerics |
      |---|---|---|
      | all_reduce | reduce_scatter within, all_reduce across, all_gather within | reduces within each domain first, rounds to the element type, then reduces the results across domains and rounds again; all ranks get the same bits |
      | reduce_scatter | within, across | as all_reduce |
      | all_gather | across, within | bit-exact copy |
      | all_to_all | within, across | bit-exact copy |
      | broadcast | across, within | bit-exact copy |

      - Each phase adds as its own variant does. `avg` is the average of the averages: as each domain has the same number
        of ranks, that is the average of all, apart from rounding.
      - Slices change their order between the phases. The phases within domains write them where they belong
        ([above](#slices-along-other-dimensions)); with `--layouts off`, a copy does.
      - Compute runs beside the phase across domains. The next phase starts right before its result is needed, or
        before the next collective. The pieces of a split product have phases of their own.
      - Phases are used if they are predicted to be at least 3 % faster, and if the plan as a whole is faster.
        `--hierarchical on` uses them wherever it is possible, `--hierarchical off` nowhere. `symplan explain` shows the
        reason.
      - NCCL's windows also work between hosts, if its network adapters can be driven by GPUs (InfiniBand or RoCE): from NCCL
        2.30.3 on in all_gather with multicast and in reduce_scatter (`nccl_symm`), from 2.30.7 on in all_gather and
        all_to_all (`nccl_ce`). Plans use them only if the target's `network` has `windows`, which no built-in target has:
        this follows NCCL's release notes and sources, and has not been run.
      - All parts of a group need the same number of ranks in each domain, and of domains. For all but an all_reduce,
        the ranks of a domain follow each other in the group. Tensors are contiguous, and divide into equal slices if ranks
        have slices. Otherwise, and for permutations, NCCL runs between all ranks.
      - A group with ranks in stages of a pipeline whose graphs have different collectives runs on plain NCCL, on one host,
        too: each stage is planned by itself, with its own tensors in symmetric memory.
      - In a broadcast, the whole tensor crosses the network on the rail of the root. The ranks at other positions send theirs
        at the same time, each on its own rail; nobody reads those.
      - A phase can be named, as other collectives can: of an all_reduce `r`, the phases are `r_within`, `r_across` and
        `r_whole` (`--variant r_within=nccl_symm`).
      """;

  private CollectivesTable() {}

  /** {@return the tables as text, of the kinds of ops whose names contain the pattern} */
  public static String text(String pattern) {
    var out = new StringBuilder();
    for (var kind : Kind.values()) {
      var ops = ops(kind).stream().filter(op -> op.name().toString().contains(pattern)).toList();
      if (!ops.isEmpty()) {
        out.append(out.isEmpty() ? "" : "\n");
        ops.forEach(
            op -> {
              out.append(op.schema());
              algorithm(op).ifPresent(name -> out.append("  as ").append(name));
              out.append('\n');
            });
        if (kind == Kind.CUSTOM) {
          out.append("    taken apart into collectives of other kinds, products and copies\n");
          continue;
        }
        out.append("    NCCL: ").append(ncclCall(kind).replace("`", "")).append('\n');
        var table = new Table(COLUMNS.toArray(String[]::new));
        rows(kind).forEach(row -> table.row(row.toArray(String[]::new)));
        table.render().lines().forEach(line -> out.append("    ").append(line).append('\n'));
      }
    }
    return out.toString();
  }

  /** {@return {@code docs/collectives.md}} */
  public static String markdown() {
    var out = new StringBuilder();
    out.append(
        """
        # Collectives and their variants

        This page lists the ops that are collectives, the variants that they can run as, and what each variant needs. It is
        generated from the op registry and the planner's rules; `symplan ops --collectives` prints the tables. If several
        variants are possible, predicted time decides ([targets.md](targets.md)). `symplan dump --view collectives`
        shows why the other variants were not chosen, by [code](reasons.md).

        Ops of `symm_mem` and of serving engines become functional collectives. If an op's name stands for an algorithm,
        the collective runs as this variant, or compiling fails with the reason. A functional collective can also name a
        variant: `config="two_shot"`.

        - **symmetric**: the tensors that must be in symmetric memory, at the same offset on every rank.
        - **in place**: whether the result may reuse the operand's memory.
        - **barriers**: whether the ranks of the group synchronize before and after. Planned barriers are known to the
          planner, which can leave one out if another barrier replaces it.
        """);
    for (var kind : Kind.values()) {
      out.append("\n## ").append(Codes.of(kind)).append("\n\n");
      out.append(
          kind == Kind.CUSTOM
              ? "Ops that a library or a graph declares with `symm_mem` or `group` clauses"
                  + " ([language.md](language.md)). NCCL: none.\n\n"
              : names(kind, op -> algorithm(op).isEmpty()) + ". NCCL: " + ncclCall(kind) + ".\n\n");
      foreign(kind, out);
      line(out, COLUMNS);
      line(out, COLUMNS.stream().map(column -> "---").toList());
      rows(kind).forEach(row -> line(out, row));
    }
    out.append(TAKEN_APART)
        .append(PERMUTATIONS)
        .append(SLICES)
        .append(EPILOGUES)
        .append(SEQUENCE_PARALLEL)
        .append(HIERARCHICAL)
        .append("\n## What the variants do\n\n");
    for (var variant : Variant.values()) {
      out.append("- `").append(variant.text()).append("`: ").append(variant.summary());
      out.append('\n');
    }
    return out.toString();
  }

  /** The ops of other libraries by the variant that they stand for. */
  private static void foreign(Kind kind, StringBuilder out) {
    var algorithms = ops(kind).stream().flatMap(op -> algorithm(op).stream()).distinct().toList();
    for (var algorithm : algorithms) {
      out.append("As ")
          .append(algorithm)
          .append(", unless `--free-variants` is given: ")
          .append(names(kind, op -> algorithm(op).equals(Optional.of(algorithm))))
          .append(".\n\n");
    }
  }

  private static Optional<String> algorithm(OpDef op) {
    return op.collective().flatMap(CollectiveSpec::foreign).flatMap(Foreign::algorithm);
  }

  private static String names(Kind kind, Predicate<OpDef> which) {
    return ops(kind).stream()
        .filter(which)
        .map(op -> "`" + op.name() + "`")
        .collect(Collectors.joining(", "));
  }

  private static String ncclCall(Kind kind) {
    return switch (kind) {
      case ALL_REDUCE -> "`ncclAllReduce`";
      case ALL_GATHER -> "`ncclAllGather`";
      case REDUCE_SCATTER -> "`ncclReduceScatter`";
      case ALL_TO_ALL -> "`ncclAlltoAll`, or `ncclSend` and `ncclRecv`";
      case BROADCAST -> "`ncclBroadcast`";
      case COLLECTIVE_PERMUTE -> "`ncclSend` and `ncclRecv`";
      case CUSTOM -> "none";
    };
  }

  private static void line(StringBuilder out, List<String> cells) {
    out.append(cells.stream().collect(Collectors.joining(" | ", "| ", " |\n")));
  }

  private static List<OpDef> ops(Kind kind) {
    var registry = BuiltinOps.registry();
    return registry.names().stream()
        .map(name -> registry.get(name.toString()))
        .filter(def -> !def.has(OpTrait.WAIT))
        .filter(def -> def.collective().filter(spec -> spec.kind() == kind).isPresent())
        .toList();
  }

  private static List<List<String>> rows(Kind kind) {
    return VariantSpec.ofKind(kind).stream().map(CollectivesTable::row).toList();
  }

  private static List<String> row(VariantSpec spec) {
    return List.of(
        spec.variant().text(),
        symmetric(spec),
        spec.reductions().isEmpty() ? "-" : Joiner.on(", ").join(spec.reductions()),
        types(spec.dtypes()),
        spec.allowsInPlace() ? "yes" : "no",
        switch (spec.variant().barriers()) {
          case NONE -> "none";
          case PLANNED -> "planned";
          case OWN -> "its own";
        },
        spec.needs().isEmpty() ? "-" : String.join("; ", spec.needs()));
  }

  private static String symmetric(VariantSpec spec) {
    if (spec.variant() == Variant.CUSTOM) {
      return "what it registers";
    }
    boolean operand = spec.needsSymmetricOperand();
    boolean result = spec.needsSymmetricResult();
    return operand && result
        ? "operand and result"
        : operand ? "operand" : result ? "result" : "nothing";
  }

  private static String types(Collection<DType> dtypes) {
    return dtypes.size() == DType.values().length
        ? "all"
        : dtypes.stream().map(DType::shortName).collect(Collectors.joining(" "));
  }
}
