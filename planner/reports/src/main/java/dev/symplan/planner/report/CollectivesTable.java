package dev.symplan.planner.report;

import com.google.common.base.Joiner;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.DType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.pass.select.Requirements;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Which functional collective can run as which variants, and what each needs: from the registry of
 * ops and the planner's own rules.
 */
public final class CollectivesTable {
  private static final ImmutableList<String> COLUMNS =
      ImmutableList.of(
          "variant", "symmetric", "reductions", "types", "in place", "barriers", "needs");

  private CollectivesTable() {}

  /** {@return the tables as text, of the kinds of ops whose names contain the pattern} */
  public static String text(String pattern) {
    var out = new StringBuilder();
    for (var kind : Kind.values()) {
      var ops = ops(kind).stream().filter(op -> op.name().toString().contains(pattern)).toList();
      if (!ops.isEmpty()) {
        out.append(out.isEmpty() ? "" : "\n");
        ops.forEach(op -> out.append(op.schema()).append('\n'));
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

        The variants that each of PyTorch's functional collectives can run as, and their requirements. This page is
        generated from the op registry and the planner's rules; `symplan ops --collectives` prints the same. If several
        variants are possible, predicted time decides ([targets.md](targets.md)). `symplan dump --view collectives`
        shows why the others were not chosen, by [code](reasons.md).

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
                  + " ([language.md](language.md)).\n\n"
              : ops(kind).stream()
                  .map(op -> "`" + op.name() + "`")
                  .collect(Collectors.joining(", ", "", "\n\n")));
      line(out, COLUMNS);
      line(out, COLUMNS.stream().map(column -> "---").toList());
      rows(kind).forEach(row -> line(out, row));
    }
    out.append("\n## What the variants do\n\n");
    for (var variant : Variant.values()) {
      out.append("- `").append(variant.text()).append("`: ").append(variant.summary());
      out.append('\n');
    }
    return out.toString();
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
    // A custom op has one variant, whatever it is called.
    var def =
        ops(kind).stream()
            .findFirst()
            .orElseGet(() -> BuiltinOps.registry().get("_c10d_functional::all_reduce"));
    return Arrays.stream(Variant.values())
        .filter(variant -> variant.implementsKind(kind))
        .map(variant -> row(kind, variant, Requirements.of(def, kind, variant)))
        .toList();
  }

  private static List<String> row(Kind kind, Variant variant, Requirements needs) {
    return List.of(
        variant.text(),
        symmetric(kind, variant),
        needs.reductions().isEmpty() ? "-" : Joiner.on(", ").join(needs.reductions()),
        types(needs.dtypes()),
        variant.allowsInPlace(kind) ? "yes" : "no",
        variant.hasPlannedBarriers() ? "planned" : barriers(kind, variant),
        needs(variant, needs));
  }

  private static String symmetric(Kind kind, Variant variant) {
    if (variant == Variant.CUSTOM) {
      return "what it registers";
    }
    boolean operand = variant.needsSymmetricOperand(kind);
    boolean result = variant.needsSymmetricResult(kind);
    return operand && result
        ? "operand and result"
        : operand ? "operand" : result ? "result" : "nothing";
  }

  private static String barriers(Kind kind, Variant variant) {
    return variant == Variant.LOCAL
        ? "none"
        : variant.needsWorkspace() && variant.implementsKind(kind) ? "none" : "its own";
  }

  private static String types(List<DType> dtypes) {
    return dtypes.size() == DType.values().length
        ? "all"
        : dtypes.stream().map(DType::shortName).collect(Collectors.joining(" "));
  }

  private static String needs(Variant variant, Requirements needs) {
    var words = new ArrayList<String>();
    if (variant == Variant.LOCAL) {
      words.add("a group of one rank");
    }
    if (needs.peers()) {
      words.add("ranks on one host");
    }
    if (needs.multicast()) {
      words.add("multicast, enabled (--multicast=on)");
    }
    if (needs.copyEngines()) {
      words.add("copy engines that can access peers");
    }
    if (variant.needsWorkspace()) {
      words.add("a workspace");
    }
    if (!needs.several()) {
      words.add("one tensor");
    }
    needs.mostBytes().ifPresent(bytes -> words.add("at most " + Units.bytes(bytes) + " (4 ranks)"));
    needs.nccl().ifPresent(version -> words.add("NCCL " + version(version)));
    needs
        .newer()
        .forEach(
            (version, what) ->
                words.add("NCCL %s for %s".formatted(version(version), String.join(", ", what))));
    return words.isEmpty() ? "-" : String.join("; ", words);
  }

  private static String version(int nccl) {
    int patch = nccl % 100;
    var minor = "%s.%s".formatted(nccl / 10_000, nccl / 100 % 100);
    return patch == 0 ? minor : minor + "." + patch;
  }
}
