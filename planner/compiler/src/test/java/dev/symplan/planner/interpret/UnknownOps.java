package dev.symplan.planner.interpret;

import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.AliasInfo;
import dev.symplan.ir.op.OpSchema;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;

/**
 * Has an op without a rule do one of the things that its schema leaves open. It reads all its
 * arguments; writes all, a part or nothing of each that it may write; moves arguments that may be
 * anywhere afterwards into others; and gives new results, arguments themselves, or views into them.
 * If the schema bounds nothing, it also reads and changes a hidden state, which depends on the
 * collectives before it.
 *
 * <p>It keeps what it read, not the tensors: PyTorch, too, uses memory again that no later op of
 * the graph reads.
 */
final class UnknownOps {
  private static final long SPOILED = 0x73706F696C6564L;

  private final Op op;
  private final Rank rank;
  private final Random random;
  private final OpSchema schema;

  private UnknownOps(Op op, Rank rank, long seed) {
    this.op = op;
    this.rank = rank;
    this.schema = op.def().schema();
    this.random = new Random(Piece.mix(Piece.mix(seed, Rank.key(op)), op.span().toString()));
  }

  /**
   * Carries out an op. Results that are arguments by the schema have their places.
   *
   * @param seed chooses what the op does, the same wherever it runs
   */
  static void carryOut(Op op, Rank rank, long seed) {
    new UnknownOps(op, rank, seed).run();
  }

  private void run() {
    var given = new ArrayList<Given>();
    for (int r = 0; r < op.results().size(); r++) {
      if (op.results().get(r).isTensor() && op.infer().get(r).view().isEmpty()) {
        given.add(given(r));
      }
    }
    for (var one : given) {
      if (one.as == As.NEW) {
        // It may write its results before it reads anything.
        rank.place(one.result).fill(one.result.tensor(), SPOILED);
      }
    }
    long digest = rank.digest(op);
    if (op.def().isUnbounded()) {
      digest = Piece.mix(Piece.mix(digest, rank.effects), rank.met);
      rank.effects = Piece.mix(rank.effects, digest);
    }
    if (random.nextBoolean()) {
      writeArguments(digest);
      moveArguments();
    } else {
      moveArguments();
      writeArguments(digest);
    }
    for (int r = 0; r < op.results().size(); r++) {
      if (!op.results().get(r).isTensor()) {
        rank.setScalar(op.results().get(r), Piece.mix(digest, r));
      }
    }
    for (var one : given) {
      give(one, digest);
    }
  }

  /** How a result comes to be. */
  private enum As {
    NEW,
    THE_ARGUMENT,
    VIEW
  }

  private record Given(Value result, As as, Value source, long offset) {}

  private Given given(int r) {
    var result = op.results().get(r);
    var sources = new ArrayList<>(sources(r));
    sources.removeIf(source -> !fits(result.tensor(), source.tensor()));
    if (sources.isEmpty() || random.nextInt(3) == 0) {
      return new Given(result, As.NEW, result, 0);
    }
    var source = sources.get(random.nextInt(sources.size()));
    if (random.nextBoolean() && isLike(result.tensor(), source.tensor())) {
      return new Given(result, As.THE_ARGUMENT, source, 0);
    }
    return new Given(result, As.VIEW, source, offset(result.tensor(), source.tensor()));
  }

  private void give(Given one, long digest) {
    switch (one.as) {
      case NEW ->
          rank.place(one.result)
              .fill(one.result.tensor(), Piece.mix(digest, -1 - op.results().indexOf(one.result)));
      case THE_ARGUMENT -> rank.put(one.result, rank.place(one.source));
      case VIEW -> {
        var of = rank.place(one.source);
        rank.put(one.result, of.at(of.begin + one.offset));
      }
    }
  }

  private void writeArguments(long digest) {
    for (int p = 0; p < op.args().size(); p++) {
      if (!schema.params().get(p).alias().write()) {
        continue;
      }
      for (var value : op.args().get(p).operands()) {
        double part =
            switch (random.nextInt(4)) {
              case 0 -> 0;
              case 1 -> 0.5;
              default -> 1;
            };
        if (value.isTensor()) {
          rank.place(value).fill(value.tensor(), Piece.mix(digest, p), part);
        }
      }
    }
  }

  private void moveArguments() {
    var anywhere = new ArrayList<Value>();
    for (int p = 0; p < op.args().size(); p++) {
      if (schema.params().get(p).alias().after().contains(AliasInfo.ANYTHING)) {
        op.args().get(p).operands().stream().filter(Value::isTensor).forEach(anywhere::add);
      }
    }
    for (var argument : anywhere) {
      var other = anywhere.get(random.nextInt(anywhere.size()));
      if (random.nextInt(3) == 0 && fits(argument.tensor(), other.tensor())) {
        rank.place(argument).move(rank.place(other), offset(argument.tensor(), other.tensor()));
      }
    }
  }

  private static boolean fits(TensorType inner, TensorType outer) {
    return inner.storageBytes() <= outer.storageBytes();
  }

  private static boolean isLike(TensorType a, TensorType b) {
    return a.sizes().equals(b.sizes())
        && a.strides().equals(b.strides())
        && a.dtype().bytes() == b.dtype().bytes();
  }

  /** Where a tensor begins as a view of another one. */
  private long offset(TensorType inner, TensorType outer) {
    long room = (outer.storageBytes() - inner.storageBytes()) / 16;
    return room == 0 || random.nextBoolean() ? 0 : 16 * random.nextLong(room + 1);
  }

  /** {@return the arguments and earlier results that a result may be a view of} */
  private List<Value> sources(int r) {
    var sets = sets(r);
    var sources = new ArrayList<Value>();
    for (int p = 0; p < op.args().size(); p++) {
      var alias = schema.params().get(p).alias();
      if (!Collections.disjoint(sets, alias.before())
          || !Collections.disjoint(sets, alias.after())) {
        for (var value : op.args().get(p).operands()) {
          if (value.isTensor()) {
            sources.add(value);
          }
        }
      }
    }
    for (int i = 0; i < r; i++) {
      if (op.results().get(i).isTensor() && !Collections.disjoint(sets, sets(i))) {
        sources.add(op.results().get(i));
      }
    }
    return sources;
  }

  private Set<String> sets(int r) {
    var results = schema.results();
    var sets = new HashSet<String>();
    for (int i = 0; i < results.size(); i++) {
      if (i == r || results.size() != op.results().size()) {
        sets.addAll(results.get(i).alias().after());
      }
    }
    return sets;
  }
}
