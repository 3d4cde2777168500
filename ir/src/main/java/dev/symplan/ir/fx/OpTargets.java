package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.aten.FsdpOps;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.AliasInfo;
import dev.symplan.ir.op.ArgBinder;
import dev.symplan.ir.op.NativeSchemas;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.op.OpSchema;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.op.Param;
import dev.symplan.ir.op.SchemaResult;
import dev.symplan.ir.op.SchemaType;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The ops that the calls of FX texts mean. An op that the registry does not have gets PyTorch's
 * schema, or else one made up from the call, which leaves the op's effects open. There is one
 * warning for each such op.
 */
final class OpTargets {
  private static final String PREFIX = "torch.ops.";
  private static final String HIGHER_ORDER = "higher_order.";
  private static final String SYMM_MEM = PREFIX + "symm_mem.";

  /** Ops of {@code symm_mem} that one rank calls on the memory of another. */
  private static final ImmutableSet<String> ONE_SIDED =
      ImmutableSet.of(
          "get_remote_tensors",
          "nccl_get",
          "nccl_put",
          "nccl_put_with_signal",
          "nccl_wait_for_signal",
          "nvshmem_get",
          "nvshmem_put",
          "nvshmem_put_with_signal",
          "nvshmem_wait_for_signal");

  private static final ImmutableSet<SchemaType> NUMBERS =
      ImmutableSet.of(SchemaType.Base.INT, SchemaType.Base.FLOAT, SchemaType.Base.BOOL);

  private static final class Unknown {
    private final Span first;
    private final boolean bounded;
    private int uses;

    Unknown(Span first, boolean bounded) {
      this.first = first;
      this.bounded = bounded;
    }
  }

  private final OpRegistry registry;
  private final Map<String, Optional<OpDef>> known = new HashMap<>();
  private final Map<String, ImmutableList<OpSchema>> schemas = new HashMap<>();
  private final Map<String, Unknown> unknown = new LinkedHashMap<>();

  OpTargets(OpRegistry registry) {
    this.registry = registry;
  }

  /** {@return the op that {@code torch.ops.ns.name.overload} means, if it is registered} */
  Optional<OpDef> find(String target) {
    @Nullable Optional<OpDef> found = known.get(target);
    if (found == null) {
      found = registry.find(name(target));
      known.put(target, found);
    }
    return found;
  }

  /** {@return whether an op that nobody declared uses memory of peers, which no op there names} */
  boolean reachesPeers(String target) {
    return target.startsWith(SYMM_MEM)
        && ONE_SIDED.contains(name(target).name())
        && find(target).isEmpty();
  }

  private static OpName name(String target) {
    var path = target.substring(PREFIX.length());
    int first = path.indexOf('.');
    if (first < 0) {
      return new OpName("", path, "");
    }
    return OpName.parse(path.substring(0, first) + "::" + path.substring(first + 1));
  }

  /**
   * {@return the schema of an op, from the registry or PyTorch's, that has these parameters}
   *
   * @param given parameters that the op is called with
   */
  Optional<OpSchema> schema(String target, Set<String> given) {
    return Stream.concat(
            find(target).map(OpDef::schema).stream(),
            schemas.computeIfAbsent(target, t -> NativeSchemas.of(name(t))).stream())
        .filter(schema -> given.stream().allMatch(schema::hasParam))
        .findFirst();
  }

  /** {@return whether an op's only result is certain to be a tensor in storage of its own} */
  boolean givesFreshTensor(String target) {
    return target.startsWith(PREFIX)
        && find(target)
            .filter(
                def ->
                    def.flops().isPresent()
                        || def.has(OpTrait.ELEMENTWISE)
                        || def.has(OpTrait.CREATION)
                        || def.name().name().startsWith("empty")
                        || def.name().name().equals("clone"))
            .filter(def -> def.collective().isEmpty() && def.schema().results().size() == 1)
            .filter(def -> !def.schema().results().getFirst().alias().isPresent())
            .isPresent();
  }

