package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.hlo.BufferAssignment;
import dev.symplan.ir.hlo.BufferAssignment.Allocation;
import dev.symplan.ir.hlo.BufferAssignment.Held;
import dev.symplan.ir.hlo.BufferAssignment.Kind;
import dev.symplan.ir.hlo.CollectiveCopies;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.function.IntPredicate;

/**
 * XLA's memory plan of a module beside the plans made here: in the order in which the module has
 * its instructions, and in the order that needs less.
 *
 * <p>What the caller owns is left out: arguments, unless the caller gave them up.
 */
public final class XlaComparison {
  private static final int SHOWN = 8;

  /**
   * Allocations that a plan has in its arenas, too. Donated arguments lie there, as their memory is
   * reused.
   */
  private static final List<Kind> PLANNED =
      List.of(Kind.OUTPUT, Kind.TEMPORARY, Kind.CONSTANT, Kind.DONATED);

  /** XLA's memory space of the host. */
  private static final int HOST = 5;

  private final BufferAssignment theirs;
  private final CollectiveCopies copies;
  private final Plan sameOrder;
  private final Plan ownOrder;

  private XlaComparison(
      BufferAssignment theirs, CollectiveCopies copies, Plan sameOrder, Plan ownOrder) {
    this.theirs = theirs;
    this.copies = copies;
    this.sameOrder = sameOrder;
    this.ownOrder = ownOrder;
  }

  /**
   * {@return the comparison, in chapters}
   *
   * @param copies the copies that XLA makes for collectives
   * @param sameOrder the plan that keeps the order of the module
   * @param ownOrder the plan that may change it
   */
  public static ImmutableList<Row> of(
      BufferAssignment theirs, CollectiveCopies copies, Plan sameOrder, Plan ownOrder) {
    var comparison = new XlaComparison(theirs, copies, sameOrder, ownOrder);
    return ImmutableList.of(
        Row.titled("memory").rows(comparison.sizes()).build(),
        Row.titled("differences").rows(comparison.reasons()).build(),
        Row.titled("XLA's largest allocations").rows(comparison.allocations()).build(),
        Row.titled("buffers at the plan's peak").rows(comparison.peak()).build());
  }

  private static boolean isForCollectives(int space) {
    return space != 0 && space != HOST;
  }

  private long theirs(IntPredicate spaces) {
    return theirs.of(PLANNED).stream()
        .filter(allocation -> spaces.test(allocation.space()))
        .mapToLong(Allocation::bytes)
        .sum();
  }

  private static boolean isOnDevice(int space) {
    return space != HOST;
  }

  /** Inputs that the caller has there are the caller's. */
  private static long onHost(Plan plan) {
    return plan.rankPlans().stream().mapToLong(XlaComparison::onHost).max().orElse(0);
  }

  private static long onHost(RankPlan rank) {
    return rank.hostBytes()
        - rank.graph().inputs().stream()
            .filter(input -> input.isTensor() && input.tensor().space() == MemorySpace.HOST)
            .mapToLong(input -> rank.buffer(input).bytes())
            .sum();
  }

  private static long local(Plan plan) {
    return plan.rankPlans().stream().mapToLong(rank -> rank.local().bytes()).max().orElse(0);
  }

  private ImmutableList<Row> sizes() {
    var rows = ImmutableList.<Row>builder();
    rows.add(
        size(
            "for collectives",
            theirs(XlaComparison::isForCollectives),
            sameOrder.symmetric().bytes(),
            ownOrder.symmetric().bytes()),
        size("others", theirs(space -> space == 0), local(sameOrder), local(ownOrder)));
    rows.add(
        size(
            "together",
            theirs(XlaComparison::isOnDevice),
            sameOrder.total().bytes(),
            ownOrder.total().bytes()),
        size("lower bound", -1, sameOrder.total().bound(), ownOrder.total().bound()));
    long onHost = theirs(space -> space == HOST);
    if (onHost + onHost(sameOrder) + onHost(ownOrder) > 0) {
      rows.add(size("on the host", onHost, onHost(sameOrder), onHost(ownOrder)));
    }
    return rows.build();
  }

  private static Row size(String title, long xla, long same, long own) {
    return Row.titled(title)
        .details(
            "XLA %s · plan in XLA's order %s · plan in its own order %s"
                .formatted(xla < 0 ? "unknown" : bytes(xla), bytes(same), bytes(own)))
        .build();
  }

  private static String bytes(long count) {
    return "%s (%s bytes)".formatted(Units.bytes(count), count);
  }

