package dev.symplan.codegen;

import com.google.common.collect.ImmutableCollection;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Transfer.Barrier;
import dev.symplan.codegen.Transfer.Clear;
import dev.symplan.codegen.Transfer.Copy;
import dev.symplan.codegen.Transfer.Empty;
import dev.symplan.codegen.Transfer.Endpoint;
import dev.symplan.codegen.Transfer.InTensor;
import dev.symplan.codegen.Transfer.Receive;
import dev.symplan.codegen.Transfer.Reduce;
import dev.symplan.codegen.Transfer.Role;
import dev.symplan.codegen.Transfer.Rows;
import dev.symplan.codegen.Transfer.Slot;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Protocol;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The transfers of each rank in the collectives of an executable, derived from the {@link Protocol}
 * of the variant. The host backend executes them. The CUDA backend makes kernels, copies and calls
 * of them, and tests make models of the variants of them.
 */
public final class Transfers {
  private final ImmutableList<ImmutableMap<Integer, Collective>> byIndex;

  public Transfers(Executable executable) {
    this.byIndex =
        executable.ranks().stream()
            .map(Transfers::byIndex)
            .collect(ImmutableList.toImmutableList());
  }

  private static ImmutableMap<Integer, Collective> byIndex(RankProgram program) {
    var own = ImmutableMap.<Integer, Collective>builder();
    for (var instruction : program.instructions()) {
      if (instruction instanceof Collective collective) {
        own.put(collective.group().index(), collective);
      }
    }
    return own.buildOrThrow();
  }

  /** {@return the collectives of a rank, in order} */
  public ImmutableCollection<Collective> ofRank(int rank) {
    return byIndex.get(rank).values();
  }

  /**
   * {@return the same collective as a member of its group has it: an all_to_all's shapes differ}
   */
  public Collective at(int member, Collective collective) {
    var group = collective.group();
    return Objects.requireNonNull(byIndex.get(group.members().get(member)).get(group.index()));
  }

  /** {@return the transfers of a rank for a tensor, the collective's barriers included} */
  public ImmutableList<Transfer> of(Collective collective, int tensor) {
    return new Derivation(collective, tensor).all();
  }

  /**
   * {@return the most bytes that a rank of the group moves at once between ranks: kernels that meet
   * need as many blocks on all ranks}
   */
  public long mostBytes(Collective collective, int tensor) {
    return IntStream.range(0, collective.group().members().length())
        .mapToLong(
            member ->
                of(at(member, collective), tensor).stream()
                    .mapToLong(transfer -> bytesBetweenRanks(transfer, member))
                    .max()
                    .orElse(0))
        .max()
        .orElse(0);
  }

  private static long bytesBetweenRanks(Transfer transfer, int member) {
    return switch (transfer) {
      case Copy(var from, var to, long bytes) ->
          isOwn(from, member) && to.stream().allMatch(end -> isOwn(end, member)) ? 0 : bytes;
      case Reduce reduce -> reduce.bytes();
      case Barrier _, Clear _, Receive _, Empty _ -> 0;
    };
  }

  private static boolean isOwn(Endpoint end, int member) {
    return end instanceof InTensor part && part.member() == member;
  }

  /** One rank's part, for one tensor. */
  private final class Derivation {
    private final Collective collective;
    private final int tensor;
    private final Kind kind;
    private final Protocol protocol;
    private final int self;
    private final int size;
    private final ImmutableList.Builder<Transfer> transfers = ImmutableList.builder();

    Derivation(Collective collective, int tensor) {
      this.collective = collective;
      this.tensor = tensor;
      this.kind = collective.kind();
      this.protocol = collective.spec().protocol();
      this.self = collective.group().self();
      this.size = collective.group().members().length();
    }

    ImmutableList<Transfer> all() {
      if (kind == Kind.COLLECTIVE_PERMUTE && collective.variant() == Variant.LOCAL) {
        permute(protocol, Role.OPERAND);
      } else if (collective.variant() == Variant.LOCAL) {
        copy(own(Role.OPERAND), own(Role.RESULT), bytes());
      } else if (!protocol.pushes().isEmpty()) {
        if (bytes() > 0) {
          push();
        }
      } else if (collective.variant() == Variant.NCCL) {
        throughLibrary();
      } else {
        betweenBarriers();
      }
      return transfers.build();
    }

    private void betweenBarriers() {
      if (collective.startBarrier() && tensor == 0) {
        transfers.add(new Barrier());
      }
      move(protocol, Role.OPERAND);
      if (collective.endBarrier() && isLast()) {
        transfers.add(new Barrier());
      }
    }

