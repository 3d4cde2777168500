package dev.symplan.ir.hlo;

import com.google.common.base.CharMatcher;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Notes;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.GraphBuilder;
import dev.symplan.ir.graph.GraphBuilder.ResultSpec;
import dev.symplan.ir.graph.RankNumbers;
import dev.symplan.ir.hlo.HloShape.Array;
import dev.symplan.ir.hlo.ops.HloOps;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpRegistry;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Adds ops to a graph for the instruction that is at hand: with its name, its place in the text and
 * its line of the user's program.
 */
final class GraphEmitter {
  /** More ops than any module has; computations that call each other can stand for more. */
  static final int MAX_OPS = 5_000_000;

  /** The characters that names of the graph language do not have. */
  private static final CharMatcher OTHER =
      CharMatcher.inRange('a', 'z')
          .or(CharMatcher.inRange('A', 'Z'))
          .or(CharMatcher.inRange('0', '9'))
          .or(CharMatcher.is('_'))
          .negate()
          .precomputed();

  private final GraphBuilder builder;
  private final OpRegistry registry;
  private final SourceTables sources;
  private final DiagnosticSink sink;
  private final Map<String, OpDef> defs = new HashMap<>();
  private final Map<String, Notes> notes = new HashMap<>();
  private final Map<String, Value> scalars = new HashMap<>();
  private final Map<Bound.Table, Value> tables = new HashMap<>();
  private final Map<RankNumber, Value> rankNumbers = new HashMap<>();
  private final Map<Value, Long> counters = new HashMap<>();
  private final Set<String> names = new HashSet<>();

  /** By name, the number to try next where it is taken. */
  private final Map<String, Integer> repeated = new HashMap<>();

  private record RankNumber(DType dtype, ImmutableList<Arg.Literal> numbers) {}

  /** The texts of warnings about arrays in the host's memory. */
  private final Set<String> hostWarnings = new HashSet<>();

  private int ops;
  private Span span = Span.NONE;
  private Notes note = Notes.NONE;

  private final Reading reading;

  /** Whether results must lie as the module says, as XLA's own passes rely on it. */
  private final boolean exactLayouts;

  GraphEmitter(
      GraphBuilder builder,
      OpRegistry registry,
      SourceTables sources,
      DiagnosticSink sink,
      Reading reading,
      boolean scheduled) {
    this.builder = builder;
    this.registry = registry;
    this.sources = sources;
    this.sink = sink;
    this.reading = reading;
    this.exactLayouts = scheduled && reading == Reading.STEPS;
  }

  GraphBuilder builder() {
    return builder;
  }

  Reading reading() {
    return reading;
  }

  /** Takes an instruction as the one that the next ops stand for. */
  void at(HloInstruction instruction) {
    span = instruction.span();
    note =
        sources
            .source(instruction)
            .map(
                source ->
                    notes.computeIfAbsent(
                        source, text -> new Notes(ImmutableList.of(), "# " + text)))
            .orElse(Notes.NONE);
  }

  /** {@return a name of the graph language that no value has yet} */
  String name(String hlo) {
    var word = OTHER.replaceFrom(hlo, '_');
    var name = word.isEmpty() || Character.isDigit(word.charAt(0)) ? "_" + word : word;
    if (names.add(name)) {
      return name;
    }
    // A loop gives the same names in each round: what was tried before is not tried again.
    int number = repeated.getOrDefault(word, 2);
    while (!names.add(word + "_" + number)) {
      number++;
    }
    repeated.put(word, number + 1);
    return word + "_" + number;
  }

  Optional<OpDef> find(String op) {
    return registry.find(dev.symplan.ir.op.OpName.parse(op));
  }

  /** {@return the result of an op, whose type its rule gives} */
  Value op(String hlo, String op, Arg... args) {
    return add(op, List.of(args), List.of(ResultSpec.named(name(hlo), span))).getFirst();
  }

  /** {@return the results of an op, whose types its rule gives} */
  ImmutableList<Value> named(List<String> names, String op, Arg... args) {
    return add(
        op, List.of(args), names.stream().map(hlo -> ResultSpec.named(name(hlo), span)).toList());
  }

  /** {@return the result of an op in storage of its own, which lies as the module says} */
  Value fresh(String hlo, Array shape, String op, Arg... args) {
    return add(op, List.of(args), List.of(spec(hlo, shape.tensor()))).getFirst();
  }

