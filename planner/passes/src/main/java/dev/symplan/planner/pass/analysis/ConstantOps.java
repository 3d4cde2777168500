package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import java.util.Arrays;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;

/**
 * Evaluates ops that make masks, and only where that is exact: bools, integers up to 2^53, and of
 * floats 0, 1 and -1. Floats of 65504 and more, as hide scores, are known to be at least that
 * large.
 *
 * @param operands the elements of what the ops read
 */
record ConstantOps(ConstantElements operands) {

  /** The largest integer up to which a double holds all. */
  private static final double MAX_EXACT = 1L << 53;

  /** The largest finite {@code float16}: floats as large only have to stay large. */
  private static final double MIN_LARGE = 65504;

  /** Whether each comparison holds: a bit for less (1), for equal (2) and for greater (4). */
  private static final ImmutableMap<String, Integer> COMPARISONS =
      ImmutableMap.of("lt", 0b001, "le", 0b011, "eq", 0b010, "ge", 0b110, "gt", 0b100, "ne", 0b101);

  private static final ImmutableMap<String, DoubleBinaryOperator> OF_BOOLS =
      ImmutableMap.of(
          "bitwise_and",
          (a, b) -> a * b,
          "bitwise_or",
          Math::max,
          "logical_and",
          (a, b) -> a * b,
          "logical_or",
          Math::max);

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
      return (_, into) -> Arrays.fill(into, value);
    }
    if (COMPARISONS.containsKey(plain)) {
      return compared(op, type, COMPARISONS.get(plain));
    }
    if (OF_BOOLS.containsKey(plain) && type.dtype() == DType.BOOL) {
      return ofTwo(op, type, OF_BOOLS.get(plain), false);
    }
    if (OF_NUMBERS.containsKey(plain)
        && (!call.schema().hasParam("alpha") || call.number("alpha") == 1)) {
      var function = OF_NUMBERS.get(plain);
      return type.dtype().isFloat()
          ? ofTwo(op, type, (a, b) -> plain(function.applyAsDouble(a, b)), false)
          : ofTwo(op, type, function, true);
    }
    if (COPIES.contains(plain)) {
      var param = call.schema().params().getFirst().name();
      return ofOne(call.value(param), type, conversion(type.dtype()));
    }
    return switch (plain) {
      case "full", "full_like", "scalar_tensor" -> {
        double value =
            conversion(type.dtype())
                .applyAsDouble(call.number(plain.equals("scalar_tensor") ? "s" : "fill_value"));
        yield (_, into) -> Arrays.fill(into, value);
      }
      case "iota", "arange" -> counting(op, type);
      case "logical_not", "bitwise_not" -> {
        if (call.tensor("self").dtype() != DType.BOOL) {
          throw new UnknownElements();
        }
        yield ofOne(call.value("self"), type, a -> 1 - a);
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
    if (Math.abs(value) <= MAX_EXACT) {
      return value;
    }
    throw new UnknownElements();
  }

  /** Of floats, those are known that masks have and that no type rounds to something else. */
  private static double plain(double value) {
    if (value == 0 || value == 1 || value == -1 || Math.abs(value) >= MIN_LARGE) {
      return value;
    }
    throw new UnknownElements();
  }

  private static DoubleUnaryOperator conversion(DType dtype) {
    if (dtype == DType.BOOL) {
      return a -> bool(a != 0);
    }
    if (dtype.isFloat()) {
      return ConstantOps::plain;
    }
    if (dtype == DType.I64 || dtype == DType.I32) {
      return a -> {
        double whole = a < 0 ? Math.ceil(a) : Math.floor(a);
        if (Math.abs(whole) > (dtype == DType.I64 ? MAX_EXACT : Integer.MAX_VALUE)) {
          throw new UnknownElements();
        }
        return whole;
      };
    }
    throw new UnknownElements();
  }

  private RowFunction operand(Op op, String param, TensorType shape) {
    return switch (op.arg(param)) {
      case Arg.Ref(var value) when value.isTensor() -> operands.reader(value, shape);
      case Arg.Literal literal -> {
        double number = literal.number().orElseThrow(UnknownElements::new).doubleValue();
        yield (_, into) -> Arrays.fill(into, number);
      }
      case Arg.Ref _, Arg.Seq _ -> throw new UnknownElements();
    };
  }

  /** Of floats, comparisons are not known. */
  private RowFunction compared(Op op, TensorType type, int holds) {
    if (op.operands().stream()
        .anyMatch(value -> value.isTensor() && value.tensor().dtype().isFloat())) {
      throw new UnknownElements();
    }
    var left = operand(op, "self", type);
    var right = operand(op, "other", type);
    var other = new double[lastSize(type)];
    return (row, into) -> {
      left.row(row, into);
      right.row(row, other);
      for (int i = 0; i < into.length; i++) {
        double a = into[i];
        double b = other[i];
        if (!(Math.abs(a) <= MAX_EXACT && Math.abs(b) <= MAX_EXACT)) {
          throw new UnknownElements();
        }
        into[i] = holds >> (a < b ? 0 : a == b ? 1 : 2) & 1;
      }
    };
  }

  /**
   * @param exactly whether integers and bools are added up
   */
  private RowFunction ofTwo(
      Op op, TensorType type, DoubleBinaryOperator function, boolean exactly) {
    var dtype = type.dtype();
    if (!dtype.isFloat() && dtype != DType.BOOL && dtype != DType.I64 && dtype != DType.I32) {
      throw new UnknownElements();
    }
    var left = operand(op, "self", type);
    var right = operand(op, "other", type);
    var other = new double[lastSize(type)];
    double max =
        dtype == DType.I32 ? Integer.MAX_VALUE : exactly ? MAX_EXACT : Double.POSITIVE_INFINITY;
    return (row, into) -> {
      left.row(row, into);
      right.row(row, other);
      if (exactly) {
        checkUpTo(MAX_EXACT, into);
        checkUpTo(MAX_EXACT, other);
      }
      for (int i = 0; i < into.length; i++) {
        into[i] = function.applyAsDouble(into[i], other[i]);
      }
      checkUpTo(max, into);
    };
  }

  private static void checkUpTo(double max, double[] row) {
    for (double value : row) {
      if (!(Math.abs(value) <= max)) {
        throw new UnknownElements();
      }
    }
  }

  /** {@return the length of a row} */
  static int lastSize(TensorType type) {
    return type.rank() == 0 ? 1 : Math.toIntExact(type.size(type.rank() - 1));
  }

  private RowFunction ofOne(Value value, TensorType type, DoubleUnaryOperator function) {
    var rows = operands.reader(value, type);
    return (row, into) -> {
      rows.row(row, into);
      for (int i = 0; i < into.length; i++) {
        into[i] = function.applyAsDouble(into[i]);
      }
    };
  }

  private static RowFunction counting(Op op, TensorType type) {
    var call = op.call();
    if (type.dtype() != DType.I64 && type.dtype() != DType.I32) {
      throw new UnknownElements();
    }
    long start = call.schema().hasParam("start") ? call.integer("start") : 0;
    long step = call.schema().hasParam("step") ? call.integer("step") : 1;
    exact((double) start);
    exact(start + (double) step * type.numel());
    return (_, into) -> {
      for (int i = 0; i < into.length; i++) {
        into[i] = start + (double) step * i;
      }
    };
  }

  private RowFunction choice(Op op, TensorType type) {
    var condition = operand(op, "condition", type);
    var yes = operand(op, "self", type);
    var no = operand(op, "other", type);
    return chosen(type, condition, yes, no);
  }

  private RowFunction maskedFill(Op op, TensorType type) {
    return chosen(
        type, operand(op, "mask", type), operand(op, "value", type), operand(op, "self", type));
  }

  private static RowFunction chosen(
      TensorType type, RowFunction condition, RowFunction yes, RowFunction no) {
    var chosen = new double[lastSize(type)];
    var other = new double[lastSize(type)];
    return (row, into) -> {
      condition.row(row, chosen);
      yes.row(row, into);
      no.row(row, other);
      for (int i = 0; i < into.length; i++) {
        into[i] = chosen[i] != 0 ? into[i] : other[i];
      }
    };
  }

  private RowFunction triangle(Op op, TensorType type) {
    var call = op.call();
    long diagonal = call.integer("diagonal");
    boolean lower = op.def().name().name().equals("tril");
    var rows = operands.reader(call.value("self"), type);
    long height = type.size(type.rank() - 2);
    return (row, into) -> {
      rows.row(row, into);
      long line = row % height + diagonal;
      for (int i = 0; i < into.length; i++) {
        if (lower ? i > line : i < line) {
          into[i] = 0;
        }
      }
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
    var parts = items.stream().map(operands::held).toList();
    return (row, into) -> {
      int at = 0;
      for (int i = 0; i < parts.size(); i++) {
        int length = lastSize(items.get(i).tensor());
        System.arraycopy(parts.get(i), Math.toIntExact(row * length), into, at, length);
        at += length;
      }
    };
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
    return (row, into) -> {
      rows.row(row, into);
      for (int i = 1; i < into.length; i++) {
        into[i] = exact(into[i] + into[i - 1]);
      }
    };
  }

  /** Takes elements by one index for each dimension. */
  private RowFunction indexed(Op op, TensorType type) {
    var call = op.call();
    var self = call.value("self");
    var from = self.tensor();
    if (!(op.arg("indices") instanceof Arg.Seq(var given))
        || given.size() != from.rank()
        || !given.stream()
            .allMatch(
                index ->
                    index instanceof Arg.Ref(var value) && value.tensor().dtype() == DType.I64)) {
      throw new UnknownElements();
    }
    var elements = operands.held(self);
    var indices =
        given.stream().map(index -> operands.reader(((Arg.Ref) index).value(), type)).toList();
    var index = new double[lastSize(type)];
    return (row, into) -> {
      Arrays.fill(into, 0);
      for (int dim = 0; dim < indices.size(); dim++) {
        indices.get(dim).row(row, index);
        long size = from.size(dim);
        for (int i = 0; i < into.length; i++) {
          double wrapped = index[i] < 0 ? index[i] + size : index[i];
          if (wrapped < 0 || wrapped >= size) {
            throw new UnknownElements();
          }
          into[i] = into[i] * size + wrapped;
        }
      }
      for (int i = 0; i < into.length; i++) {
        into[i] = elements[(int) into[i]];
      }
    };
  }
}
