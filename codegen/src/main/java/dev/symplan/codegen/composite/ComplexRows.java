package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.composite.ComplexNumbers.Operands;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Sums and products of the complex elements of rows. Sums are those of the parts. Folds have one
 * value, and products need two, so elements are multiplied in pairs, in memory of the call's own,
 * in as many steps as their number has bits.
 */
final class ComplexRows {
  private static final String COPY = "of_re; of_im";

  /** The product of nothing. */
  private static final String ONE = "prod(of_re); sum(of_im)";

  private final Expansion call;
  private final List<Step> steps = new ArrayList<>();

  /** The operand's dimensions: first those that count rows. */
  private final ImmutableList<Integer> order;

  private final TensorType self;
  private final int outer;
  private final long rows;
  private final long elements;

  private ComplexRows(Expansion call, Set<Integer> row) {
    this.call = call;
    var type = call.call().tensor("self");
    var dims = IntStream.range(0, type.rank()).boxed().toList();
    this.order =
        Stream.concat(dims.stream().filter(dim -> !row.contains(dim)), row.stream().sorted())
            .collect(ImmutableList.toImmutableList());
    this.self = ordered(type);
    this.outer = type.rank() - row.size();
    this.rows = product(self.sizes().subArray(0, outer));
    this.elements = product(self.sizes().subArray(outer, type.rank()));
  }

  static ImmutableList<Step> expand(Expansion call) {
    var name = call.call().schema().name().name();
    var result = call.results().getFirst().orElseThrow().dtype();
    boolean scan = name.equals("cumprod");
    var row = rowDims(call.call(), call.call().tensor("self").rank());
    if (result.kind() != DType.Kind.COMPLEX) {
      // Elements are converted first, which takes their real parts.
      var number = result.isFloat() ? "self_re" : "trunc(self_re)";
      var value =
          name.equals("mean") ? "sum(%s) / count()".formatted(number) : name + "(" + number + ")";
      return folded(call, Expressions.parse(value), row, scan);
    }
    return switch (name) {
      case "prod" -> new ComplexRows(call, row).product();
      case "cumprod" -> new ComplexRows(call, row).running();
      default -> folded(call, ComplexNumbers.exprs(call), row, scan);
    };
  }

  /** {@return the steps of an op that gives one value for each row} */
  static ImmutableList<Step> reduced(Expansion call, ImmutableList<Expr> exprs) {
    return folded(call, exprs, rowDims(call.call(), call.call().tensor("self").rank()), false);
  }

  private static ImmutableList<Step> folded(
      Expansion call, List<Expr> exprs, Set<Integer> row, boolean scan) {
    var sizes = call.call().tensor("self").sizes();
    return ComplexNumbers.step(
        call,
        exprs,
        sizes,
        row,
        ComplexNumbers.operands(call, sizes.length()),
        scan ? sizes : Expansion.without(sizes, row));
  }

  private static Set<Integer> rowDims(OpCall call, int rank) {
    boolean named = call.schema().hasParam("dim") && call.has("dim");
    var dims = named ? call.integers("dim") : ImmutableLongArray.of();
    // Here, but nowhere else, an empty list of dimensions reduces none.
    boolean none = named && dims.isEmpty() && call.schema().name().overload().equals("dims");
    // A number without dimensions may be reduced over its first one.
    return (dims.isEmpty() && !none || rank == 0
            ? IntStream.range(0, rank)
            : dims.stream().mapToInt(dim -> Math.toIntExact(dim < 0 ? dim + rank : dim)))
        .boxed()
        .collect(ImmutableSet.toImmutableSet());
  }

  private ImmutableList<Step> product() {
    var results = ComplexNumbers.parts(call.result(0, self.sizes().subArray(0, outer)));
    if (elements == 0) {
      var inner =
          IntStream.range(outer, self.rank()).boxed().collect(ImmutableSet.toImmutableSet());
      steps.add(
          Expansion.step(
              Expressions.parse(ONE),
              self.sizes(),
              inner,
              operands().seen(),
              operands().constants(),
              results.stream().map(seen -> widened(seen, inner.size())).toList()));
      return ImmutableList.copyOf(steps);
    }
    copyFrom(ImmutableList.of(0));
    long count = elements;
    while (count > 1) {
      long half = (count + 1) / 2;
      multiply(0, 0, half, 0, 0, count - half);
      count = half;
    }
    var first =
        ImmutableLongArray.copyOf(
            IntStream.range(0, outer).mapToLong(dim -> contiguous().stride(dim)));
    copyTo(self.sizes().subArray(0, outer), first, 0, results);
    return ImmutableList.copyOf(steps);
  }

