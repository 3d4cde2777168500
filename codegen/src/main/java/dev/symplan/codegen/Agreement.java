package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.plan.ArenaKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * The terms on which the ranks of a program must agree before one touches another's memory: the
 * arena's size, and the order, algorithm, ranks and symmetric addresses of the collectives.
 *
 * <p>If each rank is a process, each sends its terms to the others.
 */
public final class Agreement {
  private Agreement() {}

  /**
   * One thing to agree on.
   *
   * @param text its description; the same on all ranks
   * @param members the ranks that take part, which these must agree on; empty for all
   * @param sent for each member, the bytes sent to it; empty if all send equally much
   * @param received for each member, the bytes expected from it
   * @param location in the program, for people
   */
  public record Term(
      String text,
      ImmutableIntArray members,
      ImmutableLongArray sent,
      ImmutableLongArray received,
      String location) {}

  /** {@return the terms of each rank of an executable} */
  public static ImmutableList<ImmutableList<Term>> of(Executable executable) {
    return executable.ranks().stream()
        .map(rank -> terms(executable, rank))
        .collect(ImmutableList.toImmutableList());
  }

  private static ImmutableList<Term> terms(Executable executable, RankProgram program) {
    var terms = new ArrayList<Term>();
    terms.add(common("a symmetric arena of " + executable.symmetricBytes() + " bytes"));
    var collectives = new ArrayList<Instruction>();
    program.instructions().stream().filter(i -> group(i).isPresent()).forEach(collectives::add);
    collectives.sort(
        (a, b) -> Integer.compare(group(a).orElseThrow().index(), group(b).orElseThrow().index()));
    for (var instruction : collectives) {
      terms.add(term(instruction));
    }
    terms.add(common("the plan " + executable.digest()));
    return ImmutableList.copyOf(terms);
  }

  private static Term common(String text) {
    return new Term(
        text, ImmutableIntArray.of(), ImmutableLongArray.of(), ImmutableLongArray.of(), "");
  }

  private static Optional<GroupUse> group(Instruction instruction) {
    return switch (instruction) {
      case Collective collective -> Optional.of(collective.group());
      case LocalOp op -> op.group();
      case Instruction.Fused _,
          Instruction.Border _,
          Instruction.SetupEnd _,
          Instruction.RecordEvent _,
          Instruction.AwaitEvent _ ->
          Optional.empty();
    };
  }

  private static Term term(Instruction instruction) {
    return switch (instruction) {
      case Collective c -> {
        var text = new StringBuilder(c.kind().text());
        text.append(' ').append(c.variant().text());
        text.append(c.reduceOp().map(op -> " " + op).orElse(""));
        text.append(c.root() < 0 ? "" : " from " + c.root());
        text.append(c.kind() == Kind.COLLECTIVE_PERMUTE ? " " + c.permutation() : "");
        text.append(rows(c));
        text.append(" of ").append(c.group().members().length()).append(" ranks,");
        for (var operand : c.operands()) {
          text.append(' ').append(address(operand, c.spec().needsSymmetricOperand()));
          text.append(rowsApart(operand.type()));
        }
        text.append(" ->");
        for (var result : c.results()) {
          text.append(' ').append(address(result, c.spec().needsSymmetricResult()));
          text.append(c.spec().needsSymmetricResult() ? gaps(result.type()) : "");
        }
        text.append(c.startBarrier() ? ", start barrier" : "");
        text.append(c.endBarrier() ? ", end barrier" : "");
        text.append(c.epilogue().isFused() ? ", epilogue" : "");
        c.workspace()
            .ifPresent(
                w -> text.append(", workspace symm+0x").append(Long.toHexString(w.offset())));
        yield new Term(
            text.toString(),
            c.group().members(),
            bytes(c.sendRows(), c.operands().getFirst()),
            bytes(c.receiveRows(), c.results().getFirst()),
            "'%s' (%s)".formatted(c.name(), c.span().shortForm()));
      }
      case LocalOp op ->
          new Term(
              op.def().name().toString(),
              op.group().orElseThrow().members(),
              ImmutableLongArray.of(),
              ImmutableLongArray.of(),
              "'%s' (%s)".formatted(op.name(), op.span().shortForm()));
      case Instruction.Fused _,
          Instruction.Border _,
          Instruction.SetupEnd _,
          Instruction.RecordEvent _,
          Instruction.AwaitEvent _ ->
          throw new IllegalArgumentException("local work and events are the rank's own affair");
    };
  }

  /** Whoever reads or writes a peer's slice counts on the rows that it has there. */
  private static String rows(Collective c) {
    long sent = SliceDims.rows(c.operands().getFirst().type(), c.dims().operand());
    long received = SliceDims.rows(c.results().getFirst().type(), c.dims().result());
    return sent == 1 && received == 1
        ? ""
        : ", slices of %s rows to %s rows,".formatted(sent, received);
  }