  /** {@return an op without a rule: with PyTorch's schema if that is known, or with one made up} */
  OpDef opaque(String target, List<Arg> args, Map<String, Arg> keywords, Span span) {
    for (var schema : schemas.computeIfAbsent(target, t -> NativeSchemas.of(name(t)))) {
      if (fits(schema, args, keywords)) {
        if (!FsdpOps.copies(schema)) {
          unknown.computeIfAbsent(target, t -> new Unknown(span, true)).uses++;
        }
        return OpDef.opaque(schema);
      }
    }
    unknown.computeIfAbsent(target, t -> new Unknown(span, false)).uses++;
    var params = ImmutableList.<Param>builder();
    for (int i = 0; i < args.size(); i++) {
      var name = "arg" + i;
      while (keywords.containsKey(name)) {
        name += "_";
      }
      params.add(param(name, args.get(i), false));
    }
    keywords.forEach((key, arg) -> params.add(param(key, arg, true)));
    return OpDef.opaque(
        new OpSchema(
            name(target),
            params.build(),
            ImmutableList.of(
                new SchemaResult("", SchemaType.Base.ANY, AliasInfo.of(AliasInfo.ANYTHING, false))),
            false));
  }

  /** A tensor may be written, and be a view of any other afterwards. */
  private static Param param(String name, Arg arg, boolean keyword) {
    var alias = arg.operands().isEmpty() ? AliasInfo.NONE : AliasInfo.unknown(name);
    return new Param(name, type(arg), alias, Optional.empty(), "", keyword);
  }

  private static boolean fits(OpSchema schema, List<Arg> args, Map<String, Arg> keywords) {
    try {
      ArgBinder.bind(schema, args, keywords);
      return true;
    } catch (OpTypeException e) {
      return false;
    }
  }

  private static SchemaType type(Arg arg) {
    return switch (arg) {
      case Arg.Ref _ -> SchemaType.Base.TENSOR;
      case Arg.Int _ -> SchemaType.Base.INT;
      case Arg.Float _ -> SchemaType.Base.FLOAT;
      case Arg.Bool _ -> SchemaType.Base.BOOL;
      case Arg.Str _ -> SchemaType.Base.STRING;
      case Arg.Dtype _ -> SchemaType.Base.SCALAR_TYPE;
      case Arg.Symbol(String name) when name.equals("strided") -> SchemaType.Base.LAYOUT;
      case Arg.Symbol _ -> SchemaType.Base.MEMORY_FORMAT;
      case Arg.Device _ -> SchemaType.Base.DEVICE;
      case Arg.None _ -> new SchemaType.OptionalOf(SchemaType.Base.TENSOR);
      case Arg.Seq(ImmutableList<Arg> items) ->
          new SchemaType.ListOf(elementType(items), OptionalInt.empty());
    };
  }

  /** A type that all items of a list have. */
  private static SchemaType elementType(List<Arg> items) {
    var types = new LinkedHashSet<SchemaType>();
    boolean optional = false;
    for (var item : items) {
      if (item instanceof Arg.None) {
        optional = true;
      } else {
        types.add(type(item));
      }
    }
    var element =
        switch (types.size()) {
          case 0 -> optional ? SchemaType.Base.TENSOR : SchemaType.Base.INT;
          case 1 -> types.getFirst();
          default -> NUMBERS.containsAll(types) ? SchemaType.Base.NUMBER : SchemaType.Base.ANY;
        };
    return optional ? new SchemaType.OptionalOf(element) : element;
  }

  /** Warns of each op without a rule, once. */
  void warn(DiagnosticSink sink) {
    unknown.forEach(
        (target, use) -> {
          var op = target.substring(PREFIX.length());
          var uses = Units.count(use.uses, "use");
          sink.report(
              use.bounded
                  ? Diagnostic.warning(
                      DiagnosticCode.OPAQUE_OP,
                      use.first,
                      "%s has no implementation here; its schema is %s (%s)"
                          .formatted(op, NativeSchemas.origin(name(target)), uses),
                      "the graph can be planned, but not run")
                  : Diagnostic.warning(
                      DiagnosticCode.OPAQUE_OP,
                      use.first,
                      "%s is not known: it may write its tensors, make them views of each other,"
                              .formatted(op)
                          + " and communicate (%s)".formatted(uses),
                      op.startsWith(HIGHER_ORDER)
                          ? "the graph can be planned, but not run"
                          : "the graph can be planned, but not run; for a better plan, put the"
                              + " op's schema into a file and give --declare FILE"));
        });
  }
}
