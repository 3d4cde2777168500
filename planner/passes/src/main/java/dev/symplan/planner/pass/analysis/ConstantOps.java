package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;
import java.util.stream.Stream;

/**
 * Evaluates ops that make masks, and only where that is exact: bools, integers up to 2^53, and of
 * floats 0, 1 and -1. Floats of 65504 and more, as hide scores, are known to be at least that
 * large.
 *
 * @param operands the elements of what the ops read
 */
record ConstantOps(ConstantElements operands) {

  /** The largest finite {@code float16}: floats as large only have to stay large. */
  private static final double MIN_LARGE = 65504;

  /** The largest finite number of each type that masks have. */
  private static final ImmutableMap<DType, Double> LARGEST =
      ImmutableMap.of(
          DType.F64,
          Double.MAX_VALUE,
          DType.F32,
          (double) Float.MAX_VALUE,
          DType.BF16,
          0x1.FEp127,
          DType.F16,
          MIN_LARGE);

  /** Whether each comparison holds: a bit for less (1), for equal (2) and for greater (4). */
  private static final ImmutableMap<String, Integer> COMPARISONS =
      ImmutableMap.of("lt", 0b001, "le", 0b011, "eq", 0b010, "ge", 0b110, "gt", 0b100, "ne", 0b101);

  private static final ImmutableMap<String, DoubleBinaryOperator> OF_BOOLS =
      ImmutableMap.of(
          "bitwise_and", (a, b) -> a * b,
          "bitwise_or", Math::max,
          "logical_and", (a, b) -> bool(a != 0 && b != 0),
          "logical_or", (a, b) -> bool(a != 0 || b != 0));

  private static final ImmutableMap<String, DoubleBinaryOperator> OF_NUMBERS =
      ImmutableMap.of("add", Double::sum, "sub", (a, b) -> a - b, "mul", (a, b) -> a * b);

  private static final ImmutableMap<String, Double> FILLS =
      ImmutableMap.of("zeros", 0.0, "zeros_like", 0.0, "ones", 1.0, "ones_like", 1.0);

  private static final ImmutableSet<String> COPIES =
      ImmutableSet.of("clone", "_to_copy", "convert_element_type", "contiguous", "expand_copy");

  /** {@return the function that computes the rows of an op's only result} */
  RowFunction rows(Op op, TensorType type) {
    var name = op.def().name();
    if (op.results().size() != 1
        || op.def().rule().isEmpty()
        || !name.namespace().equals("aten") && !name.namespace().equals("prims")) {
      throw new UnknownElements();
    }
    var call = op.call();
    var plain = name.name();
    if (FILLS.containsKey(plain)) {
      double value = FILLS.get(plain);
      return RowFunctions.constant(type, value);
    }
    if (COMPARISONS.containsKey(plain)) {
      return compared(op, type, COMPARISONS.get(plain));
    }
    if (OF_BOOLS.containsKey(plain) && type.dtype() == DType.BOOL) {
      return ofTwo(op, type, OF_BOOLS.get(plain));
    }
    if (OF_NUMBERS.containsKey(plain)
        && (!call.schema().hasParam("alpha") || call.number("alpha") == 1)) {
      return ofNumbers(op, type, OF_NUMBERS.get(plain));
    }
    if (COPIES.contains(plain)) {
      var given = call.value(call.schema().params().getFirst().name());
      return converted(operands.reader(given, type), given.tensor().dtype(), type.dtype());
    }
    return switch (plain) {
      case "full", "full_like", "scalar_tensor" -> {
        double value =
            conversion(type.dtype(), type.dtype())
                .applyAsDouble(call.number(plain.equals("scalar_tensor") ? "s" : "fill_value"));
        yield RowFunctions.constant(type, value);
      }
      case "iota", "arange" -> counting(op, type);
      case "logical_not", "bitwise_not" -> {
        if (call.tensor("self").dtype() != DType.BOOL) {
          throw new UnknownElements();
        }
        yield ofOne(call.value("self"), type, RowFunctions.each(a -> 1 - a));
      }
      case "where" -> choice(op, type);
      case "masked_fill" -> maskedFill(op, type);
      case "tril", "triu" -> triangle(op, type);
      case "cat" -> joined(op, type);
      case "cumsum" -> sums(op, type);
      case "index" -> indexed(op, type);
      default -> throw new UnknownElements();
    };
  }

