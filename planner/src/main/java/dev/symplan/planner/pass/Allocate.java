package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.planner.Arena;
import dev.symplan.planner.ArenaSize;
import dev.symplan.planner.ArgDecision.Realization;
import dev.symplan.planner.Buffer;
import dev.symplan.planner.Placement;
import dev.symplan.planner.Step;
import dev.symplan.planner.pack.Packer;
import dev.symplan.planner.pack.PackingProblem;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * Gives every storage an arena and an offset.
 *
 * <p>The symmetric arena is packed first and for all ranks at once; each rank's local buffers then
 * fill its holes before they make the local arena grow.
 */
final class Allocate {

  /** The memory of one rank. */
  record Memory(
      ImmutableList<Placement> placements, ImmutableList<Buffer> buffers, ArenaSize local) {}

  /** The memory of all ranks. */
  record Result(ArenaSize symmetric, ImmutableList<Memory> ranks) {}

  /** One buffer of one rank before it has an offset. */
  private static final class Draft {
    final Value name;
    final Arena arena;
    final int position;
    long bytes;
    int first = Integer.MAX_VALUE;
    int last = -1;
    long offset;
    boolean inSymmetricArena;
    boolean listed;

    Draft(Value name, Arena arena, int position) {
      this.name = name;
      this.arena = arena;
      this.position = position;
    }

    boolean packed(Arena wanted) {
      return arena == wanted && bytes > 0;
    }
  }

  /** The buffers of one rank, and which one each storage is in. */
  private record Rank(
      Realize.Realized graph, Schedule schedule, List<Draft> drafts, int[] draftOf) {}

  private Allocate() {}

  static Result run(List<Realize.Realized> graphs, List<Schedule> schedules, List<Liveness> lives) {
    var ranks = new ArrayList<Rank>();
    for (int g = 0; g < graphs.size(); g++) {
      ranks.add(draft(graphs.get(g), schedules.get(g), lives.get(g)));
    }
    var symmetric = packSymmetric(ranks);
    var memories = ImmutableList.<Memory>builder();
    for (var rank : ranks) {
      memories.add(finish(rank, packLocal(rank, symmetric.bytes())));
    }
    return new Result(symmetric, memories.build());
  }

  private static Rank draft(Realize.Realized graph, Schedule schedule, Liveness life) {
    var aliases = graph.aliases();
    var drafts = new ArrayList<Draft>();
    var draftOf = new int[aliases.count()];
    Arrays.fill(draftOf, -1);
    for (var storage : aliases.storages()) {
      int root = life.root(storage.id());
      if (draftOf[root] < 0) {
        draftOf[root] = drafts.size();
        drafts.add(newDraft(graph, root));
      }
      draftOf[storage.id()] = draftOf[root];
      var draft = drafts.get(draftOf[root]);
      draft.bytes = Math.max(draft.bytes, storage.bytes());
      draft.first = Math.min(draft.first, life.first(storage.id()));
      draft.last = Math.max(draft.last, life.last(storage.id()));
    }
    return new Rank(graph, schedule, drafts, draftOf);
  }

  private static Draft newDraft(Realize.Realized graph, int storage) {
    var value = graph.aliases().storage(storage).value();
    var arena = graph.arenas()[storage];
    int position =
        switch (arena) {
          case EXTERNAL_INPUT -> graph.graph().inputs().indexOf(value);
          case EXTERNAL_OUTPUT -> graph.externalOutputs().outputOf(storage);
          case SYMMETRIC, LOCAL -> 0;
        };
    return new Draft(value, arena, position);
  }

  /**
   * All ranks have the same symmetric buffers, in the order of the collectives that use them; where
   * one needs more than another, all reserve as much as the one that needs most.
   */
  private static ArenaSize packSymmetric(List<Rank> ranks) {
    var drafts = ranks.stream().map(Allocate::symmetricDrafts).toList();
    var axes = commonAxes(ranks);
    var own = drafts.getFirst();
    drafts.forEach(other -> checkAgree(own, other));
    var problem = PackingProblem.builder();
    var packed = new ArrayList<Integer>();
    for (int i = 0; i < own.size(); i++) {
      int index = i;
      long bytes = drafts.stream().mapToLong(rank -> rank.get(index).bytes).max().orElse(0);
      drafts.forEach(rank -> rank.get(index).bytes = bytes);
      if (bytes > 0) {
        int start = Integer.MAX_VALUE;
        int end = -1;
        for (int g = 0; g < ranks.size(); g++) {
          var draft = drafts.get(g).get(i);
          start = Math.min(start, axes.get(g)[draft.first + 1]);
          end = Math.max(end, axes.get(g)[draft.last + 1] + 1);
        }
        problem.add(start, end, bytes, Buffer.ALIGNMENT);
        packed.add(i);
      }
    }
    var packing = Packer.pack(problem.build());
    for (int i = 0; i < packed.size(); i++) {
      for (var rank : drafts) {
        rank.get(packed.get(i)).offset = packing.offset(i);
      }
    }
    return new ArenaSize(packing.height(), packing.lowerBound());
  }

  /** What collectives use agrees already; what the caller asked for may not. */
  private static void checkAgree(List<Draft> own, List<Draft> other) {
    for (int i = 0; i < Math.max(own.size(), other.size()); i++) {
      if (i >= own.size() || i >= other.size()) {
        var odd = i < other.size() ? other.get(i).name : own.get(i).name;
        throw new CompileException(
            Diagnostic.error(
                DiagnosticCode.RANKS_DISAGREE,
                odd.span(),
                "'%s' is to be in symmetric memory, but not on every rank".formatted(odd.name()),
                "leave the memory of inputs and outputs that differ between ranks to the planner"));
      }
    }
  }

