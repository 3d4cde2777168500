package dev.symplan.planner.interpret;

import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Collectives of {@code symm_mem} and of serving engines, as these define them. */
final class ForeignCollectives {
  private static final Set<String> SPOIL_INPUT =
      Set.of("two_shot_all_reduce_out", "reduce_scatter_out");

  private static final long SPOILED = 0x7363726174636820L;

  private ForeignCollectives() {}

  static boolean is(Op op) {
    return op.def().collective().flatMap(CollectiveSpec::foreign).isPresent();
  }

  /** {@return the tensor that has the result afterwards: a new one, or an argument} */
  static Value target(Op op) {
    return !op.results().isEmpty() && op.result().isTensor() ? op.result() : op.written().getLast();
  }

  /** {@return the elements of a rank's result, in their order} */
  static List<Piece> result(Op op, Exchange exchange, int rank, Map<Integer, Exchange.Sent> sent) {
    if (exchange.kind() == Kind.ALL_REDUCE) {
      return exchange.result(rank, sent).getFirst().pieces();
    }
    var type = op.collective().orElseThrow().operands().getFirst().tensor();
    long outer = 1;
    for (int d = 0; d < dim(op, type.rank()); d++) {
      outer *= type.size(d);
    }
    int ranks = exchange.members().length();
    var operands = exchange.members().stream().mapToObj(m -> sent.get(m).pieces()).toList();
    long width = type.bytes() / outer;
    return switch (exchange.kind()) {
      case ALL_GATHER -> {
        var all = new ArrayList<Piece>();
        for (long i = 0; i < outer; i++) {
          for (var operand : operands) {
            all.addAll(Piece.part(operand, i * width, width));
          }
        }
        yield all;
      }
      case REDUCE_SCATTER -> {
        long own = width / ranks * exchange.members().indexOf(rank);
        var slices = new ArrayList<List<Piece>>();
        for (var operand : operands) {
          var slice = new ArrayList<Piece>();
          for (long i = 0; i < outer; i++) {
            slice.addAll(Piece.part(operand, i * width + own, width / ranks));
          }
          slices.add(slice);
        }
        yield Piece.combine(exchange.key(), slices);
      }
      case ALL_REDUCE, ALL_TO_ALL, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM ->
          throw new IllegalStateException(op.def().name().toString());
    };
  }

  private static int dim(Op op, int rank) {
    var schema = op.def().schema();
    if (schema.hasParam("split_last_dim")) {
      return op.arg("split_last_dim").equals(new Arg.Bool(true)) ? rank - 1 : 0;
    }
    return schema.hasParam("dim") && op.arg("dim") instanceof Arg.Int(long dim)
        ? Math.floorMod(dim, rank)
        : 0;
  }

  /** Writes something wrong into what the op takes for its work. */
  static void spoil(Op op, Rank rank) {
    var name = op.def().name().name();
    for (var param : op.def().schema().params()) {
      if (param.name().equals("symm_buffer")
          || (param.name().equals("input") && SPOIL_INPUT.contains(name))) {
        var value = op.call().value(param.name());
        rank.place(value).fill(value.tensor(), SPOILED);
        rank.scratch.add(rank.place(value).space);
      }
    }
  }
}