  private static double bool(boolean value) {
    return value ? 1 : 0;
  }

  /** An integer that a double does not hold exactly is not known. */
  private static double exact(double value) {
    if (Math.abs(value) <= Runs.MAX_EXACT) {
      return value;
    }
    throw new UnknownElements();
  }

  /**
   * Of floats, those are known that masks have and that no type rounds to something else, and large
   * ones, which may become infinite.
   */
  private static double plain(DType dtype, double value) {
    if (value == 0 || value == 1 || value == -1) {
      return value;
    }
    var largest = LARGEST.get(dtype);
    if (largest == null || !(Math.abs(value) >= MIN_LARGE)) {
      throw new UnknownElements();
    }
    return Math.abs(value) <= largest ? value : Math.copySign(Double.POSITIVE_INFINITY, value);
  }

  /** Of elements that are exact in the first type, or large. */
  private static DoubleUnaryOperator conversion(DType from, DType to) {
    if (to == DType.BOOL) {
      return a -> bool(a != 0);
    }
    if (to.isFloat()) {
      return a -> plain(to, a);
    }
    if (to == DType.I64 || to == DType.I32) {
      double max = maxInteger(from, to);
      return a -> RowFunctions.upTo(max, a < 0 ? Math.ceil(a) : Math.floor(a));
    }
    throw new UnknownElements();
  }

  /** How large integers are known that elements of a type are converted to. */
  private static double maxInteger(DType from, DType to) {
    return from.isFloat() ? 1 : to == DType.I32 ? Integer.MAX_VALUE : Runs.MAX_EXACT;
  }

  private RowFunction operand(Op op, String param, TensorType shape) {
    return switch (op.arg(param)) {
      case Arg.Ref(var value) when value.isTensor() -> operands.reader(value, shape);
      case Arg.Literal literal -> {
        double number = literal.number().orElseThrow(UnknownElements::new).doubleValue();
        yield RowFunctions.constant(shape, number);
      }
      case Arg.Ref _, Arg.Seq _ -> throw new UnknownElements();
    };
  }

  /** Of floats, comparisons are not known: PyTorch rounds integers that it compares with one. */
  private RowFunction compared(Op op, TensorType type, int holds) {
    if (op.args().stream().anyMatch(Arg.Float.class::isInstance)
        || op.operands().stream()
            .anyMatch(value -> value.isTensor() && value.tensor().dtype().isFloat())) {
      throw new UnknownElements();
    }
    return joint(
        op,
        type,
        (made, count, a, by, b, otherBy) ->
            RowFunctions.compare(made, count, a, by, b, otherBy, holds));
  }

  private RowFunction joint(Op op, TensorType type, RowFunctions.OfRuns function) {
    return RowFunctions.joint(operand(op, "self", type), operand(op, "other", type), function);
  }

  private RowFunction ofTwo(Op op, TensorType type, DoubleBinaryOperator function) {
    return joint(op, type, RowFunctions.each(function));
  }

  private RowFunction ofNumbers(Op op, TensorType type, DoubleBinaryOperator function) {
    var dtype = type.dtype();
    if (dtype == DType.I64 || dtype == DType.I32) {
      return ofIntegers(op, type, function);
    }
    if (dtype == DType.BOOL) {
      return ofTwo(op, type, (a, b) -> bool(function.applyAsDouble(a, b) != 0));
    }
    return ofTwo(
        op,
        type,
        (a, b) -> {
          double value = plain(dtype, function.applyAsDouble(a, b));
          // Of what is only known to be large, a sum may leave anything.
          boolean large = Math.max(Math.abs(a), Math.abs(b)) >= MIN_LARGE;
          if (large && Math.abs(value) < MIN_LARGE && a != 0 && b != 0) {
            throw new UnknownElements();
          }
          return value;
        });
  }