  /** Whoever reads a peer's operand counts on rows as far apart as its own. */
  private static String rowsApart(TensorType type) {
    int item = type.dtype().bytes();
    return type.rowsApart().map(rows -> " in bytes, %s,".formatted(rows.text(item))).orElse("");
  }

  /** Whoever writes a peer's result counts on rows as far apart as in its own. */
  private static String gaps(TensorType type) {
    return type.isDense() ? "" : rowsApart(type);
  }

  private static String address(TensorRef ref, boolean symmetric) {
    return symmetric && ref.arena() == ArenaKind.SYMMETRIC
        ? "symm+0x" + Long.toHexString(ref.offset())
        : symmetric ? ref.arena().text() : "any";
  }

  private static ImmutableLongArray bytes(ImmutableLongArray rows, TensorRef tensor) {
    var type = tensor.type();
    long rowBytes = type.dtype().bytes();
    for (int i = 1; i < type.rank(); i++) {
      rowBytes *= type.size(i);
    }
    var bytes = ImmutableLongArray.builder(rows.length());
    for (int i = 0; i < rows.length(); i++) {
      bytes.add(rows.get(i) * rowBytes);
    }
    return bytes.build();
  }

  /**
   * {@return the first thing that two ranks see differently, for people; empty if they agree}
   *
   * @param terms each rank's
   */
  public static Optional<String> firstDifference(List<? extends List<Term>> terms) {
    // A part that all have ends with a digest, which says the least.
    return commonDifference(terms, 0, 1)
        .or(() -> meetingDifference(terms))
        .or(() -> commonDifference(terms, 1, Integer.MAX_VALUE));
  }

  private static Optional<String> commonDifference(
      List<? extends List<Term>> terms, int from, int to) {
    var common =
        terms.stream()
            .map(own -> own.stream().filter(term -> term.members().isEmpty()).toList())
            .toList();
    int count = common.stream().mapToInt(List::size).max().orElse(0);
    for (int i = from; i < Math.min(to, count); i++) {
      for (int rank = 1; rank < terms.size(); rank++) {
        var difference = difference(i, 0, common.getFirst(), rank, common.get(rank));
        if (difference.isPresent()) {
          return difference;
        }
      }
    }
    return Optional.empty();
  }

  /** Two ranks have the same terms, in the same order, wherever they meet. */
  private static Optional<String> meetingDifference(List<? extends List<Term>> terms) {
    for (int rank = 0; rank < terms.size(); rank++) {
      for (int peer : peers(terms.get(rank))) {
        if (peer >= terms.size()) {
          var term = with(peer, terms.get(rank)).getFirst();
          return Optional.of(
              "rank %s, %s is with rank %s, but there are %s ranks"
                  .formatted(rank, term.location(), peer, terms.size()));
        }
        var own = with(peer, terms.get(rank));
        var theirs = with(rank, terms.get(peer));
        for (int i = 0; i < Math.max(own.size(), theirs.size()); i++) {
          var difference = difference(i, rank, own, peer, theirs);
          if (difference.isEmpty()) {
            difference = memberDifference(rank, own.get(i), peer, theirs.get(i));
          }
          if (difference.isPresent()) {
            return difference;
          }
        }
      }
    }
    return Optional.empty();
  }

  private static Set<Integer> peers(List<Term> terms) {
    var peers = new TreeSet<Integer>();
    terms.stream().map(Term::members).distinct().forEach(own -> peers.addAll(own.asList()));
    return peers;
  }

  private static List<Term> with(int rank, List<Term> terms) {
    return terms.stream().filter(term -> term.members().contains(rank)).toList();
  }

  private static Optional<String> difference(
      int index, int rankA, List<Term> a, int rankB, List<Term> b) {
    var textA = index < a.size() ? describe(a.get(index)) : "nothing more";
    var textB = index < b.size() ? describe(b.get(index)) : "nothing more";
    boolean same =
        index < a.size() && index < b.size() && a.get(index).text().equals(b.get(index).text());
    return same
        ? Optional.empty()
        : Optional.of(
            "ranks %s and %s do not have the same plan: rank %s has %s, rank %s has %s"
                .formatted(rankA, rankB, rankA, textA, rankB, textB));
  }

  private static String describe(Term term) {
    return term.text() + (term.location().isEmpty() ? "" : " for " + term.location());
  }

  private static Optional<String> memberDifference(int rank, Term own, int peer, Term other) {
    if (!other.members().equals(own.members())) {
      return Optional.of(
          "ranks %s and %s disagree on the participants of %s: %s and %s"
              .formatted(rank, peer, own.location(), own.members(), other.members()));
    }
    int self = own.members().indexOf(rank);
    int position = own.members().indexOf(peer);
    if (!own.sent().isEmpty()
        && !other.received().isEmpty()
        && own.sent().get(position) != other.received().get(self)) {
      return Optional.of(
          "rank %s sends %s to rank %s in %s, which expects %s: split sizes do not match"
              .formatted(
                  rank,
                  Units.count(own.sent().get(position), "byte"),
                  peer,
                  own.location(),
                  other.received().get(self)));
    }
    return Optional.empty();
  }
}