  private ResultSpec spec(String hlo, TensorType type) {
    return new ResultSpec(name(hlo), Optional.of(type), true, span);
  }

  /**
   * {@return the results of an op}
   *
   * @param args the first ones; the others have their defaults
   */
  ImmutableList<Value> add(String op, List<Arg> args, List<ResultSpec> results) {
    if (++ops > MAX_OPS) {
      throw tooLarge();
    }
    var def = defs.computeIfAbsent(op, registry::get);
    var params = def.schema().params();
    var all = ImmutableList.<Arg>builderWithExpectedSize(params.size()).addAll(args);
    for (int i = args.size(); i < params.size(); i++) {
      all.add(params.get(i).defaultValue().orElse(Arg.None.NONE));
    }
    var values = builder.op(def, all.build(), results, span, note);
    // Later instructions would only be wrong because this one is.
    sink.throwIfErrors();
    return values;
  }

  /**
   * {@return the results of an op {@code hlo::NAME} that gives the arrays of a shape}
   *
   * @param first its arguments before {@code results}
   * @throws CompileException when the module is read to be run
   */
  ImmutableList<Value> hlo(
      HloInstruction of, String op, List<Arg> first, HloShape shape, double flops) {
    refusePlanOnly(of);
    var arrays = shape.arrays().toList();
    var args = new ArrayList<Arg>(first);
    var types = ImmutableList.<Arg>builderWithExpectedSize(arrays.size());
    var specs = new ArrayList<ResultSpec>();
    for (int i = 0; i < arrays.size(); i++) {
      var type = arrays.get(i).tensor();
      types.add(new Arg.Str(type.toString()));
      specs.add(ResultSpec.named(name(arrays.size() == 1 ? of.name() : of.name() + "." + i), span));
    }
    args.add(new Arg.Seq(types.build()));
    args.add(new Arg.Str(Summaries.of(of)));
    args.add(new Arg.Float(flops));
    return add(HloOps.NAMESPACE + "::" + op, args, specs);
  }

  /**
   * {@return a value as one that a loop carries}
   *
   * @throws CompileException when the module is read to be run
   */
  Value carried(HloInstruction loop, Value value, String attributes) {
    refusePlanOnly(loop);
    return op(
        loop.name(),
        HloOps.NAMESPACE + "::while",
        new Arg.Ref(value),
        new Arg.Seq(ImmutableList.of(new Arg.Str(value.tensor().toString()))),
        new Arg.Str(attributes));
  }

  private void refusePlanOnly(HloInstruction instruction) {
    if (reading == Reading.OPENED) {
      throw failure(
          DiagnosticCode.UNSUPPORTED,
          "no op of PyTorch computes '%s', which is a %s"
              .formatted(instruction.name(), instruction.opcode()),
          "");
    }
  }

  /** {@return a value for all that an instruction became, as far as it is an array} */
  Value value(Bound bound, String hlo) {
    return switch (bound) {
      case Bound.Tensor(Value value) -> value;
      case Bound.Splat splat -> full(hlo + ".full", splat, splat.shape().tensor().sizes());
      case Bound.ByRank numbers ->
          expanded(rankNumber(numbers, hlo), numbers.shape().tensor().sizes(), hlo + ".wide");
      case Bound.Hosted hosted -> new HostedParts(this).brought(hosted, hlo);
      case Bound.Table table -> tables.computeIfAbsent(table, one -> Tables.value(this, one, hlo));
      case Bound.Tuple _, Bound.Pending _, Bound.Nothing _ ->
          throw failure(
              DiagnosticCode.TYPE_MISMATCH,
              "'%s' is not an array".formatted(hlo),
              "take a part of it with get-tuple-element");
    };
  }

  private Value full(String hlo, Bound.Splat splat, ImmutableLongArray sizes) {
    return op(
        hlo, "aten::full", integers(sizes), splat.number(), new Arg.Dtype(splat.shape().dtype()));
  }

  /** {@return the number as a tensor without dimensions, the same one for the same number} */
  Value scalar(Bound.Splat splat, String hlo) {
    var key = splat.shape().dtype().shortName() + splat.number().text();
    @Nullable Value known = scalars.get(key);
    if (known == null) {
      known = full(hlo + ".scalar", splat, ImmutableLongArray.of());
      scalars.put(key, known);
    }
    return known;
  }