  /** Sums, differences and products of integers, exactly. */
  private RowFunction ofIntegers(Op op, TensorType type, DoubleBinaryOperator function) {
    var dtype = type.dtype();
    double max = dtype == DType.I32 ? Integer.MAX_VALUE : Runs.MAX_EXACT;
    return joint(
        op,
        type,
        (made, count, a, by, b, otherBy) -> {
          RowFunctions.checkUpTo(Runs.MAX_EXACT, count, a, by);
          RowFunctions.checkUpTo(Runs.MAX_EXACT, count, b, otherBy);
          double first = function.applyAsDouble(a, b);
          double second = function.applyAsDouble(a + by, b + otherBy);
          double third = function.applyAsDouble(a + 2 * by, b + 2 * otherBy);
          // A product of two runs with steps has none.
          if (third - second == second - first) {
            RowFunctions.checkUpTo(max, count, first, second - first);
            made.add(count, first, second - first);
          } else {
            RowFunctions.each((x, y) -> RowFunctions.upTo(max, function.applyAsDouble(x, y)))
                .make(made, count, a, by, b, otherBy);
          }
        });
  }

  /** {@return the length of a row} */
  static int lastSize(TensorType type) {
    return type.rank() == 0 ? 1 : Math.toIntExact(type.size(type.rank() - 1));
  }

  private RowFunction ofOne(Value value, TensorType type, RowFunctions.OfRun function) {
    return RowFunctions.made(operands.reader(value, type), function);
  }

  /** Runs stay runs where numbers stay what they are. */
  private static RowFunction converted(RowFunction rows, DType from, DType to) {
    var conversion = conversion(from, to);
    boolean keeps = to == DType.I64 || to == DType.I32;
    return RowFunctions.made(
        rows,
        (made, count, first, step) -> {
          if (keeps && step != 0) {
            RowFunctions.checkUpTo(maxInteger(from, to), count, first, step);
            made.add(count, first, step);
          } else {
            RowFunctions.each(conversion).make(made, count, first, step);
          }
        });
  }

  private static RowFunction counting(Op op, TensorType type) {
    if (type.dtype() != DType.I64 && type.dtype() != DType.I32) {
      throw new UnknownElements();
    }
    long start = whole(op, "start", 0);
    long step = whole(op, "step", 1);
    double max = maxInteger(DType.I64, type.dtype());
    RowFunctions.upTo(max, start);
    RowFunctions.upTo(max, start + (double) step * type.numel());
    var row = Runs.counting(lastSize(type), start, step);
    return _ -> row;
  }

  private static long whole(Op op, String param, long otherwise) {
    return op.def().schema().hasParam(param)
        ? op.arg(param).integer().orElseThrow(UnknownElements::new)
        : otherwise;
  }

  private RowFunction choice(Op op, TensorType type) {
    return chosen(op, type, "condition", "self", "other");
  }

  private RowFunction maskedFill(Op op, TensorType type) {
    return chosen(op, type, "mask", "value", "self");
  }

  private RowFunction chosen(Op op, TensorType type, String condition, String yes, String no) {
    var rows =
        RowFunctions.chosen(
            operand(op, condition, type), operand(op, yes, type), operand(op, no, type));
    boolean fromFloats =
        Stream.of(yes, no)
            .anyMatch(
                param ->
                    op.arg(param) instanceof Arg.Ref(var value)
                        && value.isTensor()
                        && value.tensor().dtype().isFloat());
    return converted(rows, fromFloats ? DType.F64 : type.dtype(), type.dtype());
  }

