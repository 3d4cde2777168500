package dev.symplan.ir.graph;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.ImmutableLists;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.Notes;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTypeException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Builds a graph statement by statement, with each op's rule applied as it is added. Whatever is
 * wrong goes to the sink and the builder goes on, so that one reading finds several errors.
 */
public final class GraphBuilder {

  /**
   * The source's description of one result.
   *
   * @param name empty for a result that nothing can read
   * @param annotation the type written out
   * @param stridesGiven whether the annotation gives strides, rather than leaving them open
   */
  public record ResultSpec(
      String name, Optional<Type> annotation, boolean stridesGiven, Span span) {
    public static ResultSpec named(String name, Span span) {
      return new ResultSpec(name, Optional.empty(), false, span);
    }
  }

  private final String name;
  private final Span span;
  private final DiagnosticSink sink;
  private final List<Value> inputs = new ArrayList<>();
  private final List<Op> ops = new ArrayList<>();
  private final List<Arg> outputs = new ArrayList<>();
  private final Map<String, Value> values = new HashMap<>();

  /** Each type once: the values of large graphs have few, and all analyses read them. */
  private final Map<Type, Type> knownTypes = new HashMap<>();

  private ImmutableIntArray ranks = ImmutableIntArray.of();
  private Notes notes = Notes.NONE;
  private Notes endNotes = Notes.NONE;
  private int nextId;

  public GraphBuilder(String name, Span span, DiagnosticSink sink) {
    this.name = name;
    this.span = span;
    this.sink = sink;
  }

  /** Says which ranks run the graph; without this, all do. */
  public GraphBuilder ranks(ImmutableIntArray newRanks) {
    ranks = newRanks;
    return this;
  }

  public GraphBuilder notes(Notes head, Notes end) {
    notes = head;
    endNotes = end;
    return this;
  }

  public Value input(String valueName, Type type, Span at) {
    var value = newValue(valueName, type, at, true);
    inputs.add(value);
    return value;
  }

  /** {@return the value called so, if one is defined above} */
  public Optional<Value> find(String valueName) {
    return Optional.ofNullable(values.get(valueName));
  }

  /**
   * Adds an op.
   *
   * @param args one for each parameter, as {@link dev.symplan.ir.op.ArgBinder} gives them
   * @param results the names and annotations of the results in the source; fewer than the op gives
   *     leaves the rest without a name
   * @return the results, all of them; where the op is wrong, values of the annotated types, so that
   *     what follows can still be checked
   */
  public ImmutableList<Value> op(
      OpDef def, ImmutableList<Arg> args, List<ResultSpec> results, Span at, Notes opNotes) {
    var typed = typed(def, args, results, at);
    var made = ImmutableList.<Value>builderWithExpectedSize(typed.types().size());
    results.forEach(this::refuseDonation);
    for (int i = 0; i < typed.types().size(); i++) {
      var spec = i < results.size() ? results.get(i) : ResultSpec.named("", at);
      var type = typed.types().get(i);
      made.add(newValue(spec.name(), type, spec.span(), spec.annotation().isPresent()));
    }
    var values = made.build();
    var op = new Op(def, args, values, at, opNotes);
    ops.add(typed.inferred().map(op::withInferred).orElse(op));
    return values;
  }

  /** Adds an output: a value, a number or {@code None}. */
  public void output(Arg output) {
    outputs.add(output);
  }

  /** {@return the graph; meaningless when the sink has errors} */
  public Graph build() {
    return new Graph(
        name,
        ranks,
        ImmutableList.copyOf(inputs),
        ImmutableList.copyOf(ops),
        ImmutableList.copyOf(outputs),
        nextId,
        span,
        notes,
        endNotes);
  }