    /**
     * As {@link Variant#ONE_SHOT}, from its buffers; it meets whatever the plan says of barriers.
     */
    private void throughLibrary() {
      copy(own(Role.OPERAND), own(Role.LIBRARY), bytes());
      transfers.add(new Barrier());
      move(VariantSpec.of(kind, Variant.ONE_SHOT).protocol(), Role.LIBRARY);
      if (isLast()) {
        transfers.add(new Barrier());
      }
    }

    private boolean isLast() {
      return tensor == collective.operands().size() - 1;
    }

    private TensorType operand() {
      return TensorRange.moved(collective, tensor, false);
    }

    private long bytes() {
      return operand().bytes();
    }

    private Endpoint own(Role role) {
      return new InTensor(role, self, 0, Rows.ONE);
    }

    private void copy(Endpoint from, Endpoint to, long bytes) {
      transfers.add(new Copy(from, ImmutableList.of(to), bytes));
    }

    /** All positions in the group, from the next one on, so that no link carries everything. */
    private IntStream circle() {
      return IntStream.rangeClosed(1, size).map(i -> (self + i) % size);
    }

    private void move(Protocol how, Role source) {
      if (how.rootOnly() && self != collective.root()) {
        return;
      }
      if (how.readsOf() == Protocol.Whose.ROOT && how.reads() == Protocol.Slice.MINE) {
        relay();
      } else if (kind == Kind.COLLECTIVE_PERMUTE) {
        permute(how, source);
      } else if (kind.reduces()) {
        reduce(how, source);
      } else {
        copies(how, source);
      }
    }

    /** A transfer from one end to several is one copy. */
    private void copies(Protocol how, Role source) {
      record Source(Endpoint from, long bytes) {}
      Map<Source, Set<Endpoint>> targets = new LinkedHashMap<>();
      circle()
          .forEach(
              peer -> {
                int reader = owner(how.readsOf(), peer);
                int writer = owner(how.writesOf(), peer);
                var from = part(false, reader, how.reads(), peer);
                var to = part(true, writer, how.writes(), peer);
                targets
                    .computeIfAbsent(
                        new Source(in(source, reader, from), from.bytes()),
                        _ -> new LinkedHashSet<>())
                    .add(in(Role.RESULT, writer, to));
              });
      targets.forEach(
          (from, to) ->
              transfers.add(new Copy(from.from(), ImmutableList.copyOf(to), from.bytes())));
    }

    /** A rank that nobody sends to clears its own result, which no other rank writes then. */
    private void permute(Protocol how, Role source) {
      var sender = collective.permutation().sourceOf(self);
      if (sender.isEmpty()) {
        transfers.add(new Clear(own(Role.RESULT), bytes()));
      }
      var sent = TensorRange.whole(operand());
      if (how.writesOf() == Protocol.Whose.TARGET) {
        collective
            .permutation()
            .targetOf(self)
            .ifPresent(peer -> copy(in(source, self, sent), whole(peer), bytes()));
      } else {
        sender.ifPresent(peer -> copy(in(source, peer, sent), whole(self), bytes()));
      }
    }

    /** All of a member's result. */
    private Endpoint whole(int member) {
      var type = TensorRange.moved(at(member, collective), tensor, true);
      return in(Role.RESULT, member, TensorRange.whole(type));
    }

    /** The rank's own result comes first. */
    private void reduce(Protocol how, Role source) {
      var from = part(false, self, how.reads(), self);
      var to = part(true, self, how.writes(), self);
      var targets =
          how.writesOf() == Protocol.Whose.EVERY
              ? IntStream.range(self, self + size).map(peer -> peer % size)
              : IntStream.of(self);
      transfers.add(
          new Reduce(
              IntStream.range(0, size)
                  .mapToObj(peer -> in(source, peer, from))
                  .collect(ImmutableList.toImmutableList()),
              targets
                  .mapToObj(peer -> in(Role.RESULT, peer, to))
                  .collect(ImmutableList.toImmutableList()),
              from.bytes()));
    }

    /**
     * Each rank but the root takes a slice from there and stores it to all of them, so that every
     * byte leaves the root once. The root's own result is a copy in its memory.
     */
    private void relay() {
      int root = collective.root();
      if (self == root) {
        copy(in(Role.OPERAND, self, TensorRange.whole(operand())), whole(self), bytes());
        return;
      }
      var slice = TensorRange.slice(bytes(), unit(), size - 1, self < root ? self : self - 1);
      transfers.add(
          new Copy(
              in(Role.OPERAND, root, TensorRange.part(operand(), slice.offset(), slice.bytes())),
              circle()
                  .filter(peer -> peer != root)
                  .mapToObj(peer -> in(Role.RESULT, peer, written(slice)))
                  .collect(ImmutableList.toImmutableList()),
              slice.bytes()));
    }

