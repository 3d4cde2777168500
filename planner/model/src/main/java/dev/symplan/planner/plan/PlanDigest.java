package dev.symplan.planner.plan;

import com.google.common.hash.Hasher;
import com.google.common.hash.Hashing;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Variant;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/** The fingerprint of what the ranks of a plan must agree on. */
public final class PlanDigest {
  private PlanDigest() {}

  /** {@return the fingerprint of what a plan says, whatever fingerprint it claims} */
  public static String of(Plan plan) {
    return of(
        plan.topology().unlike(plan.target()),
        plan.symmetric().bytes(),
        plan.groups(),
        plan.rankPlans(),
        plan.planOfRank());
  }

  /**
   * {@return SHA-256, in lower-case hexadecimal}
   *
   * @param hosts the result of {@link Topology#unlike}
   */
  public static String of(
      Optional<String> hosts,
      long symmetricBytes,
      List<ProcessGroup> groups,
      List<RankPlan> rankPlans,
      ImmutableIntArray planOfRank) {
    var hasher = Hashing.sha256().newHasher();
    line(hasher, "symplan plan 1");
    line(hasher, "arena " + symmetricBytes);
    hosts.ifPresent(text -> line(hasher, "hosts " + text));
    for (var group : groups) {
      line(hasher, "group " + group.name() + " " + group.members());
    }
    var texts = rankPlans.stream().map(PlanDigest::text).toList();
    for (int rank = 0; rank < planOfRank.length(); rank++) {
      line(hasher, "rank " + rank);
      hasher.putBytes(texts.get(planOfRank.get(rank)));
    }
    return hasher.hash().toString();
  }

  private static byte[] text(RankPlan plan) {
    var out = new StringBuilder();
    for (var buffer : plan.buffers()) {
      if (buffer.symmetric()) {
        out.append("buffer " + buffer.offset() + " " + buffer.bytes()).append('\n');
      }
    }
    int border = 0;
    var borders = plan.borders();
    for (var collective : plan.collectives()) {
      for (; border < borders.size() && borders.get(border) < collective.op(); border++) {
        out.append(border(plan, borders.get(border)));
      }
      out.append(text(plan, collective)).append('\n');
    }
    for (; border < borders.size(); border++) {
      out.append(border(plan, borders.get(border)));
    }
    return out.toString().getBytes(StandardCharsets.UTF_8);
  }

  /** Ranks begin a graph of the program together. */
  private static String border(RankPlan plan, int op) {
    return "graph " + plan.graph().ops().get(op).call().string("graph") + "\n";
  }

  private static String text(RankPlan plan, CollectivePlan collective) {
    var out = new StringBuilder(collective.kind().name());
    out.append(' ')
        .append(collective.variant().text())
        .append(" group ")
        .append(collective.group());
    out.append(" op ")
        .append(ReduceOp.text(collective.reduceOp()))
        .append(" root ")
        .append(collective.root());
    if (collective.kind() == Kind.COLLECTIVE_PERMUTE) {
      out.append(" pairs ")
          .append(plan.graph().ops().get(collective.op()).collective().orElseThrow().permutation());
    }
    out.append(rows(plan, collective));
    out.append(type(plan, collective));
    out.append(text(" start", collective.start())).append(text(" end", collective.end()));
    // A custom op registers its memory itself.
    boolean own = collective.variant() == Variant.CUSTOM;
    for (int id : collective.operands()) {
      append(out, plan, id, !own && collective.spec().needsSymmetricOperand());
    }
    out.append(own ? "" : rowsApart(plan, collective));
    out.append(" ->");
    for (int id : collective.results()) {
      boolean symmetric = !own && collective.spec().needsSymmetricResult();
      append(out, plan, id, symmetric);
      out.append(symmetric ? inRows(plan.placements().get(id)) : "");
    }
    if (collective.hasEpilogue()) {
      out.append(" epilogue");
    }
    if (collective.workspace() != CollectivePlan.NO_WORKSPACE) {
      out.append(" workspace ").append(plan.buffers().get(collective.workspace()).offset());
    }
    return out.toString();
  }

  /** Empty if each slice that a rank sends or gets is one run of bytes. */
  private static String rows(RankPlan plan, CollectivePlan collective) {
    var op = plan.graph().ops().get(collective.op());
    var dims = op.collective().map(CollectiveCall::sliceDims).orElse(SliceDims.FIRST);
    if (dims.equals(SliceDims.FIRST)) {
      return "";
    }
    var operand = op.collective().orElseThrow().operands().getFirst().tensor();
    return " rows %s %s"
        .formatted(
            SliceDims.rows(operand, dims.operand()),
            SliceDims.rows(op.result().tensor(), dims.result()));
  }

  /** Empty if every operand is one run of memory. */
  private static String rowsApart(RankPlan plan, CollectivePlan collective) {
    return plan.graph().ops().get(collective.op()).collective().orElseThrow().operands().stream()
        .flatMap(operand -> operand.tensor().rowsApart().stream())
        .map(rows -> " " + rows.text(1))
        .collect(Collectors.joining());
  }

  /** Empty if a result does not lie between others. */
  private static String inRows(Placement placement) {
    return placement.isInRows()
        ? " in rows of %s, %s apart".formatted(placement.stride(), placement.pitch())
        : "";
  }

  /** Empty if elements keep their type. */
  private static String type(RankPlan plan, CollectivePlan collective) {
    return plan.graph()
        .ops()
        .get(collective.op())
        .collective()
        .flatMap(CollectiveCall::dtype)
        .map(dtype -> " as " + dtype.shortName())
        .orElse("");
  }

  private static String text(String edge, Barrier barrier) {
    return switch (barrier) {
      case Barrier.None _ -> "";
      case Barrier.Own _ -> edge;
      case Barrier.StandIn _ -> edge + " by " + barrier.text();
    };
  }

  private static void append(StringBuilder out, RankPlan plan, int id, boolean symmetric) {
    var placement = plan.placements().get(id);
    var buffer = plan.buffers().get(placement.buffer());
    out.append(' ').append(symmetric ? "symm+" + (buffer.offset() + placement.offset()) : "any");
  }

  private static void line(Hasher hasher, String text) {
    hasher.putString(text, StandardCharsets.UTF_8).putByte((byte) '\n');
  }
}
