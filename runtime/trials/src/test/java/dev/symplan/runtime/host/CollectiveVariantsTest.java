package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Every variant of every kind, type, reduction and group size gives the bits of the definition. One
 * program holds all collectives of a shape, so that they also run one after the other in one arena.
 */
class CollectiveVariantsTest {
  private static final List<String> REDUCTIONS =
      List.of("sum", "avg", "product", "min", "max", "band", "bor", "bxor");

  /** One collective of a program. */
  private record Case(String call, DType dtype, String reduction, Variant variant) {}

  /** A shape: rows that each rank has for each peer, and elements in a row. */
  private record Shape(int perRank, int columns) {
    long rows(int ranks) {
      return (long) perRank * ranks;
    }
  }

  /** No collective is made part of another, so that each can be told its variant. */
  private static final CompileOptions EACH_ALONE =
      CompileOptions.DEFAULT.withMulticast(true).withRewrites(RewriteOptions.OFF);

  private static final List<Shape> SHAPES =
      List.of(
          new Shape(0, 3),
          new Shape(1, 1),
          new Shape(1, 3),
          new Shape(5, 1),
          new Shape(3, 7),
          new Shape(131, 5));

  private static boolean reduces(String kind) {
    return kind.equals("all_reduce") || kind.equals("reduce_scatter");
  }

  private static boolean combines(String op, DType dtype) {
    return switch (dtype.kind()) {
      case COMPLEX -> op.equals("sum") || op.equals("avg");
      case FLOAT -> dtype.bytes() > 1 && !op.startsWith("b");
      case INTEGER, BOOL -> !op.equals("avg");
    };
  }

  private static List<Case> cases(String kind) {
    var cases = new ArrayList<Case>();
    for (var dtype : DType.values()) {
      for (var op : reduces(kind) ? REDUCTIONS : List.of("")) {
        if (!reduces(kind) || combines(op, dtype)) {
          cases.add(new Case(kind, dtype, op, Variant.NCCL));
        }
      }
    }
    return cases;
  }

  private static String call(Case c, String operand, int ranks, Shape shape) {
    return switch (c.call()) {
      case "all_reduce" -> "all_reduce(%s, \"%s\", \"g\")".formatted(operand, c.reduction());
      case "reduce_scatter" ->
          "reduce_scatter_tensor(%s, \"%s\", %s, \"g\")".formatted(operand, c.reduction(), ranks);
      case "all_gather" -> "all_gather_into_tensor(%s, %s, \"g\")".formatted(operand, ranks);
      case "all_to_all" -> {
        var rows =
            IntStream.range(0, ranks)
                .mapToObj(i -> Integer.toString(shape.perRank()))
                .collect(Collectors.joining(", ", "[", "]"));
        yield "all_to_all_single(%s, %s, %s, \"g\")".formatted(operand, rows, rows);
      }
      case "broadcast" -> "broadcast(%s, %s, \"g\")".formatted(operand, ranks - 1);
      case "collective_permute" -> {
        var sources = sources(ranks, shape);
        var pairs =
            IntStream.range(0, ranks)
                .filter(target -> sources.get(target) >= 0)
                .mapToObj(target -> "[%s, %s]".formatted(sources.get(target), target))
                .collect(Collectors.joining(", ", "[", "]"));
        yield "collective_permute(%s, %s, \"g\")".formatted(operand, pairs);
      }
      default -> throw new IllegalArgumentException(c.call());
    };
  }

  /** By target, the rank that sends to it: in a ring, a chain or reversed; −1 for nobody. */
  private static List<Integer> sources(int ranks, Shape shape) {
    return IntStream.range(0, ranks)
        .mapToObj(
            target ->
                switch (shape.columns()) {
                  case 1 -> (target + ranks - 1) % ranks;
                  case 3 -> target - 1;
                  case 5 -> ranks - 1 - target;
                  default -> target == 0 ? ranks - 1 : -1;
                })
        .toList();
  }