  private ImmutableList<Row> reasons() {
    var rows = ImmutableList.<Row>builder();
    long xla = theirs(XlaComparison::isOnDevice);
    long bound = sameOrder.total().bound();
    rows.add(
        Row.of(
            "placement",
            xla > bound
                ? "XLA needs %s beyond what is live at once in its order: %s"
                    .formatted(bytes(xla - bound), apart())
                : "XLA needs no more than what is live at once in its order"));
    long saved = sameOrder.total().bytes() - ownOrder.total().bytes();
    if (saved != 0) {
      rows.add(
          Row.of(
              "order",
              "another order of the instructions and collectives %s %s"
                  .formatted(saved > 0 ? "saves" : "costs", bytes(Math.abs(saved)))));
    }
    var tuples =
        theirs.of(PLANNED).stream()
            .flatMap(allocation -> allocation.values().stream())
            .filter(Held::isTuple)
            .toList();
    if (!tuples.isEmpty()) {
      rows.add(
          Row.of(
              "tuples",
              "XLA keeps %s of addresses, %s; plans have none"
                  .formatted(
                      Units.count(tuples.size(), "table"),
                      bytes(tuples.stream().mapToLong(Held::bytes).sum()))));
    }
    rows.add(collectives());
    return rows.build();
  }

  /** Why XLA's allocations do not share memory: each output has one, and temporaries another. */
  private String apart() {
    long outputs = theirs.of(List.of(Kind.OUTPUT)).size();
    return "%s and the temporaries have allocations of their own, which are packed apart"
        .formatted(Units.count(outputs, "output"));
  }

  private Row collectives() {
    long inSpace =
        theirs.allocations().stream()
            .filter(allocation -> isForCollectives(allocation.space()))
            .mapToLong(allocation -> allocation.values().size())
            .sum();
    long placed = 0;
    long staged = 0;
    long copied = 0;
    var rank = ownOrder.rankPlans().getFirst();
    for (var collective : rank.collectives()) {
      for (var arg : collective.args()) {
        placed += arg.realization() == Realization.ZERO_COPY ? 1 : 0;
        staged += arg.realization() == Realization.STAGED ? 1 : 0;
        copied += arg.realization() == Realization.STAGED ? arg.bytes() : 0;
      }
    }
    long less = copies.bytes() - copied;
    return Row.of(
        "collectives",
        "XLA has %s in memory for collectives, and copies %s there or from there, %s; the plan has %s of its %s there, and copies %s, %s%s"
            .formatted(
                Units.count(inSpace, "value"),
                copies.count(),
                bytes(copies.bytes()),
                Units.count(placed, "argument"),
                Units.count(rank.collectives().size(), "collective"),
                staged,
                bytes(copied),
                less > 0 ? ": %s less".formatted(bytes(less)) : ""));
  }

  private ImmutableList<Row> allocations() {
    return theirs.of(PLANNED).stream()
        .sorted(Comparator.comparingLong(Allocation::bytes).reversed())
        .limit(SHOWN)
        .map(
            allocation ->
                Row.of(
                    "allocation " + allocation.index(),
                    "%s · %s · space %s · %s, the largest %s"
                        .formatted(
                            bytes(allocation.bytes()),
                            allocation.kind().name().toLowerCase(Locale.ROOT),
                            allocation.space(),
                            Units.count(allocation.values().size(), "value"),
                            largest(allocation))))
        .collect(ImmutableList.toImmutableList());
  }

  private static String largest(Allocation allocation) {
    return allocation.values().stream()
        .max(Comparator.comparingLong(Held::bytes))
        .map(held -> "%s of %s".formatted(held.name(), Units.bytes(held.bytes())))
        .orElse("unknown");
  }

  private ImmutableList<Row> peak() {
    var rank = ownOrder.rankPlans().getFirst();
    var peak = Arenas.Peak.of(rank, buffer -> buffer.arena().isPlanned());
    return live(rank, peak.step()).stream()
        .limit(SHOWN)
        .map(
            buffer ->
                Row.of(
                    buffer.name(),
                    "%s · %s · offset %s"
                        .formatted(bytes(buffer.bytes()), buffer.arena().text(), buffer.offset())))
        .collect(ImmutableList.toImmutableList());
  }

  private static List<Buffer> live(RankPlan rank, int step) {
    return rank.buffers().stream()
        .filter(buffer -> buffer.arena().isPlanned())
        .filter(buffer -> buffer.first() <= step && buffer.last() >= step)
        .sorted(Comparator.comparingLong(Buffer::bytes).reversed())
        .toList();
  }
}
