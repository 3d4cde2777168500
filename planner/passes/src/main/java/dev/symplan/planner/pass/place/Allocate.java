package dev.symplan.planner.pass.place;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.pack.Packer;
import dev.symplan.planner.pack.Packing;
import dev.symplan.planner.pack.PackingProblem;
import dev.symplan.planner.pack.RankPacking;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.select.Realized;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.Placement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * Gives every storage an arena and an offset.
 *
 * <p>Symmetric buffers are packed for all ranks at once, by their live ranges on a {@link
 * CommonAxis}; {@link RankPacking} says where local buffers go. Those in the host's memory are
 * packed by themselves.
 */
final class Allocate {

  /**
   * The memory of one rank class.
   *
   * @param placements of the graph's values, in their order
   */
  record Memory(
      ImmutableList<Placement> placements, ImmutableList<Buffer> buffers, ArenaSize local) {}

  /** The memory of all rank classes; workspaces are the last buffers of each. */
  record Result(ArenaSize symmetric, ImmutableList<Memory> ranks) {}

  /** One buffer of one rank before it has an offset. */
  private static final class Draft {
    String name;
    Span span;
    final ArenaKind arena;
    final int position;
    long bytes;
    int first = Integer.MAX_VALUE;
    int last = -1;
    long offset;
    boolean inSymmetricArena;
    boolean listed;
    boolean isWorkspace;

    Draft(Value value, ArenaKind arena, int position) {
      this(value.name(), value.span(), arena, position);
    }

    Draft(String name, Span span, ArenaKind arena, int position) {
      this.name = name;
      this.span = span;
      this.arena = arena;
      this.position = position;
    }
  }

  /** The buffers of one rank, and which one each storage is in. */
  private record Rank(
      Realized graph, Lifetimes lives, List<Draft> drafts, ImmutableIntArray draftOf) {}

  private Allocate() {}

  static Result run(
      List<Realized> graphs,
      List<Schedule> schedules,
      List<Lifetimes> lives,
      Workspaces workspaces) {
    var ranks = new ArrayList<Rank>();
    for (int g = 0; g < graphs.size(); g++) {
      ranks.add(draft(graphs.get(g), lives.get(g)));
      addWorkspaces(ranks.get(g), workspaces, schedules.get(g).steps().size());
    }
    var axes = CommonAxis.of(schedules.stream().map(Schedule::steps).toList());
    var symmetric = agreed(ranks.stream().map(Allocate::symmetricDrafts).toList());
    var local = ranks.stream().map(rank -> draftsIn(ArenaKind.LOCAL, rank)).toList();
    var packing = RankPacking.of(problems(symmetric, axes), problems(local, axes));
    var memories = ImmutableList.<Memory>builder();
    var host = ranks.stream().map(rank -> draftsIn(ArenaKind.HOST, rank)).toList();
    var hostProblems = problems(host, axes);
    for (int g = 0; g < ranks.size(); g++) {
      place(host.get(g), Packer.pack(hostProblems.get(g)));
      var own = symmetric.get(g);
      for (int i = 0; i < own.size(); i++) {
        own.get(i).offset = packing.symmetricOffsets().get(i);
      }
      place(local.get(g), packing.locals().get(g));
      memories.add(finish(ranks.get(g), size(packing.locals().get(g))));
    }
    return new Result(
        new ArenaSize(packing.symmetricBytes(), packing.symmetricBound()), memories.build());
  }

  private static Rank draft(Realized graph, Lifetimes lives) {
    var life = lives.liveness();
    var layout = lives.layout();
    var aliases = graph.aliases();
    var drafts = new ArrayList<Draft>();
    var draftOf = new int[aliases.count()];
    Arrays.fill(draftOf, -1);
    for (var storage : aliases.storages()) {
      if (!life.hasMemory(storage.id())) {
        continue;
      }
      int root = layout.root(storage.id());
      if (draftOf[root] < 0) {
        draftOf[root] = drafts.size();
        drafts.add(newDraft(graph, layout, root));
      }
      draftOf[storage.id()] = draftOf[root];
      var draft = drafts.get(draftOf[root]);
      draft.bytes = Math.max(draft.bytes, layout.offset(storage.id()) + storage.bytes());
      if (life.first(storage.id()) < draft.first) {
        draft.first = life.first(storage.id());
        draft.name = storage.value().name();
        draft.span = storage.value().span();
      }
      draft.last = Math.max(draft.last, life.last(storage.id()));
    }
    return new Rank(graph, lives, drafts, ImmutableIntArray.copyOf(draftOf));
  }

  /** In use all the time: peers may store there whenever they like. */
  private static void addWorkspaces(Rank rank, Workspaces workspaces, int end) {
    for (int w = 0; w < workspaces.count(); w++) {
      var draft = new Draft(Workspaces.name(w), Span.NONE, ArenaKind.SYMMETRIC, 0);
      draft.isWorkspace = true;
      draft.bytes = workspaces.bytes().get(w);
      draft.first = -1;
      draft.last = end;
      rank.drafts().add(draft);
    }
  }

  private static Draft newDraft(Realized graph, StorageLayout layout, int storage) {
    var value = graph.aliases().storage(storage).value();
    var arena = layout.isSymmetric(storage) ? ArenaKind.SYMMETRIC : graph.arena(storage);
    int position =
        switch (arena) {
          // Inputs have the first ids.
          case EXTERNAL_INPUT -> value.id();
          case EXTERNAL_OUTPUT -> graph.analyses().externalOutputs().outputOf(storage);
          case SYMMETRIC, LOCAL, HOST -> 0;
        };
    return new Draft(value, arena, position);
  }