  private RowFunction triangle(Op op, TensorType type) {
    var call = op.call();
    long diagonal = call.integer("diagonal");
    boolean lower = op.def().name().name().equals("tril");
    var rows = operands.reader(call.value("self"), type);
    long height = type.size(type.rank() - 2);
    return row -> {
      var whole = rows.row(row);
      int length = whole.length();
      // Where what is kept of a lower triangle ends, or of an upper one begins.
      int at = (int) Math.clamp(row % height + diagonal + (lower ? 1 : 0), 0L, (long) length);
      return Runs.join(
          lower
              ? List.of(whole.slice(0, 1, at), Runs.of(length - at, 0))
              : List.of(Runs.of(at, 0), whole.slice(at, 1, length - at)));
    };
  }

  /** Joins along the last dimension. */
  private RowFunction joined(Op op, TensorType type) {
    var call = op.call();
    var items = call.values("tensors");
    if (call.dim("dim", type.rank()) != type.rank() - 1
        || items.stream().anyMatch(item -> item.tensor().rank() != type.rank())) {
      throw new UnknownElements();
    }
    var parts = items.stream().map(item -> operands.reader(item, item.tensor())).toList();
    return row -> Runs.join(parts.stream().map(part -> part.row(row)).toList());
  }

  /** Sums of integers along the last dimension. */
  private RowFunction sums(Op op, TensorType type) {
    var call = op.call();
    var self = call.value("self");
    if (type.dtype() != DType.I64
        || self.tensor().dtype().isFloat()
        || type.rank() == 0
        || call.dim("dim", type.rank()) != type.rank() - 1) {
      throw new UnknownElements();
    }
    var rows = operands.reader(self, type);
    return row -> {
      var made = new Runs.Builder();
      rows.row(row)
          .forEach(
              new Runs.Visitor() {
                private double sum = 0;

                @Override
                public void see(int count, double first, double step) {
                  if (step == 0) {
                    made.add(count, exact(sum + first), first);
                    sum = exact(sum + first * count);
                  } else {
                    for (int i = 0; i < count; i++) {
                      sum = exact(sum + first + i * step);
                      made.add(1, sum, 0);
                    }
                  }
                }
              });
      return made.build();
    };
  }

  /** Takes elements by one index for each dimension. */
  private RowFunction indexed(Op op, TensorType type) {
    var call = op.call();
    var self = call.value("self");
    var from = self.tensor();
    if (!(op.arg("indices") instanceof Arg.Seq(var given))
        || given.isEmpty()
        || given.size() != from.rank()
        || !given.stream()
            .allMatch(
                index ->
                    index instanceof Arg.Ref(var value) && value.tensor().dtype() == DType.I64)) {
      throw new UnknownElements();
    }
    var elements = operands.held(self);
    var places = RowFunctions.constant(type, 0);
    for (int dim = 0; dim < given.size(); dim++) {
      long size = from.size(dim);
      var index = operands.reader(((Arg.Ref) given.get(dim)).value(), type);
      var wrapped =
          RowFunctions.made(
              index, (made, count, first, step) -> wrap(made, count, first, step, size));
      places =
          RowFunctions.joint(
              places,
              wrapped,
              (made, count, a, by, b, otherBy) ->
                  made.add(count, a * size + b, by * size + otherBy));
    }
    return RowFunctions.made(
        places, (made, count, first, step) -> take(elements, made, count, first, step));
  }

  /** Negative indices count from the end. */
  private static void wrap(Runs.Builder made, int count, double first, double step, long size) {
    double last = first + (count - 1) * step;
    if (first < -size || last < -size || first >= size || last >= size) {
      throw new UnknownElements();
    }
    if (first < 0 == last < 0) {
      made.add(count, first < 0 ? first + size : first, step);
    } else {
      RowFunctions.each(index -> index < 0 ? index + size : index).make(made, count, first, step);
    }
  }

  private static void take(Runs elements, Runs.Builder made, int count, double first, double step) {
    if (step >= 0) {
      elements.slice((int) first, (int) step, count).forEach(made::add);
    } else {
      for (int i = 0; i < count; i++) {
        made.add(1, elements.get((int) (first + i * step)), 0);
      }
    }
  }
}
