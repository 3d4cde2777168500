package dev.symplan.planner.verify;

import dev.symplan.ir.Value;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * {@link Rule#OVERWRITTEN} and {@link Rule#RACE}: carries out the steps of a rank on maps of its
 * memory. A read must find each byte as the graph's order left it. From the start of a side-stream
 * collective to its join, nothing else may write what it reads or touch what it writes.
 *
 * <p>A tensor with gaps counts with its gaps: nothing else may lie there while it lives. Only of a
 * piece that a later op joins, each row counts by itself.
 */
final class MemoryRun {
  private final AliasModel facts;
  private final Findings findings;
  private final ByteMap[] spaces;
  private final int[] stepOfOp;
  private final int[] joinOf;
  private final int[] lastUse;

  /** The side-stream collectives that have not been joined. */
  private final Set<Integer> unfinished = new LinkedHashSet<>();

  /** By family of storages, the ops that write into one after its definition, in graph order. */
  private final Map<Integer, List<Integer>> mutators = new HashMap<>();

  private final Map<Integer, Integer> mutations = new HashMap<>();

  private MemoryRun(AliasModel facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
    this.spaces = new ByteMap[facts.spaceCount()];
    Arrays.setAll(spaces, i -> new ByteMap());
    this.stepOfOp = new int[facts.plan.graph().ops().size()];
    Arrays.fill(stepOfOp, -1);
    this.joinOf = new int[facts.plan.collectives().size()];
    this.lastUse = LastUses.of(facts);
  }

  static void check(AliasModel facts, Findings findings) {
    new MemoryRun(facts, findings).run();
  }

  private void run() {
    var steps = facts.plan.steps();
    for (int op = 0; op < stepOfOp.length; op++) {
      for (int value : facts.mutated(op)) {
        var list = mutators.computeIfAbsent(familyOf(value), s -> new ArrayList<>());
        if (list.isEmpty() || list.getLast() != op) {
          list.add(op);
        }
      }
    }
    for (int s = 0; s < steps.size(); s++) {
      if (steps.get(s) instanceof Step.Join(int k)) {
        joinOf[k] = s;
      }
    }
    facts.plan.graph().inputs().forEach(this::bring);
    for (int s = 0; s < steps.size(); s++) {
      switch (steps.get(s)) {
        case Step.Compute(int op) -> carryOut(s, op, -1);
        case Step.Fused(var ops) -> {
          int step = s;
          ops.forEach(op -> carryOut(step, op, -1));
        }
        case Step.Start(int k) -> start(s, k);
        case Step.Join(int k) -> join(k);
      }
    }
    finish();
  }

  /** An input's data is there from the start. */
  private void bring(Value input) {
    if (!input.isTensor() || input.tensor().storageBytes() == 0) {
      return;
    }
    var space = spaces[facts.space(input.id())];
    long begin = facts.begin(input.id());
    long end = facts.end(input.id());
    space.visit(
        begin,
        end,
        segment ->
            wrong(
                Rule.OVERWRITTEN,
                -1,
                "the inputs %s and %s both lie at %s"
                    .formatted(
                        facts.storage(segment.storage()).name(),
                        input.name(),
                        facts.words.address(input.id()))));
    space.write(begin, end, facts.storageOf(input.id()), -1);
  }

  private int familyOf(int value) {
    return facts.mayAlias().familyOf(facts.storageOf(value));
  }

  private void carryOut(int step, int op, int collective) {
    stepOfOp[op] = step;
    for (int value : facts.reads(op)) {
      read(value, step, collective, "reads");
      checkVersion(value, step, op);
      checkFamily(value, step, collective, false);
    }
    var changed = new HashSet<Integer>();
    for (int value : facts.mutated(op)) {
      write(value, step, collective);
      checkFamily(value, step, collective, true);
      if (changed.add(familyOf(value))) {
        mutations.merge(familyOf(value), 1, Integer::sum);
      }
    }
    for (int value : facts.fresh(op)) {
      write(value, step, collective);
    }
  }

  /** A tensor that may be elsewhere must not meet an unfinished collective there either. */
  private void checkFamily(int value, int step, int self, boolean write) {
    if (!facts.mayAlias().isShared(facts.storageOf(value))) {
      return;
    }
    for (int k : unfinished) {
      int op = facts.plan.collectives().get(k).op();
      boolean written = isOfFamily(familyOf(value), facts.fresh(op), facts.mutated(op));
      boolean touched = written || isOfFamily(familyOf(value), facts.reads(op));
      if (k != self && (write ? touched : written)) {
        race(value, step, k, write ? "writes" : "reads", written ? "writes" : "reads");
      }
    }
  }

  private boolean isOfFamily(int family, int[]... values) {
    return Arrays.stream(values)
        .flatMapToInt(Arrays::stream)
        .anyMatch(value -> familyOf(value) == family);
  }

  private void start(int step, int k) {
    var collective = facts.plan.collectives().get(k);
    carryOut(step, collective.op(), k);
    if (collective.isAsync()) {
      unfinished.add(k);
      for (int value : facts.reads(collective.op())) {
        lock(value, k, false);
      }
      for (int value : facts.mutated(collective.op())) {
        lock(value, k, true);
      }
      for (int value : facts.fresh(collective.op())) {
        lock(value, k, true);
      }
    }
  }

  private void lock(int value, int k, boolean write) {
    var space = spaces[facts.space(value)];
    facts.forEachRun(value, (begin, end) -> space.lock(begin, end, k, write));
  }

  private void join(int k) {
    unfinished.remove(k);
    int op = facts.plan.collectives().get(k).op();
    for (int value : facts.reads(op)) {
      unlock(value, k);
    }
    for (int value : facts.fresh(op)) {
      unlock(value, k);
    }
  }

  private void unlock(int value, int k) {
    var space = spaces[facts.space(value)];
    facts.forEachRun(value, (begin, end) -> space.unlock(begin, end, k));
  }

  /**
   * Outputs are what the graph made them, inputs what the caller and the graph made them, unless
   * the caller gave them away. What the setup made is there for the next run.
   */
  private void finish() {
    int end = facts.plan.steps().size();
    var kept = new LinkedHashSet<Integer>();
    facts.plan.graph().outputValues().forEach(v -> kept.add(v.id()));
    for (var input : facts.plan.graph().inputs()) {
      if (!AliasModel.isDonated(input)) {
        kept.add(input.id());
      }
    }
    SetupRules.kept(facts).stream()
        .map(storage -> facts.storage(storage).id())
        .filter(value -> facts.plan.placements().get(value).exists())
        .forEach(kept::add);
    for (int value : kept) {
      if (facts.value(value).isTensor()) {
        read(value, end, -1, "finds");
      }
    }
  }

  private void read(int value, int step, int self, String verb) {
    int before = findings.count();
    facts.forEachRun(
        value,
        (begin, end) -> {
          // What is wrong with one row is wrong with others.
          if (findings.count() == before) {
            read(value, begin, end, step, self, verb);
          }
        });
  }

  private void read(int value, long begin, long end, int step, int self, String verb) {
    int storage = facts.storageOf(value);
    long gap =
        spaces[facts.space(value)].visit(
            begin,
            end,
            segment -> {
              if (segment.storage() != storage) {
                overwritten(value, step, segment, verb);
              } else if (segment.owner() >= 0 && segment.owner() != self) {
                race(value, step, segment.owner(), verb, "writes");
              }
            });
    if (gap < end) {
      wrong(
          Rule.OVERWRITTEN,
          step,
          "%s %s %s at %s, where nothing was written"
              .formatted(
                  facts.words.stepText(step),
                  verb,
                  facts.value(value).name(),
                  facts.words.address(facts.space(value), gap)),
          definition(storage));
    }
  }

  private void overwritten(int value, int step, ByteMap.Segment segment, String verb) {
    var found = facts.storage(segment.storage()).name();
    var wanted = facts.value(value).name();
    wrong(
        Rule.OVERWRITTEN,
        step,
        "%s %s %s at %s, but %s wrote %s there"
            .formatted(
                facts.words.stepText(step),
                verb,
                wanted,
                facts.words.address(value),
                facts.words.stepText(segment.writer()),
                found),
        definition(facts.storageOf(value)),
        "%s writes %s at %s"
            .formatted(
                facts.words.rankEvent(segment.writer()),
                found,
                facts.words.extent(facts.storage(segment.storage()).id())),
        "%s %s %s at %s, and finds %s"
            .formatted(
                facts.words.rankEvent(step), verb, wanted, facts.words.extent(value), found));
  }

  private String definition(int storage) {
    var value = facts.storage(storage);
    int op = facts.definedBy(storage);
    return "%s writes %s at %s"
        .formatted(
            facts.words.rankEvent(op < 0 ? -1 : stepOfOp[op]),
            value.name(),
            facts.words.extent(value.id()));
  }

  private void write(int value, int step, int self) {
    facts.forEachRun(value, (begin, end) -> write(value, begin, end, step, self));
  }

  private void write(int value, long begin, long end, int step, int self) {
    var space = spaces[facts.space(value)];
    space.visit(
        begin,
        end,
        segment -> {
          if (segment.storage() != facts.storageOf(value)
              && facts.mayAlias().isShared(segment.storage())
              && mayBeUsed(segment.storage(), step)) {
            stillUsed(value, step, segment.storage());
          }
          if (segment.owner() >= 0 && segment.owner() != self) {
            race(value, step, segment.owner(), "writes", "writes");
          }
          for (int reader : segment.readers()) {
            if (reader != self) {
              race(value, step, reader, "writes", "reads");
            }
          }
        });
    space.write(begin, end, facts.storageOf(value), step);
  }

  /** Whether a step that writes over a storage, or a later one, reads it as another tensor. */
  private boolean mayBeUsed(int storage, int step) {
    return lastUse[storage] > step
        || (step >= 0
            && lastUse[storage] == step
            && IntStream.concat(opsOf(step), collectiveOf(step))
                .flatMap(op -> Arrays.stream(facts.reads(op)))
                .map(facts::storageOf)
                .anyMatch(
                    read ->
                        read != storage
                            && facts.mayAlias().familyOf(read)
                                == facts.mayAlias().familyOf(storage)));
  }

  /** The collective in whose kernel a step runs, beside which that reads its operands. */
  private IntStream collectiveOf(int step) {
    int behind = facts.plan.epilogueOf(step);
    return behind < 0 ? IntStream.empty() : IntStream.of(facts.plan.collectives().get(behind).op());
  }

  private IntStream opsOf(int step) {
    return switch (facts.plan.steps().get(step)) {
      case Step.Compute(int op) -> IntStream.of(op);
      case Step.Fused(var ops) -> ops.stream();
      case Step.Start(int k) -> IntStream.of(facts.plan.collectives().get(k).op());
      case Step.Join(int k) -> IntStream.of(facts.plan.collectives().get(k).op());
    };
  }

  private void stillUsed(int value, int step, int storage) {
    var lost = facts.storage(storage).name();
    wrong(
        Rule.OVERWRITTEN,
        step,
        "%s writes %s at %s over %s, which %s may still use through another tensor"
            .formatted(
                facts.words.stepText(step),
                facts.value(value).name(),
                facts.words.address(value),
                lost,
                facts.words.stepText(lastUse[storage])),
        definition(storage));
  }

  private void race(int value, int step, int k, String verb, String others) {
    int start = stepOfOp[facts.plan.collectives().get(k).op()];
    var name = facts.value(value).name();
    wrong(
        Rule.RACE,
        step,
        "%s %s %s at %s, which %s still %s until step %s"
            .formatted(
                facts.words.stepText(step),
                verb,
                name,
                facts.words.address(value),
                facts.words.stepText(start),
                others,
                joinOf[k]),
        "%s begins: until it finishes, it %s at %s"
            .formatted(facts.words.rankEvent(start), others, facts.words.extent(value)),
        "%s runs at the same time and %s %s there"
            .formatted(facts.words.rankEvent(step), verb, name),
        facts.words.rankEvent(joinOf[k]) + " is the first step that waits for it");
  }

  /** The graph's order decides what a reader of memory that several ops write must find. */
  private void checkVersion(int value, int step, int op) {
    int storage = facts.storageOf(value);
    var writers = mutators.get(familyOf(value));
    if (writers == null) {
      return;
    }
    int at = Collections.binarySearch(writers, op);
    int expected = at < 0 ? -at - 1 : at;
    int applied = mutations.getOrDefault(familyOf(value), 0);
    if (applied != expected) {
      int culprit = writers.get(Math.min(applied, expected));
      wrong(
          Rule.OVERWRITTEN,
          step,
          "%s reads %s, which %s must change %s, but changes %s"
              .formatted(
                  facts.words.stepText(step),
                  facts.value(value).name(),
                  facts.words.text(culprit),
                  applied > expected ? "later" : "before",
                  applied > expected ? "before" : "later"),
          definition(storage),
          facts.words.rankEvent(step) + " reads " + facts.value(value).name());
    }
  }

  private void wrong(Rule rule, int step, String message, String... trace) {
    int at = step == facts.plan.steps().size() ? -1 : step;
    findings.add(rule, facts.rank(), at, message, List.of(trace));
  }
}