  private static List<Draft> symmetricDrafts(Rank rank) {
    var ordered = new ArrayList<Draft>();
    for (int k = 0; k < rank.graph().collectives().size(); k++) {
      var collective = rank.graph().collectives().get(k);
      var values =
          Stream.concat(collective.operands().stream(), collective.results().stream()).toList();
      for (int i = 0; i < values.size(); i++) {
        // What is symmetric for another reason may be so on this rank only.
        if (rank.graph().args().get(k).get(i).realization() != Realization.NOT_NEEDED) {
          addSymmetric(rank, values.get(i), ordered);
        }
      }
    }
    rank.graph().graph().inputs().forEach(v -> addSymmetric(rank, v, ordered));
    for (var output : rank.graph().graph().outputs()) {
      output.forEachValue(v -> addSymmetric(rank, v, ordered));
    }
    return ordered;
  }

  private static void addSymmetric(Rank rank, Value value, List<Draft> ordered) {
    if (value.isTensor()) {
      var draft = rank.drafts().get(rank.draftOf()[rank.graph().aliases().id(value)]);
      if (draft.arena == Arena.SYMMETRIC && !draft.listed) {
        draft.listed = true;
        ordered.add(draft);
      }
    }
  }

  /**
   * For each rank, its steps on an axis that all ranks share, by step + 1 so that -1 has a place.
   *
   * <p>The starts of the collectives are the same on all ranks and fix the axis; between two of
   * them each rank counts its own steps, and the axis is as long there as the longest rank needs.
   */
  private static List<int[]> commonAxes(List<Rank> ranks) {
    int segments = ranks.getFirst().graph().collectives().size() + 1;
    var lengths = new int[segments];
    for (var rank : ranks) {
      int segment = 0;
      int length = 0;
      for (var step : rank.schedule().steps()) {
        if (step instanceof Step.Start) {
          lengths[segment] = Math.max(lengths[segment], length);
          segment++;
          length = 0;
        }
        length++;
      }
      lengths[segment] = Math.max(lengths[segment], length);
    }
    var bases = new int[segments + 1];
    for (int i = 0; i < segments; i++) {
      bases[i + 1] = bases[i] + lengths[i];
    }
    var axes = new ArrayList<int[]>();
    for (var rank : ranks) {
      axes.add(axis(rank, bases));
    }
    return axes;
  }

  private static int[] axis(Rank rank, int[] bases) {
    var steps = rank.schedule().steps();
    var axis = new int[steps.size() + 2];
    int segment = 0;
    int inSegment = 0;
    for (int s = 0; s < steps.size(); s++) {
      if (steps.get(s) instanceof Step.Start) {
        segment++;
        inSegment = 0;
      }
      axis[s + 1] = 1 + bases[segment] + inSegment++;
    }
    axis[steps.size() + 1] = 1 + bases[bases.length - 1];
    return axis;
  }

  /** Packs a rank's local buffers: into holes of the symmetric arena where they fit. */
  private static ArenaSize packLocal(Rank rank, long symmetricBytes) {
    var fixed = PackingProblem.builder();
    var fixedOffsets = new ArrayList<Long>();
    var free = PackingProblem.builder();
    var locals = new ArrayList<Draft>();
    for (var draft : rank.drafts()) {
      if (draft.packed(Arena.SYMMETRIC)) {
        fixed.add(draft.first + 1, draft.last + 2, draft.bytes, Buffer.ALIGNMENT);
        fixedOffsets.add(draft.offset);
      } else if (draft.packed(Arena.LOCAL)) {
        free.add(draft.first + 1, draft.last + 2, draft.bytes, Buffer.ALIGNMENT);
        locals.add(draft);
      }
    }
    var packed =
        Packer.packInto(
            fixed.build(),
            fixedOffsets.stream().mapToLong(offset -> offset).toArray(),
            symmetricBytes,
            free.build());
    for (int i = 0; i < locals.size(); i++) {
      locals.get(i).offset = packed.offset(i);
      locals.get(i).inSymmetricArena = packed.inFirstArena(i);
    }
    return new ArenaSize(packed.height(), packed.lowerBound());
  }

  private static Memory finish(Rank rank, ArenaSize local) {
    var buffers = ImmutableList.<Buffer>builder();
    for (var draft : rank.drafts()) {
      buffers.add(
          new Buffer(
              draft.name.name(),
              draft.arena == Arena.LOCAL && draft.inSymmetricArena ? Arena.SYMMETRIC : draft.arena,
              draft.arena == Arena.SYMMETRIC,
              draft.arena.isExternal() ? draft.position : draft.offset,
              draft.bytes,
              draft.first,
              draft.last));
    }
    var aliases = rank.graph().aliases();
    var placements = new Placement[rank.graph().graph().valueCount()];
    Arrays.fill(placements, Placement.NONE);
    for (var input : rank.graph().graph().inputs()) {
      place(rank, input, aliases, placements);
    }
    for (var op : rank.graph().graph().ops()) {
      op.results().forEach(value -> place(rank, value, aliases, placements));
    }
    return new Memory(ImmutableList.copyOf(placements), buffers.build(), local);
  }

  private static void place(Rank rank, Value value, Aliases aliases, Placement[] placements) {
    if (value.isTensor()) {
      placements[value.id()] =
          new Placement(rank.draftOf()[aliases.id(value)], aliases.offset(value));
    }
  }
}