  private void refuseDonation(ResultSpec spec) {
    if (spec.annotation().orElse(NoneType.NONE) instanceof TensorType tensor
        && tensor.space() == MemorySpace.DONATED) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.ANNOTATION_MISMATCH,
              spec.span(),
              "'%s' is annotated @donated, but is not an input of the graph".formatted(spec.name()),
              "only inputs can be donated; remove @donated"));
    }
  }

  private Value newValue(String valueName, Type type, Span at, boolean annotated) {
    var value = new Value(nextId++, valueName, once(type), at, annotated);
    if (!valueName.isEmpty()) {
      @Nullable Value before = values.putIfAbsent(valueName, value);
      if (before != null) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.DUPLICATE_NAME,
                at,
                "'%s' is already defined, at %s".formatted(valueName, before.span().shortForm()),
                "a graph's values are defined once; choose another name"));
      }
    }
    return value;
  }

  private Type once(Type type) {
    return knownTypes.computeIfAbsent(type, own -> own);
  }

  /**
   * The results of an op.
   *
   * @param inferred the results by the op's rule; empty without a rule, and where it refuses
   */
  private record Typed(List<Type> types, Optional<ImmutableList<OpResult>> inferred) {
    static Typed annotated(List<ResultSpec> specs) {
      return new Typed(
          specs.stream().map(s -> s.annotation().orElse(NoneType.NONE)).toList(), Optional.empty());
    }
  }

  private Typed typed(OpDef def, ImmutableList<Arg> args, List<ResultSpec> specs, Span at) {
    Optional<ImmutableList<OpResult>> inferred;
    try {
      inferred = def.infer(args);
    } catch (OpTypeException e) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.TYPE_MISMATCH, at, def.name() + ": " + e.getMessage(), e.hint()));
      return Typed.annotated(specs);
    } catch (IllegalArgumentException | ArithmeticException e) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.TYPE_MISMATCH, at, "%s: %s".formatted(def.name(), e.getMessage())));
      return Typed.annotated(specs);
    }
    if (inferred.isEmpty()) {
      reportMissingAnnotations(def, specs);
      for (var spec : specs) {
        if (spec.annotation().orElse(NoneType.NONE) instanceof TensorType tensor) {
          checkLayout(def, OpResult.fresh(tensor), tensor, spec);
        }
      }
      return Typed.annotated(specs);
    }
    var results = ImmutableLists.map(inferred.get(), own -> own.withType(once(own.type())));
    if (specs.size() > results.size()) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.BAD_ARGUMENT,
              specs.get(results.size()).span(),
              "%s gives %s, not %s"
                  .formatted(def.name(), Units.count(results.size(), "result"), specs.size())));
    }
    var types = new ArrayList<Type>(results.size());
    for (int i = 0; i < results.size(); i++) {
      var result = results.get(i);
      var spec = i < specs.size() ? specs.get(i) : ResultSpec.named("", at);
      var type = merge(def, result, spec);
      if (type instanceof TensorType tensor && result.view().isEmpty()) {
        checkLayout(def, result, tensor, spec);
      }
      types.add(type);
    }
    return new Typed(types, Optional.of(results));
  }

  /** A rule may give the type of an operand; where that asks to live is its own affair. */
  private static Type given(OpResult inferred) {
    return inferred.type() instanceof TensorType tensor && tensor.space() != MemorySpace.HOST
        ? tensor.withSpace(MemorySpace.ANY)
        : inferred.type();
  }

  private void reportMissingAnnotations(OpDef def, List<ResultSpec> specs) {
    for (var spec : specs) {
      if (spec.annotation().isEmpty() && !spec.name().isEmpty()) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.MISSING_ANNOTATION,
                spec.span(),
                "%s has no rule that gives the type of '%s'".formatted(def.name(), spec.name()),
                "write it out: %s: f32[8, 64] = …".formatted(spec.name())));
      }
    }
  }

  private Type merge(OpDef def, OpResult inferred, ResultSpec spec) {
    if (spec.annotation().isEmpty()) {
      return given(inferred);
    }
    var annotated = spec.annotation().get();
    var type =
        inHost(withStrides(annotated, inferred.type(), spec.stridesGiven()), inferred.type());
    if (inferred.allows(type)) {
      if (isInHost(type) != isInHost(inferred.type())) {
        wrongHost(def, inferred, spec);
      }
      return type;
    }
    sink.report(
        Diagnostic.error(
            DiagnosticCode.ANNOTATION_MISMATCH,
            spec.span(),
            "'%s' is annotated %s, but %s gives %s"
                .formatted(spec.name(), annotated, def.name(), inferred.type()),
            "correct the annotation or the arguments"));
    // Later statements were more often written for the op's result than for the annotation.
    return inferred.type();
  }

  private static boolean isInHost(Type type) {
    return type instanceof TensorType tensor && tensor.space() == MemorySpace.HOST;
  }

  /** An annotation may leave out that something is in the host's memory. */
  private static Type inHost(Type annotated, Type inferred) {
    return isInHost(inferred)
            && annotated instanceof TensorType tensor
            && tensor.space() == MemorySpace.ANY
        ? tensor.withSpace(MemorySpace.HOST)
        : annotated;
  }

  private void wrongHost(OpDef def, OpResult inferred, ResultSpec spec) {
    sink.report(
        Diagnostic.error(
            DiagnosticCode.ANNOTATION_MISMATCH,
            spec.span(),
            isInHost(inferred.type())
                ? "%s gives '%s' in the host's memory".formatted(def.name(), spec.name())
                : "'%s' is annotated @host, but %s does not give it there"
                    .formatted(spec.name(), def.name()),
            "symplan::offload and symplan::reload move tensors to the host's memory and back"));
  }

  /** Checks how a result in storage of its own lies there. */
  private void checkLayout(OpDef def, OpResult result, TensorType type, ResultSpec spec) {
    if (spec.stridesGiven() && !isWritable(def, type)) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.ANNOTATION_MISMATCH,
              spec.span(),
              "'%s' is annotated %s, but %s writes without gaps, row by row"
                  .formatted(spec.name(), type, def.name()),
              "leave the strides to the op, and change them with aten::as_strided or"
                  + " aten::clone"));
    } else if (!result.unspecified() && !type.liesApart()) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.TYPE_MISMATCH,
              spec.span(),
              "%s writes %s, but each element of a result needs separate memory"
                  .formatted(def.name(), type),
              "each stride must go beyond all that smaller strides reach; leave them to the op"));
    }
  }

  /** The op decides what the annotation leaves open. */
  private static Type withStrides(Type annotated, Type inferred, boolean stridesGiven) {
    return !stridesGiven
            && annotated instanceof TensorType wanted
            && inferred instanceof TensorType given
            && wanted.sizes().equals(given.sizes())
        ? wanted.withStrides(given.strides())
        : annotated;
  }

  /** Other ops write any layout; collectives move whole rows, or elements one by one. */
  private static boolean isWritable(OpDef def, TensorType wanted) {
    if (def.collective().isEmpty()) {
      return true;
    }
    return def.collective().get().kind().keepsLayout() ? wanted.isDense() : wanted.isContiguous();
  }
}