  /** Group ranks are not global ranks: the group's order is that of the reduction. */
  private static List<Integer> members(int ranks) {
    return ranks == 4
        ? List.of(2, 0, 3, 1)
        : IntStream.range(0, ranks).map(i -> ranks - 1 - i).boxed().toList();
  }

  private static String program(List<Case> cases, int ranks, Shape shape) {
    var dtypes = cases.stream().map(Case::dtype).distinct().sorted().toList();
    var out = new StringBuilder("graph version 1\n");
    out.append("group g = ").append(members(ranks)).append("\n\ngraph all(");
    out.append(
        dtypes.stream()
            .map(
                d ->
                    "x_%s: %s[%s, %s]"
                        .formatted(
                            d.shortName(), d.shortName(), shape.rows(ranks), shape.columns()))
            .collect(Collectors.joining(", ")));
    out.append(") {\n");
    for (int i = 0; i < cases.size(); i++) {
      var c = cases.get(i);
      out.append("  a%s = aten::clone(x_%s)\n".formatted(i, c.dtype().shortName()));
      var namespace = c.call().equals("collective_permute") ? "symplan" : "_c10d_functional";
      out.append("  r%s = %s::%s\n".formatted(i, namespace, call(c, "a" + i, ranks, shape)));
      out.append("  o%s = _c10d_functional::wait_tensor(r%s)\n".formatted(i, i));
    }
    out.append("  return ");
    out.append(
        IntStream.range(0, cases.size()).mapToObj(i -> "o" + i).collect(Collectors.joining(", ")));
    return out.append("\n}\n").toString();
  }