    /** Bytes of the rank's own result, which lies as those of its peers do. */
    private TensorRange written(TensorRange slice) {
      var type = TensorRange.moved(collective, tensor, true);
      return TensorRange.part(type, slice.offset(), slice.bytes());
    }

    private int owner(Protocol.Whose whose, int peer) {
      return switch (whose) {
        case OWN -> self;
        case EVERY -> peer;
        case ROOT -> collective.root();
        case SOURCE, TARGET -> throw new IllegalStateException("pairs of ranks are permuted");
      };
    }

    private Endpoint in(Role role, int member, TensorRange range) {
      return new InTensor(role, member, range.offset(), range.rows());
    }

    /** The bytes of a member's operand or result that are moved between this rank and a peer. */
    private TensorRange part(boolean result, int member, Protocol.Slice part, int peer) {
      var at = at(member, collective);
      var type = TensorRange.moved(at, tensor, result);
      int index = part == Protocol.Slice.MINE ? self : peer;
      if (kind == Kind.ALL_TO_ALL) {
        return TensorRange.rows(at, tensor, result, index);
      }
      if (part == Protocol.Slice.WHOLE) {
        return TensorRange.whole(type);
      }
      int dim = result ? collective.dims().result() : collective.dims().operand();
      return kind == Kind.ALL_REDUCE
          ? reducedSlice(type, index)
          : TensorRange.slice(type, dim, size, index);
    }

    /**
     * Operands and results are cut at the same elements: where rows of both begin, or where packets
     * do.
     */
    private TensorRange reducedSlice(TensorType type, int index) {
      var cut = TensorRange.slice(type.bytes(), unit(), size, index);
      return TensorRange.part(type, cut.offset(), cut.bytes());
    }

    /**
     * {@return the bytes of which slices have whole ones} Rows are alike on all ranks, and a row of
     * one end is whole rows of the other.
     */
    private long unit() {
      if (!protocol.pushes().isEmpty()) {
        return Alignment.VECTOR;
      }
      return Stream.of(operand(), TensorRange.moved(collective, tensor, true))
          .flatMap(type -> TensorRange.rows(type).stream())
          .mapToLong(Rows::bytes)
          .max()
          .orElse(Alignment.VECTOR);
    }

    /** Round by round: each reduced part is sent on, at the end to the rank's own result. */
    private void push() {
      var pushes = protocol.pushes();
      for (int round = 0; round < pushes.size(); round++) {
        send(pushes.get(round), round);
        var slots = ImmutableList.<Slot>builder();
        for (int peer : others()) {
          slots.add(new Slot(round, self, peer));
        }
        transfers.add(new Receive(slots.build()));
        if (round == 0) {
          reduceReceived(pushes.getFirst());
        } else {
          for (int peer : others()) {
            copy(
                new Slot(round, self, peer),
                pushed(Role.RESULT, Protocol.Slice.THEIRS, peer),
                pushedBytes(Protocol.Slice.THEIRS, peer));
          }
        }
        transfers.add(new Empty(slots.build()));
      }
    }

    private int[] others() {
      return circle().filter(peer -> peer != self).toArray();
    }

    /** The part of the rank's own operand or result, as long in both. */
    private Endpoint pushed(Role role, Protocol.Slice part, int peer) {
      return in(role, self, part(role == Role.RESULT, self, part, peer));
    }

    private long pushedBytes(Protocol.Slice part, int peer) {
      return part(true, self, part, peer).bytes();
    }

    private void send(Protocol.Slice part, int round) {
      var role = round == 0 ? Role.OPERAND : Role.RESULT;
      for (int peer : others()) {
        copy(pushed(role, part, peer), new Slot(round, peer, self), pushedBytes(part, peer));
      }
    }

    /** A rank reduces what others send to it: all, or its slice. */
    private void reduceReceived(Protocol.Slice sent) {
      var part = sent == Protocol.Slice.THEIRS ? Protocol.Slice.MINE : Protocol.Slice.WHOLE;
      transfers.add(
          new Reduce(
              IntStream.range(0, size)
                  .<Endpoint>mapToObj(
                      peer ->
                          peer == self ? pushed(Role.OPERAND, part, self) : new Slot(0, self, peer))
                  .collect(ImmutableList.toImmutableList()),
              ImmutableList.of(pushed(Role.RESULT, part, self)),
              pushedBytes(part, self)));
    }
  }
}