  /** The buffers of each rank as live ranges on the axis that all ranks share. */
  private static List<PackingProblem> problems(List<List<Draft>> drafts, List<CommonAxis> axes) {
    var problems = new ArrayList<PackingProblem>();
    for (int g = 0; g < drafts.size(); g++) {
      var problem = PackingProblem.builder();
      for (var draft : drafts.get(g)) {
        int start = axes.get(g).of(draft.first);
        int end = axes.get(g).of(draft.last) + 1;
        problem.add(start, end, draft.bytes, Alignment.BYTES);
      }
      problems.add(problem.build());
    }
    return problems;
  }

  /**
   * All ranks have the same symmetric buffers; where one needs more than another, all reserve as
   * much as the one that needs most. Those that none needs are left out.
   */
  private static List<List<Draft>> agreed(List<List<Draft>> drafts) {
    var own = drafts.getFirst();
    drafts.forEach(other -> checkAgree(own, other));
    for (int i = 0; i < own.size(); i++) {
      int index = i;
      long bytes = drafts.stream().mapToLong(rank -> rank.get(index).bytes).max().orElse(0);
      drafts.forEach(rank -> rank.get(index).bytes = bytes);
    }
    return drafts.stream()
        .map(rank -> rank.stream().filter(draft -> draft.bytes > 0).toList())
        .toList();
  }

  /** Tensors of collectives and workspaces agree already; what the caller asked for may not. */
  private static void checkAgree(List<Draft> own, List<Draft> other) {
    if (own.size() != other.size()) {
      var longer = own.size() > other.size() ? own : other;
      var odd =
          longer.stream()
              .filter(draft -> !draft.isWorkspace)
              .reduce((_, last) -> last)
              .orElse(longer.getLast());
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.RANKS_DISAGREE,
              odd.span,
              "'%s' is placed in symmetric memory, but not on every rank".formatted(odd.name),
              "let the planner place inputs and outputs that differ between ranks"));
    }
  }

  /** All ranks have the same symmetric buffers, in the order of the collectives that use them. */
  private static List<Draft> symmetricDrafts(Rank rank) {
    var ordered = new ArrayList<Draft>();
    for (int k = 0; k < rank.graph().collectives().size(); k++) {
      var collective = rank.graph().collectives().get(k);
      var values =
          Stream.concat(collective.operands().stream(), collective.results().stream()).toList();
      for (int i = 0; i < values.size(); i++) {
        boolean result = i >= collective.operands().size();
        // A tensor that is symmetric for another reason may be so on this rank only.
        if (rank.graph().spec(k).needsSymmetric(result)
            && rank.graph().args().get(k).get(i).realization() != Realization.NOT_NEEDED) {
          addSymmetric(rank, values.get(i), ordered);
        }
      }
    }
    rank.graph().graph().inputs().forEach(v -> addSymmetric(rank, v, ordered));
    rank.graph().graph().outputValues().forEach(v -> addSymmetric(rank, v, ordered));
    rank.drafts().stream().filter(draft -> draft.isWorkspace).forEach(ordered::add);
    return ordered;
  }

  private static void addSymmetric(Rank rank, Value value, List<Draft> ordered) {
    if (value.isTensor()) {
      var draft = rank.drafts().get(rank.draftOf().get(rank.graph().aliases().id(value)));
      if (draft.arena == ArenaKind.SYMMETRIC && !draft.listed) {
        draft.listed = true;
        ordered.add(draft);
      }
    }
  }

  private static List<Draft> draftsIn(ArenaKind arena, Rank rank) {
    return rank.drafts().stream().filter(draft -> draft.arena == arena && draft.bytes > 0).toList();
  }

  private static void place(List<Draft> locals, Packing packing) {
    for (int i = 0; i < locals.size(); i++) {
      locals.get(i).offset = packing.offset(i);
      locals.get(i).inSymmetricArena = packing.inFirstArena(i);
    }
  }

  private static ArenaSize size(Packing packing) {
    return new ArenaSize(packing.height(), packing.lowerBound());
  }

  private static Memory finish(Rank rank, ArenaSize local) {
    var buffers = ImmutableList.<Buffer>builder();
    for (var draft : rank.drafts()) {
      buffers.add(
          new Buffer(
              draft.name,
              draft.arena == ArenaKind.LOCAL && draft.inSymmetricArena
                  ? ArenaKind.SYMMETRIC
                  : draft.arena,
              draft.arena == ArenaKind.SYMMETRIC,
              draft.arena.isExternal() ? draft.position : draft.offset,
              draft.bytes,
              draft.first,
              draft.last));
    }
    var aliases = rank.graph().aliases();
    var values = rank.graph().graph().values();
    var placements = Parallel.map(values.size(), i -> placement(rank, values.get(i), aliases));
    return new Memory(placements, buffers.build(), local);
  }

  private static Placement placement(Rank rank, Value value, Aliases aliases) {
    int storage = aliases.id(value);
    if (storage < 0 || rank.draftOf().get(storage) < 0) {
      return Placement.NONE;
    }
    var layout = rank.lives().layout();
    return new Placement(
        rank.draftOf().get(storage),
        layout.offset(storage) + aliases.offset(value),
        layout.shardOf(storage),
        layout.stride(storage),
        layout.pitch(storage));
  }
}