  /** Each element times those before it, of which ever more have been multiplied (Hillis 1986). */
  private ImmutableList<Step> running() {
    copyFrom(ImmutableList.of(0, 1));
    int from = 0;
    for (long distance = 1; distance < elements; distance *= 2) {
      int to = 1 - from;
      multiply(from, 0, distance, to, distance, elements - distance);
      var sizes = ImmutableLongArray.of(rows, distance);
      copy(part(from, 0, sizes), sizes, part(to, 0, sizes));
      from = to;
    }
    var result = ordered(call.results().getFirst().orElseThrow());
    copyTo(
        self.sizes(),
        contiguous().strides(),
        from,
        ComplexNumbers.parts(new Seen(new Source.Result(0), result, false)));
    return ImmutableList.copyOf(steps);
  }

  private Operands operands() {
    var operands = new Operands(call);
    operands.add("of", new Source.Argument("self", 0), self);
    return operands;
  }

  /**
   * @param into the numbers of the pairs of temporaries
   */
  private void copyFrom(List<Integer> into) {
    var exprs = new ArrayList<Expr>();
    var results = new ArrayList<Seen>();
    for (int pair : into) {
      exprs.addAll(Expressions.parse(COPY));
      results.add(Expansion.temporary(2 * pair, self.sizes()));
      results.add(Expansion.temporary(2 * pair + 1, self.sizes()));
    }
    steps.add(
        Expansion.step(
            exprs,
            self.sizes(),
            ImmutableSet.of(),
            operands().seen(),
            operands().constants(),
            results));
  }

  private void copyTo(
      ImmutableLongArray sizes, ImmutableLongArray strides, int pair, List<Seen> results) {
    var type = new TensorType(Source.Temporary.DTYPE, sizes, strides, MemorySpace.ANY);
    copy(
        ImmutableList.of(
            new Seen(new Source.Temporary(2 * pair, 0), type, false),
            new Seen(new Source.Temporary(2 * pair + 1, 0), type, false)),
        sizes,
        results);
  }

  private void copy(List<Seen> from, ImmutableLongArray sizes, List<Seen> to) {
    steps.add(
        Expansion.step(
            Expressions.parse(COPY),
            sizes,
            ImmutableSet.of(),
            ImmutableMap.of("of_re", from.getFirst(), "of_im", from.getLast()),
            ImmutableMap.of(),
            to));
  }

  /**
   * Elements of one pair of temporaries times others of it; those written are not read by others.
   */
  private void multiply(int from, long left, long right, int to, long target, long count) {
    var sizes = ImmutableLongArray.of(rows, count);
    var one = part(from, left, sizes);
    var other = part(from, right, sizes);
    steps.add(
        Expansion.step(
            Expressions.ofComplex("aten::prod"),
            sizes,
            ImmutableSet.of(),
            Map.of(
                "left_re",
                one.getFirst(),
                "left_im",
                one.getLast(),
                "right_re",
                other.getFirst(),
                "right_im",
                other.getLast()),
            ImmutableMap.of(),
            part(to, target, sizes)));
  }

  /** {@return both parts of elements of each row} */
  private ImmutableList<Seen> part(int pair, long start, ImmutableLongArray sizes) {
    var type =
        new TensorType(
            Source.Temporary.DTYPE, sizes, ImmutableLongArray.of(elements, 1), MemorySpace.ANY);
    return ImmutableList.of(
        new Seen(new Source.Temporary(2 * pair, start), type, false),
        new Seen(new Source.Temporary(2 * pair + 1, start), type, false));
  }

  private TensorType contiguous() {
    return TensorType.contiguous(Source.Temporary.DTYPE, self.sizes());
  }

  private TensorType ordered(TensorType type) {
    return new TensorType(
        type.dtype(),
        ImmutableLongArray.copyOf(order.stream().mapToLong(type::size)),
        ImmutableLongArray.copyOf(order.stream().mapToLong(type::stride)),
        MemorySpace.ANY);
  }

  private static Seen widened(Seen seen, int dims) {
    var type = seen.type();
    for (int i = 0; i < dims; i++) {
      type = ComplexNumbers.inserted(type, type.rank());
    }
    return new Seen(seen.source(), type, seen.copied());
  }

  private static long product(ImmutableLongArray sizes) {
    return sizes.stream().reduce(1, (a, b) -> a * b);
  }
}
