package dev.symplan.ir.hlo;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.List;

/**
 * Makes ops of {@code ragged-all-to-all}, whose ranks send each other as many rows as tables say.
 * As no plan knows how many that are, all rows are gathered; each rank then picks those sent to it.
 */
final class RaggedExchange {
  private static final String FUNCTIONAL = "_c10d_functional::";

  private final GraphEmitter emitter;

  RaggedExchange(GraphEmitter emitter) {
    this.emitter = emitter;
  }

  /**
   * {@return the second operand, with the received rows written over it}
   *
   * @param operands input, output, and the tables: the first row and the number of rows that go to
   *     each rank, the row of its output where they go, and the number that comes from each
   */
  Bound exchange(
      HloInstruction instruction, List<Value> operands, Array shape, ProcessGroup group) {
    var name = instruction.name();
    if (operands.size() != 6) {
      throw new IllegalArgumentException("it takes 6 operands, not " + operands.size());
    }
    var input = operands.getFirst();
    var output = operands.get(1);
    int ranks = group.size();
    long sent = operands.get(2).tensor().numel();
    boolean fits =
        input.tensor().rank() > 0
            && input.tensor().rank() == output.tensor().rank()
            && output.tensor().sizes().equals(shape.tensor().sizes())
            && operands.subList(2, 6).stream()
                .allMatch(table -> table.tensor().rank() == 1 && table.tensor().numel() == sent)
            && sent > 0
            && sent % ranks == 0;
    if (!fits) {
      throw new IllegalArgumentException(
          "it needs an output of the result's type, and tables with a number for each rank");
    }
    var tables =
        List.of(2, 3, 4).stream()
            .map(i -> emitter.converted(operands.get(i), DType.I64, name + ".table" + i))
            .toList();
    var stacked =
        emitter.op(name + ".tables", "aten::stack", GraphEmitter.refs(tables), new Arg.Int(1));
    var groupName = new Arg.Str(group.name());
    var exchanged =
        waited(
            name + ".exchanged",
            emitter.op(
                name + ".exchange",
                FUNCTIONAL + "all_to_all_single",
                new Arg.Ref(stacked),
                Arg.Seq.of(),
                Arg.Seq.of(),
                groupName));
    var all =
        waited(
            name + ".all",
            emitter.op(
                name + ".gather",
                FUNCTIONAL + "all_gather_into_tensor",
                new Arg.Ref(emitter.op(name + ".packed", "aten::contiguous", new Arg.Ref(input))),
                new Arg.Int(ranks),
                groupName));
    var first = column(name + ".first", exchanged, 0);
    var count = column(name + ".count", exchanged, 1);
    var start = column(name + ".start", exchanged, 2);
    // Row j of the output, of which start <= j < start + count, is row j + shift of all rows.
    var base = bases(name, ranks, sent / ranks, input.tensor().size(0));
    var shift =
        op(
            name + ".shift",
            "aten::sub.Tensor",
            op(name + ".from", "aten::add.Tensor", first, base),
            start);
    long rows = output.tensor().size(0);
    var numbers =
        emitter.op(
            name + ".row",
            "aten::reshape",
            new Arg.Ref(count(name + ".rows", rows)),
            Arg.Seq.of(rows, 1));
    var end = op(name + ".end", "aten::add.Tensor", start, count);
    var hits =
        op(
            name + ".hits",
            "aten::logical_and",
            op(name + ".above", "aten::ge.Tensor", numbers, start),
            op(name + ".below", "aten::lt.Tensor", numbers, end));
    var from = op(name + ".source", "aten::add.Tensor", numbers, shift);
    var zero = emitter.number(0, name + ".zero");
    var index =
        emitter.op(
            name + ".index",
            "aten::sum.dim_IntList",
            new Arg.Ref(
                emitter.op(
                    name + ".sources",
                    "aten::where.self",
                    new Arg.Ref(hits),
                    new Arg.Ref(from),
                    new Arg.Ref(zero))),
            Arg.Seq.of(1),
            new Arg.Bool(false),
            new Arg.Dtype(DType.I64));
    var received =
        emitter.op(
            name + ".received",
            "aten::index_select",
            new Arg.Ref(all),
            new Arg.Int(0),
            new Arg.Ref(index));
    var any =
        emitter.op(
            name + ".any", "aten::any.dim", new Arg.Ref(hits), new Arg.Int(1), new Arg.Bool(false));
    var sizes = ImmutableLongArray.builder().add(rows);
    for (int i = 1; i < output.tensor().rank(); i++) {
      sizes.add(1);
    }
    var mask = emitter.reshaped(any, sizes.build(), name + ".mask");
    return new Bound.Tensor(
        emitter.fresh(
            name,
            shape,
            "aten::where.self",
            new Arg.Ref(mask),
            new Arg.Ref(received),
            new Arg.Ref(output)));
  }

  /** The first row of each sender among all rows, once for each part that it sends. */
  private Value bases(String name, int ranks, long parts, long rows) {
    var senders =
        emitter.op(
            name + ".senders",
            "aten::mul.Tensor",
            new Arg.Ref(count(name + ".sender", ranks)),
            new Arg.Int(rows));
    if (parts == 1) {
      return senders;
    }
    var column =
        emitter.op(name + ".column", "aten::unsqueeze", new Arg.Ref(senders), new Arg.Int(1));
    var wide =
        emitter.op(name + ".wide", "aten::expand", new Arg.Ref(column), Arg.Seq.of(ranks, parts));
    return emitter.op(
        name + ".base", "aten::reshape", new Arg.Ref(wide), Arg.Seq.of(ranks * parts));
  }

  private Value count(String name, long size) {
    return emitter.op(
        name, "aten::arange.start", new Arg.Int(0), new Arg.Int(size), new Arg.Dtype(DType.I64));
  }

  private Value waited(String name, Value started) {
    return emitter.op(name, FUNCTIONAL + "wait_tensor", new Arg.Ref(started));
  }

  private Value column(String name, Value of, long which) {
    return emitter.op(
        name, "aten::select.int", new Arg.Ref(of), new Arg.Int(1), new Arg.Int(which));
  }

  private Value op(String name, String op, Value left, Value right) {
    return emitter.op(name, op, new Arg.Ref(left), new Arg.Ref(right));
  }
}