  /** {@return the number of each rank as a tensor without dimensions} */
  Value rankNumber(Bound.ByRank bound, String hlo) {
    return rankNumbers.computeIfAbsent(
        new RankNumber(bound.shape().dtype(), bound.numbers()),
        _ ->
            op(
                hlo + ".of_rank",
                RankNumbers.name().toString(),
                Arg.Seq.of(bound.numbers().stream().mapToLong(n -> n.integer().orElseThrow())),
                new Arg.Dtype(bound.shape().dtype())));
  }

  private Value expanded(Value value, ImmutableLongArray sizes, String hlo) {
    return sizes.isEmpty() ? value : op(hlo, "aten::expand", new Arg.Ref(value), integers(sizes));
  }

  /** Notes that a value has its position along a dimension in each element. */
  Value counting(Value value, long dim) {
    counters.put(value, dim);
    return value;
  }

  /** {@return whether each element of a value is known to be its position along a dimension} */
  boolean counts(Value value, long dim) {
    return counters.getOrDefault(value, -1L) == dim;
  }

  /** {@return an index as a tensor without dimensions} */
  Value number(long value, String hlo) {
    return scalar(
        new Bound.Splat(
            new Arg.Int(value),
            new Array("s64", TensorType.contiguous(DType.I64), true, ImmutableIntArray.of(), 0)),
        hlo);
  }

  /** {@return a value that lies as its shape says, copied if it does not and that matters} */
  Value conform(Value value, Array shape, String hlo) {
    return exactLayouts ? laidOut(value, shape, hlo) : value;
  }

  /** {@return a value that lies as its shape says, copied if it does not} */
  Value laidOut(Value value, Array shape, String hlo) {
    if (!value.tensor().sizes().equals(shape.tensor().sizes())) {
      throw failure(
          DiagnosticCode.TYPE_MISMATCH,
          "'%s' is %s, not %s".formatted(value.name(), value.type(), shape.tensor()),
          "");
    }
    return value.tensor().hasSameLayout(shape.tensor())
        ? value
        : fresh(hlo, shape, "aten::clone", new Arg.Ref(value));
  }

  /** {@return the dimensions in another order; the value itself where that changes nothing} */
  Value permuted(Value value, ImmutableIntArray order, String hlo) {
    for (int i = 0; i < order.length(); i++) {
      if (order.get(i) != i) {
        return op(
            hlo, "aten::permute", new Arg.Ref(value), Arg.Seq.of(order.stream().asLongStream()));
      }
    }
    return value;
  }

  Value reshaped(Value value, ImmutableLongArray sizes, String hlo) {
    return value.tensor().sizes().equals(sizes)
        ? value
        : op(hlo, "aten::reshape", new Arg.Ref(value), integers(sizes));
  }

  Value converted(Value value, DType dtype, String hlo) {
    return value.tensor().dtype() == dtype
        ? value
        : op(hlo, "prims::convert_element_type", new Arg.Ref(value), new Arg.Dtype(dtype));
  }

  static Arg.Seq integers(ImmutableLongArray values) {
    return Arg.Seq.of(values.toArray());
  }

  static Arg.Seq refs(List<Value> values) {
    return new Arg.Seq(
        values.stream().<Arg>map(Arg.Ref::new).collect(ImmutableList.toImmutableList()));
  }

  /** Warns, once with each text, that the plan needs more of the device's memory than XLA does. */
  void warnOfHost(HloInstruction instruction, String text) {
    if (hostWarnings.add(text)) {
      sink.report(
          Diagnostic.warning(
              DiagnosticCode.UNSUPPORTED,
              instruction.span(),
              text.formatted(instruction.name()),
              "the plan needs more device memory than XLA does"));
    }
  }

  CompileException tooLarge() {
    return failure(
        DiagnosticCode.TOO_LARGE,
        "the module stands for more than %s ops".formatted(MAX_OPS),
        "do its computations call each other again and again, or do its loops have many rounds?");
  }

  /** {@return a failure of an instruction that contradicts the rest of the module} */
  CompileException wrong(String message) {
    return failure(DiagnosticCode.TYPE_MISMATCH, message, "");
  }

  CompileException failure(DiagnosticCode code, String message, String hint) {
    sink.report(Diagnostic.error(code, span, message, hint));
    return new CompileException(sink.diagnostics());
  }
}