  private static Plan plan(
      List<Case> cases, int ranks, Shape shape, Target target, CompileOptions options) {
    return Compiler.forTarget(target)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("cases.graph", program(cases, ranks, shape))));
  }

  private static List<Case> eligible(List<Case> cases, int ranks, Shape shape, Target target) {
    var collectives = plan(cases, ranks, shape, target, EACH_ALONE).forRank(0).collectives();
    var all = new ArrayList<Case>();
    for (int i = 0; i < cases.size(); i++) {
      for (Verdict verdict : collectives.get(i).verdicts()) {
        if (verdict.reason().eligible()) {
          var c = cases.get(i);
          all.add(new Case(c.call(), c.dtype(), c.reduction(), verdict.variant()));
        }
      }
    }
    return all;
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "all_reduce",
        "reduce_scatter",
        "all_gather",
        "all_to_all",
        "broadcast",
        "collective_permute"
      })
  void givesTheBitsOfTheDefinition(String kind) {
    long seed = 20_250_101;
    var variants = EnumSet.noneOf(Variant.class);
    for (int ranks = 1; ranks <= 4; ranks++) {
      for (var shape : SHAPES) {
        // Only eight ranks' worth of machine has multicast; the group may be smaller.
        var found = eligible(cases(kind), ranks, shape, Target.H200_X8);
        found.forEach(c -> variants.add(c.variant()));
        var options =
            EACH_ALONE.withVariants(
                IntStream.range(0, found.size())
                    .boxed()
                    .collect(
                        ImmutableMap.toImmutableMap(i -> "r" + i, i -> found.get(i).variant())));
        check(found, ranks, shape, plan(found, ranks, shape, Target.H200_X8, options), seed++);
        if (shape.perRank() == 3) {
          var external = options.withInputs(MemorySpace.EXTERNAL).withOutputs(MemorySpace.EXTERNAL);
          check(found, ranks, shape, plan(found, ranks, shape, Target.H200_X8, external), seed++);
        }
      }
    }
    assertThat(variants)
        .as("variants that were tried")
        .containsAll(
            EnumSet.allOf(Variant.class).stream()
                .filter(v -> v.implementsKind(Kind.valueOf(kind.toUpperCase(Locale.ROOT))))
                .collect(Collectors.toSet()));
  }

  private static void check(List<Case> cases, int ranks, Shape shape, Plan plan, long seed) {
    var random = new Random(seed);
    try (var session = Session.open(plan, new HostBackend())) {
      for (int rank = 0; rank < ranks; rank++) {
        for (int i = 0; i < session.inputNames().size(); i++) {
          fill(session.input(rank, i).orElseThrow(), random);
        }
      }
      session.run();
      for (int i = 0; i < cases.size(); i++) {
        var c = cases.get(i);
        var name = "x_" + c.dtype().shortName();
        var operands = members(ranks).stream().map(rank -> session.input(rank, name)).toList();
        for (int self = 0; self < ranks; self++) {
          var actual = session.output(members(ranks).get(self), i).orElseThrow();
          var expected = HostTensor.allocate(actual.type());
          define(c, operands, self, expected, shape);
          assertSame(
              expected,
              actual,
              "%s, %s ranks, %s, group rank %s, seed %s".formatted(c, ranks, shape, self, seed));
        }
      }
    }
  }

  private static void fill(HostTensor tensor, Random random) {
    var bytes = tensor.memory();
    var dtype = tensor.dtype();
    if (!dtype.isFloat() || dtype.bytes() == 1) {
      for (long i = 0; i < bytes.byteSize(); i++) {
        byte value = (byte) (dtype == DType.BOOL ? random.nextInt(2) : random.nextInt());
        bytes.set(ValueLayout.JAVA_BYTE, i, value);
      }
      if (dtype == DType.C64) {
        floats(tensor, DType.F32, random);
      } else if (dtype == DType.C128) {
        floats(tensor, DType.F64, random);
      } else if (dtype == DType.C32) {
        floats(tensor, DType.F16, random);
      }
      return;
    }
    floats(tensor, dtype, random);
  }

  private static HostTensor flat(HostTensor tensor, DType dtype) {
    return tensor.as(TensorType.contiguous(dtype, tensor.type().bytes() / dtype.bytes()));
  }

  private static void floats(HostTensor tensor, DType dtype, Random random) {
    var flat = flat(tensor, dtype);
    for (long i = 0; i < flat.type().numel(); i++) {
      double special =
          switch (random.nextInt(60)) {
            case 0 -> Double.NaN;
            case 1 -> Double.POSITIVE_INFINITY;
            case 2 -> -0.0;
            case 3 -> 0.0;
            case 4 -> 60_000;
            default -> random.nextGaussian() * 3;
          };
      flat.set(special, i);
    }
  }

  /** The result of one rank, element by element. */
  private static void define(
      Case c, List<HostTensor> operands, int self, HostTensor result, Shape shape) {
    long part = result.type().bytes();
    int size = operands.size();
    switch (c.call()) {
      case "all_reduce" -> reduce(c, operands, 0, result);
      case "reduce_scatter" -> reduce(c, operands, self, result);
      case "all_gather" -> {
        for (int peer = 0; peer < size; peer++) {
          copy(operands.get(peer), 0, result, peer * part / size, part / size);
        }
      }
      case "all_to_all" -> {
        long block = (long) shape.perRank() * shape.columns() * c.dtype().bytes();
        for (int peer = 0; peer < size; peer++) {
          copy(operands.get(peer), self * block, result, peer * block, block);
        }
      }
      case "broadcast" -> copy(operands.get(size - 1), 0, result, 0, part);
      case "collective_permute" -> {
        int source = sources(size, shape).get(self);
        if (source >= 0) {
          copy(operands.get(source), 0, result, 0, part);
        } else {
          result.memory().fill((byte) 0);
        }
      }
      default -> throw new IllegalArgumentException(c.call());
    }
  }

  private static void copy(HostTensor from, long offset, HostTensor to, long at, long bytes) {
    MemorySegment.copy(from.memory(), offset, to.memory(), at, bytes);
  }

  private static void reduce(Case c, List<HostTensor> operands, int part, HostTensor result) {
    var dtype = c.dtype().real();
    if (operands.size() == 1) {
      copy(operands.getFirst(), 0, result, 0, result.type().bytes());
      return;
    }
    var out = flat(result, dtype);
    var in = operands.stream().map(o -> flat(o, dtype)).toList();
    for (long i = 0; i < out.type().numel(); i++) {
      long at = part * out.type().numel() + i;
      if (dtype == DType.F64) {
        double value = in.getFirst().get(at);
        for (var next : in.subList(1, in.size())) {
          value = combine(c.reduction(), value, next.get(at));
        }
        out.set(c.reduction().equals("avg") ? value / in.size() : value, i);
      } else if (dtype.isFloat()) {
        float value = (float) in.getFirst().get(at);
        for (var next : in.subList(1, in.size())) {
          value = (float) combine(c.reduction(), value, (float) next.get(at));
        }
        out.set(c.reduction().equals("avg") ? value / in.size() : value, i);
      } else {
        long value = in.getFirst().getLong(at);
        for (var next : in.subList(1, in.size())) {
          value = combine(c.reduction(), value, next.getLong(at), dtype == DType.U64);
        }
        out.setLong(value, i);
      }
    }
  }

  private static double combine(String op, double a, double b) {
    return switch (op) {
      case "sum", "avg" -> a + b;
      case "product" -> a * b;
      case "min" -> Math.min(a, b);
      case "max" -> Math.max(a, b);
      default -> throw new IllegalArgumentException(op);
    };
  }

  private static long combine(String op, long a, long b, boolean unsigned) {
    boolean less = unsigned ? Long.compareUnsigned(a, b) < 0 : a < b;
    return switch (op) {
      case "sum" -> a + b;
      case "product" -> a * b;
      case "min" -> less ? a : b;
      case "max" -> less ? b : a;
      case "band" -> a & b;
      case "bor" -> a | b;
      case "bxor" -> a ^ b;
      default -> throw new IllegalArgumentException(op);
    };
  }

  private static void assertSame(HostTensor expected, HostTensor actual, String what) {
    long differs = expected.memory().asSlice(0, expected.type().bytes()).mismatch(actual.memory());
    if (differs < 0) {
      return;
    }
    var dtype = expected.dtype().real();
    // The bits of a NaN depend on the machine's instructions.
    var wanted = flat(expected, dtype);
    var got = flat(actual, dtype);
    boolean floats = dtype.isFloat() && dtype.bytes() > 1;
    for (long i = 0; i < wanted.type().numel(); i++) {
      boolean same =
          floats
              ? Double.compare(wanted.get(i), got.get(i)) == 0
              : expected
                      .memory()
                      .asSlice(i * dtype.bytes(), dtype.bytes())
                      .mismatch(actual.memory().asSlice(i * dtype.bytes(), dtype.bytes()))
                  < 0;
      if (!same) {
        assertThat(floats ? (Object) got.get(i) : "different bytes")
            .as("%s, element %s", what, i)
            .isEqualTo(floats ? (Object) wanted.get(i) : "the same bytes");
      }
    }
  }

  @Test
  void hasNoReductionOfOtherTypes() {
    for (var c :
        Set.of(
            new Case("all_reduce", DType.F8E4M3FN, "sum", Variant.ONE_SHOT),
            new Case("all_reduce", DType.F8E5M2, "max", Variant.ONE_SHOT))) {
      var plan =
          plan(
              List.of(c),
              2,
              new Shape(1, 1),
              Target.H200_X4,
              CompileOptions.DEFAULT.withVariants(ImmutableMap.of("r0", c.variant())));
      assertThatThrownBy(
              () -> {
                try (var session = Session.open(plan, new HostBackend())) {
                  session.run();
                }
              })
          .isInstanceOf(RunException.class)
          .hasMessageContaining("cases.graph:6")
          .hasMessageContaining(
              "no reduction %s of %s".formatted(c.reduction(), c.dtype().shortName()));
    }
  }
}
